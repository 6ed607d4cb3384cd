//! The last step. What expressions of a plan still have of queries around it becomes parameters.
//! What they have of queries inside of them becomes calls of plans.

use std::sync::Arc;

use super::Planning;
use super::node::{CteKind, Node, SubPlan};
use super::node_walk::{each_expr, inputs_mut, produced};
use super::slot_set::SlotSet;
use crate::analyze::tree::{Query, Subquery, SubqueryKind, slot_of};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, SubPlanCall};

impl Planning<'_> {
    /// Finishes the plan of the current level. Returns its slots, to finish further expressions.
    /// Those of `own` are among them, though no node fills them.
    pub(super) fn finish(
        &mut self,
        root: &mut Node,
        exprs: &mut [Expr],
        own: SlotSet,
    ) -> Result<SlotSet> {
        let mut ctes = std::mem::take(&mut self.level.ctes);
        let mut local = own;
        produced(root, &mut local);
        for cte in &mut ctes {
            let (mut own, mut used) = (SlotSet::default(), SlotSet::default());
            each_of_cte(&mut cte.kind, &mut |node| {
                produced(node, &mut own);
                each_expr(node, &mut |e| {
                    used.add(&self.slots_of(e));
                    Ok(())
                })
            })?;
            if let CteKind::Modify(modify) = &cte.kind {
                own.insert(modify.target);
                modify.exprs().for_each(|e| used.add(&self.slots_of(e)));
            }
            if used.without(&own).intersects(&local) {
                return Err(SqlError::unsupported("WITH in a lateral subquery"));
            }
            local.add(&own);
        }
        for cte in &mut ctes {
            each_of_cte(&mut cte.kind, &mut |node| {
                self.finish_locks(node, &local)?;
                each_expr(node, &mut |e| self.finish_expr(e, &local))
            })?;
            if let CteKind::Modify(modify) = &mut cte.kind {
                modify.exprs_mut().try_for_each(|e| self.finish_expr(e, &local))?;
                self.finish_recheck(&mut modify.recheck, &local)?;
            }
            self.note_cte(cte)?;
            self.level.subplan_depth = 0;
        }
        self.finish_locks(root, &local)?;
        each_expr(root, &mut |e| self.finish_expr(e, &local))?;
        exprs.iter_mut().try_for_each(|e| self.finish_expr(e, &local))?;
        self.level.ctes = ctes;
        Ok(local)
    }

    pub(super) fn finish_expr(&mut self, expr: &mut Expr, local: &SlotSet) -> Result<()> {
        self.waits |= expr.waits();
        let mut is_finished = true;
        expr.walk(&mut |part| match part {
            Expr::Column(column) => is_finished &= local.contains(slot_of(*column).0),
            Expr::Subquery(_) => is_finished = false,
            _ => {}
        });
        if is_finished {
            return Ok(());
        }
        let taken = std::mem::replace(expr, Expr::NULL);
        *expr = self.finished(taken, local)?;
        Ok(())
    }

    /// Finishes a condition for rows that have changed meanwhile.
    pub(super) fn finish_recheck(
        &mut self,
        condition: &mut Option<Expr>,
        local: &SlotSet,
    ) -> Result<()> {
        self.unshown(|planning| {
            condition.iter_mut().try_for_each(|e| planning.finish_expr(e, local))
        })
    }

    /// Finishes the conditions for locked rows that have changed meanwhile.
    fn finish_locks(&mut self, node: &mut Node, local: &SlotSet) -> Result<()> {
        if let Node::LockRows(lock) = node {
            self.unshown(|planning| {
                lock.exprs_mut().try_for_each(|e| planning.finish_expr(e, local))
            })?;
        }
        inputs_mut(node).into_iter().try_for_each(|input| self.finish_locks(input, local))
    }

    /// EXPLAIN does not show the subplans that only this calls.
    fn unshown(&mut self, finish: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let shows = std::mem::replace(&mut self.shows, false);
        let result = finish(self);
        self.shows = shows;
        result
    }

    fn finished(&mut self, expr: Expr, local: &SlotSet) -> Result<Expr> {
        match expr {
            Expr::Column(column) if !local.contains(slot_of(column).0) => {
                let args = &mut self.level.args;
                let place = args.iter().position(|arg| *arg == column).unwrap_or_else(|| {
                    args.push(column);
                    args.len() - 1
                });
                Ok(Expr::Param(self.params + place))
            }
            Expr::Subquery(subquery) => self.nested(|planning| planning.subplan(*subquery, local)),
            other => other.map_parts(&mut |part| self.finished(part, local)),
        }
    }

    /// Plans a query inside of an expression.
    fn subplan(&mut self, subquery: Subquery, local: &SlotSet) -> Result<Expr> {
        let Subquery { kind, query } = subquery;
        let column = if let SubqueryKind::Column(column) = kind { column } else { 0 };
        let mut all = |left: Vec<Expr>| -> Result<Vec<Expr>> {
            left.into_iter().map(|e| self.finished(e, local)).collect()
        };
        let (kind, left) = match kind {
            SubqueryKind::Any(left, op) => {
                let left = all(left)?;
                (SubqueryKind::Any(left.clone(), op), left)
            }
            SubqueryKind::All(left, op) => {
                let left = all(left)?;
                (SubqueryKind::All(left.clone(), op), left)
            }
            kind => (kind, Vec::new()),
        };
        let (number, args) = self.subplan_of(kind, query)?;
        let args = args.into_iter().map(Expr::Column);
        let args = args.map(|arg| self.finished(arg, local)).collect::<Result<Vec<Expr>>>()?;
        Ok(Expr::SubPlan(Box::new(SubPlanCall { number, column, args, left })))
    }

    /// The number of the subplan of a query, which is planned once however often it is called, and
    /// the columns that are its arguments.
    fn subplan_of(&mut self, kind: SubqueryKind, query: Arc<Query>) -> Result<(usize, Vec<usize>)> {
        if let Some(known) = self.level.called.get(&Arc::as_ptr(&query)) {
            let (number, args, depth) = (known.number, known.args.clone(), known.depth);
            self.note_subplan(depth);
            if let Some(subplan) = self.level.subplans.get_mut(number) {
                subplan.shown |= self.shows;
            }
            return Ok((number, args));
        }
        let around = std::mem::take(&mut self.level);
        let with_output = !matches!(kind, SubqueryKind::Exists);
        // Whether there is a row is known after the first.
        self.rows_wanted = (!with_output).then_some(1.0);
        let planned = self.plan(&query, with_output);
        let inner = std::mem::replace(&mut self.level, around);
        let (plan, args) = (planned?, inner.args);
        let depth = self.depth_of(&plan.root) + inner.subplan_depth;
        self.note_subplan(depth);
        let number = self.level.subplans.len();
        let once = args.is_empty();
        let (first_arg, shown) = (self.params, self.shows);
        self.level.subplans.push(SubPlan { kind, plan, first_arg, once, shown });
        let called = Called { number, args: args.clone(), depth, query };
        self.level.called.insert(Arc::as_ptr(&called.query), called);
        Ok((number, args))
    }
}

/// A query of an expression that has a plan.
pub(super) struct Called {
    number: usize,
    args: Vec<usize>,
    depth: usize,
    /// Its address is what it is found by.
    query: Arc<Query>,
}

fn each_of_cte(kind: &mut CteKind, each: &mut dyn FnMut(&mut Node) -> Result<()>) -> Result<()> {
    match kind {
        CteKind::Plain(node, _) => each(node),
        CteKind::Modify(modify) => each(&mut modify.input),
        CteKind::Recursive { start, step, .. } => {
            each(&mut start.0)?;
            each(&mut step.0)
        }
    }
}
