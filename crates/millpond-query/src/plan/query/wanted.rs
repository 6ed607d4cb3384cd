//! The order in which rows are wanted of a join, and the item that has it.

use super::Planning;
use super::conditions::{Conditions, Progress};
use super::estimate::{KEEP, sort_cost};
use super::order::Way;
use super::problem::{Problem, Relation};
use super::slot_set::SlotSet;
use crate::plan::SortKey;

/// Longer beginnings of the sort keys are not looked for in indexes, unless they are all keys.
const MAX_PREFIX: usize = 8;

/// An order in which rows are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'s> {
    pub(super) sort: &'s [SortKey],
    /// How many rows are wanted of them: a guess.
    pub(super) limit: Option<f64>,
    /// Without the order rows are hashed, not sorted.
    pub(super) or_hashed: bool,
}

/// Which rows are read of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    All,
    /// The first ones, in any order.
    First,
    /// The first ones in an order.
    FirstInOrder,
}

impl Wanted<'_> {
    /// What a way costs together with what makes the order of it.
    pub(super) fn total(&self, way: &Way) -> f64 {
        if self.sort.is_empty() {
            return way.cost;
        }
        match (self.is_met(way) || way.one_row, self.limit) {
            (true, Some(limit)) => way.cost * (limit / way.rows).min(1.0),
            (true, None) => way.cost,
            (false, Some(limit)) if way.presorted > 0 => {
                // Nothing is known of how many rows are equal in the keys that come sorted.
                let read = (limit + way.rows.sqrt()).min(way.rows);
                way.cost * (read / way.rows) + sort_cost(read)
            }
            (false, _) if self.or_hashed => way.cost + way.rows * KEEP,
            (false, _) => way.cost + sort_cost(way.rows),
        }
    }

    /// Whether rows come in the order.
    pub(super) fn is_met(&self, way: &Way) -> bool {
        !self.sort.is_empty() && way.presorted == self.sort.len()
    }
}

impl Planning<'_> {
    /// The table to start with, and how many leading sort keys it provides. Without a LIMIT, or if
    /// rows would be hashed without the order, it must provide all of them. With a LIMIT, an index
    /// must have the order of these keys.
    pub(super) fn start_of(
        &self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        wanted: Wanted<'_>,
    ) -> Option<(usize, usize)> {
        let slots_of = |keys: &[SortKey]| {
            let mut slots = SlotSet::default();
            keys.iter().for_each(|key| slots.add(&self.slots_of(&key.expr)));
            slots
        };
        let mut slots = wanted.sort.iter().map(|key| self.slots_of(&key.expr));
        let first = slots.find(|slots| !slots.is_empty())?;
        let at = problem.items.iter().position(|item| {
            matches!(item.relation, Relation::Table { .. })
                && first.is_within(&item.slots, &item.slots)
        })?;
        let item = &problem.items[at];
        let is_own =
            |keys: &usize| slots_of(&wanted.sort[..*keys]).is_within(&item.slots, &item.slots);
        let all = wanted.sort.len();
        let most = (1..=all).rev().find(is_own)?;
        if wanted.limit.is_none() || wanted.or_hashed {
            return (most == all).then_some((at, most));
        }
        let ready = Progress::new(conditions).ready(conditions, &item.slots);
        let has_order =
            |keys: &usize| self.is_ordered(item, conditions, &ready, &wanted.sort[..*keys]);
        let prefixes = (1..most.min(MAX_PREFIX + 1)).rev();
        let keys = std::iter::once(most).chain(prefixes).find(has_order)?;
        // Nearly all rows may be equal in a column of few values.
        let is_worth_it =
            keys == all || !wanted.sort[..keys].iter().all(|key| self.is_code(&key.expr));
        is_worth_it.then_some((at, keys))
    }
}
