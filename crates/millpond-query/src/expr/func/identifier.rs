//! `parse_ident`: the parts of a name as SQL writes it.

use super::catalog::{BOOL, Param, Proc, TEXT, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::types::array::build_list;
use crate::{DataType, Datum, Value};

const TEXT_ARRAY: DataType = DataType::Other { oid: 1009, typmod: -1 };

pub(super) static PROCS: &[Proc] = &[
    proc(
        1268,
        "parse_ident",
        &[TEXT, BOOL],
        Param::Type(TEXT_ARRAY),
        body!(|name: &str, strict: bool| parse_ident(name, strict)),
    ),
    // PostgreSQL has one function, whose last argument has a default.
    proc(
        0,
        "parse_ident",
        &[TEXT],
        Param::Type(TEXT_ARRAY),
        body!(|name: &str| parse_ident(name, true)),
    ),
];

fn invalid(name: &str, detail: Option<String>) -> SqlError {
    let error = SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("string is not a valid identifier: \"{name}\""),
    );
    match detail {
        Some(detail) => error.detail(detail),
        None => error,
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// Letters of other alphabets begin names, too.
fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit() || c == '$'
}

/// The parts of a name. Not strict: what follows the name does not count.
fn parse_ident(name: &str, strict: bool) -> Result<Value> {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = name.trim_start_matches(is_space);
    let mut behind_point = false;
    loop {
        let (part, behind) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_part(name, quoted)?
        } else if rest.starts_with(begins_name) {
            let end = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
            (rest[..end].to_ascii_lowercase(), &rest[end..])
        } else {
            // No part begins here.
            return Err(invalid(
                name,
                match (rest.starts_with('.'), behind_point) {
                    (true, _) => Some("No valid identifier before \".\".".to_owned()),
                    (false, true) => Some("No valid identifier after \".\".".to_owned()),
                    (false, false) => None,
                },
            ));
        };
        parts.push(part);
        rest = behind.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(next) => {
                behind_point = true;
                rest = next.trim_start_matches(is_space);
            }
            None if rest.is_empty() || !strict => break,
            None => return Err(invalid(name, None)),
        }
    }
    Ok(build_list(TEXT_ARRAY.oid(), parts.iter().map(|part| Datum::Text(part)))?)
}

/// A part in quotes, and what follows it. Two quotes within it are one.
fn quoted_part<'a>(name: &str, quoted: &'a str) -> Result<(String, &'a str)> {
    let mut part = String::new();
    let mut rest = quoted;
    loop {
        let Some((text, behind)) = rest.split_once('"') else {
            return Err(invalid(name, Some("String has unclosed double quotes.".to_owned())));
        };
        part.push_str(text);
        match behind.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None if part.is_empty() => {
                let detail = "Quoted identifier must not be empty.".to_owned();
                return Err(invalid(name, Some(detail)));
            }
            None => return Ok((part, behind)),
        }
    }
}
