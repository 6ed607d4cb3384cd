//! The bounds that conditions give the keys of an index.

use millpond_engine::catalog::{IndexColumn, IndexDef, TableDef};
use smallvec::SmallVec;

use super::sargable::{Op, Sargable, sargables};
use super::{KeyBounds, KeyList, KeyPart, Lookup, Matches};
use crate::expr::{Compare, Expr};
use crate::{DataType, Value};

/// Places among conjuncts.
pub(crate) type Places = SmallVec<[usize; 4]>;

/// Bounds of keys: see [`KeyBounds`].
#[derive(Default)]
pub(crate) struct Bounds<'c> {
    pub(crate) equal: SmallVec<[EqualTo<'c>; 2]>,
    pub(crate) list: Option<List<'c>>,
    pub(crate) then: SmallVec<[EqualTo<'c>; 2]>,
    pub(crate) from: Option<End<'c>>,
    pub(crate) to: Option<End<'c>>,
    pub(crate) like: Option<&'c Expr>,
    pub(crate) not_null: bool,
}

/// An end of a range of values.
#[derive(Clone, Copy)]
pub(crate) struct End<'c> {
    expr: &'c Expr,
    inclusive: bool,
    /// See [`Matches::Cast`].
    is_cast: bool,
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

impl<'c> Bounds<'c> {
    /// The expressions that they are made of.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &'c Expr> {
        let list = match self.list {
            None => &[],
            Some(List::Items(items)) => items,
            Some(List::Array(array)) => std::slice::from_ref(array),
        };
        let ends = self.from.iter().chain(&self.to).map(|end| end.expr).chain(self.like);
        let equal = self.equal.iter().chain(&self.then).filter_map(EqualTo::value);
        equal.chain(list).chain(ends)
    }

    /// Whether they leave out nothing.
    pub(crate) fn are_none(&self) -> bool {
        self.are_whole() && !self.not_null
    }

    /// Whether they leave out nothing but NULLs.
    pub(crate) fn are_whole(&self) -> bool {
        // Without a list, `then` is empty.
        let Bounds { equal, list, then: _, from, to, like, not_null: _ } = self;
        let has_range = from.is_some() || to.is_some() || like.is_some();
        equal.is_empty() && list.is_none() && !has_range
    }

    /// Whether they say no more than that a column is NULL, or that it is not.
    pub(crate) fn are_of_nulls(&self) -> bool {
        !self.are_none() && self.exprs().next().is_none()
    }

    fn has_null(&self) -> bool {
        self.equal.iter().chain(&self.then).any(|equal| equal.value().is_none())
    }

    /// How many columns have one value, or one of a list.
    fn columns(&self) -> usize {
        self.equal.len() + usize::from(self.list.is_some()) + self.then.len()
    }

    /// Whether they are whole keys of a unique index, which have one row at most.
    pub(crate) fn are_keys_of(&self, index: &IndexDef) -> bool {
        // Of NULL there may be many.
        index.unique && self.columns() == index.columns.len() && !self.has_null()
    }

    /// How much they promise to leave out; 0 if nothing.
    pub(super) fn score(&self) -> u32 {
        let ends = u32::from(self.from.is_some()) + u32::from(self.to.is_some());
        // Many rows may be NULL, and most may not be.
        let of_equal = |equal: &EqualTo<'_>| if equal.value().is_some() { 40 } else { 8 };
        self.equal.iter().chain(&self.then).map(of_equal).sum::<u32>()
            + 30 * u32::from(self.list.is_some())
            + 10 * ends
            + 20 * u32::from(self.like.is_some())
            + 5 * u32::from(self.not_null)
    }

    pub(crate) fn made(&self, index: &IndexDef, table: &TableDef) -> KeyBounds {
        let mut types = index.columns.iter().map(|column| table.columns[column.column].ty);
        let part = |expr: &Expr, ty| EqualTo::Value(expr).made(ty);
        let equal = self.equal.iter().zip(&mut types).map(|(equal, ty)| equal.made(ty)).collect();
        let list = self.list.and_then(|list| {
            let ty = types.next()?;
            Some(match list {
                List::Items(list) => KeyList::Items(list.iter().map(|e| part(e, ty)).collect()),
                List::Array(array) => KeyList::Array(part(array, ty)),
            })
        });
        let then = self.then.iter().zip(&mut types).map(|(equal, ty)| equal.made(ty)).collect();
        let ty = types.next();
        let end = |end: End<'_>| {
            let matches = if end.is_cast { Matches::Cast } else { Matches::Value };
            Some((KeyPart { matches, ..part(end.expr, ty?) }, end.inclusive))
        };
        let (from, to) = (self.from.and_then(end), self.to.and_then(end));
        let like = self.like.and_then(|pattern| Some(part(pattern, ty?)));
        KeyBounds { equal, list, then, from, to, like, not_null: self.not_null }
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
            EqualTo::Value(expr) => KeyPart { expr: (*expr).clone(), ty, matches: Matches::Value },
            EqualTo::Null => KeyPart { expr: Expr::Const(Value::Null), ty, matches: Matches::Null },
        }
    }
}

