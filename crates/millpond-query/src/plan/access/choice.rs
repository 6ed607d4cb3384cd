//! The choice of an access for conditions.

use std::sync::Arc;

use millpond_engine::catalog::{IndexColumn, IndexDef, TableDef};
use millpond_engine::table::Direction;
use smallvec::{SmallVec, smallvec};

use super::sargable::{Op, Sargable, disjuncts, sargables};
use super::{Access, IndexRange, KeyBounds, KeyList, KeyPart, Lookup, Tids, all_of, conjuncts};
use crate::expr::{Compare, Expr};
use crate::plan::range_estimates::FEW;
use crate::plan::{Ordered, UsableIndexes};
use crate::{DataType, Value};

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

/// What is read of an index.
pub(crate) struct IndexPart<'c> {
    pub(crate) index: &'c Arc<IndexDef>,
    pub(crate) any_of: SmallVec<[Bounds<'c>; 1]>,
    /// The places of the conjuncts that need not be looked at again.
    pub(super) taken: Places,
}

pub(crate) type Places = SmallVec<[usize; 4]>;

/// Bounds of keys: see [`KeyBounds`].
#[derive(Default)]
pub(crate) struct Bounds<'c> {
    pub(crate) equal: SmallVec<[EqualTo<'c>; 2]>,
    pub(crate) list: Option<List<'c>>,
    pub(crate) from: Option<(&'c Expr, bool)>,
    pub(crate) to: Option<(&'c Expr, bool)>,
    pub(crate) not_null: bool,
}

/// What a key column is equal to.
#[derive(Clone, Copy)]
pub(crate) enum EqualTo<'c> {
    Value(&'c Expr),
    /// It is NULL.
    Null,
}

/// Values of a key column: see [`KeyList`].
#[derive(Clone, Copy)]
pub(crate) enum List<'c> {
    Items(&'c [Expr]),
    Array(&'c Expr),
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
    let usable = sargables(lookup, conjuncts.iter().copied(), 0);
    let ors: Vec<Alternatives<'_>> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(place, conjunct)| Alternatives::of(lookup, conjunct, place, conjuncts.len()))
        .collect();
    let order_of =
        |index: &IndexDef| wanted.given_by.iter().find(|given| given.index.oid == index.oid);
    let mut best: Option<(u32, IndexPart<'c>)> = None;
    let mut is_bounded = false;
    for index in indexes.of(table) {
        let mut candidate = IndexPart::new(index, &usable);
        for alternatives in &ors {
            if let Some(other) = IndexPart::of_any(index, &usable, alternatives)
                && other.score() > candidate.score()
            {
                candidate = other;
            }
        }
        let mut score = candidate.score();
        if order_of(index).is_some() {
            // Reading in order saves a sort, which counts as much as a range.
            score += 15;
        }
        if score == 0 {
            continue;
        }
        is_bounded |= candidate.score() > 0;
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
    let is_contested = is_bounded && part.is_whole();
    let ordered = order_of(part.index);
    let direction = ordered.map_or(Direction::Forward, |ordered| ordered.direction);
    let is_ordered = part.is_point() || ordered.is_some();
    Choice { table, conjuncts, part: Some((part, direction)), tids, is_ordered, is_contested }
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

    /// Their places.
    pub(crate) fn places_left(&self) -> impl Iterator<Item = usize> {
        let taken: &[usize] = self.part.as_ref().map_or(&[], |(part, _)| &part.taken);
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

/// A conjunct that is an OR.
struct Alternatives<'e> {
    /// Its place among the conjuncts.
    place: usize,
    /// The first place of the conjuncts of a side: none of the condition's has it.
    first: usize,
    /// What can be used of each side, and how many conjuncts the side has.
    sides: Vec<(SmallVec<[Sargable<'e>; 4]>, usize)>,
}

impl<'e> Alternatives<'e> {
    /// `None` if it is no OR, or if a side has nothing for any index.
    fn of(
        lookup: &Lookup<'_, '_>,
        conjunct: &'e Expr,
        place: usize,
        first: usize,
    ) -> Option<Alternatives<'e>> {
        let side = |side: &'e Expr| {
            let own = conjuncts(Some(side));
            let usable = sargables(lookup, own.iter(), first);
            (!usable.is_empty()).then_some((usable, own.len()))
        };
        let sides: Vec<_> = disjuncts(conjunct).into_iter().map(side).collect::<Option<_>>()?;
        (!sides.is_empty()).then_some(Alternatives { place, first, sides })
    }
}

impl<'c> IndexPart<'c> {
    fn new(index: &'c Arc<IndexDef>, usable: &[Sargable<'c>]) -> Self {
        let (bounds, taken) = bounds(index, usable, &[]);
        Self { index, any_of: smallvec![bounds], taken }
    }

    /// What each side of an OR gives together with the conjuncts beside it; `None` if a side gives
    /// nothing.
    fn of_any(
        index: &'c Arc<IndexDef>,
        usable: &[Sargable<'c>],
        alternatives: &Alternatives<'c>,
    ) -> Option<Self> {
        let Alternatives { place, first, sides } = alternatives;
        let mut any_of = SmallVec::with_capacity(sides.len());
        let mut taken: Places = usable.iter().map(|sargable| sargable.place).collect();
        let mut is_exact = true;
        for (own, count) in sides {
            // The side's come first: of two bounds on one end, the side's is taken.
            let (bounds, used) = bounds(index, own, usable);
            if bounds.score() == 0 {
                return None;
            }
            // What one side does not use must be looked at in all rows.
            taken.retain(|place| used.contains(place));
            is_exact &= used.iter().filter(|place| *place >= first).count() == *count;
            any_of.push(bounds);
        }
        if is_exact {
            taken.push(*place);
        }
        Some(Self { index, any_of, taken })
    }

    fn is_point(&self) -> bool {
        let [one] = self.any_of.as_slice() else { return false };
        one.list.is_none() && one.are_keys_of(self.index)
    }

    fn is_whole(&self) -> bool {
        self.any_of.iter().any(Bounds::are_whole)
    }

    fn score(&self) -> u32 {
        if self.is_point() {
            return 1000;
        }
        let least = self.any_of.iter().map(Bounds::score).min().unwrap_or(0);
        // Several parts are worse than one that is bounded as well.
        if self.any_of.len() > 1 { least.saturating_sub(5) } else { least }
    }

    /// The expressions that its bounds are made of.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &'c Expr> {
        self.any_of.iter().flat_map(Bounds::exprs)
    }

    fn into_access(self, table: &TableDef, direction: Direction) -> Access {
        let index = Arc::clone(self.index);
        let made = |bounds: &Bounds<'_>| bounds.made(&index, table);
        if self.is_point()
            && let Some(one) = self.any_of.first().map(made)
        {
            return Access::Point { index, key: one.equal };
        }
        let any_of = self.any_of.iter().map(made).collect();
        Access::Range(Box::new(IndexRange { index, any_of, direction }))
    }
}

impl<'c> Bounds<'c> {
    /// The expressions that they are made of.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &'c Expr> {
        let list = match self.list {
            None => &[],
            Some(List::Items(items)) => items,
            Some(List::Array(array)) => std::slice::from_ref(array),
        };
        let ends = self.from.iter().chain(&self.to).map(|(end, _)| *end);
        self.equal.iter().filter_map(EqualTo::value).chain(list).chain(ends)
    }

    /// Whether they leave out nothing.
    pub(crate) fn are_none(&self) -> bool {
        self.are_whole() && !self.not_null
    }

    /// Whether they leave out nothing but NULLs.
    pub(crate) fn are_whole(&self) -> bool {
        let Bounds { equal, list, from, to, not_null: _ } = self;
        equal.is_empty() && list.is_none() && from.is_none() && to.is_none()
    }

    /// Whether they say no more than that a column is NULL, or that it is not.
    pub(crate) fn are_of_nulls(&self) -> bool {
        !self.are_none() && self.exprs().next().is_none()
    }

    fn has_null(&self) -> bool {
        self.equal.iter().any(|equal| equal.value().is_none())
    }

    /// Whether they are whole keys of a unique index, which have one row at most.
    pub(crate) fn are_keys_of(&self, index: &IndexDef) -> bool {
        let columns = self.equal.len() + usize::from(self.list.is_some());
        // Of NULL there may be many.
        index.unique && columns == index.columns.len() && !self.has_null()
    }

    /// How much they promise to leave out; 0 if nothing.
    fn score(&self) -> u32 {
        let ends = u32::from(self.from.is_some()) + u32::from(self.to.is_some());
        // Many rows may be NULL, and most may not be.
        let of_equal = |equal: &EqualTo<'_>| if equal.value().is_some() { 40 } else { 8 };
        self.equal.iter().map(of_equal).sum::<u32>()
            + 30 * u32::from(self.list.is_some())
            + 10 * ends
            + 5 * u32::from(self.not_null)
    }

    pub(crate) fn made(&self, index: &IndexDef, table: &TableDef) -> KeyBounds {
        let mut types = index.columns.iter().map(|column| table.columns[column.column].ty);
        let equal = self.equal.iter().zip(&mut types);
        let equal = equal.map(|(equal, ty)| equal.made(ty)).collect();
        let Some(ty) = types.next() else { return KeyBounds { equal, ..KeyBounds::default() } };
        let part = |expr: &Expr| EqualTo::Value(expr).made(ty);
        let list = self.list.map(|list| match list {
            List::Items(items) => KeyList::Items(items.iter().map(part).collect()),
            List::Array(array) => KeyList::Array(part(array)),
        });
        let end = |(expr, inclusive)| (part(expr), inclusive);
        let (from, to) = (self.from.map(end), self.to.map(end));
        KeyBounds { equal, list, from, to, not_null: self.not_null }
    }
}

impl<'c> EqualTo<'c> {
    pub(crate) fn value(&self) -> Option<&'c Expr> {
        match self {
            EqualTo::Value(expr) => Some(expr),
            EqualTo::Null => None,
        }
    }

    fn made(&self, ty: DataType) -> KeyPart {
        match self {
            EqualTo::Value(expr) => KeyPart { expr: (*expr).clone(), ty, meets_null: false },
            EqualTo::Null => KeyPart { expr: Expr::Const(Value::Null), ty, meets_null: true },
        }
    }
}

/// The bounds that conditions give the first column of an index, and the places of those that are
/// in them.
pub(crate) fn leading_bounds<'e>(
    lookup: &Lookup<'_, '_>,
    index: &IndexDef,
    conjuncts: &[&'e Expr],
) -> (Bounds<'e>, Places) {
    let usable = sargables(lookup, conjuncts.iter().copied(), 0);
    bounds_of(index.columns.iter().take(1), &usable, &[])
}

/// The bounds that conditions give the keys of an index, and the places of those that are in them.
/// Of two that bound one end it is the first that does.
fn bounds<'e>(
    index: &IndexDef,
    first: &[Sargable<'e>],
    then: &[Sargable<'e>],
) -> (Bounds<'e>, Places) {
    bounds_of(index.columns.iter(), first, then)
}

fn bounds_of<'i, 'e>(
    columns: impl Iterator<Item = &'i IndexColumn>,
    first: &[Sargable<'e>],
    then: &[Sargable<'e>],
) -> (Bounds<'e>, Places) {
    let (mut found, mut taken) = (Bounds::default(), Places::new());
    for column in columns.map(|column| column.column) {
        let here = || first.iter().chain(then).filter(move |s| s.column == column);
        let equality = here().find_map(|s| match s.op {
            Op::Compare(Compare::Eq, expr) => Some((s, EqualTo::Value(expr))),
            _ => None,
        });
        let is_null = || here().find(|s| matches!(s.op, Op::Null { not: false }));
        let equality = equality.or_else(|| Some((is_null()?, EqualTo::Null)));
        if let Some((sargable, equal)) = equality {
            found.equal.push(equal);
            taken.push(sargable.place);
            continue;
        }
        let list = here().find_map(|s| match s.op {
            Op::In(list) => Some((s, List::Items(list))),
            Op::Any(array) => Some((s, List::Array(array))),
            Op::Compare(..) | Op::Null { .. } => None,
        });
        if let Some((sargable, list)) = list {
            found.list = Some(list);
            taken.push(sargable.place);
            break;
        }
        for sargable in here() {
            let Op::Compare(op, expr) = sargable.op else {
                if let Op::Null { not: true } = sargable.op {
                    found.not_null = true;
                    taken.push(sargable.place);
                }
                continue;
            };
            let (end, inclusive) = match op {
                Compare::Gt => (&mut found.from, false),
                Compare::Ge => (&mut found.from, true),
                Compare::Lt => (&mut found.to, false),
                Compare::Le => (&mut found.to, true),
                _ => continue,
            };
            // Of several bounds on one side the first is used; the others stay in the filter.
            if end.is_none() {
                *end = Some((expr, inclusive));
                taken.push(sargable.place);
            }
        }
        break;
    }
    (found, taken)
}
