//! COPY and its options.

use millpond_syntax::tree::{self, CopyStmt, DefArg, DefElem};

use super::name::strings;
use super::option::{boolean, syntax_error, text};
use super::{Name, Source, Statement, statement};
use crate::error::{Result, SqlError, SqlState};

/// What is copied.
#[derive(Debug, Clone)]
pub enum CopySource {
    Table { name: Name, columns: Option<Vec<String>> },
    Query(Box<Statement>),
}

/// How rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    pub csv: bool,
    pub delimiter: u8,
    pub null: String,
    pub header: bool,
    pub header_match: bool,
    pub quote: u8,
    pub escape: u8,
    pub force_quote: ForceQuote,
    pub force_not_null: Vec<String>,
    pub force_null: Vec<String>,
    pub freeze: bool,
}

/// Which columns of a csv are always quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForceQuote {
    None,
    All,
    Columns(Vec<String>),
}

/// A COPY statement.
#[derive(Debug, Clone)]
pub struct Copy {
    pub source: CopySource,
    pub to: bool,
    pub options: CopyOptions,
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

/// A COPY as one that can be run.
pub(super) fn copy(stmt: CopyStmt, source: Source<'_>) -> Result<Copy> {
    let to = !stmt.is_from;
    if stmt.is_program {
        return Err(SqlError::unsupported("COPY with a program"));
    }
    if stmt.filename.is_some() {
        let hint = if to {
            "Use COPY TO STDOUT, or psql's \\copy."
        } else {
            "Use COPY FROM STDIN, or psql's \\copy."
        };
        return Err(SqlError::unsupported("COPY with a file of the server").hint(hint));
    }
    if stmt.where_clause.is_some() {
        return Err(SqlError::unsupported("COPY FROM ... WHERE"));
    }
    let options = finish(given(&stmt.options, to, &source)?, to)?;
    let source = match stmt.source {
        tree::CopySource::Relation { relation, attlist } => {
            let columns = (!attlist.is_empty()).then(|| strings(&attlist));
            CopySource::Table { name: Name::of_relation(&relation, &source)?, columns }
        }
        tree::CopySource::Query(query) => CopySource::Query(Box::new(statement(query, source)?)),
    };
    Ok(Copy { source, to, options })
}

fn given(options: &[DefElem], to: bool, source: &Source<'_>) -> Result<Given> {
    let mut given = Given::default();
    for (at, option) in options.iter().enumerate() {
        let place = source.position(option.location);
        if options[..at].iter().any(|other| other.defname == option.defname) {
            return Err(syntax_error("conflicting or redundant options").at(place));
        }
        take(option, to, &mut given, place)?;
    }
    Ok(given)
}

fn take(option: &DefElem, to: bool, given: &mut Given, place: usize) -> Result<()> {
    match &*option.defname {
        "format" => match text(option)?.as_str() {
            "text" => {}
            "csv" => given.csv = true,
            "binary" => given.binary = true,
            other => return Err(bad(format!("COPY format \"{other}\" not recognized")).at(place)),
        },
        "freeze" => given.freeze = boolean(option)?,
        "delimiter" => given.delimiter = Some(text(option)?),
        "null" => given.null = Some(text(option)?),
        "header" => (given.header, given.header_match) = header(option, to)?,
        "quote" => given.quote = Some(text(option)?),
        "escape" => given.escape = Some(text(option)?),
        "encoding" => {
            let name = text(option)?;
            let letters = name.chars().filter(char::is_ascii_alphanumeric);
            let known = letters.collect::<String>().to_ascii_lowercase();
            if known != "utf8" && known != "unicode" {
                return Err(SqlError::unsupported(format!("COPY in encoding \"{name}\"")));
            }
        }
        "force_quote" if matches!(option.arg, Some(DefArg::Star)) => {
            given.force_quote = Some(ForceQuote::All);
        }
        "force_quote" => {
            given.force_quote = Some(ForceQuote::Columns(columns(option, place)?));
        }
        "force_not_null" => given.force_not_null = columns(option, place)?,
        "force_null" => given.force_null = columns(option, place)?,
        other => return Err(syntax_error(format!("option \"{other}\" not recognized")).at(place)),
    }
    Ok(())
}

/// Whether there is a header, and whether it must match.
fn header(option: &DefElem, to: bool) -> Result<(bool, bool)> {
    match &option.arg {
        Some(DefArg::String(text)) if text.eq_ignore_ascii_case("match") => {
            if to {
                return Err(refused(format!("cannot use \"{text}\" with HEADER in COPY TO")));
            }
            Ok((true, true))
        }
        _ => match boolean(option) {
            Ok(header) => Ok((header, false)),
            Err(_) => Err(syntax_error("header requires a Boolean value or \"match\"")),
        },
    }
}

fn columns(option: &DefElem, place: usize) -> Result<Vec<String>> {
    let Some(DefArg::List(list)) = &option.arg else {
        let message =
            format!("argument to option \"{}\" must be a list of column names", option.defname);
        return Err(bad(message).at(place));
    };
    let name = |arg: &DefArg| match arg {
        DefArg::String(name) => (&**name).into(),
        _ => String::new(),
    };
    Ok(list.iter().map(name).collect())
}

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The error of an option that the format or the direction does not have.
fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn one_byte(what: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(refused(format!("COPY {what} must be a single one-byte character"))),
    }
}