/// What becomes of conditions, by their places among the conjuncts.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// They hold for all rows within the bounds.
    pub(crate) enforced: Places,
    /// They are in the bounds: these, and those whose bounds are wider.
    pub(crate) bounded: Places,
}

impl Used {
    fn add(&mut self, sargable: &Sargable<'_>) {
        if self.bounded.contains(&sargable.place) {
            return;
        }
        self.bounded.push(sargable.place);
        if !sargable.is_wider {
            self.enforced.push(sargable.place);
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
    let (bounds, used) = bounds_of(index.columns.iter().take(1), &usable, &[]);
    (bounds, used.bounded)
}

/// The bounds that conditions give the keys of an index. Of two that bound one end it is the first
/// that does.
pub(super) fn bounds<'e>(
    index: &IndexDef,
    first: &[Sargable<'e>],
    then: &[Sargable<'e>],
) -> (Bounds<'e>, Used) {
    bounds_of(index.columns.iter(), first, then)
}

fn bounds_of<'i, 'e>(
    columns: impl Iterator<Item = &'i IndexColumn>,
    first: &[Sargable<'e>],
    then: &[Sargable<'e>],
) -> (Bounds<'e>, Used) {
    let (mut found, mut used) = (Bounds::default(), Used::default());
    for column in columns.map(|column| column.column) {
        let here = || first.iter().chain(then).filter(move |s| s.column == column);
        let equality = here().find_map(|s| match s.op {
            Op::Compare(Compare::Eq, expr) => Some((s, EqualTo::Value(expr))),
            _ => None,
        });
        let is_null = || here().find(|s| matches!(s.op, Op::Null { not: false }));
        let equality = equality.or_else(|| Some((is_null()?, EqualTo::Null)));
        if let Some((sargable, equal)) = equality {
            if found.list.is_none() { &mut found.equal } else { &mut found.then }.push(equal);
            used.add(sargable);
            continue;
        }
        let list = here().find_map(|s| match s.op {
            Op::In(list) => Some((s, List::Items(list))),
            Op::Any(array) => Some((s, List::Array(array))),
            _ => None,
        });
        // A second list stays in the filter.
        if let Some((sargable, list)) = list.filter(|_| found.list.is_none()) {
            found.list = Some(list);
            used.add(sargable);
            continue;
        }
        // An end that is wider is taken if there is no other.
        let exact = here().filter(|s| !s.is_wider);
        for sargable in exact.chain(here().filter(|s| s.is_wider)) {
            add_range(sargable, &mut found, &mut used);
        }
        break;
    }
    (found, used)
}

/// Adds what a condition says of a range, unless another one has bounded it.
fn add_range<'e>(sargable: &Sargable<'e>, found: &mut Bounds<'e>, used: &mut Used) {
    let (op, expr, is_cast) = match sargable.op {
        Op::Compare(op, expr) => (op, expr, false),
        Op::Cast(op, expr) => (op, expr, true),
        Op::Like(pattern) if found.like.is_none() => {
            found.like = Some(pattern);
            return used.add(sargable);
        }
        Op::Null { not: true } => {
            found.not_null = true;
            return used.add(sargable);
        }
        _ => return,
    };
    let end = End { expr, inclusive: op != Compare::Gt && op != Compare::Lt, is_cast };
    let ends: &mut [&mut Option<End<'_>>] = match op {
        Compare::Gt | Compare::Ge => &mut [&mut found.from],
        Compare::Lt | Compare::Le => &mut [&mut found.to],
        Compare::Eq => &mut [&mut found.from, &mut found.to],
        Compare::Ne => return,
    };
    for place in ends {
        if place.is_none() {
            **place = Some(end);
            used.add(sargable);
        }
    }
}
