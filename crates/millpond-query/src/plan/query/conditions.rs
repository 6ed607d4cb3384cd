//! The conditions of a join while its order is being decided: which can be told when, and which
//! have their place.

use super::order::Part;
use super::problem::{Item, Problem, Relation};
use super::slot_set::SlotSet;
use super::{Planning, equalities};
use crate::expr::Expr;

/// Conditions and what they need.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) exprs: Vec<Expr>,
    /// Slots of the problem: all, if a condition is volatile.
    needs: Vec<SlotSet>,
    /// Whether it uses slots outside of the problem, too.
    outside: Vec<bool>,
    /// Groups of columns that they make equal.
    pub(super) equal: Vec<Vec<usize>>,
}

/// A join that has been planned up to some relation.
#[derive(Clone)]
pub(super) struct Progress {
    pub(super) bound: SlotSet,
    /// Which conditions have a place.
    placed: Vec<bool>,
    pub(super) done: Vec<Part>,
}

impl Conditions {
    pub(super) fn new(planning: &Planning<'_>, problem: &Problem<'_>, more: &[Expr]) -> Self {
        let all = problem.slots();
        let mut exprs: Vec<Expr> = problem.conjuncts.iter().chain(more).cloned().collect();
        let equal = Planning::columns_made_equal(&exprs);
        exprs.extend(equalities::implied(&equal, &exprs, &all));
        let (mut needs, mut outside) = (Vec::new(), Vec::new());
        for e in &exprs {
            let uses = planning.slots_of(e);
            needs.push(if e.is_volatile() { all.clone() } else { uses.and(&all) });
            outside.push(!uses.is_within(&all, &all));
        }
        Self { exprs, needs, outside, equal }
    }

    /// Those on one item alone. Of what is planned once and kept, those that use nothing outside.
    pub(super) fn of(&self, item: &Item<'_>) -> Vec<Expr> {
        let is_table = matches!(item.relation, Relation::Table { .. });
        let slots = &item.slots;
        let is_own = |place: &usize| {
            let needs = &self.needs[*place];
            !needs.is_empty()
                && needs.is_within(slots, slots)
                && (is_table || !self.outside[*place])
        };
        (0..self.exprs.len()).filter(is_own).map(|place| self.exprs[place].clone()).collect()
    }

    pub(super) fn all(&self, places: &[usize]) -> Vec<Expr> {
        places.iter().map(|place| self.exprs[*place].clone()).collect()
    }
}

impl Progress {
    pub(super) fn new(conditions: &Conditions) -> Self {
        let placed = vec![false; conditions.exprs.len()];
        Self { bound: SlotSet::default(), placed, done: Vec::new() }
    }

    /// The places of the conditions that can be told once these slots are there, too, without
    /// those that say nothing more than others.
    pub(super) fn ready(&self, conditions: &Conditions, slots: &SlotSet) -> Vec<usize> {
        let Conditions { exprs, equal, .. } = conditions;
        equalities::without_redundant(self.all_ready(conditions, slots), exprs, equal, &self.bound)
    }

    fn all_ready(&self, conditions: &Conditions, slots: &SlotSet) -> Vec<usize> {
        (0..self.placed.len())
            .filter(|place| {
                !self.placed[*place] && conditions.needs[*place].is_within(&self.bound, slots)
            })
            .collect()
    }

    /// The same, which then have their place.
    pub(super) fn take(&mut self, conditions: &Conditions, slots: &SlotSet) -> Vec<Expr> {
        let ready = self.ready(conditions, slots);
        self.all_ready(conditions, slots).iter().for_each(|place| self.placed[*place] = true);
        conditions.all(&ready)
    }
}
