//! How rows are found: which index, which part of it.
//!
//! The condition is split at its ANDs. A conjunct `column op value`, where the value is the same
//! for all rows of the table, can become part of a key. In a nested loop the value may come from
//! the tables outside of it. For each index the leading columns that have an equality are taken,
//! one list of values among them, and a range on the next. What is taken this way leaves the
//! filter, unless its bounds are wider than the condition: those of LIKE and of values that a cast
//! compares (ADR 33). A value beyond the range of the column's type gives no rows, or an open end,
//! when the key is made. A conjunct that is an OR can be taken if each of its sides gives a part of
//! one index; if the parts are of several, a plan of nodes reads one after the other ([`Sides`]).

mod bounds;
mod choice;
mod part;
mod sargable;
mod sides;

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;

use crate::DataType;
use crate::analyze::tree::{SystemColumn, slot_of};
use crate::expr::Expr;

pub(crate) use bounds::{Bounds, List, Places, leading_bounds};
pub(crate) use choice::{Choice, WantedOrder, choose};
pub(crate) use part::IndexPart;
pub(crate) use sargable::Conjuncts;
pub(super) use sargable::{KnownColumns, known_columns};
pub use sargable::{all_of, conjuncts, in_order};
pub(crate) use sides::Sides;

/// A value for a key column: an expression that is the same for all rows of the table, and the
/// column's type.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPart {
    pub expr: Expr,
    pub(crate) ty: DataType,
    pub(crate) matches: Matches,
}

/// What a column's value has to be for a [`KeyPart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matches {
    /// It compares as said, so it is not NULL.
    Value,
    /// It is NULL: that of IS NULL.
    Null,
    /// It compares as said once it is cast to the value's type: a date beside a time stamp, a
    /// `real` beside a `double precision`. The end of a range only.
    Cast,
}

/// How rows are found.
#[derive(Debug, Clone)]
pub enum Access {
    /// There is no table: one row of nothing.
    Nothing,
    /// All rows, page by page.
    Heap,
    /// At most one row: a whole key of a unique index.
    Point { index: Arc<IndexDef>, key: Vec<KeyPart> },
    /// A part of an index.
    Range(Box<IndexRange>),
    /// The rows at some places (Tid Scan).
    Tids(Tids),
}

/// Places of rows: values of the type `tid`.
#[derive(Debug, Clone)]
pub enum Tids {
    /// These; one is that of `ctid = ...`.
    Items(Vec<Expr>),
    /// The elements of an array.
    Array(Box<Expr>),
}

impl Tids {
    pub(crate) fn exprs(&self) -> &[Expr] {
        match self {
            Tids::Items(items) => items,
            Tids::Array(array) => std::slice::from_ref(array),
        }
    }

    pub(crate) fn exprs_mut(&mut self) -> &mut [Expr] {
        match self {
            Tids::Items(items) => items,
            Tids::Array(array) => std::slice::from_mut(array),
        }
    }
}

impl Access {
    /// The index that it reads.
    pub fn index(&self) -> Option<&IndexDef> {
        match self {
            Access::Nothing | Access::Heap | Access::Tids(_) => None,
            Access::Point { index, .. } => Some(index),
            Access::Range(range) => Some(&range.index),
        }
    }
}

/// A part of an index: the keys within any of some bounds, each key once and in the index's order.
#[derive(Debug, Clone)]
pub struct IndexRange {
    pub index: Arc<IndexDef>,
    /// One, or more for an OR.
    pub any_of: Vec<KeyBounds>,
    pub(crate) direction: Direction,
}

/// Bounds of keys: equal leading columns, then a list and other equal columns, then a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyBounds {
    pub equal: Vec<KeyPart>,
    /// Values of the next column, if it is one of a list.
    pub list: Option<KeyList>,
    /// The columns behind that of the list.
    pub then: Vec<KeyPart>,
    /// Bounds of the next column; the flag says inclusive.
    pub from: Option<(KeyPart, bool)>,
    pub to: Option<(KeyPart, bool)>,
    /// A pattern that the next column is LIKE.
    pub like: Option<KeyPart>,
    /// The next column has any value but NULL.
    pub(crate) not_null: bool,
}

/// Values of a key column.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyList {
    /// Of IN.
    Items(Vec<KeyPart>),
    /// The elements of an array, of `= ANY`. The type is still the column's.
    Array(KeyPart),
}

