//! Planning statements, and running plans in the session's transaction.

use super::session::SqlSession;
use crate::Value;
use millpond_query::convert::STALE;
use millpond_query::error::{Result, SqlError};
use millpond_query::expr::bind::ParamTypes;
use millpond_query::parse::{Source, Statement};
use millpond_query::plan::{Planned, Planner, UsableIndexes};
use millpond_query::sink::{CommandTag, RowSink};

/// Plans that one execution of a statement makes: more would be a fault here, not a busy maker of
/// definitions.
const MOST_PLANS: u32 = 10_000;

impl SqlSession {
    /// Plans a statement for the catalog as it is now.
    pub(super) fn plan(
        &self,
        statement: &Statement,
        sql: &str,
        params: ParamTypes<'_>,
    ) -> Result<Planned> {
        self.plan_with(&UsableIndexes::new(&self.engine), statement, sql, params)
    }

    /// The same, telling `indexes` which indexes it has passed over.
    pub(super) fn plan_with(
        &self,
        indexes: &UsableIndexes<'_>,
        statement: &Statement,
        sql: &str,
        params: ParamTypes<'_>,
    ) -> Result<Planned> {
        let catalog = self.catalog();
        let planner = Planner {
            catalog: &catalog,
            source: Source::new(sql),
            accelerated: self.database.accelerator().is_some(),
            indexes,
        };
        planner.plan(statement, params).map_err(|error| self.named_stop(error))
    }

    /// Plans and runs; when the definition changes in between, again.
    pub(super) fn plan_and_run(
        &mut self,
        statement: &Statement,
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let mut tries = 0;
        loop {
            let planned = self.plan(statement, sql, ParamTypes::None)?;
            match self.planned(&planned, &[], columns, sink) {
                Err(error) if self.plans_again(&error, &mut tries)? => sink.discard(),
                other => return other,
            }
        }
    }

    /// Runs a planned statement in the transaction. `columns`: the sink wants to know the columns.
    pub(super) fn planned(
        &mut self,
        planned: &Planned,
        params: &[Value],
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        self.need_transaction()?;
        let rows = self.run_planned(planned, params, columns, sink)?;
        Ok(CommandTag::counted(planned.verb(), rows))
    }

    /// Runs a plan under a snapshot of its own.
    pub(super) fn run_planned(
        &mut self,
        planned: &Planned,
        params: &[Value],
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        if let Some(what) = planned.writes() {
            self.check_writable(what)?;
        }
        self.engine.start_statement()?;
        let result = self.with_exec(|exec| {
            let described = match &planned.columns {
                Some(found) if columns => sink.columns(found),
                _ => Ok(()),
            };
            described.and_then(|()| exec.run(planned, params, sink))
        });
        self.engine.end_statement();
        for notice in self.notices.take() {
            sink.notice(&notice);
        }
        if self.settings.has_calls() {
            self.set_as_called(result.is_ok())?;
        }
        if result.is_ok() {
            self.statements_run = self.statements_run.saturating_add(1);
        }
        result
    }

    /// Whether an error only asks for another plan, because the definitions have changed while the
    /// statement waited for its tables. However often that happens, the statement goes on, unless
    /// it has been told to stop.
    pub(super) fn plans_again(&self, error: &SqlError, tries: &mut u32) -> Result<bool> {
        if error.sqlstate != STALE || *tries == MOST_PLANS {
            return Ok(false);
        }
        *tries += 1;
        self.engine.check_cancel()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Settings};
    use millpond_query::error::SqlState;

    #[test]
    fn a_statement_is_cancelled_while_it_is_planned() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let mut c = Database::open(dir.path(), settings).unwrap().connect().unwrap();
        let sql = "select 1 + 2";
        c.session.begin_statement(sql, 0).unwrap();
        let statement = c.session.parse(sql).unwrap().remove(0);
        c.session.plan(&statement, sql, ParamTypes::None).unwrap();
        c.cancel_handle().cancel();
        let error = c.session.plan(&statement, sql, ParamTypes::None).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::QUERY_CANCELED);
    }
}
