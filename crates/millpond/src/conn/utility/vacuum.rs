//! VACUUM and ANALYZE.

use millpond_engine::catalog::{Oid, TableDef};
use millpond_engine::table::TableError;
use millpond_engine::{EngineError, EngineResult};
use millpond_syntax::tree;

use crate::conn::session::{Block, SqlSession};
use crate::conn::transaction::Ended;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{Name, VacuumOptions};
use millpond_query::plan::find_table;
use millpond_query::settings::pages_of;
use millpond_query::sink::{CommandTag, RowSink};

/// A table that VACUUM or ANALYZE is to work on. It may be gone once its turn comes.
struct Chosen {
    oid: Oid,
    name: String,
    by_name: bool,
}

impl Chosen {
    /// What the work gave, or nothing if the table has been dropped meanwhile: the session that
    /// named the table gets a warning.
    fn unless_gone<T>(
        &self,
        work: &str,
        result: EngineResult<T>,
        sink: &mut dyn RowSink,
    ) -> Result<Option<T>> {
        match result {
            Err(EngineError::Table(TableError::UndefinedRelation(_))) => {
                if self.by_name {
                    let name = &self.name;
                    sink.notice(&SqlError::warning(
                        SqlState::UNDEFINED_TABLE,
                        format!("skipping {work} of \"{name}\" --- relation no longer exists"),
                    ));
                }
                Ok(None)
            }
            other => Ok(Some(other?)),
        }
    }
}

pub(super) fn vacuum(
    session: &mut SqlSession,
    options: &VacuumOptions,
    names: &[(Name, Vec<tree::Name>)],
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    session.check_alone("VACUUM")?;
    session.need_wait()?;
    if options.full {
        sink.notice(&SqlError::notice(
            SqlState::SUCCESSFUL_COMPLETION,
            "VACUUM FULL is done as a plain VACUUM",
        ));
    }
    let tables = tables_named(session, names)?;
    if session.block == Block::Implicit
        && let Ended::WouldBlock | Ended::Pending(_) = session.commit_now()?
    {
        return Err(SqlError::internal("a commit waits where it must not"));
    }
    limit_usage(session, options);
    for table in &tables {
        let Some(summary) =
            table.unless_gone("vacuum", session.engine.maintenance().vacuum(table.oid), sink)?
        else {
            continue;
        };
        if options.verbose {
            let name = &table.name;
            sink.notice(&SqlError::notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!(
                    "\"{name}\": removed {} row versions, {} remain, {} are dead but not yet removable, in {} pages",
                    summary.removed, summary.remaining, summary.not_yet_removable, summary.pages
                ),
            ));
        }
    }
    if options.analyze {
        analyze_all(session, options, &tables, sink)?;
        if session.block == Block::Implicit {
            let _ = session.commit_now()?;
        }
    }
    Ok(CommandTag::plain("VACUUM"))
}

pub(super) fn analyze(
    session: &mut SqlSession,
    options: &VacuumOptions,
    names: &[(Name, Vec<tree::Name>)],
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let tables = tables_named(session, names)?;
    analyze_all(session, options, &tables, sink)?;
    Ok(CommandTag::plain("ANALYZE"))
}

fn analyze_all(
    session: &mut SqlSession,
    options: &VacuumOptions,
    tables: &[Chosen],
    sink: &mut dyn RowSink,
) -> Result<()> {
    session.need_wait()?;
    session.need_transaction()?;
    session.engine.start_statement()?;
    limit_usage(session, options);
    let mut analyze = |table: &Chosen| {
        table
            .unless_gone("analyze", session.engine.maintenance().analyze(table.oid), sink)
            .map(|_| ())
    };
    let result = tables.iter().try_for_each(&mut analyze);
    session.engine.end_statement();
    result
}

/// Says how much of the buffer pool VACUUM and ANALYZE use; the next transaction begins with
/// the settings again.
fn limit_usage(session: &mut SqlSession, options: &VacuumOptions) {
    let mut bulk = session.settings.bulk_access();
    if let Some(kilobytes) = options.usage_limit_kb {
        bulk.rings.vacuum = pages_of(kilobytes.into());
    }
    session.engine.set_bulk_access(bulk);
    session.settings.make_news();
}

/// The tables of these names; without names all. The columns that are named must be there.
fn tables_named(session: &SqlSession, names: &[(Name, Vec<tree::Name>)]) -> Result<Vec<Chosen>> {
    let catalog = session.catalog();
    let chosen =
        |table: &TableDef, by_name| Chosen { oid: table.oid, name: table.name.clone(), by_name };
    if names.is_empty() {
        return Ok(catalog.tables().map(|table| chosen(table, false)).collect());
    }
    let found = names.iter().map(|(name, columns)| {
        let table = find_table(&catalog, name)?;
        check_columns(&table, columns)?;
        Ok(chosen(&table, true))
    });
    found.collect()
}

/// Statistics are of all columns, so that the columns named have no effect; but they must be there.
fn check_columns(table: &TableDef, columns: &[tree::Name]) -> Result<()> {
    for (at, column) in columns.iter().enumerate() {
        let of = format!("column \"{column}\" of relation \"{}\"", table.name);
        if table.columns.iter().all(|own| *own.name != **column) {
            let what = format!("{of} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, what));
        }
        if columns[..at].contains(column) {
            let what = format!("{of} appears more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, what));
        }
    }
    Ok(())
}
