//! PREPARE and EXPLAIN: statements around statements.

use millpond_syntax::tree::{ExplainStmt, PrepareStmt, RawStmt};

use crate::error::Result;
use crate::parse::option::{boolean, text, unrecognized};
use crate::parse::{Prepare, Source, Statement, statement};
use crate::{SqlError, SqlState};

pub(super) fn explain(stmt: ExplainStmt, source: Source<'_>) -> Result<Statement> {
    let mut analyze = false;
    for option in &stmt.options {
        match &*option.defname {
            "analyze" => analyze = boolean(option)?,
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
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary"
            | "generic_plan" | "memory" => {
                boolean(option)?;
            }
            "serialize" => {}
            _ => return Err(unrecognized("EXPLAIN", option, &source)),
        }
    }
    let statement = Box::new(statement(stmt.query, source)?);
    Ok(Statement::Explain { analyze, statement })
}

pub(super) fn prepare(stmt: PrepareStmt) -> Statement {
    let PrepareStmt { name, argtypes: types, query } = stmt;
    let RawStmt { location, length, .. } = query;
    Statement::Prepare(Box::new(Prepare { name: name.into(), types, location, length }))
}
