//! Expressions: bound to the columns of a FROM clause and the parameters of one statement, then
//! evaluated row by row.
//!
//! [`bind`] turns the parser's tree into an [`Expr`] whose types are settled by PostgreSQL's rules.
//! Every operator knows its operands' types, and every conversion is an explicit [`Expr::Cast`].
//! [`eval`] walks it. Values that a column, parameter or constant already has are borrowed, so that
//! a comparison of columns allocates nothing.

mod among;
pub(crate) mod arith;
pub mod bind;
pub mod cast;
mod concat;
mod disjunction;
mod env;
mod eval;
mod fold;
mod func;
pub(crate) mod int;
pub(crate) mod letter;
mod like;
mod negation;
mod other_casts;
mod recent;
mod regex;
mod rewrite;
mod small;
mod stored;
#[cfg(test)]
pub(crate) mod tests;
pub mod types;

pub use among::Among;
pub(crate) use disjunction::one_of;
pub use env::{Env, Facts};
pub(crate) use func::Definition;
pub(crate) use func::array::ElementComparison;
pub(crate) use func::catalog as functions;
pub(crate) use func::catalog::returns_rows;
pub use func::format_type;
#[cfg(test)]
pub(crate) use func::operators;
pub(crate) use func::row_transactions::column_of_row;
pub use func::{Func, Series, check_length, quoted_name};
pub(crate) use func::{
    interval_math, json_aggregate, timestamp_plus, timestamptz_plus, type_named,
};
pub(crate) use like::literal_prefix;

use std::cmp::Ordering;

use millpond_types::tuple::{ColumnOffsets, TupleLayout};

use crate::analyze::tree::{Subquery, SubqueryKind};
use crate::run::Slots;
use crate::{DataType, Datum, Value};

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    /// Whether an order of two values satisfies the comparison.
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Eq => order.is_eq(),
            Compare::Ne => order.is_ne(),
            Compare::Lt => order.is_lt(),
            Compare::Le => order.is_le(),
            Compare::Gt => order.is_gt(),
            Compare::Ge => order.is_ge(),
        }
    }

    /// The same comparison with its sides exchanged.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Compare::Lt => Compare::Gt,
            Compare::Le => Compare::Ge,
            Compare::Gt => Compare::Lt,
            Compare::Ge => Compare::Le,
            same => same,
        }
    }

    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Compare::Eq => "=",
            Compare::Ne => "<>",
            Compare::Lt => "<",
            Compare::Le => "<=",
            Compare::Gt => ">",
            Compare::Ge => ">=",
        }
    }
}

/// A bound expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Const(Value),
    /// A parameter, counted from 0.
    Param(usize),
    /// A column of the row, counted from 0.
    Column(usize),
    Neg(Box<Expr>),
    /// Both sides are of one type.
    Arith(Arith, Box<(Expr, Expr)>),
    /// Both sides are of one type, or of integer types.
    Compare(Compare, Box<(Expr, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    /// `IS [NOT] NULL`; the flag says NOT.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE / FALSE / UNKNOWN`: what it is compared with, and whether negated.
    IsBool(Box<Expr>, Option<bool>, bool),
    /// `IS [NOT] DISTINCT FROM`; the flag says NOT.
    Distinct(Box<(Expr, Expr)>, bool),
    /// `[NOT] IN (...)`; the flag says NOT.
    In(Box<Expr>, Vec<Expr>, bool),
    /// `[NOT] IN (...)` and the like, with many constants: see [`among`].
    Among(Box<Among>),
    /// Conditions with results, and the result when none holds.
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Coalesce(Vec<Expr>),
    Like(Box<Like>),
    /// To a type; the flag says that it was written as a cast (so text is cut rather than refused).
    Cast(Box<Expr>, DataType, bool),
    /// Both sides are text.
    Concat(Box<(Expr, Expr)>),
    Func(Func, Vec<Expr>),
    /// A query, as the analyzer leaves it. The planner makes it a part of the plan or a `SubPlan`.
    Subquery(Box<Subquery>),
    /// A query that is run where the expression is evaluated.
    SubPlan(Box<SubPlanCall>),
}

/// A call of a plan of a subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct SubPlanCall {
    /// Its place among the plan's subplans.
    pub(crate) number: usize,
    /// Which of its columns is wanted: see [`SubqueryKind::Column`].
    pub(crate) column: usize,
    /// What it is told of the row: see `plan::query::node::SubPlan`.
    pub(crate) args: Vec<Expr>,
    /// Left sides of ANY and ALL.
    pub(crate) left: Vec<Expr>,
}

/// `value [NOT] [I]LIKE pattern [ESCAPE escape]`
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    pub(crate) value: Expr,
    pub(crate) pattern: Expr,
    pub(crate) escape: Option<Expr>,
    pub(crate) ignore_case: bool,
    pub(crate) negated: bool,
}

impl Expr {
    /// A row's absence, as a constant.
    pub(crate) const NULL: Expr = Expr::Const(Value::Null);

