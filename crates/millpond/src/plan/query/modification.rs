//! Plans of statements that insert, update or delete what a query gives.
//!
//! In READ COMMITTED a row to be changed may have changed since the query found it. Then its newest
//! version takes its place beside the rows that it was joined with, and WHERE is evaluated again,
//! as an expression. Subqueries that have become joins are subplans there.

use super::Planning;
use super::slot_set::SlotSet;
use crate::analyze::tree::{Body, Modification, ModificationKind};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{Output, Planner, Selected};

/// What a statement reads, and what it makes of each row.
pub(in crate::plan) struct PlannedModification {
    pub(in crate::plan) selected: Selected,
    /// The new values.
    pub(in crate::plan) values: Vec<Expr>,
    /// The columns of RETURNING.
    pub(in crate::plan) returned: Vec<Expr>,
}

impl Planner<'_> {
    /// Plans an analyzed statement with that many parameters.
    pub(in crate::plan) fn plan_modification(
        &self,
        analyzed: &mut Modification,
        params: usize,
    ) -> Result<PlannedModification> {
        let slots = std::mem::take(&mut analyzed.slots);
        let mut planning = self.planning(&analyzed.query, slots, params);
        let mut planned = planning.modification(analyzed)?;
        planning.complete(&mut planned.selected.plan)?;
        Ok(planned)
    }
}

impl Planning<'_> {
    fn modification(&mut self, analyzed: &Modification) -> Result<PlannedModification> {
        let Modification { kind, query, target, columns, alias, .. } = analyzed;
        let path = self.query(query, &[])?;
        let (mut root, mut values, one_row) = (path.node, path.targets, path.one_row);
        // RETURNING sees the row that is stored, also that of an INSERT.
        let local = self.finish(&mut root, &mut values, SlotSet::one(*target))?;
        let returned = values.split_off(columns.len().min(values.len()));
        let shown_subplans = self.level.subplans.len();
        let condition = match (kind, &query.body) {
            (ModificationKind::Update | ModificationKind::Delete, Body::Select(select)) => {
                select.condition.as_ref()
            }
            _ => None,
        };
        let mut recheck = condition.map(|condition| self.resolve(condition)).transpose()?;
        if let Some(condition) = &mut recheck {
            self.finish_expr(condition, &local)?;
        }
        // What is returned is computed after the change, which can't be taken back any more.
        let can_begin_unwaiting = one_row && !returned.iter().any(has_subplan);
        let plan = self.plan_of_level(root, Output::new(Vec::new(), Vec::new()))?;
        let (target, alias) = (*target, alias.clone());
        let selected =
            Selected { plan, target, alias, recheck, can_begin_unwaiting, shown_subplans };
        Ok(PlannedModification { selected, values, returned })
    }
}

fn has_subplan(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e, Expr::SubPlan(_)));
    found
}
