//! Utility statements: those that run without a plan, and need only the session.
//!
//! Each is a function that gets the session, in a file for each group. COPY, too, is here; its
//! data comes through the connection. Those that change the connection itself are not: COMMIT,
//! PREPARE, DISCARD and the like (`statement`).

pub(super) mod copy;
mod definitions;
pub(super) mod explain;
mod lock;
mod vacuum;
pub(super) mod variables;

use super::session::SqlSession;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{Statement, Which};
use millpond_query::sink::{CommandTag, RowSink};

/// Runs a utility statement. `columns`: the sink wants to know the columns.
pub(super) fn run(
    session: &mut SqlSession,
    statement: &Statement,
    sql: &str,
    columns: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    use Statement as S;
    let makes_files = matches!(
        statement,
        S::CreateTable(_)
            | S::CreateIndex(_)
            | S::AlterTable(_)
            | S::Truncate { .. }
            | S::Reindex { .. }
    );
    let tag = match statement {
        S::Begin { modes, start } => session.begin(*modes, *start, sink)?,
        S::SetTransaction { modes, session: lasting } => {
            variables::set_transaction(session, *modes, *lasting, sink)?
        }
        S::Set { name, value, local } => {
            variables::set(session, name, value.as_deref(), *local, sink)?
        }
        S::Show(which) => variables::show(session, which, columns, sink)?,
        S::Reset(which) => variables::reset(session, which)?,
        S::AlterSystem { name, value } => {
            variables::alter_system(session, name.as_deref(), value.as_deref())?
        }
        S::CreateTable(create) => definitions::create_table(session, create, sql, sink)?,
        S::CreateIndex(create) => definitions::create_index(session, create, sql, sink)?,
        S::AlterTable(alter) => definitions::alter_table(session, alter, sql, sink)?,
        S::DropTable { names, if_exists } => {
            definitions::drop_tables(session, names, *if_exists, sink)?
        }
        S::DropIndex { names, if_exists } => {
            definitions::drop_indexes(session, names, *if_exists, sink)?
        }
        S::Truncate { names } => definitions::truncate(session, names)?,
        S::Vacuum { options, tables } => vacuum::vacuum(session, options, tables, sink)?,
        S::Analyze { options, tables } => vacuum::analyze(session, options, tables, sink)?,
        S::Reindex { what, verbose } => definitions::reindex(session, what, *verbose, sink)?,
        S::Checkpoint => {
            session.need_wait()?;
            session.database.engine().checkpoint()?;
            CommandTag::plain("CHECKPOINT")
        }
        S::Close(Which::All) => CommandTag::plain("CLOSE CURSOR ALL"),
        S::Close(Which::Named(name)) => {
            return Err(SqlError::new(
                SqlState::INVALID_CURSOR_NAME,
                format!("cursor \"{name}\" does not exist"),
            ));
        }
        S::Unlisten => CommandTag::plain("UNLISTEN"),
        S::Lock { names, mode, nowait } => lock::lock_tables(session, names, *mode, *nowait)?,
        S::Unsupported(what) => return Err(SqlError::unsupported(what)),
        S::Query(_)
        | S::Insert(_)
        | S::Update(_)
        | S::Delete(_)
        | S::Commit { .. }
        | S::Rollback { .. }
        | S::Discard { .. }
        | S::Copy(_)
        | S::Explain(_)
        | S::Prepare(_)
        | S::Execute { .. }
        | S::Deallocate(_) => {
            return Err(SqlError::internal("not a utility statement of a session"));
        }
    };
    if makes_files {
        definitions::warn_of_file_numbers(session, sink);
    }
    Ok(tag)
}
