//! Outer joins that change no row: each row has one match at most, and nothing uses the match's
//! columns.

use super::Planning;
use super::problem::{Dependent, Problem, Relation};
use super::slot_set::SlotSet;
use crate::analyze::tree::{JoinKind, Select};
use crate::expr::Expr;
use crate::plan::SortKey;

impl Planning<'_> {
    /// Drops the left joins to a unique key of tables that a query uses nothing of. Another join
    /// may use a table only to find its own match, so what is left is looked at again.
    pub(super) fn drop_unused_joins(
        &self,
        problem: &mut Problem<'_>,
        select: &Select,
        sort: &[SortKey],
    ) {
        if !problem.dependents.iter().any(|dependent| dependent.kind == JoinKind::Left) {
            return;
        }
        let mut used = SlotSet::default();
        select.walk_over_rows(&mut |e| self.note_slots(e, &mut used));
        let keys = sort.iter().map(|key| &key.expr);
        for e in keys.chain(&problem.conjuncts).chain(problem.sublinks.iter().flatten()) {
            used.add(&self.slots_of(e));
        }
        problem.items.iter().for_each(|item| used.add(&item.needs));
        while let Some(at) = self.unused_join(&problem.dependents, &used) {
            problem.dependents.remove(at);
        }
    }

    fn unused_join(&self, dependents: &[Dependent<'_>], used: &SlotSet) -> Option<usize> {
        let is_used = |join: &Dependent<'_>| {
            used.intersects(&join.slots)
                || dependents.iter().any(|other| other.needs.intersects(&join.slots))
        };
        dependents.iter().position(|join| {
            join.kind == JoinKind::Left && !is_used(join) && self.matches_once(join)
        })
    }

    /// Whether a row has no more than one match, because all columns of a unique key have a value.
    fn matches_once(&self, join: &Dependent<'_>) -> bool {
        let [item] = join.right.items.as_slice() else { return false };
        let Relation::Table { slot, table, .. } = &item.relation else { return false };
        let conditions: Vec<&Expr> = join.on.iter().chain(&join.right.conjuncts).collect();
        join.right.dependents.is_empty()
            && self.table_path(*slot, table, &conditions, &[]).choice.is_point()
    }
}
