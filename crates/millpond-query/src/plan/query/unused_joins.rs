//! Outer joins that change no row: each row has one match at most, and nothing uses the match's
//! columns.

use std::mem;

use super::Planning;
use super::problem::{Dependent, Problem, Relation};
use super::slot_set::SlotSet;
use crate::analyze::tree::{Body, Distinct, JoinKind, Query, Select, Slot, column, slot_of};
use crate::expr::{Compare, Expr};
use crate::plan::SortKey;

impl Planning<'_> {
    /// Drops the left joins that a query uses nothing of, to a unique key of a table or to the
    /// groups of a query.
    pub(super) fn drop_unused_joins(
        &self,
        problem: &mut Problem<'_>,
        select: &Select,
        sort: &[SortKey],
    ) {
        if problem.dependents.is_empty() {
            return;
        }
        let mut used = SlotSet::default();
        select.walk_over_rows(&mut |e| self.note_slots(e, &mut used));
        sort.iter().for_each(|key| used.add(&self.slots_of(&key.expr)));
        self.drop_joins(problem, used);
    }

    /// Drops such joins of a problem; `used` are the slots that are used outside of it. Another
    /// join may use an item only to find its own match, so the rest is looked at again after each.
    fn drop_joins(&self, problem: &mut Problem<'_>, mut used: SlotSet) {
        for e in problem.conjuncts.iter().chain(problem.sublinks.iter().flatten()) {
            used.add(&self.slots_of(e));
        }
        problem.items.iter().for_each(|item| used.add(&item.needs));
        for at in 0..problem.dependents.len() {
            if !problem.dependents[at].right.dependents.is_empty() {
                self.drop_inside(&mut problem.dependents, at, used.clone());
            }
        }
        while let Some(at) = self.unused_join(&problem.dependents, &used) {
            problem.dependents.remove(at);
        }
    }

    /// Drops such joins within the right side of a join.
    fn drop_inside(&self, dependents: &mut [Dependent<'_>], at: usize, mut used: SlotSet) {
        let others = dependents.iter().enumerate().filter(|(other, _)| *other != at);
        others.for_each(|(_, other)| used.add(&other.needs));
        let join = &mut dependents[at];
        join.on.iter().for_each(|e| used.add(&self.slots_of(e)));
        self.drop_joins(&mut join.right, used);
        let (right, on) = (mem::take(&mut join.right), mem::take(&mut join.on));
        *join = self.dependent(join.kind, right, on);
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
        let conditions = || join.on.iter().chain(&join.right.conjuncts);
        let is_unique = match &item.relation {
            Relation::Table { slot, table, .. } => {
                let conditions: Vec<&Expr> = conditions().collect();
                self.table_path(*slot, table, &conditions, &[]).choice.is_point()
            }
            Relation::Query { slot, query } => {
                let is_given =
                    |place| conditions().any(|e| self.gives_value(e, *slot, column(*slot, place)));
                differs_in(query, &is_given)
            }
            _ => false,
        };
        is_unique && join.right.dependents.is_empty()
    }

    /// Whether a condition says that a column of an item is equal to one value outside of it.
    fn gives_value(&self, condition: &Expr, slot: Slot, column: usize) -> bool {
        let Expr::Compare(Compare::Eq, pair) = condition else { return false };
        let is_it = |e: &Expr| matches!(e, Expr::Column(own) if *own == column);
        let is_outside = |e: &Expr| !e.is_volatile() && !self.slots_of(e).contains(slot);
        is_it(&pair.0) && is_outside(&pair.1) || is_it(&pair.1) && is_outside(&pair.0)
    }
}

/// Whether no two rows of a query are equal in the columns at some places.
fn differs_in(query: &Query, is_at: &dyn Fn(usize) -> bool) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let mut places = 0..select.targets.len();
    if matches!(select.distinct, Distinct::All) {
        return places.all(is_at);
    }
    // Functions that return rows would repeat a group.
    if !select.sets.is_empty() || !select.sets_before_windows.is_empty() {
        return false;
    }
    let Some(grouping) = select.grouping.as_ref().filter(|grouping| grouping.sets.is_none()) else {
        return false;
    };
    let is_key = |place: usize, key: usize| match &select.targets[place] {
        Expr::Column(column) => slot_of(*column) == (grouping.slot, key),
        _ => false,
    };
    let is_given = |key| places.clone().any(|place| is_key(place, key) && is_at(place));
    (0..grouping.keys.len()).all(is_given)
}
