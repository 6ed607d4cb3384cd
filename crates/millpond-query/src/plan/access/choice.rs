//! The choice of an access for conditions.

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;

use super::bounds::List;
use super::part::{Alternatives, IndexPart};
use super::sargable::{Sargable, sargables};
use super::{Access, Lookup, Tids, all_of};
use crate::expr::{Compare, Expr};
use crate::plan::range_estimates::{FEW, is_large_enough};
use crate::plan::{Ordered, UsableIndexes};

/// The access for some conditions. Its values are still theirs: of most choices only the cost is
/// wanted.
pub(crate) struct Choice<'c> {
    table: &'c TableDef,
    conjuncts: &'c [&'c Expr],
    /// The part of an index that is read, and which way. `None`: all rows, page by page.
    pub(crate) part: Option<(IndexPart<'c>, Direction)>,
    /// The places of the rows that are read.
    pub(crate) tids: Option<KnownTids<'c>>,
    /// Whether it gives the order that was wanted, or no more than one row.
    pub(crate) is_ordered: bool,
    /// It reads a whole index for its order, and another index bounds the rows.
    pub(crate) is_contested: bool,
}

/// An order that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct WantedOrder<'w> {
    /// The indexes that give it.
    pub(crate) given_by: &'w [Ordered<'w>],
    /// The caller weighs what the order costs. It does so where it is known how many rows another
    /// index leads to.
    pub(crate) is_weighed: bool,
}

impl WantedOrder<'_> {
    /// No order.
    pub(crate) const NONE: Self = Self { given_by: &[], is_weighed: false };
}

/// Places of rows that a condition names.
#[derive(Clone, Copy)]
pub(crate) struct KnownTids<'c> {
    pub(crate) list: List<'c>,
    is_one: bool,
    /// Where the condition is among the conjuncts.
    conjunct: usize,
}

/// How many rows a part of an index leads to, if that is known.
pub(crate) type KnownRows<'k> = &'k dyn Fn(&IndexPart<'_>) -> Option<f64>;

/// The best access for some conditions, in the wanted order if an index that serves them as well
/// gives it.
pub(crate) fn choose<'c>(
    lookup: &Lookup<'c, '_>,
    indexes: &'c UsableIndexes<'_>,
    conjuncts: &'c [&'c Expr],
    wanted: WantedOrder<'_>,
    known: KnownRows<'_>,
) -> Choice<'c> {
    let table = lookup.table;
    let mut usable = sargables(lookup, conjuncts.iter().copied(), 0);
    let is_asked = is_large_enough(indexes.live_rows(table) as f64);
    if !is_asked {
        usable.retain(|sargable| {
            if sargable.may_leave_all() {
                note(sargable, table, indexes, known);
            }
            !sargable.may_leave_all()
        });
    }
    let of_or = |(place, conjunct): (usize, &&'c Expr)| {
        Alternatives::of(lookup, conjunct, place, conjuncts.len(), is_asked)
    };
    let ors: Vec<Alternatives<'_>> = conjuncts.iter().enumerate().filter_map(of_or).collect();
    let order_of =
        |index: &IndexDef| wanted.given_by.iter().find(|given| given.index.oid == index.oid);
    let mut best: Option<(u32, IndexPart<'c>)> = None;
    let mut bounded = 0;
    for index in indexes.of(table) {
        let mut candidate = IndexPart::new(index, &usable);
        let mut score = candidate.score();
        for alternatives in &ors {
            if !candidate.is_point()
                && let Some(other) = IndexPart::of_any(index, &usable, alternatives)
                && (other.score() > score || other.refines(&candidate))
            {
                score = score.max(other.score());
                candidate = other;
            }
        }
        if order_of(index).is_some() {
            // Reading in order saves a sort, which counts as much as a range.
            score += 15;
        }
        if score == 0 {
            continue;
        }
        bounded += u32::from(candidate.score() > 0);
        let is_better = match &best {
            None => true,
            Some((most, part)) => {
                let (own, others) = (order_of(index).is_some(), order_of(part.index).is_some());
                let is_known = |part| known(part).is_some();
                let better = match (own, others) {
                    _ if candidate.is_point() || part.is_point() => None,
                    (true, false) => (wanted.is_weighed && is_known(part)).then_some(true),
                    (false, true) => (wanted.is_weighed && is_known(&candidate)).then_some(false),
                    _ => has_fewer(&candidate, part, known),
                };
                better.unwrap_or(score > *most)
            }
        };
        if is_better {
            best = Some((score, candidate));
        }
    }
    let tids = match &best {
        Some((_, part)) if part.is_point() => None,
        _ => known_tids(lookup, conjuncts),
    };
    let Some((_, part)) = best.filter(|_| tids.is_none()) else {
        let is_ordered = tids.is_some_and(|tids| tids.is_one);
        return Choice { table, conjuncts, part: None, tids, is_ordered, is_contested: false };
    };
    let is_contested = part.is_whole() && bounded > u32::from(part.score() > 0);
    let ordered = order_of(part.index);
    let direction = ordered.map_or(Direction::Forward, |ordered| ordered.direction);
    let is_ordered = part.is_point() || ordered.is_some();
    Choice { table, conjuncts, part: Some((part, direction)), tids, is_ordered, is_contested }
}

