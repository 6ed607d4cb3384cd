//! REINDEX: indexes are built again, each in a new file.

use millpond_engine::catalog::{Oid, Relation};

use super::{define, notice};
use crate::conn::session::{Block, SqlSession};
use crate::conn::transaction::Ended;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{Name, Reindexed};
use millpond_query::plan::find_table;
use millpond_query::sink::{CommandTag, RowSink};

pub(in crate::conn::utility) fn reindex(
    session: &mut SqlSession,
    what: &Reindexed,
    verbose: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    match what {
        Reindexed::Index(name) => {
            let (table, index) = index_named(session, name)?;
            let built = rebuild(session, table, Some(index))?;
            report(&built, verbose, sink);
        }
        Reindexed::Table(name) => {
            let catalog = session.catalog();
            if let Some(Relation::Index(..)) = catalog.relation(&name.name) {
                let message = format!("\"{}\" is not a table or materialized view", name.name);
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            let table = find_table(&catalog, name)?;
            let built = rebuild(session, table.oid, None)?;
            if built.is_empty() {
                let message = format!("table \"{}\" has no indexes to reindex", table.name);
                notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
            }
            report(&built, verbose, sink);
        }
        Reindexed::Schema(name) => match name.as_str() {
            "public" => all(session, "REINDEX SCHEMA", verbose, sink)?,
            // The catalogs have no files.
            "pg_catalog" | "information_schema" => session.check_alone("REINDEX SCHEMA")?,
            name => {
                let message = format!("schema \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message));
            }
        },
        Reindexed::System(name) => {
            session.check_alone("REINDEX SYSTEM")?;
            check_database(session, name)?;
        }
        Reindexed::Database(name) => {
            session.check_alone("REINDEX DATABASE")?;
            check_database(session, name)?;
            all(session, "REINDEX DATABASE", verbose, sink)?;
        }
    }
    Ok(CommandTag::plain("REINDEX"))
}

/// The table and the number of an index.
fn index_named(session: &SqlSession, name: &Name) -> Result<(Oid, Oid)> {
    match session.catalog().relation(&name.name) {
        Some(Relation::Index(table, index)) => Ok((table.oid, index.oid)),
        Some(Relation::Table(_)) => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not an index", name.name),
        )),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{name}\" does not exist"),
        )),
    }
}

fn check_database(session: &SqlSession, name: &str) -> Result<()> {
    if name == session.options.database {
        return Ok(());
    }
    let message = "can only reindex the currently open database";
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// Builds the indexes of a table again, or one of them. Their names.
fn rebuild(session: &mut SqlSession, table: Oid, only: Option<Oid>) -> Result<Vec<String>> {
    define(session, "REINDEX", |session| {
        if let Some(table) = session.catalog().table(table) {
            session.in_use.check("REINDEX", table.oid, &table.name)?;
        }
        Ok(session.engine.ddl().reindex(table, only)?)
    })
}

/// Builds the indexes of all tables again, in a transaction for each table. A table that has been
/// dropped meanwhile is left out.
fn all(session: &mut SqlSession, what: &str, verbose: bool, sink: &mut dyn RowSink) -> Result<()> {
    session.check_alone(what)?;
    session.need_wait()?;
    let tables: Vec<Oid> = session.catalog().tables().map(|table| table.oid).collect();
    for table in tables {
        let built = match rebuild(session, table, None) {
            Err(error) if error.sqlstate == SqlState::UNDEFINED_TABLE => continue,
            built => built?,
        };
        if session.block == Block::Implicit
            && let Ended::WouldBlock | Ended::Pending(_) = session.commit_now()?
        {
            return Err(SqlError::internal("a commit waits where it must not"));
        }
        report(&built, verbose, sink);
    }
    Ok(())
}

fn report(built: &[String], verbose: bool, sink: &mut dyn RowSink) {
    for name in built.iter().filter(|_| verbose) {
        let message = format!("index \"{name}\" was reindexed");
        notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
    }
}
