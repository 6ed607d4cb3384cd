//! Statements that are neither a query nor a change of rows.

mod maintenance;
mod prepared;
mod setting;
mod transaction;

use millpond_syntax::tree::{self, DiscardMode, DropStmt, LockStmt, ObjectType};

use super::{Name, Source, Statement, Which, copy};
use crate::error::{Result, SqlError};
use maintenance::{reindex, vacuum};
use prepared::{explain, prepare};
use setting::{alter_system, set, show};
use transaction::transaction;

pub(super) fn unsupported(what: &str) -> Statement {
    Statement::Unsupported(what.to_owned())
}

/// A statement of the grammar as one that can be run.
pub(super) fn statement(stmt: tree::Statement, source: Source<'_>) -> Result<Statement> {
    use tree::Statement as T;
    Ok(match stmt {
        T::Transaction(stmt) => transaction(&stmt),
        T::VariableSet(stmt) => set(&stmt)?,
        T::VariableShow(name) => show(&name),
        T::AlterSystem(stmt) => alter_system(&stmt),
        T::Discard(mode) => Statement::Discard { all: mode == DiscardMode::All },
        T::Vacuum(stmt) => vacuum(&stmt, &source)?,
        T::Reindex(stmt) => reindex(*stmt, &source)?,
        T::Checkpoint => Statement::Checkpoint,
        T::Copy(stmt) => Statement::Copy(Box::new(copy::copy(*stmt, source)?)),
        T::Explain(stmt) => explain(*stmt, source)?,
        T::Prepare(stmt) => prepare(*stmt),
        T::Deallocate(name) => Statement::Deallocate(which(name)),
        T::ClosePortal(name) => Statement::Close(which(name)),
        T::Unlisten(_) => Statement::Unlisten,
        T::Lock(stmt) => lock(&stmt, &source)?,
        T::Truncate(stmt) => {
            Statement::Truncate { names: Name::of_relations(&stmt.relations, &source)? }
        }
        T::Drop(stmt) => drop(&stmt, &source)?,
        T::Create(stmt) => Statement::CreateTable(stmt),
        T::Index(stmt) => Statement::CreateIndex(stmt),
        T::AlterTable(stmt) => Statement::AlterTable(stmt),
        T::Merge(_) => unsupported("MERGE"),
        T::DeclareCursor(_) => unsupported("DECLARE CURSOR"),
        T::Fetch(stmt) => unsupported(if stmt.ismove { "MOVE" } else { "FETCH" }),
        T::Listen(_) => unsupported("LISTEN"),
        T::Notify { .. } => unsupported("NOTIFY"),
        T::CreateTableAs(stmt) if stmt.matview => unsupported("CREATE MATERIALIZED VIEW"),
        T::CreateTableAs(_) => unsupported("CREATE TABLE AS"),
        T::View(_) => unsupported("CREATE VIEW"),
        T::CreateSchema(_) => unsupported("CREATE SCHEMA"),
        T::CreateSeq(_) => unsupported("CREATE SEQUENCE"),
        T::Other { kind } => unsupported(kind),
        T::Execute(stmt) => Statement::Execute { name: stmt.name.into(), args: stmt.params },
        T::Select(_) | T::Insert(_) | T::Update(_) | T::Delete(_) => {
            return Err(SqlError::internal("a query among other statements"));
        }
    })
}

fn which(name: Option<tree::Name>) -> Which {
    name.map_or(Which::All, |name| Which::Named(name.into()))
}

fn lock(stmt: &LockStmt, source: &Source<'_>) -> Result<Statement> {
    let names = Name::of_relations(&stmt.relations, source)?;
    Ok(Statement::Lock { names, mode: stmt.mode, nowait: stmt.nowait })
}

fn drop(stmt: &DropStmt, source: &Source<'_>) -> Result<Statement> {
    let what = match stmt.remove_type {
        ObjectType::Table | ObjectType::Index if !stmt.concurrent => {
            let names = stmt.objects.iter().map(|name| Name::qualified(name, source));
            let (names, if_exists) = (names.collect::<Result<_>>()?, stmt.missing_ok);
            return Ok(match stmt.remove_type {
                ObjectType::Index => Statement::DropIndex { names, if_exists },
                _ => Statement::DropTable { names, if_exists },
            });
        }
        ObjectType::Table => "DROP TABLE",
        ObjectType::Index => "DROP INDEX CONCURRENTLY",
        ObjectType::Sequence => "DROP SEQUENCE",
        ObjectType::View => "DROP VIEW",
        ObjectType::MatView => "DROP MATERIALIZED VIEW",
        ObjectType::ForeignTable => "DROP FOREIGN TABLE",
        ObjectType::Collation => "DROP COLLATION",
        ObjectType::Conversion => "DROP CONVERSION",
        ObjectType::StatisticExt => "DROP STATISTICS",
        ObjectType::Schema => "DROP SCHEMA",
        ObjectType::Type => "DROP TYPE",
        ObjectType::Domain => "DROP DOMAIN",
    };
    Ok(unsupported(what))
}
