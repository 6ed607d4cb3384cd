//! `COPY`, in PostgreSQL's current syntax and the one from before 9.0.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Name, Statement, parse_one};
use crate::error::{Result, SqlError, SqlState};

/// What is copied.
#[derive(Debug, Clone)]
pub(crate) enum CopySource {
    Table { name: Name, columns: Option<Vec<String>> },
    Query(Box<Statement>),
}

/// How rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    pub(crate) csv: bool,
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) header: bool,
    pub(crate) header_match: bool,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
    pub(crate) force_quote: ForceQuote,
    pub(crate) force_not_null: Vec<String>,
    pub(crate) force_null: Vec<String>,
    pub(crate) freeze: bool,
}

/// Which columns of a csv are always quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ForceQuote {
    None,
    All,
    Columns(Vec<String>),
}

/// A COPY statement.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub(crate) source: CopySource,
    pub(crate) to: bool,
    pub(crate) options: CopyOptions,
}

/// Options as they were given, before defaults are known.
#[derive(Default)]
struct Given {
    csv: bool,
    binary: bool,
    delimiter: Option<String>,
    null: Option<String>,
    header: bool,
    header_match: bool,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<ForceQuote>,
    force_not_null: Vec<String>,
    force_null: Vec<String>,
    freeze: bool,
}

/// Whether a statement begins that may be copied. (Another COPY may not, however deep it were.)
fn is_preparable(cursor: &Cursor<'_, '_>) -> bool {
    const FIRST: [&str; 7] = ["select", "with", "values", "table", "insert", "update", "delete"];
    *cursor.peek() == Token::LParen || FIRST.iter().any(|word| cursor.is_word(word))
}

/// Parses what follows the word COPY.
pub(super) fn parse(cursor: &mut Cursor<'_, '_>) -> Result<Copy> {
    let source = if cursor.accept_token(&Token::LParen) {
        let inside = cursor.inside_parentheses()?;
        let mut inner = Cursor::new(cursor.source, inside);
        if !is_preparable(&inner) {
            return Err(inner.unexpected());
        }
        let statement = parse_one(&mut inner)?;
        if matches!(statement, Statement::Empty) {
            return Err(cursor.unexpected());
        }
        inner.expect_end()?;
        CopySource::Query(Box::new(statement))
    } else {
        cursor.accept("binary");
        let name = cursor.name()?;
        let mut columns = None;
        if cursor.accept_token(&Token::LParen) {
            columns = Some(columns_until_parenthesis(cursor)?);
        }
        CopySource::Table { name, columns }
    };
    let to = cursor.is_word("to");
    if !to && !cursor.is_word("from") {
        return Err(cursor.unexpected());
    }
    if !to && matches!(source, CopySource::Query(_)) {
        return Err(cursor.unexpected());
    }
    cursor.advance();
    endpoint(cursor, to)?;
    let mut given = Given::default();
    cursor.accept("with");
    if cursor.accept_token(&Token::LParen) {
        modern_options(cursor, &mut given)?;
    } else {
        legacy_options(cursor, &mut given)?;
    }
    if cursor.is_word("where") {
        return Err(cursor.unsupported("COPY FROM ... WHERE"));
    }
    Ok(Copy { source, to, options: finish(cursor, given, to)? })
}

fn endpoint(cursor: &mut Cursor<'_, '_>, to: bool) -> Result<()> {
    if cursor.accept("stdin") || cursor.accept("stdout") {
        return Ok(());
    }
    if cursor.is_word("program") {
        return Err(cursor.unsupported("COPY with a program"));
    }
    if matches!(cursor.peek(), Token::SingleQuotedString(_)) {
        let hint = if to {
            "Use COPY TO STDOUT, or psql's \\copy."
        } else {
            "Use COPY FROM STDIN, or psql's \\copy."
        };
        return Err(cursor.unsupported("COPY with a file of the server").hint(hint));
    }
    Err(cursor.unexpected())
}

fn columns_until_parenthesis(cursor: &mut Cursor<'_, '_>) -> Result<Vec<String>> {
    let mut columns = vec![cursor.ident()?];
    while cursor.accept_token(&Token::Comma) {
        columns.push(cursor.ident()?);
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(columns)
}

fn switch(cursor: &mut Cursor<'_, '_>) -> Result<String> {
    match cursor.peek() {
        Token::Comma | Token::RParen => Ok("on".to_owned()),
        _ => cursor.value(),
    }
}

fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "on" | "true" | "1" | "yes")
}

fn modern_options(cursor: &mut Cursor<'_, '_>, given: &mut Given) -> Result<()> {
    loop {
        let place = cursor.peek_token().span;
        let name = cursor.ident()?;
        match name.as_str() {
            "format" => match cursor.value()?.to_ascii_lowercase().as_str() {
                "text" => given.csv = false,
                "csv" => given.csv = true,
                "binary" => given.binary = true,
                other => {
                    let error = SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("COPY format \"{other}\" not recognized"),
                    );
                    return Err(cursor.source.place(error, place));
                }
            },
            "freeze" => given.freeze = is_on(&switch(cursor)?),
            "delimiter" => given.delimiter = Some(cursor.string()?),
            "null" => given.null = Some(cursor.string()?),
            "header" => {
                let value = switch(cursor)?;
                given.header_match = value.eq_ignore_ascii_case("match");
                given.header = given.header_match || is_on(&value);
            }
            "quote" => given.quote = Some(cursor.string()?),
            "escape" => given.escape = Some(cursor.string()?),
            "encoding" => encoding(cursor)?,
            "force_quote" => given.force_quote = Some(force_quote(cursor)?),
            "force_not_null" => {
                cursor.expect_token(&Token::LParen)?;
                given.force_not_null = columns_until_parenthesis(cursor)?;
            }
            "force_null" => {
                cursor.expect_token(&Token::LParen)?;
                given.force_null = columns_until_parenthesis(cursor)?;
            }
            other => {
                let error = SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("option \"{other}\" not recognized"),
                );
                return Err(cursor.source.place(error, place));
            }
        }
        if cursor.accept_token(&Token::RParen) {
            return Ok(());
        }
        cursor.expect_token(&Token::Comma)?;
    }
}

