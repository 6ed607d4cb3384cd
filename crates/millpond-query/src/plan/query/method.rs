//! How one relation is joined to the rows so far, and what that costs.

use smallvec::SmallVec;

use super::Planning;
use super::conditions::{Conditions, Places, Progress};
use super::estimate::{GIVE, INDEXED_ROW, KEEP, LOOKUP, PROBE, UNKNOWN_ROWS};
use super::order::Way;
use super::problem::{Dependent, Item, Problem, Relation};
use super::slot_set::SlotSet;
use super::table_path::Estimate;
use super::wanted::Wanted;
use crate::analyze::tree::JoinKind;
use crate::error::Result;
use crate::expr::{Compare, Expr};
use crate::plan::SortKey;

/// Looking at more rows of a key for each row of the other side takes long.
const LONG_WALK: f64 = 4.0;

/// How a relation is joined to the rows so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// It is the first.
    First,
    /// It is run for each row, and may use the row.
    Inner,
    /// It is hashed; or, swapped, the rows so far are.
    Hash { swapped: bool },
    /// It is kept, and all of it is looked at for each row.
    Loop,
}

/// What a relation costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) rows: f64,
    pub(super) cost: f64,
    pub(super) by_key: bool,
    pub(super) one_row: bool,
}

/// The two ways to have a relation's rows.
#[derive(Clone, Copy)]
pub(super) struct Side {
    /// For a row that is there.
    pub(super) keyed: Cost,
    /// All of them.
    pub(super) alone: Cost,
    pub(super) lateral: bool,
    pub(super) kind: JoinKind,
}

/// The slots of what is joined, and of all that the join is of. All others are of queries around.
#[derive(Clone, Copy)]
pub(super) struct Joined<'s> {
    pub(super) own: &'s SlotSet,
    pub(super) all: &'s SlotSet,
}