/// Notes a condition on a small table, so that the session looks at the plan again when the table
/// has grown.
fn note(
    sargable: &Sargable<'_>,
    table: &TableDef,
    indexes: &UsableIndexes<'_>,
    known: KnownRows<'_>,
) {
    for index in indexes.of(table) {
        let part = IndexPart::new(index, std::slice::from_ref(sargable));
        if part.score() > 0 {
            known(&part);
        }
    }
}

/// Whether a part of an index leads to far fewer rows than another. `None` if about as many, or if
/// that is not known.
fn has_fewer(part: &IndexPart<'_>, than: &IndexPart<'_>, known: KnownRows<'_>) -> Option<bool> {
    let (rows, others) = (known(part)?.max(FEW), known(than)?.max(FEW));
    if rows * 2.0 < others {
        Some(true)
    } else if others * 2.0 < rows {
        Some(false)
    } else {
        None
    }
}

impl<'c> Choice<'c> {
    /// The part of an index that it reads, if that may be more than one row.
    pub(crate) fn range(&self) -> Option<&IndexPart<'c>> {
        self.part.as_ref().map(|(part, _)| part).filter(|part| !part.is_point())
    }

    /// Whether it finds no more than one row.
    pub(crate) fn is_point(&self) -> bool {
        self.part.as_ref().is_some_and(|(part, _)| part.is_point())
            || self.tids.is_some_and(|tids| tids.is_one)
    }

    /// The index that it reads.
    pub(crate) fn index(&self) -> Option<&IndexDef> {
        self.part.as_ref().map(|(part, _)| &**part.index)
    }

    /// Whether it reads an index whole, or all of it but NULLs.
    pub(crate) fn is_whole_index(&self) -> bool {
        self.part.as_ref().is_some_and(|(part, _)| part.is_whole())
    }

    /// The conditions that it leaves to be filtered.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'c Expr> {
        self.places_left().filter_map(|place| self.conjuncts.get(place).copied())
    }

    /// Those of them that no bounds are made of.
    pub(crate) fn rest_unbounded(&self) -> impl Iterator<Item = &'c Expr> {
        let bounded: &[usize] = self.part.as_ref().map_or(&[], |(part, _)| &part.used.bounded);
        let places = self.places_left().filter(|place| !bounded.contains(place));
        places.filter_map(|place| self.conjuncts.get(place).copied())
    }

    /// Their places.
    pub(crate) fn places_left(&self) -> impl Iterator<Item = usize> {
        let taken: &[usize] = self.part.as_ref().map_or(&[], |(part, _)| &part.used.enforced);
        let by_place = self.tids.map(|tids| tids.conjunct);
        let is_left = move |place: &usize| !taken.contains(place) && Some(*place) != by_place;
        (0..self.conjuncts.len()).filter(is_left)
    }

    /// The same without the index: all rows, page by page.
    pub(crate) fn without_index(self) -> Self {
        Choice { part: None, is_ordered: false, ..self }
    }

    /// The access, and the condition that it leaves to be filtered.
    pub(crate) fn made(self) -> (Access, Option<Expr>) {
        let filter = all_of(self.rest().cloned().collect());
        let access = match self.part {
            Some((part, direction)) => part.into_access(self.table, direction),
            None => self.tids.map_or(Access::Heap, |tids| Access::Tids(tids.made())),
        };
        (access, filter)
    }
}

impl<'c> KnownTids<'c> {
    /// The expressions of the places.
    pub(crate) fn exprs(&self) -> &'c [Expr] {
        match self.list {
            List::Items(items) => items,
            List::Array(array) => std::slice::from_ref(array),
        }
    }

    fn made(self) -> Tids {
        match self.list {
            List::Items(items) => Tids::Items(items.to_vec()),
            List::Array(array) => Tids::Array(Box::new(array.clone())),
        }
    }
}

/// The first conjunct that says where rows are.
fn known_tids<'c>(lookup: &Lookup<'_, '_>, conjuncts: &[&'c Expr]) -> Option<KnownTids<'c>> {
    let tids = |(conjunct, expr): (usize, &&'c Expr)| {
        let (list, is_one) = match *expr {
            Expr::Compare(Compare::Eq, pair) => {
                let (own, other) = match lookup.is_own_place(&pair.0) {
                    true => (&pair.0, &pair.1),
                    false => (&pair.1, &pair.0),
                };
                let is_usable = lookup.is_own_place(own) && lookup.is_fixed(other);
                (is_usable.then_some(List::Items(std::slice::from_ref(other)))?, true)
            }
            Expr::In(value, list, false) => {
                let is_fixed = list.iter().all(|item| lookup.is_fixed(item));
                ((lookup.is_own_place(value) && is_fixed).then_some(List::Items(list))?, false)
            }
            other => {
                let (value, array) = other.as_equal_any()?;
                let is_usable = lookup.is_own_place(value) && lookup.is_fixed(array);
                (is_usable.then_some(List::Array(array))?, false)
            }
        };
        Some(KnownTids { list, is_one, conjunct })
    };
    conjuncts.iter().enumerate().find_map(tids)
}
