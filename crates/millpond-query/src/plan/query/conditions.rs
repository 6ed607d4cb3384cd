//! The conditions of a join while its order is being decided: which can be told when, and which
//! have their place.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use smallvec::SmallVec;

use super::method::Cost;
use super::order::Part;
use super::problem::{Item, Problem, Relation};
use super::slot_set::SlotSet;
use super::{Planning, equalities};
use crate::expr::Expr;
use crate::plan::access::Conjuncts;

/// Places of conditions.
pub(super) type Places = SmallVec<[usize; 8]>;

/// Conditions and what they need.
#[derive(Debug)]
pub(super) struct Conditions<'c> {
    pub(super) exprs: Vec<Cow<'c, Expr>>,
    /// Those that read no row: they are told before any row is read.
    pub(super) gates: Vec<Expr>,
    /// Slots of the problem: all, if a condition is volatile.
    needs: Vec<SlotSet>,
    /// Groups of columns that they make equal.
    pub(super) equal: Rc<[Vec<usize>]>,
    /// Which of these groups are equal to a value.
    have_value: Vec<bool>,
    /// The slots of the problem's rows.
    pub(super) slots: SlotSet,
    /// Of each item the places of the conditions on it alone. Of what is planned once and kept,
    /// those that use nothing outside.
    pub(super) own: Vec<Places>,
    /// What each item costs under these, once that is known.
    pub(super) alone: Vec<Cell<Option<Cost>>>,
}

/// A join that has been planned up to some relation.
#[derive(Clone)]
pub(super) struct Progress {
    pub(super) bound: SlotSet,
    /// Which conditions have a place.
    placed: SmallVec<[bool; 16]>,
    pub(super) done: Vec<Part>,
}

impl<'c> Conditions<'c> {
    pub(super) fn new(planning: &Planning<'_>, problem: &'c Problem<'_>, more: &'c [Expr]) -> Self {
        let all = problem.slots();
        let has_rows = !problem.items.is_empty();
        let written = problem.conjuncts.iter().chain(more);
        let (gates, written): (Vec<&Expr>, Vec<&Expr>) =
            written.partition(|e| has_rows && e.is_same_for_all_rows());
        let gates = gates.into_iter().cloned().collect();
        let mut exprs: Vec<Cow<'c, Expr>> = written.into_iter().map(Cow::Borrowed).collect();
        let equal = Planning::columns_made_equal(&exprs);
        let implied = equalities::implied(&equal, &exprs, &all);
        let (valued, have_value) = equalities::valued(&equal, &exprs, &all);
        exprs.extend(implied.into_iter().chain(valued).map(Cow::Owned));
        let mut needs = Vec::with_capacity(exprs.len());
        // Whether it uses slots outside of the problem, too.
        let mut outside = Vec::with_capacity(exprs.len());
        for e in &exprs {
            let uses = planning.slots_of(e);
            needs.push(if e.is_volatile() { all.clone() } else { uses.and(&all) });
            outside.push(!uses.is_within(&all, &all));
        }
        let own_of = |item: &Item<'_>| {
            let is_table = matches!(item.relation, Relation::Table { .. });
            let slots = &item.slots;
            let is_own = |place: &usize| {
                let needs = &needs[*place];
                !needs.is_empty() && needs.is_within(slots, slots) && (is_table || !outside[*place])
            };
            (0..exprs.len()).filter(is_own).collect()
        };
        let own = problem.items.iter().map(own_of).collect();
        let alone = vec![Cell::new(None); problem.items.len()];
        Self { exprs, gates, needs, equal: equal.into(), have_value, slots: all, own, alone }
    }

    fn without_redundant(&self, places: Places, bound: &SlotSet) -> Places {
        let groups = (&*self.equal, &*self.have_value);
        equalities::without_redundant(places, &self.exprs, groups, bound)
    }

    pub(super) fn all(&self, places: &[usize]) -> Conjuncts<'_> {
        places.iter().map(|place| &*self.exprs[*place]).collect()
    }

    pub(super) fn cloned(&self, places: &[usize]) -> Vec<Expr> {
        places.iter().map(|place| Expr::clone(&self.exprs[*place])).collect()
    }
}

impl Progress {
    pub(super) fn new(conditions: &Conditions<'_>) -> Self {
        let placed = SmallVec::from_elem(false, conditions.exprs.len());
        Self { bound: SlotSet::default(), placed, done: Vec::new() }
    }

    /// The places of the conditions that can be told once these slots are there, too, without
    /// those that say nothing more than others.
    pub(super) fn ready(&self, conditions: &Conditions<'_>, slots: &SlotSet) -> Places {
        conditions.without_redundant(self.all_ready(conditions, slots), &self.bound)
    }

    fn all_ready(&self, conditions: &Conditions<'_>, slots: &SlotSet) -> Places {
        (0..self.placed.len())
            .filter(|place| {
                !self.placed[*place] && conditions.needs[*place].is_within(&self.bound, slots)
            })
            .collect()
    }

    /// The same, which then have their place.
    pub(super) fn take(&mut self, conditions: &Conditions<'_>, slots: &SlotSet) -> Places {
        let ready = self.all_ready(conditions, slots);
        ready.iter().for_each(|place| self.placed[*place] = true);
        conditions.without_redundant(ready, &self.bound)
    }
}
