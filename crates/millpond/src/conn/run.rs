//! Planning statements, and running plans in the session's transaction.

use super::session::SqlSession;
use crate::Value;
use millpond_query::convert::{STALE, would_block};
use millpond_query::error::{Result, SqlError};
use millpond_query::expr::bind::ParamTypes;
use millpond_query::parse::{Source, Statement};
use millpond_query::plan::{Planned, Planner, RangeEstimates, UsableIndexes};
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
        self.plan_for(statement, sql, params, None)
    }

    /// The same for parameters with these values. It holds for others, too, but may be slow.
    pub(super) fn plan_for(
        &self,
        statement: &Statement,
        sql: &str,
        params: ParamTypes<'_>,
        values: Option<&[Value]>,
    ) -> Result<Planned> {
        let (indexes, facts) = (UsableIndexes::new(&self.engine), self.facts());
        let ranges = RangeEstimates::new(&self.engine, &facts, values);
        self.plan_with(&indexes, &ranges, (statement, sql), params)
    }

    /// The same, telling `indexes` which indexes it has passed over.
    pub(super) fn plan_with(
        &self,
        indexes: &UsableIndexes<'_>,
        ranges: &RangeEstimates<'_>,
        (statement, sql): (&Statement, &str),
        params: ParamTypes<'_>,
    ) -> Result<Planned> {
        let _room = self.value_room();
        let catalog = self.catalog();
        let planner = Planner {
            catalog: &catalog,
            source: Source::new(sql),
            accelerated: self.database.accelerator().is_some(),
            indexes,
            ranges,
        };
        planner.plan(statement, params).map_err(|error| self.named_stop(error))
    }

    /// Plans a text that is run at once. The error "would block" if an estimate needs a page that
    /// is not in memory.
    fn plan_to_run(&self, statement: &Statement, sql: &str) -> Result<Planned> {
        let (indexes, facts) = (UsableIndexes::new(&self.engine), self.facts());
        let ranges = RangeEstimates::new(&self.engine, &facts, Some(&[]));
        let planned = self.plan_with(&indexes, &ranges, (statement, sql), ParamTypes::None)?;
        if ranges.would_block() { Err(would_block()) } else { Ok(planned) }
    }

    /// Plans and runs; when the definition changes in between, again.
    pub(super) fn plan_and_run(
        &mut self,
        statement: &Statement,
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        self.need_transaction()?;
        let mut tries = 0;
        loop {
            let planned = self.plan_to_run(statement, sql)?;
            match self.planned(&planned, &[], columns, sink) {
                Err(error) if self.plans_again(&error, &mut tries)? => sink.discard(),
                other => return other,
            }
        }
    }

    /// Whether a plan was made for values like these. If not, one that is made for them is better.
    #[inline]
    pub(super) fn suits(&mut self, planned: &Planned, params: &[Value]) -> Result<bool> {
        if planned.is_for_all() {
            return Ok(true);
        }
        self.with_exec(|exec| exec.suits(planned, params))
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
