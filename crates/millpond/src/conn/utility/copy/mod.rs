//! COPY FROM STDIN and COPY TO STDOUT.

mod from;
mod to;

use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;

use super::lock::lock_named;
use crate::conn::session::SqlSession;
use crate::copy::RowFormat;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{Copy, CopyOptions, CopySource, ForceQuote};
use millpond_query::sink::{CommandTag, CopyFormat, RowSink};

pub(in crate::conn) use from::CopyIn;

/// How far a COPY got.
pub(in crate::conn) enum Copied {
    /// All rows have been sent.
    Out(CommandTag),
    /// The client is to send rows.
    In(Box<CopyIn>),
}

pub(in crate::conn) fn copy(
    session: &mut SqlSession,
    copy: &Copy,
    sql: &str,
    sink: &mut dyn RowSink,
) -> Result<Copied> {
    session.need_wait()?;
    session.need_transaction()?;
    let options = &copy.options;
    let tag = match &copy.source {
        CopySource::Table { name, columns } if !copy.to => {
            return Ok(Copied::In(from::begin(session, name, columns.as_deref(), options)?));
        }
        CopySource::Table { name, columns } => {
            // Before the client is told that rows come.
            let table = lock_named(session, name, LockMode::AccessShare, false)?;
            let columns = columns_of(&table, columns.as_deref())?;
            to::copy_table(session, table, &columns, options, sink)?
        }
        CopySource::Query(statement) => to::copy_query(session, statement, sql, options, sink)?,
    };
    Ok(Copied::Out(tag))
}

/// The format of rows of these columns, which are of `table` unless a query has them.
fn format_of(
    options: &CopyOptions,
    names: Vec<String>,
    table: Option<&TableDef>,
) -> Result<RowFormat> {
    let flags = |list: &[String], what: &str| flags(list, what, &names, table);
    Ok(RowFormat {
        csv: options.csv,
        delimiter: options.delimiter,
        null: options.null.clone(),
        header: options.header,
        header_match: options.header_match,
        quote: options.quote,
        escape: options.escape,
        force_quote: match &options.force_quote {
            ForceQuote::None => Vec::new(),
            ForceQuote::All => vec![true; names.len()],
            ForceQuote::Columns(list) => flags(list, "FORCE_QUOTE")?,
        },
        force_not_null: flags(&options.force_not_null, "FORCE_NOT_NULL")?,
        force_null: flags(&options.force_null, "FORCE_NULL")?,
        columns: names,
    })
}

/// For each column that is copied, whether an option lists it.
fn flags(
    list: &[String],
    option: &str,
    names: &[String],
    table: Option<&TableDef>,
) -> Result<Vec<bool>> {
    if let Some(table) = table
        && !list.is_empty()
    {
        columns_of(table, Some(list))?;
    }
    let mut flags = vec![false; names.len()];
    for name in list {
        match (names.iter().position(|known| known == name), table) {
            (Some(place), _) if flags[place] => return Err(named_twice(name)),
            (Some(place), _) => flags[place] = true,
            (None, Some(_)) => {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("{option} column \"{name}\" not referenced by COPY"),
                ));
            }
            (None, None) => return Err(unknown(format!("column \"{name}\" does not exist"))),
        }
    }
    Ok(flags)
}

#[cold]
fn unknown(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

#[cold]
fn named_twice(name: &str) -> SqlError {
    let message = format!("column \"{name}\" specified more than once");
    SqlError::new(SqlState::DUPLICATE_COLUMN, message)
}

/// The columns that a COPY names, or all.
fn columns_of(table: &TableDef, names: Option<&[String]>) -> Result<Vec<usize>> {
    let Some(names) = names else { return Ok((0..table.columns.len()).collect()) };
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = table.column(name).ok_or_else(|| {
            unknown(format!("column \"{name}\" of relation \"{}\" does not exist", table.name))
        })?;
        if columns.contains(&column) {
            return Err(named_twice(name));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn count(columns: usize) -> CopyFormat {
    CopyFormat { columns: u16::try_from(columns).unwrap_or(u16::MAX) }
}
