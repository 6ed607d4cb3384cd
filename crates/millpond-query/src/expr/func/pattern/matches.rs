//! What the groups of an expression match, and the parts of a text between matches.

use super::super::catalog::{Proc, TEXT, TEXT_ARRAY, proc};
use super::super::row_list::RowList;
use super::super::value::{body, wrong_arguments};
use super::super::{Columns, rows};
use super::search::Matches;
use super::{flags, flags_of};
use crate::error::Result;
use crate::expr::Env;
use crate::expr::regex::{self, Groups, Options};
use crate::types::array::build_list;
use crate::{Datum, Value};

const TEXT_ARRAY_OID: u32 = 1009;

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        3396,
        "regexp_match",
        &[TEXT, TEXT],
        TEXT_ARRAY,
        body!(env, |s: &str, p: &str| first(s, p, "", env)),
    ),
    proc(
        3397,
        "regexp_match",
        &[TEXT, TEXT, TEXT],
        TEXT_ARRAY,
        body!(env, |s: &str, p: &str, f: &str| first(s, p, f, env)),
    ),
    proc(2763, "regexp_matches", &[TEXT, TEXT], TEXT_ARRAY, rows(TEXT_ARRAY_ROWS, all)),
    proc(2764, "regexp_matches", &[TEXT, TEXT, TEXT], TEXT_ARRAY, rows(TEXT_ARRAY_ROWS, all)),
    proc(
        2767,
        "regexp_split_to_array",
        &[TEXT, TEXT],
        TEXT_ARRAY,
        body!(env, |s: &str, p: &str| split_array(s, p, "", env)),
    ),
    proc(
        2768,
        "regexp_split_to_array",
        &[TEXT, TEXT, TEXT],
        TEXT_ARRAY,
        body!(env, |s: &str, p: &str, f: &str| split_array(s, p, f, env)),
    ),
    proc(2765, "regexp_split_to_table", &[TEXT, TEXT], TEXT, rows(TEXT_ROWS, split_rows)),
    proc(2766, "regexp_split_to_table", &[TEXT, TEXT, TEXT], TEXT, rows(TEXT_ROWS, split_rows)),
];

const TEXT_ROWS: Columns = &[(None, TEXT)];
const TEXT_ARRAY_ROWS: Columns = &[(None, TEXT_ARRAY)];

fn list(parts: &[Option<String>]) -> Result<Value> {
    let datums = parts.iter().map(|part| part.as_deref().map_or(Datum::Null, Datum::Text));
    Ok(build_list(TEXT_ARRAY_OID, datums)?)
}

/// What each group matches; the whole match where there are no groups.
fn parts_of(groups: &Groups, text: &[char]) -> Vec<Option<String>> {
    let wanted = if groups.len() > 1 { groups.get(1..) } else { groups.get(..) };
    let part = |(from, to): (usize, usize)| text.get(from..to).map(|part| part.iter().collect());
    wanted.unwrap_or_default().iter().map(|place| place.and_then(part)).collect()
}

fn first(s: &str, pattern: &str, letters: &str, env: &Env<'_>) -> Result<Option<Value>> {
    let options =
        flags_of("regexp_match", letters).map_err(|error| match letters.contains('g') {
            true => error.hint("Use the regexp_matches function instead."),
            false => error,
        })?;
    let mut found = None;
    each_match(s, pattern, options, env, &mut |parts| {
        found = Some(list(&parts)?);
        Ok(false)
    })?;
    Ok(found)
}

/// Calls a function for each match, until it wants no more.
fn each_match(
    s: &str,
    pattern: &str,
    options: Options,
    env: &Env<'_>,
    each: &mut dyn FnMut(Vec<Option<String>>) -> Result<bool>,
) -> Result<()> {
    let regex = regex::compiled(pattern, options)?;
    let text: Vec<char> = s.chars().collect();
    let mut matches = Matches { regex: &regex, text: &text, next: 0 };
    while let Some(groups) = matches.next(env)? {
        if !each(parts_of(&groups, &text))? {
            break;
        }
    }
    Ok(())
}

/// The text, the pattern and the flags of a call.
fn texts<'a>(args: &[Datum<'a>]) -> Result<(&'a str, &'a str, &'a str)> {
    match args {
        [Datum::Text(s), Datum::Text(pattern)] => Ok((s, pattern, "")),
        [Datum::Text(s), Datum::Text(pattern), Datum::Text(letters)] => Ok((s, pattern, letters)),
        _ => Err(wrong_arguments(args.len())),
    }
}

fn all(args: &[Datum<'_>], rows: &mut RowList<'_>) -> Result<()> {
    let (s, pattern, letters) = texts(args)?;
    let (options, global) = flags(letters)?;
    let env = rows.env;
    each_match(s, pattern, options, env, &mut |parts| {
        rows.push([list(&parts)?])?;
        Ok(global)
    })
}

/// The parts between matches. An empty match at either end, or behind another match, is none.
fn split(s: &str, pattern: &str, options: Options, parts: &mut RowList<'_>) -> Result<()> {
    let regex = regex::compiled(pattern, options)?;
    let text: Vec<char> = s.chars().collect();
    let mut matches = Matches { regex: &regex, text: &text, next: 0 };
    let (mut last_end, mut part_start) = (0, 0);
    let part = |from: usize, to: usize| {
        [Value::Text(text.get(from..to).unwrap_or_default().iter().collect())]
    };
    while let Some(groups) = matches.next(parts.env)? {
        let Some(&Some((start, end))) = groups.first() else { break };
        if start < text.len() && end > last_end {
            parts.push(part(part_start, start))?;
            part_start = end;
        }
        last_end = end;
    }
    parts.push(part(part_start, text.len()))
}

fn split_array(s: &str, pattern: &str, letters: &str, env: &Env<'_>) -> Result<Value> {
    let options = flags_of("regexp_split_to_array", letters)?;
    let mut parts = RowList::new(env);
    split(s, pattern, options, &mut parts)?;
    Ok(build_list(TEXT_ARRAY_OID, parts.values().iter().map(Value::as_datum))?)
}

fn split_rows(args: &[Datum<'_>], rows: &mut RowList<'_>) -> Result<()> {
    let (s, pattern, letters) = texts(args)?;
    let options = flags_of("regexp_split_to_table", letters)?;
    split(s, pattern, options, rows)
}
