//! A SELECT whose rows are locked.
//!
//! A row to be locked may have changed since the query found it. Then its newest version takes its
//! place beside the rows that it was joined with, and all conditions are evaluated again, as
//! expressions. Subqueries that have become semi-joins are subplans there, as where rows are
//! changed (see [`super::modification`]).

use super::Planning;
use super::node::{LockRows, Node};
use super::problem::{Problem, Relation};
use super::select::Path;
use super::slot_set::SlotSet;
use super::wanted::Wanted;
use crate::analyze::row_lock_name;
use crate::analyze::tree::{JoinKind, Query, Select, Slot};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::plan::RowLock;
use crate::plan::access::all_of;

impl Planning<'_> {
    /// A SELECT whose rows are locked, in their order, before LIMIT.
    pub(super) fn locked(
        &mut self,
        query: &Query,
        select: &Select,
        more: Vec<Expr>,
        limit: Option<f64>,
    ) -> Result<Path> {
        let mut problem = Problem { sublinks: Some(Vec::new()), ..Problem::default() };
        self.fill(&mut problem, select, more)?;
        check_locks(&problem, &query.locks)?;
        let outer_joins = problem.dependents.iter().filter(|join| join.kind == JoinKind::Left);
        let outer_joins = outer_joins
            .filter_map(|join| Some((join.slots.iter().collect(), all_of(join.on.clone())?)))
            .collect();
        let sublinks = problem.sublinks.take().unwrap_or_default();
        let conditions = problem.conjuncts.iter().cloned().chain(sublinks);
        let condition = all_of(conditions.collect());
        self.drive_by_sublinks(&mut problem)?;
        let sort = self.sort_keys(&query.order_by)?;
        let wanted = Wanted { sort: &sort, limit, or_hashed: false };
        let mut path = self.solve(&problem, &[], wanted)?;
        path.targets = self.resolve_all(&select.targets)?;
        self.sorted(&mut path, query, &sort, true)?;
        let locks = query.locks.clone();
        path.wrap(|input| {
            Node::LockRows(Box::new(LockRows { input, locks, outer_joins, condition }))
        });
        self.limited(&mut path, query, &sort)?;
        self.waits = true;
        Ok(path)
    }
}

/// Refuses locks of rows that an outer join may not have. PostgreSQL does, too, and only where no
/// condition drops the rows without a match.
fn check_locks(problem: &Problem<'_>, locks: &[(Slot, RowLock)]) -> Result<()> {
    let mut nullable = SlotSet::default();
    for join in problem.dependents.iter().filter(|join| join.kind == JoinKind::Left) {
        nullable.add(&join.slots);
    }
    for item in &problem.items {
        if matches!(item.relation, Relation::Full(_)) {
            nullable.add(&item.slots);
        }
    }
    match locks.iter().find(|(slot, _)| nullable.contains(*slot)) {
        None => Ok(()),
        Some((_, lock)) => {
            let clause = row_lock_name(lock.strength);
            let what = format!("{clause} cannot be applied to the nullable side of an outer join");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what))
        }
    }
}
