//! Queries that the pull executor runs.

use std::cell::{Cell, RefCell};
use std::mem;

use millpond_engine::lmgr::LockMode;

use super::system::SessionHost;
use super::{Each, Exec, MAX_ROWS_UNWAITING, emit};
use crate::Value;
use crate::error::Result;
use crate::plan::query::node::{QueryPlan, SlotKind};
use crate::run::{self, Accelerated, Work};

impl Exec<'_> {
    pub(super) fn query(
        &mut self,
        plan: &QueryPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        if plan.waits || plan.output.waits {
            self.need_wait()?;
        }
        // All before the first read, which takes the snapshot.
        self.lock_tables(plan)?;
        let mut given = 0;
        self.with_work(params, |_, work| {
            run::run(plan, params, work, &mut |env| {
                given += 1;
                emit(&plan.output, env, each)
            })
        })?;
        Ok(given)
    }

    /// Does something with what a plan's run needs of the statement.
    pub(super) fn with_work<R>(
        &mut self,
        params: &[Value],
        act: impl FnOnce(&Self, &Work<'_>) -> Result<R>,
    ) -> Result<R> {
        let host = SessionHost { session: self.session, info: self.info };
        let pool = mem::take(&mut self.scratch.pool);
        let work = Work {
            session: Some(self.session),
            facts: self.facts,
            resources: self.resources,
            host: Some(&host),
            accelerator: self.accelerator.map(|engine| Accelerated { engine, cancel: self.cancel }),
            threads: Some(self.threads),
            may_wait: self.may_wait(),
            left: Cell::new(MAX_ROWS_UNWAITING),
            param_count: params.len(),
            pool: RefCell::new(pool),
            ticks: Cell::new(0),
            timed_since: Cell::new(None),
        };
        let result = act(self, &work);
        self.scratch.pool = work.pool.into_inner();
        result
    }

    pub(super) fn lock_tables(&self, plan: &QueryPlan) -> Result<()> {
        for modify in plan.modifications() {
            self.session.lock_table(&modify.table, LockMode::RowExclusive)?;
        }
        let mut locked = Vec::new();
        plan.each_row_lock(&mut |slot, _| locked.push(slot));
        for slot in locked {
            if let Some(SlotKind::Stored(table)) = plan.slots.get(slot.index()) {
                self.session.lock_table(table, LockMode::RowShare)?;
            }
        }
        for table in &plan.tables {
            self.session.lock_table(table, LockMode::AccessShare)?;
        }
        Ok(())
    }
}