fn encoding(cursor: &mut Cursor<'_, '_>) -> Result<()> {
    let name = cursor.string()?;
    if name.eq_ignore_ascii_case("utf8") || name.eq_ignore_ascii_case("utf-8") {
        return Ok(());
    }
    Err(SqlError::unsupported(format!("COPY in encoding \"{name}\"")))
}

fn force_quote(cursor: &mut Cursor<'_, '_>) -> Result<ForceQuote> {
    if cursor.accept_token(&Token::Mul) {
        return Ok(ForceQuote::All);
    }
    cursor.expect_token(&Token::LParen)?;
    Ok(ForceQuote::Columns(columns_until_parenthesis(cursor)?))
}

fn legacy_options(cursor: &mut Cursor<'_, '_>, given: &mut Given) -> Result<()> {
    loop {
        if cursor.accept("binary") {
            given.binary = true;
        } else if cursor.accept("freeze") {
            given.freeze = true;
        } else if cursor.accept("csv") {
            given.csv = true;
        } else if cursor.accept("header") {
            given.header = true;
        } else if cursor.accept("delimiter") || cursor.accept("delimiters") {
            cursor.accept("as");
            given.delimiter = Some(cursor.string()?);
        } else if cursor.accept("null") {
            cursor.accept("as");
            given.null = Some(cursor.string()?);
        } else if cursor.accept("quote") {
            cursor.accept("as");
            given.quote = Some(cursor.string()?);
        } else if cursor.accept("escape") {
            cursor.accept("as");
            given.escape = Some(cursor.string()?);
        } else if cursor.accept("encoding") {
            encoding(cursor)?;
        } else if cursor.accept("force") {
            legacy_force(cursor, given)?;
        } else {
            return Ok(());
        }
    }
}

fn legacy_force(cursor: &mut Cursor<'_, '_>, given: &mut Given) -> Result<()> {
    let list = |cursor: &mut Cursor<'_, '_>| -> Result<Vec<String>> {
        let mut columns = vec![cursor.ident()?];
        while cursor.accept_token(&Token::Comma) {
            columns.push(cursor.ident()?);
        }
        Ok(columns)
    };
    if cursor.accept("quote") {
        given.force_quote = Some(if cursor.accept_token(&Token::Mul) {
            ForceQuote::All
        } else {
            ForceQuote::Columns(list(cursor)?)
        });
    } else if cursor.accept("not") {
        cursor.expect("null")?;
        given.force_not_null = list(cursor)?;
    } else {
        cursor.expect("null")?;
        given.force_null = list(cursor)?;
    }
    Ok(())
}

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn one_byte(what: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(bad(format!("COPY {what} must be a single one-byte character"))),
    }
}

fn finish(cursor: &Cursor<'_, '_>, given: Given, to: bool) -> Result<CopyOptions> {
    if given.binary {
        return Err(cursor.unsupported("COPY in binary format"));
    }
    let csv_only = |present: bool, what: &str| {
        if present && !given.csv {
            Err(bad(format!("COPY {what} requires CSV mode")))
        } else {
            Ok(())
        }
    };
    csv_only(given.quote.is_some(), "QUOTE")?;
    csv_only(given.escape.is_some(), "ESCAPE")?;
    csv_only(given.force_quote.is_some(), "FORCE_QUOTE")?;
    csv_only(!given.force_not_null.is_empty(), "FORCE_NOT_NULL")?;
    csv_only(!given.force_null.is_empty(), "FORCE_NULL")?;
    if to && given.freeze {
        return Err(bad("COPY FREEZE cannot be used with COPY TO"));
    }
    let default_delimiter = if given.csv { "," } else { "\t" };
    let delimiter = one_byte("delimiter", given.delimiter.as_deref().unwrap_or(default_delimiter))?;
    let quote = one_byte("quote", given.quote.as_deref().unwrap_or("\""))?;
    let escape = match &given.escape {
        Some(escape) => one_byte("escape", escape)?,
        None => quote,
    };
    let null = given.null.unwrap_or_else(|| if given.csv { "" } else { "\\N" }.to_owned());
    if delimiter == b'\n' || delimiter == b'\r' {
        return Err(bad("COPY delimiter cannot be newline or carriage return"));
    }
    if null.contains(['\n', '\r']) {
        return Err(bad("COPY null representation cannot use newline or carriage return"));
    }
    if !given.csv && (delimiter.is_ascii_alphanumeric() || delimiter == b'\\' || delimiter == b'.')
    {
        return Err(bad(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
    }
    if given.csv && quote == delimiter {
        return Err(bad("COPY delimiter and quote must be different"));
    }
    if null.as_bytes().contains(&delimiter) {
        return Err(bad("COPY delimiter character must not appear in the NULL specification"));
    }
    if given.header_match && to {
        return Err(bad("cannot use \"match\" with HEADER in COPY TO"));
    }
    Ok(CopyOptions {
        csv: given.csv,
        delimiter,
        null,
        header: given.header,
        header_match: given.header_match,
        quote,
        escape,
        force_quote: given.force_quote.unwrap_or(ForceQuote::None),
        force_not_null: given.force_not_null,
        force_null: given.force_null,
        freeze: given.freeze,
    })
}
