//! Plans of statements that insert, update or delete what a query gives.
//!
//! In READ COMMITTED a row to be changed may have changed since the query found it. Then its newest
//! version takes its place beside the rows that it was joined with, and WHERE is evaluated again,
//! as an expression. Subqueries that have become joins are subplans there.

use std::sync::Arc;

use super::Planning;
use super::node::{Modify, RowChange, SlotKind};
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
        analyzed: &Modification,
        slots: Vec<SlotKind>,
        params: usize,
    ) -> Result<PlannedModification> {
        let mut planning = self.planning(&analyzed.query, slots, params);
        let mut planned = planning.modification(analyzed)?;
        planning.complete(&mut planned.selected.plan)?;
        Ok(planned)
    }
}

impl Planning<'_> {
    fn modification(&mut self, analyzed: &Modification) -> Result<PlannedModification> {
        let Modification { query, target, columns, alias, .. } = analyzed;
        let path = self.query(query, &[])?;
        let (mut root, mut values, one_row) = (path.node, path.targets, path.one_row);
        let mut recheck = self.recheck(analyzed)?;
        // RETURNING sees the row that is stored, also that of an INSERT.
        let local = self.finish(&mut root, &mut values, SlotSet::one(*target))?;
        let returned = values.split_off(columns.len().min(values.len()));
        self.finish_recheck(&mut recheck, &local)?;
        // What is returned is computed after the change, which can't be taken back any more.
        let can_begin_unwaiting = one_row && !returned.iter().any(Expr::may_take_long);
        let plan = self.plan_of_level(root, Output::new(Vec::new(), Vec::new()), &local)?;
        let (target, alias) = (*target, alias.clone());
        let selected = Selected { plan, target, alias, recheck, can_begin_unwaiting };
        Ok(PlannedModification { selected, values, returned })
    }

    /// A query of WITH that changes rows. It starts where it may wait: it can't be taken back.
    pub(super) fn modify(&mut self, analyzed: &Modification) -> Result<Modify> {
        let path = self.nested(|planning| planning.query(&analyzed.query, &[]))?;
        let mut values = path.targets;
        let returned = values.split_off(analyzed.columns.len().min(values.len()));
        let recheck = self.recheck(analyzed)?;
        self.waits = true;
        let change = match analyzed.kind {
            ModificationKind::Insert => RowChange::Insert(values),
            ModificationKind::Update => {
                RowChange::Update(analyzed.columns.iter().copied().zip(values).collect())
            }
            ModificationKind::Delete => RowChange::Delete,
        };
        Ok(Modify {
            input: path.node,
            table: Arc::clone(&analyzed.table),
            alias: analyzed.alias.clone(),
            target: analyzed.target,
            change,
            recheck,
            returned: analyzed.returning.is_some().then_some(returned),
        })
    }

    /// WHERE, for rows that have changed meanwhile.
    fn recheck(&mut self, analyzed: &Modification) -> Result<Option<Expr>> {
        let condition = match (analyzed.kind, &analyzed.query.body) {
            (ModificationKind::Update | ModificationKind::Delete, Body::Select(select)) => {
                select.condition.as_ref()
            }
            _ => None,
        };
        condition.map(|condition| self.resolve(condition)).transpose()
    }
}