    /// Calls `visit` for the expression and all its parts.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) => {}
            Expr::Neg(e)
            | Expr::Not(e)
            | Expr::IsNull(e, _)
            | Expr::IsBool(e, ..)
            | Expr::Cast(e, ..) => e.walk(visit),
            Expr::Arith(_, pair)
            | Expr::Compare(_, pair)
            | Expr::Distinct(pair, _)
            | Expr::Concat(pair) => {
                pair.0.walk(visit);
                pair.1.walk(visit);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list) | Expr::Func(_, list) => {
                list.iter().for_each(|e| e.walk(visit));
            }
            Expr::In(e, list, _) => {
                e.walk(visit);
                list.iter().for_each(|e| e.walk(visit));
            }
            Expr::Among(among) => among.value.walk(visit),
            Expr::Case(whens, otherwise) => {
                for (when, then) in whens {
                    when.walk(visit);
                    then.walk(visit);
                }
                if let Some(e) = otherwise {
                    e.walk(visit);
                }
            }
            Expr::Like(like) => {
                like.value.walk(visit);
                like.pattern.walk(visit);
                if let Some(escape) = &like.escape {
                    escape.walk(visit);
                }
            }
            // What the query itself is made of is not a part of the expression.
            Expr::Subquery(subquery) => match &subquery.kind {
                SubqueryKind::Scalar
                | SubqueryKind::Column(_)
                | SubqueryKind::Array(_)
                | SubqueryKind::Exists => {}
                SubqueryKind::Any(left, _) | SubqueryKind::All(left, _) => {
                    left.iter().for_each(|e| e.walk(visit));
                }
            },
            Expr::SubPlan(call) => {
                call.args.iter().chain(&call.left).for_each(|e| e.walk(visit));
            }
        }
    }

    /// Whether it may take long by itself, or does what can't be done twice.
    pub(crate) fn waits(&self) -> bool {
        let mut waits = false;
        self.walk_all(&mut |e| {
            waits |= matches!(e, Expr::Func(func, _) if func.waits());
        });
        waits
    }

    /// Whether it may have to wait, or may take so long that it must not be computed where others
    /// wait for it: it reads pages besides those of its row, or calls a function.
    pub(crate) fn may_take_long(&self) -> bool {
        let mut may = false;
        self.walk_all(&mut |e| {
            may |= matches!(e, Expr::Func(..) | Expr::SubPlan(_) | Expr::Arith(Arith::Power, _));
        });
        may
    }

    /// `value op ANY (array)` or `value op ALL (array)`, if it is one.
    pub(crate) fn as_element_comparison(&self) -> Option<ElementComparison<'_>> {
        match self {
            Expr::Func(func, args) => func::array::element_comparison(*func, args),
            _ => None,
        }
    }

    /// The value and the array of `value = ANY (array)`, if it is one.
    pub(crate) fn as_equal_any(&self) -> Option<(&Expr, &Expr)> {
        let found = self.as_element_comparison()?;
        (found.compare == Compare::Eq && !found.all).then_some((found.value, found.array))
    }

    /// If this expression is a row's `ctid`: the column that holds it as a number.
    pub(crate) fn as_place_of_row(&self) -> Option<&Expr> {
        match self {
            Expr::Func(func, args) if func.name() == "tid_of_number" => args.first(),
            _ => None,
        }
    }

    /// If this expression is one of a row's `xmin`, `xmax`, `cmin` and `cmax`: its name, and the
    /// column that holds the row's place.
    pub(crate) fn as_column_of_row(&self) -> Option<(&'static str, &Expr)> {
        match self {
            Expr::Func(func, args) => func::row_transactions::as_column_of_row(*func, args),
            _ => None,
        }
    }

    /// The sides of `text LIKE ANY (patterns)` and the like, with the operator and ANY or ALL.
    pub(crate) fn as_pattern_comparison(&self) -> Option<(&Expr, &'static str, &Expr)> {
        match self {
            Expr::Func(func, args) => func::pattern::any::comparison(*func, args),
            _ => None,
        }
    }

    /// The elements of `ARRAY[...]`, if it is one.
    pub(crate) fn as_array_of(&self) -> Option<&[Expr]> {
        match self {
            Expr::Func(func, args) => func::array::constructed(*func, args),
            _ => None,
        }
    }

    /// Whether it is a call that takes or gives back a lock, with arguments that do nothing of the
    /// kind.
    pub(crate) fn only_locks(&self) -> bool {
        matches!(self, Expr::Func(func, args)
            if func.locks() && !args.iter().any(Expr::waits))
    }

    /// Whether it is the same for all rows that agree in the columns for which `known` holds.
    pub(crate) fn is_fixed_by(&self, known: &dyn Fn(usize) -> bool) -> bool {
        let mut fixed = true;
        self.walk_all(&mut |e| match e {
            Expr::Column(column) => fixed &= known(*column),
            Expr::Func(func, _) if func.is_volatile() => fixed = false,
            _ => {}
        });
        fixed
    }

    /// Whether it may have another value each time, for the same row.
    pub(crate) fn is_volatile(&self) -> bool {
        !self.is_fixed_by(&|_| true)
    }
}

/// Where columns come from.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// There are none.
    None,
    /// A stored row, decoded column by column as they are needed.
    Stored(&'a TupleLayout, &'a [u8]),
    /// The same, with where its columns begin as far as they have been looked for.
    Scanned(&'a TupleLayout, &'a [u8], &'a ColumnOffsets),
    /// Values.
    Datums(&'a [Datum<'a>]),
    /// The rows of a plan's slots.
    Slots(Slots<'a>),
}

/// A value, borrowed where it was there already.
#[derive(Debug, Clone)]
pub enum Val<'a> {
    Borrowed(Datum<'a>),
    Owned(Value),
}

impl Val<'_> {
    pub(crate) const fn null() -> Self {
        Self::Borrowed(Datum::Null)
    }

    /// The value, borrowed.
    #[inline]
    pub fn datum(&self) -> Datum<'_> {
        match self {
            Val::Borrowed(datum) => *datum,
            Val::Owned(value) => value.as_datum(),
        }
    }

    /// The value, owned.
    pub fn into_value(self) -> Value {
        match self {
            Val::Borrowed(datum) => datum.to_value(),
            Val::Owned(value) => value,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.datum().is_null()
    }
}

impl From<Value> for Val<'_> {
    fn from(value: Value) -> Self {
        Val::Owned(value)
    }
}
