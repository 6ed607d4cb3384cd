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
    let options = finish(given(&stmt.options, &source)?, to)?;
    let source = match stmt.source {
        tree::CopySource::Relation { relation, attlist } => {
            let columns = (!attlist.is_empty()).then(|| strings(&attlist));
            CopySource::Table { name: Name::of_relation(&relation, &source)?, columns }
        }
        tree::CopySource::Query(query) => CopySource::Query(Box::new(statement(query, source)?)),
    };
    Ok(Copy { source, to, options })
}

fn given(options: &[DefElem], source: &Source<'_>) -> Result<Given> {
    let mut given = Given::default();
    for (at, option) in options.iter().enumerate() {
        let place = source.position(option.location);
        if options[..at].iter().any(|other| other.defname == option.defname) {
            return Err(syntax_error("conflicting or redundant options").at(place));
        }
        take(option, &mut given).map_err(|error| match error.sqlstate {
            SqlState::FEATURE_NOT_SUPPORTED => error,
            _ => error.at(place),
        })?;
    }
    Ok(given)
}

fn take(option: &DefElem, given: &mut Given) -> Result<()> {
    match &*option.defname {
        "format" => match text(option)?.as_str() {
            "text" => {}
            "csv" => given.csv = true,
            "binary" => given.binary = true,
            other => return Err(bad(format!("COPY format \"{other}\" not recognized"))),
        },
        "freeze" => given.freeze = boolean(option)?,
        "delimiter" => given.delimiter = Some(text(option)?),
        "null" => given.null = Some(text(option)?),
        "header" => {
            let is_match = |arg: &DefArg| matches!(arg, DefArg::String(text) if text.eq_ignore_ascii_case("match"));
            given.header_match = option.arg.as_ref().is_some_and(is_match);
            given.header = given.header_match
                || boolean(option)
                    .map_err(|_| syntax_error("header requires a Boolean value or \"match\""))?;
        }
        "quote" => given.quote = Some(text(option)?),
        "escape" => given.escape = Some(text(option)?),
        "encoding" => {
            let name = text(option)?;
            if !name.eq_ignore_ascii_case("utf8") && !name.eq_ignore_ascii_case("utf-8") {
                return Err(SqlError::unsupported(format!("COPY in encoding \"{name}\"")));
            }
        }
        "force_quote" if matches!(option.arg, Some(DefArg::Star)) => {
            given.force_quote = Some(ForceQuote::All);
        }
        "force_quote" => given.force_quote = Some(ForceQuote::Columns(columns(option)?)),
        "force_not_null" => given.force_not_null = columns(option)?,
        "force_null" => given.force_null = columns(option)?,
        other => return Err(syntax_error(format!("option \"{other}\" not recognized"))),
    }
    Ok(())
}

fn columns(option: &DefElem) -> Result<Vec<String>> {
    let Some(DefArg::List(list)) = &option.arg else {
        return Err(bad(format!(
            "argument to option \"{}\" must be a list of column names",
            option.defname
        )));
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

fn one_byte(what: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(bad(format!("COPY {what} must be a single one-byte character"))),
    }
}

fn finish(given: Given, to: bool) -> Result<CopyOptions> {
    if given.binary {
        return Err(SqlError::unsupported("COPY in binary format"));
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
