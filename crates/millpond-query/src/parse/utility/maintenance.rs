//! VACUUM, ANALYZE and REINDEX.

use millpond_syntax::tree::{ReindexObject, ReindexStmt, VacuumStmt};

use crate::error::{Result, SqlError, SqlState};
use crate::parse::option::{boolean, text, unrecognized};
use crate::parse::{Name, Reindexed, Source, Statement, VacuumOptions};
use crate::settings;

pub(super) fn vacuum(stmt: &VacuumStmt, source: &Source<'_>) -> Result<Statement> {
    let mut chosen = VacuumOptions { analyze: !stmt.is_vacuumcmd, ..VacuumOptions::default() };
    let command = if stmt.is_vacuumcmd { "VACUUM" } else { "ANALYZE" };
    for option in &stmt.options {
        match &*option.defname {
            "verbose" => chosen.verbose = boolean(option)?,
            "skip_locked" => {
                boolean(option)?;
            }
            "buffer_usage_limit" => {
                chosen.usage_limit_kb = Some(settings::usage_limit_kb(&text(option)?)?);
            }
            "full" if stmt.is_vacuumcmd => chosen.full = boolean(option)?,
            "analyze" if stmt.is_vacuumcmd => chosen.analyze = boolean(option)?,
            "freeze"
            | "disable_page_skipping"
            | "index_cleanup"
            | "truncate"
            | "parallel"
            | "process_toast"
            | "process_main"
            | "skip_database_stats"
            | "only_database_stats"
                if stmt.is_vacuumcmd => {}
            _ => return Err(unrecognized(command, option, source)),
        }
    }
    if chosen.usage_limit_kb.is_some() && chosen.full && !chosen.analyze {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL",
        ));
    }
    let has_columns = stmt.rels.iter().any(|(_, columns)| !columns.is_empty());
    if stmt.is_vacuumcmd && !chosen.analyze && has_columns {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "ANALYZE option must be specified when a column list is provided",
        ));
    }
    let names = Name::of_relations(stmt.rels.iter().map(|(relation, _)| relation), source)?;
    let columns = stmt.rels.iter().map(|(_, columns)| columns.clone());
    let tables = names.into_iter().zip(columns).collect();
    Ok(if stmt.is_vacuumcmd {
        Statement::Vacuum { options: chosen, tables }
    } else {
        Statement::Analyze { options: chosen, tables }
    })
}

pub(super) fn reindex(stmt: ReindexStmt, source: &Source<'_>) -> Result<Statement> {
    let ReindexStmt { object, mut concurrent, options } = stmt;
    let mut verbose = false;
    for option in &options {
        match &*option.defname {
            "verbose" => verbose = boolean(option)?,
            "concurrently" => concurrent = boolean(option)?,
            "tablespace" => return Err(SqlError::unsupported("REINDEX with TABLESPACE")),
            _ => return Err(unrecognized("REINDEX", option, source)),
        }
    }
    if concurrent {
        return Err(SqlError::unsupported("REINDEX CONCURRENTLY"));
    }
    let what = match object {
        ReindexObject::Index(relation) => Reindexed::Index(Name::of_relation(&relation, source)?),
        ReindexObject::Table(relation) => Reindexed::Table(Name::of_relation(&relation, source)?),
        ReindexObject::Schema(name) => Reindexed::Schema(name.into()),
        ReindexObject::System(name) => Reindexed::System(name.into()),
        ReindexObject::Database(name) => Reindexed::Database(name.into()),
    };
    Ok(Statement::Reindex { what, verbose })
}
