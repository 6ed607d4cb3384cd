//! Statements that change rows by a query: subqueries, FROM, USING, WITH.

use super::{ChangePlan, InsertPlan, InsertSource, Output, Plan, Planner, Target};
use crate::analyze;
use crate::analyze::tree::{AnalyzedModification, ModificationKind};
use crate::error::Result;
use crate::expr::bind::Binder;

impl Planner<'_> {
    /// Plans an INSERT, UPDATE or DELETE as a query whose rows are inserted or changed.
    pub(super) fn modification(
        &self,
        written: analyze::Written<'_>,
        binder: &mut Binder<'_>,
    ) -> Result<Plan> {
        let AnalyzedModification { modification: analyzed, slots } =
            analyze::analyze_modification(self.catalog, written, binder)?;
        let planned = self.plan_modification(&analyzed, slots, binder.params.count())?;
        let (source, table) = (Box::new(planned.selected), analyzed.table);
        let returning = analyzed.returning.map(|columns| Output::new(planned.returned, columns));
        let set = match analyzed.kind {
            ModificationKind::Insert => {
                let source = InsertSource::Query(source, planned.values);
                return Ok(Plan::Insert(InsertPlan { table, source, returning }));
            }
            ModificationKind::Update => {
                Some(analyzed.columns.into_iter().zip(planned.values).collect())
            }
            ModificationKind::Delete => None,
        };
        Ok(Plan::Change(ChangePlan { table, rows: Target::Selected(source), set, returning }))
    }
}
