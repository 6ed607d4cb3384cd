//! How the rows of a table are found, and what that costs.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;

use super::Planning;
use super::estimate::{
    GUESSED_ENDS, INDEXED_ROW, LOOKUP, SCATTERED_ROW, bounds_rows, elements, ends_of,
};
use super::node::{Demand, Node, Scan, SlotKind};
use super::wanted::Read;
use crate::analyze::tree::{Slot, slot_of};
use crate::expr::Expr;
use crate::plan::SortKey;
use crate::plan::access::{
    self, Bounds, Choice, Conjuncts, IndexPart, List, Lookup, Places, Sides, WantedOrder,
    leading_bounds,
};
use crate::plan::order::orders_of_indexes;
use crate::plan::range_estimates::Use;

/// How the rows of a table are found, and what that costs.
pub(super) struct TablePath<'c> {
    pub(super) choice: Choice<'c>,
    /// Instead of the choice, the sides of the OR at this place are read one after the other.
    or: Option<usize>,
    pub(super) estimate: Estimate,
}

/// The rows of a table that some conditions leave, and what it costs to find them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Columns of other relations are among the keys.
    pub(super) by_key: bool,
}

impl Planning<'_> {
    /// How the rows of a table are found under conditions on it and rows that are there already.
    pub(super) fn table_path<'c>(
        &'c self,
        slot: Slot,
        table: &'c TableDef,
        conjuncts: &'c [&'c Expr],
        sort: &[SortKey],
    ) -> TablePath<'c> {
        let known = |column| self.is_known(slot, column);
        let lookup = Lookup { table, first_column: slot.first_column(), known: &known };
        let given_by = orders_of_indexes(&lookup, self.indexes, sort, conjuncts);
        let is_weighed = self.read == Read::FirstInOrder;
        let wanted = WantedOrder { given_by: &given_by, is_weighed };
        let in_part = |part: &IndexPart<'_>| self.rows_in_part(table, part);
        let choice = access::choose(&lookup, self.indexes, conjuncts, wanted, &in_part);
        let estimate = self.estimate(slot, table, &choice);
        let mut path = TablePath { choice, or: None, estimate };
        let in_order = !sort.is_empty() && path.choice.is_ordered;
        if path.choice.is_point() || in_order && !path.choice.is_whole_index() {
            return path;
        }
        if !in_order && self.is_read_whole(table, &path.choice) {
            path.choice = path.choice.without_index();
            path.estimate.cost = self.live(table);
        }
        for place in path.choice.places_left().collect::<Places>() {
            let sides = Sides::of(conjuncts, place);
            let found = sides.and_then(|sides| self.estimate_sides(slot, &lookup, &sides));
            let Some((estimate, is_known)) = found else { continue };
            // As with one index: what is known is weighed against the order.
            let is_left_open = in_order && is_known && is_weighed;
            path.choice.is_contested |= is_left_open;
            if !is_left_open && estimate.cost < path.estimate.cost {
                (path.or, path.estimate) = (Some(place), estimate);
                path.choice.is_ordered = false;
            }
        }
        path
    }

    /// Whether a column of a condition on a relation has a value already: columns of other
    /// relations do. A column within a subquery may stand for one of the relation.
    fn is_known(&self, slot: Slot, column: usize) -> bool {
        match self.substituted.contains_key(&slot_of(column).0) {
            true => !self.slots_of(&Expr::Column(column)).contains(slot),
            false => slot_of(column).0 != slot,
        }
    }

    fn rows_in_part(&self, table: &TableDef, part: &IndexPart<'_>) -> Option<f64> {
        self.ranges.known_rows_of_part(table, part, self.live(table), Use::Rows)
    }

    /// Whether the table is read whole instead of what was chosen of an index. Of rows of which
    /// only the first are wanted the index has those.
    fn is_read_whole(&self, table: &TableDef, choice: &Choice<'_>) -> bool {
        let is_whole =
            |range| self.ranges.is_read_whole(table, range, self.live(table), self.range_use());
        self.read != Read::First && choice.range().is_some_and(is_whole)
    }

    /// The node that reads a table so.
    pub(super) fn table_node(
        &self,
        (slot, table, alias): (Slot, &Arc<TableDef>, &str),
        conjuncts: &[&Expr],
        path: TablePath<'_>,
    ) -> Node {
        let scan = |(access, filter)| {
            let (table, alias) = (Arc::clone(table), alias.to_owned());
            let (gathers, demand) = (false, Demand::default());
            Node::Scan(Scan { slot, table, alias, access, filter, gathers, demand })
        };
        let sides = path.or.and_then(|place| Sides::of(conjuncts, place));
        let known = |column| self.is_known(slot, column);
        let lookup = Lookup { table, first_column: slot.first_column(), known: &known };
        let in_part = |part: &IndexPart<'_>| self.rows_in_part(table, part);
        let found = |sides| Sides::choices(sides, &lookup, self.indexes, &in_part);
        // An index that served a moment ago may have been dropped: then the choice holds.
        let Some((sides, choices)) = sides.as_ref().and_then(|sides| Some((sides, found(sides)?)))
        else {
            return scan(path.choice.made());
        };
        let mut inputs = sides.made(table, &choices).into_iter().map(scan);
        match (inputs.next(), inputs.len()) {
            (Some(one), 0) => one,
            (first, _) => {
                let inputs = first.into_iter().chain(inputs).map(|input| (input, slot)).collect();
                Node::Append { slot, inputs }
            }
        }
    }

    /// What the sides of an OR cost together, and whether their rows are known.
    fn estimate_sides(
        &self,
        slot: Slot,
        lookup: &Lookup<'_, '_>,
        sides: &Sides<'_>,
    ) -> Option<(Estimate, bool)> {
        let table = lookup.table;
        let in_part = |part: &IndexPart<'_>| self.rows_in_part(table, part);
        let choices = sides.choices(lookup, self.indexes, &in_part)?;
        if choices.iter().any(|choice| self.is_read_whole(table, choice)) {
            return None;
        }
        let of_sides = choices.iter().map(|choice| self.estimate(slot, table, choice));
        let sum = of_sides.reduce(|sum, side| Estimate {
            rows: sum.rows + side.rows,
            cost: sum.cost + side.cost,
            by_key: sum.by_key || side.by_key,
        })?;
        let mut ranges = choices.iter().filter_map(Choice::range);
        Some((sum, ranges.all(|part| in_part(part).is_some())))
    }

    /// What a choice costs.
    fn estimate(&self, slot: Slot, table: &TableDef, choice: &Choice<'_>) -> Estimate {
        let live = self.live(table);
        let (rows, cost, by_key) = match &choice.part {
            None => match &choice.tids {
                None => (live, live, false),
                Some(tids) => {
                    let rows = match tids.list {
                        List::Items(items) => items.len() as f64,
                        List::Array(array) => elements(array),
                    };
                    (rows, rows * INDEXED_ROW, tids.exprs().iter().any(Expr::has_column))
                }
            },
            Some((part, _)) => {
                let (rows, cost) = match choice.is_point() {
                    true => (1.0, LOOKUP + INDEXED_ROW),
                    false => self.rows_of_part(table, part, live),
                };
                (rows, cost, part.exprs().any(Expr::has_column))
            }
        };
        let rows = rows
            * match choice.is_point() {
                true => self.selectivity(choice.rest()),
                false => {
                    let rest: Vec<&Expr> = choice.rest_unbounded().collect();
                    self.selectivity_by_indexes(slot, table, &rest, live)
                }
            };
        // For many keys a filter leaves less than a row of each.
        let rows = if by_key { rows } else { rows.max(1.0) };
        Estimate { rows, cost, by_key }
    }

    fn rows_of_part(&self, table: &TableDef, part: &IndexPart<'_>, live: f64) -> (f64, f64) {
        let (mut rows, mut lookups, mut is_whole) = (0.0_f64, 0.0, false);
        for bounds in &part.any_of {
            let of_key = |value: &Expr| self.rows_of_key(value, live);
            let (guess, own_lookups) = bounds_rows(part.index, bounds, live, of_key);
            let guess = guess.max(self.rows_of_groups(table, part.index, bounds, live));
            let known = self.ranges.known_rows(table, part.index, bounds, live, self.range_use());
            let own_rows = known.unwrap_or_else(|| {
                let Some(share) = self.known_ends(table, part, bounds, live) else { return guess };
                let equal = Bounds { equal: bounds.equal.clone(), ..Bounds::default() };
                (bounds_rows(part.index, &equal, live, of_key).0 * share).max(1.0)
            });
            rows += own_rows;
            lookups += own_lookups;
            is_whole |= bounds.are_whole();
        }
        let rows = rows.min(live).max(1.0);
        let each = if is_whole { SCATTERED_ROW } else { INDEXED_ROW };
        (rows, LOOKUP * lookups + each * rows)
    }

    /// Rows that have one value in a column of an index. They are counted as if each row of the
    /// table that the value comes from had as many.
    fn rows_of_key(&self, value: &Expr, live: f64) -> f64 {
        let guess = live.sqrt();
        match value {
            Expr::Column(column) => match self.live_of(*column) {
                Some(others) => (live / others).clamp(1.0, guess),
                None => guess,
            },
            _ => guess,
        }
    }

    /// The rows that have a key which rows of other relations give, judged by the first and the
    /// last keys of the index: there may be few keys with many rows each. NULLs, which no key
    /// finds, may be at one end. 0 if nothing is known.
    fn rows_of_groups(
        &self,
        table: &TableDef,
        index: &IndexDef,
        bounds: &Bounds<'_>,
        live: f64,
    ) -> f64 {
        let columns = bounds.equal.len();
        if columns == 0
            || bounds.are_keys_of(index)
            || bounds.list.is_some()
            || !bounds.equal.iter().all(|equal| equal.value().is_some_and(Expr::has_column))
        {
            return 0.0;
        }
        let at = |direction| self.ranges.rows_of_groups(index, columns, (1.0, direction), live);
        let keys = || index.columns.iter().take(columns);
        let has_nulls = keys().any(|key| !table.columns[key.column].not_null);
        let nulls_first = keys().any(|key| key.order.nulls_first);
        let rows = match (has_nulls, nulls_first) {
            (true, true) => at(Direction::Backward),
            (true, false) => at(Direction::Forward),
            (false, _) => at(Direction::Forward)
                .and_then(|first| Some((first * at(Direction::Backward)?).sqrt())),
        };
        rows.map_or(0.0, |rows| rows / GUESSED_ENDS[ends_of(bounds)])
    }

    /// What the number of rows within a range decides: without a join only how the table is read.
    fn range_use(&self) -> Use {
        let is_stored = |kind: &&SlotKind| matches!(kind, SlotKind::Stored(_));
        if self.kinds.iter().filter(is_stored).count() > 1 { Use::Rows } else { Use::Whole }
    }

    /// The part of a table's rows that meet some conditions. The planner asks indexes about single
    /// columns.
    fn selectivity_by_indexes(
        &self,
        slot: Slot,
        table: &TableDef,
        conjuncts: &[&Expr],
        live: f64,
    ) -> f64 {
        let first_column = slot.first_column();
        let lookup = Lookup { table, first_column, known: &|_| false };
        let (mut known, mut taken) = (1.0, Places::new());
        if !conjuncts.is_empty() && self.ranges.is_large_enough(live) {
            for index in self.indexes.of(table) {
                let (bounds, places) = leading_bounds(&lookup, index, conjuncts);
                let is_new = !places.iter().any(|place| taken.contains(place));
                if is_new && let Some(share) = self.share_of(table, index, &bounds, live) {
                    known *= share;
                    taken.extend(places);
                }
            }
        }
        let rest = conjuncts.iter().enumerate().filter(|(place, _)| !taken.contains(place));
        let mut rest: Vec<&Expr> = rest.map(|(_, conjunct)| *conjunct).collect();
        rest.retain(|conjunct| {
            let Expr::Or(arms) = conjunct else { return true };
            let misses = |arm| {
                let own: Conjuncts<'_> = access::conjuncts(Some(arm)).iter().collect();
                1.0 - self.selectivity_by_indexes(slot, table, &own, live)
            };
            known *= 1.0 - arms.iter().map(misses).product::<f64>();
            false
        });
        known * self.selectivity(rest.into_iter())
    }

    /// The part of rows within the range of a column that follows a key in an index, if another
    /// index begins with it.
    fn known_ends(
        &self,
        table: &TableDef,
        part: &IndexPart<'_>,
        bounds: &Bounds<'_>,
        live: f64,
    ) -> Option<f64> {
        let is_alone = bounds.equal.is_empty() || bounds.list.is_some();
        if is_alone || ends_of(bounds) == 0 || !self.ranges.is_large_enough(live) {
            return None;
        }
        let column = part.index.columns.get(bounds.equal.len())?.column;
        let begins = |index: &&Arc<IndexDef>| {
            index.columns.first().is_some_and(|first| first.column == column)
        };
        let index = self.indexes.of(table).find(begins)?;
        let Bounds { from, to, like, .. } = *bounds;
        let ends = Bounds { from, to, like, ..Bounds::default() };
        self.share_of(table, index, &ends, live)
    }

    /// The part of rows within bounds, if it can be known.
    fn share_of(
        &self,
        table: &TableDef,
        index: &Arc<IndexDef>,
        bounds: &Bounds<'_>,
        live: f64,
    ) -> Option<f64> {
        let rows = self.ranges.known_rows(table, index, bounds, live, Use::Rows)?;
        Some((rows / live).min(1.0))
    }
}
