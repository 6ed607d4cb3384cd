//! Queries that the query engine runs, and what it asks of the session meanwhile.

use std::sync::Arc;

use millpond_engine::lmgr::LockMode;

use super::{Each, Exec, Scanner};
use crate::Value;
use crate::advisory::{Advisory, Key};
use crate::error::Result;
use crate::plan::external::ExternalPlan;

impl Exec<'_> {
    pub(super) fn external(
        &mut self,
        plan: &dyn ExternalPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.need_wait()?;
        let scanner = self.scanner(plan)?;
        let mut count = 0;
        plan.run(scanner, params, &mut self.locker(), &mut |row| {
            count += 1;
            each(row)
        })?;
        Ok(count)
    }

    /// What the query engine's functions lock by.
    pub(super) fn locker(&self) -> impl FnMut(Advisory, Key) -> Result<Value> + use<'_> {
        let (session, notices) = (self.session, self.facts.notices);
        move |function, key| function.call(session, key, notices)
    }

    /// What the query engine reads a plan's tables through.
    pub fn scanner(&mut self, plan: &dyn ExternalPlan) -> Result<Arc<Scanner>> {
        for table in plan.tables() {
            self.session.lock_table(table, LockMode::AccessShare)?;
        }
        let (cancel, info) = (self.cancel.clone(), (self.info)());
        Ok(Arc::new(Scanner::new(self.session, plan.tables(), cancel, info, self.resources)?))
    }
}