impl Planning<'_> {
    pub(super) fn dependent_side(
        &mut self,
        problem: &Problem<'_>,
        dependent: &Dependent<'_>,
    ) -> Result<Side> {
        let kind = dependent.kind;
        let lateral = dependent.lateral.intersects(&problem.slots());
        let right = &dependent.right;
        let keyed = Conditions::new(self, right, &dependent.on);
        let is_first_enough =
            matches!(kind, JoinKind::Semi | JoinKind::Anti) && self.matches_all(right, &keyed);
        let mut keyed = self.nested(|p| p.way(right, &keyed, Wanted::default()))?.cost();
        if is_first_enough {
            keyed.cost = keyed.cost.min(LOOKUP + INDEXED_ROW);
        }
        if lateral {
            return Ok(Side { keyed, alone: keyed, lateral, kind });
        }
        let alone = Conditions::new(self, right, &[]);
        let alone = self.nested(|p| p.way(right, &alone, Wanted::default()))?.cost();
        Ok(Side { keyed, alone, lateral, kind })
    }

    /// Whether all rows that an index finds match: nothing is left to be filtered.
    fn matches_all(&self, right: &Problem<'_>, conditions: &Conditions<'_>) -> bool {
        let ([item], []) = (right.items.as_slice(), right.dependents.as_slice()) else {
            return false;
        };
        let Relation::Table { slot, table, .. } = &item.relation else { return false };
        let ready = Progress::new(conditions).ready(conditions, &item.slots);
        let ready = conditions.all(&ready);
        let path = self.table_path(*slot, table, &ready, &[]);
        path.estimate.by_key && path.choice.rest().next().is_none()
    }

    /// How to join a relation, what it costs, and how many rows there are then.
    pub(super) fn method(
        &self,
        way: &Way,
        side: Side,
        on: &[&Expr],
        slots: Joined<'_>,
    ) -> (f64, Method, f64) {
        let Side { keyed, alone, lateral, kind } = side;
        let keeps_order = way.presorted > 0 && keyed.by_key;
        let outer = way.rows.max(1.0);
        let mut pairs = outer * alone.rows;
        let mut has_keys = false;
        let unique = self.unique_rows(on, slots);
        for conjunct in on {
            pairs *= match self.join_key(conjunct, slots) {
                Some((a, b)) => {
                    has_keys = true;
                    if unique.is_some() { 1.0 } else { self.equality(a, b) }
                }
                None => self.selectivity(std::iter::once(*conjunct)),
            };
        }
        pairs /= unique.unwrap_or(1.0);
        let found = if keyed.by_key || lateral { outer * keyed.rows } else { pairs };
        let rows = match kind {
            JoinKind::Left => found.max(outer),
            JoinKind::Semi | JoinKind::Anti => outer * 0.5,
            _ => found,
        };
        let rows = rows.max(1.0);
        // However they are found: rows that come out of a join cost something, too.
        let given = rows * GIVE;
        let inner = (outer * keyed.cost + given, Method::Inner, rows);
        if lateral || on.is_empty() && way.one_row {
            return inner;
        }
        let swapped = outer < alone.rows && !self.walks_long(kind, outer, on, slots);
        let (built, probed) = if swapped { (outer, alone.rows) } else { (alone.rows, outer) };
        let hash = alone.cost + built * KEEP + probed * PROBE + given;
        let hash = (hash, Method::Hash { swapped }, rows);
        let all_pairs = alone.cost + alone.rows * KEEP + outer * alone.rows * PROBE + given;
        let kept = (all_pairs, Method::Loop, rows);
        match (keyed.by_key || way.one_row, has_keys) {
            (true, true) if hash.0 < inner.0 && !keeps_order => hash,
            (true, false) if kept.0 < inner.0 => kept,
            (true, _) => inner,
            (false, true) => hash,
            (false, false) => kept,
        }
    }

    /// Whether a semi-join that hashes the outer rows would look at many of them again and again:
    /// those of a key that do not meet a condition beside it. (The other way round, the first that
    /// does is enough.)
    fn walks_long(&self, kind: JoinKind, outer: f64, on: &[&Expr], slots: Joined<'_>) -> bool {
        let keys = on.iter().filter_map(|conjunct| self.join_key(conjunct, slots));
        let mut values = keys.map(|(outer, _)| match outer {
            Expr::Column(column) => self.distinct_values(*column),
            _ => UNKNOWN_ROWS,
        });
        matches!(kind, JoinKind::Semi | JoinKind::Anti)
            && on.iter().any(|conjunct| self.join_key(conjunct, slots).is_none())
            && values.all(|values| outer > values * LONG_WALK)
    }

    /// The two sides of an equality between the rows so far and a relation's. Each may also use
    /// rows of queries around the join.
    pub(super) fn join_key<'e>(
        &self,
        conjunct: &'e Expr,
        slots: Joined<'_>,
    ) -> Option<(&'e Expr, &'e Expr)> {
        let Expr::Compare(Compare::Eq, pair) = conjunct else { return None };
        let (a, b) = (&pair.0, &pair.1);
        if a.is_volatile() || b.is_volatile() {
            return None;
        }
        let (uses_a, uses_b) = (self.slots_of(a), self.slots_of(b));
        let Joined { own, all } = slots;
        let is_own = |uses: &SlotSet| uses.intersects(own) && uses.and(all).is_within(own, own);
        let is_other = |uses: &SlotSet| !uses.is_empty() && !uses.intersects(own);
        if is_other(&uses_a) && is_own(&uses_b) {
            Some((a, b))
        } else if is_own(&uses_a) && is_other(&uses_b) {
            Some((b, a))
        } else {
            None
        }
    }

    /// The rows of the table that is joined, if the conditions fix all columns of a unique index.
    /// Then each of the rows so far finds one at most.
    fn unique_rows(&self, on: &[&Expr], slots: Joined<'_>) -> Option<f64> {
        let fixed: SmallVec<[usize; 8]> = on
            .iter()
            .filter_map(|conjunct| match self.join_key(conjunct, slots) {
                Some((_, Expr::Column(column))) => Some(*column),
                _ => None,
            })
            .collect();
        fixed.iter().find_map(|column| self.rows_if_unique(*column, &fixed))
    }

    /// What an item costs under the conditions of some places: on it, and on rows that are there
    /// already.
    pub(super) fn item_cost(
        &mut self,
        problem: &Problem<'_>,
        at: usize,
        conditions: &Conditions<'_>,
        ready: &[usize],
        sort: &[SortKey],
    ) -> Result<Cost> {
        let item = &problem.items[at];
        if let Relation::Table { slot, table, .. } = &item.relation {
            let ready = conditions.all(ready);
            let path = self.table_path(*slot, table, &ready, sort);
            let one_row = path.choice.is_point();
            let Estimate { rows, cost, by_key } = path.estimate;
            return Ok(Cost { rows, cost, by_key, one_row });
        }
        let own = &conditions.own[at];
        let (rows, cost) = self.alone(item, conditions, own)?;
        let more: Places = ready.iter().filter(|place| !own.contains(place)).copied().collect();
        let more = conditions.all(&more);
        if !more.is_empty()
            && let Relation::Query { slot, query } = &item.relation
            && let Some(path) = self.try_keyed(*slot, query, &conditions.all(own), &more)?
            && path.1 < cost
        {
            let (rows, cost) = path;
            return Ok(Cost { rows, cost, by_key: true, one_row: false });
        }
        let rows = (rows * self.selectivity(more.into_iter())).max(1.0);
        Ok(Cost { rows, cost, by_key: false, one_row: false })
    }

    pub(super) fn is_ordered(
        &self,
        item: &Item<'_>,
        conditions: &Conditions<'_>,
        ready: &[usize],
        sort: &[SortKey],
    ) -> bool {
        let Relation::Table { slot, table, .. } = &item.relation else { return false };
        let ready = conditions.all(ready);
        self.table_path(*slot, table, &ready, sort).choice.is_ordered
    }
}