impl IndexRange {
    /// The keys that begin with these values.
    pub(crate) fn of_key(index: &Arc<IndexDef>, equal: Vec<KeyPart>) -> Self {
        let any_of = vec![KeyBounds { equal, ..KeyBounds::default() }];
        Self { index: Arc::clone(index), any_of, direction: Direction::Forward }
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        self.any_of.iter().flat_map(KeyBounds::parts)
    }

    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = &mut KeyPart> {
        self.any_of.iter_mut().flat_map(KeyBounds::parts_mut)
    }
}

impl KeyBounds {
    fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let list = self.list.as_ref().map(KeyList::parts).unwrap_or_default();
        let ends = self.from.iter().chain(&self.to).map(|(part, _)| part).chain(&self.like);
        self.equal.iter().chain(list).chain(&self.then).chain(ends)
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut KeyPart> {
        let list = self.list.as_mut().map(KeyList::parts_mut).unwrap_or_default();
        let ends = self.from.iter_mut().chain(&mut self.to).map(|(part, _)| part);
        let ends = ends.chain(&mut self.like);
        self.equal.iter_mut().chain(list).chain(&mut self.then).chain(ends)
    }
}

impl KeyList {
    fn parts(&self) -> &[KeyPart] {
        match self {
            KeyList::Items(parts) => parts,
            KeyList::Array(part) => std::slice::from_ref(part),
        }
    }

    fn parts_mut(&mut self) -> &mut [KeyPart] {
        match self {
            KeyList::Items(parts) => parts,
            KeyList::Array(part) => std::slice::from_mut(part),
        }
    }
}

/// A table whose rows are looked for.
pub(crate) struct Lookup<'t, 'k> {
    pub(crate) table: &'t TableDef,
    /// The number of its first column.
    pub(crate) first_column: usize,
    /// Which columns have a value already: those of the tables outside of it in a nested loop.
    pub(crate) known: &'k dyn Fn(usize) -> bool,
}

impl<'t> Lookup<'t, '_> {
    /// The only table of a statement.
    pub(crate) fn only(table: &'t TableDef) -> Self {
        Self { table, first_column: 0, known: &|_| false }
    }

    /// Which of the table's columns, counted from 0, an expression is, if it is one.
    pub(crate) fn own_column(&self, expr: &Expr) -> Option<usize> {
        let Expr::Column(column) = expr else { return None };
        let own = column.checked_sub(self.first_column)?;
        (own < self.table.columns.len()).then_some(own)
    }

    /// Which of the table's columns of texts an expression is, if it is one.
    fn own_text(&self, expr: &Expr) -> Option<usize> {
        let column = self.own_column(expr)?;
        let ty = self.table.columns.get(column)?.ty;
        matches!(ty, DataType::Text | DataType::Varchar(_)).then_some(column)
    }

    /// The table's column that an expression casts, if the cast keeps its order: between dates and
    /// time stamps (but for changes of clocks), and from `real` to `double precision`.
    fn own_in_order(&self, expr: &Expr) -> Option<usize> {
        let is_moment =
            |ty| matches!(ty, DataType::Date | DataType::Timestamp(_) | DataType::Timestamptz(_));
        let (made, ty) = match expr {
            Expr::Cast(made, DataType::Float8, _) => {
                let column = self.own_column(made)?;
                let own = self.table.columns.get(column)?.ty;
                return (own == DataType::Float4).then_some(column);
            }
            // One of fewer digits is rounded.
            Expr::Cast(_, DataType::Timestamp(Some(_)) | DataType::Timestamptz(Some(_)), _) => {
                return None;
            }
            Expr::Cast(made, ty, _) if is_moment(*ty) => (&**made, *ty),
            Expr::Func(func, args) if func.is_moment_of_date() => {
                (args.first()?, func.result_type()?)
            }
            _ => return None,
        };
        let column = self.own_column(made)?;
        let own = self.table.columns.get(column)?.ty;
        // Many dates have no time stamp. The cast fails for them, so the scan has to reach them.
        let may_fail = own == DataType::Date && matches!(expr, Expr::Cast(..));
        (is_moment(own) && own.base() != ty.base() && !may_fail).then_some(column)
    }

    /// Whether an expression is the place of the table's row.
    fn is_own_place(&self, expr: &Expr) -> bool {
        let Some(Expr::Column(column)) = expr.as_place_of_row() else { return false };
        let (slot, place) = slot_of(*column);
        slot.first_column() == self.first_column
            && SystemColumn::at_place(place) == Some(SystemColumn::Ctid)
    }

    fn is_fixed(&self, expr: &Expr) -> bool {
        expr.is_fixed_by(self.known)
    }
}
