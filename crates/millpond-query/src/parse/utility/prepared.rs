//! PREPARE and EXPLAIN: statements around statements.

use millpond_syntax::tree::{
    self, CreateTableAsStmt, DeclareCursorStmt, ExplainStmt, IntoClause, PrepareStmt, RawStmt,
    SelectBody, SelectStmt,
};

use crate::analyze::{row_lock, row_lock_name};
use crate::error::Result;
use crate::parse::option::{boolean, text, unrecognized};
use crate::parse::{Creates, Explain, Name, Prepare, Source, Statement, statement};
use crate::{SqlError, SqlState};

pub(super) fn explain(stmt: ExplainStmt, source: Source<'_>) -> Result<Statement> {
    let (mut analyze, mut summary) = (false, None);
    for option in &stmt.options {
        match &*option.defname {
            "analyze" => analyze = boolean(option)?,
            "summary" => summary = Some(boolean(option)?),
            "format" => match text(option)?.as_str() {
                "text" => {}
                "xml" | "json" | "yaml" => {
                    return Err(SqlError::unsupported("EXPLAIN in another format than text"));
                }
                format => {
                    let message =
                        format!("unrecognized value for EXPLAIN option \"format\": \"{format}\"");
                    let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
                    return Err(error.at(source.position(option.location)));
                }
            },
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "generic_plan"
            | "memory" => {
                boolean(option)?;
            }
            "serialize" => {}
            _ => return Err(unrecognized("EXPLAIN", option, &source)),
        }
    }
    let (statement, creates) = explained(stmt.query, source)?;
    let summary = summary.unwrap_or(analyze);
    Ok(Statement::Explain(Box::new(Explain { analyze, summary, statement, creates })))
}

/// What is explained: of a statement that keeps its query's rows the query, with the table that it
/// would make.
fn explained(raw: RawStmt, source: Source<'_>) -> Result<(Statement, Option<Creates>)> {
    use tree::Statement as T;
    let RawStmt { stmt, location, length } = raw;
    let (stmt, into, if_not_exists) = match stmt {
        T::DeclareCursor(declare) => {
            check_cursor(&declare)?;
            (T::Select(Box::new(declare.query)), None, false)
        }
        T::CreateTableAs(create) if !create.matview => {
            let CreateTableAsStmt { query, into, if_not_exists, .. } = *create;
            (query, Some(into), if_not_exists)
        }
        T::Select(mut select) => {
            let into = take_into(&mut select);
            (T::Select(select), into, false)
        }
        other => (other, None, false),
    };
    let creates = match into {
        Some(into) => Some(Creates { name: Name::of_relation(&into.rel, &source)?, if_not_exists }),
        None => None,
    };
    Ok((statement(RawStmt { stmt, location, length }, source)?, creates))
}

/// INTO stands in the first SELECT of a query.
fn take_into(select: &mut SelectStmt) -> Option<IntoClause> {
    match &mut select.body {
        SelectBody::Select(select) => select.into_clause.take(),
        SelectBody::SetOp { larg, .. } => take_into(larg),
        SelectBody::Values(_) => None,
    }
}

/// A cursor that keeps its rows apart can't lock them.
fn check_cursor(declare: &DeclareCursorStmt) -> Result<()> {
    let Some(clause) = declare.query.locking_clause.first() else { return Ok(()) };
    let clause = row_lock_name(row_lock(clause).strength);
    let (state, message, detail) = if declare.hold {
        let message = format!("DECLARE CURSOR WITH HOLD ... {clause} is not supported");
        (SqlState::FEATURE_NOT_SUPPORTED, message, "Holdable cursors must be READ ONLY.")
    } else if declare.scroll == Some(true) {
        let message = format!("DECLARE SCROLL CURSOR ... {clause} is not supported");
        (SqlState::FEATURE_NOT_SUPPORTED, message, "Scrollable cursors must be READ ONLY.")
    } else if declare.insensitive == Some(true) {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {clause} is not valid");
        (SqlState::INVALID_CURSOR_DEFINITION, message, "Insensitive cursors must be READ ONLY.")
    } else {
        return Ok(());
    };
    Err(SqlError::new(state, message).detail(detail))
}

pub(super) fn prepare(stmt: PrepareStmt) -> Statement {
    let PrepareStmt { name, argtypes: types, query } = stmt;
    let RawStmt { location, length, .. } = query;
    Statement::Prepare(Box::new(Prepare { name: name.into(), types, location, length }))
}