/// The options with their defaults. Checks are made in PostgreSQL's order.
fn finish(given: Given, to: bool) -> Result<CopyOptions> {
    check_binary(&given)?;
    let csv = given.csv;
    let default_delimiter = if csv { "," } else { "\t" };
    let delimiter = one_byte("delimiter", given.delimiter.as_deref().unwrap_or(default_delimiter))?;
    let null = match &given.null {
        Some(null) => null.clone(),
        None => if csv { "" } else { "\\N" }.to_owned(),
    };
    check_delimiter(delimiter, &null, csv)?;
    let (quote, escape) = quotes(&given, delimiter)?;
    check_forced(&given, to)?;
    if null.as_bytes().contains(&delimiter) {
        return Err(refused("COPY delimiter must not appear in the NULL specification"));
    }
    if csv && null.as_bytes().contains(&quote) {
        return Err(refused("CSV quote character must not appear in the NULL specification"));
    }
    Ok(CopyOptions {
        csv,
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

fn check_binary(given: &Given) -> Result<()> {
    if !given.binary {
        return Ok(());
    }
    if given.delimiter.is_some() {
        return Err(syntax_error("cannot specify DELIMITER in BINARY mode"));
    }
    if given.null.is_some() {
        return Err(syntax_error("cannot specify NULL in BINARY mode"));
    }
    if given.header {
        return Err(refused("cannot specify HEADER in BINARY mode"));
    }
    Err(SqlError::unsupported("COPY in binary format"))
}

fn check_delimiter(delimiter: u8, null: &str, csv: bool) -> Result<()> {
    if delimiter == b'\n' || delimiter == b'\r' {
        return Err(bad("COPY delimiter cannot be newline or carriage return"));
    }
    if null.contains(['\n', '\r']) {
        return Err(bad("COPY null representation cannot use newline or carriage return"));
    }
    let is_reserved = matches!(delimiter, b'a'..=b'z' | b'0'..=b'9' | b'\\' | b'.');
    if !csv && is_reserved {
        return Err(bad(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
    }
    Ok(())
}

/// The quote and the escape.
fn quotes(given: &Given, delimiter: u8) -> Result<(u8, u8)> {
    if !given.csv && given.quote.is_some() {
        return Err(refused("COPY quote available only in CSV mode"));
    }
    let quote = one_byte("quote", given.quote.as_deref().unwrap_or("\""))?;
    if given.csv && quote == delimiter {
        return Err(bad("COPY delimiter and quote must be different"));
    }
    if !given.csv && given.escape.is_some() {
        return Err(refused("COPY escape available only in CSV mode"));
    }
    match &given.escape {
        Some(escape) => Ok((quote, one_byte("escape", escape)?)),
        None => Ok((quote, quote)),
    }
}

/// The options that name columns.
fn check_forced(given: &Given, to: bool) -> Result<()> {
    let check = |present: bool, what: &str, direction: bool, command: &str| {
        if present && !given.csv {
            return Err(refused(format!("COPY {what} available only in CSV mode")));
        }
        if present && !direction {
            return Err(refused(format!("COPY {what} only available using COPY {command}")));
        }
        Ok(())
    };
    check(given.force_quote.is_some(), "force quote", to, "TO")?;
    check(!given.force_not_null.is_empty(), "force not null", !to, "FROM")?;
    check(!given.force_null.is_empty(), "force null", !to, "FROM")
}
