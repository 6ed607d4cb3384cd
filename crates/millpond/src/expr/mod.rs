//! Expressions: bound to the columns of one table and the parameters of one statement, then evaluated row by row.
//!
//! [`bind`] turns sqlparser's tree into an [`Expr`] whose types are settled by PostgreSQL's rules: every operator
//! knows its operands' types, and every conversion is an explicit [`Expr::Cast`]. [`eval`] walks it. Values that
//! a column, parameter or constant already has are borrowed, so that a comparison of columns allocates nothing.

mod arith;
pub(crate) mod bind;
pub(crate) mod cast;
mod eval;
mod func;
mod like;
#[cfg(test)]
mod tests;
pub(crate) mod types;

pub(crate) use func::Func;
#[cfg(feature = "datafusion")]
pub(crate) use func::check_length;

use std::cmp::Ordering;

use millpond_engine::types::tuple::TupleLayout;

use crate::advisory::Notices;
use crate::error::Result;
use crate::settings::SessionSettings;
use crate::{DataType, Datum, Value};

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arith {
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
pub(crate) enum Compare {
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
pub(crate) enum Expr {
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
    /// Conditions with results, and the result when none holds.
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Coalesce(Vec<Expr>),
    Like(Box<Like>),
    /// To a type; the flag says that it was written as a cast (so text is cut rather than refused).
    Cast(Box<Expr>, DataType, bool),
    /// Both sides are text.
    Concat(Box<(Expr, Expr)>),
    Func(Func, Vec<Expr>),
}

/// `value [NOT] [I]LIKE pattern [ESCAPE escape]`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Like {
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
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
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
        }
    }

    /// Whether it may take long by itself, or does what can't be done twice.
    pub(crate) fn waits(&self) -> bool {
        let mut waits = false;
        self.walk(&mut |e| {
            waits |= matches!(e, Expr::Func(Func::PgSleep | Func::Advisory(_), _));
        });
        waits
    }

    /// Whether it is a call that takes or gives back a lock, with arguments that do nothing of the kind.
    pub(crate) fn only_locks(&self) -> bool {
        matches!(self, Expr::Func(Func::Advisory(_), args) if !args.iter().any(Expr::waits))
    }

    /// Whether it is the same for every row of a statement.
    pub(crate) fn is_fixed(&self) -> bool {
        let mut fixed = true;
        self.walk(&mut |e| match e {
            Expr::Column(_) => fixed = false,
            Expr::Func(func, _) if func.is_volatile() => fixed = false,
            _ => {}
        });
        fixed
    }
}

/// Where columns come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Row<'a> {
    /// There are none.
    None,
    /// A stored row, decoded column by column as they are needed.
    Stored(&'a TupleLayout, &'a [u8]),
    /// Values.
    Datums(&'a [Datum<'a>]),
}

/// What a session tells expressions.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// When the transaction began, in microseconds since 2000.
    pub(crate) now: i64,
    pub(crate) user: &'a str,
    pub(crate) database: &'a str,
    pub(crate) process_id: i32,
    pub(crate) settings: &'a SessionSettings,
    /// The engine's session, to ask whether the statement has been told to stop, and for its locks.
    pub(crate) session: Option<&'a millpond_engine::session::Session>,
    /// What the statement has to tell its client beside its result.
    pub(crate) notices: &'a Notices,
    /// The statement is one call of a function that takes a lock: if it would have to wait, nothing has happened, so
    /// it may be tried where a session must not wait.
    pub(crate) only_locks: bool,
}

/// All that an expression can see.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    pub(crate) row: Row<'a>,
    pub(crate) params: &'a [Value],
    pub(crate) facts: &'a Facts<'a>,
}

impl<'a> Env<'a> {
    /// The row's column.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Result<Datum<'a>> {
        eval::column(self.row, column)
    }

    /// The same, for a row.
    pub(crate) fn with_row(&self, row: Row<'a>) -> Env<'a> {
        Env { row, ..*self }
    }
}

/// A value, borrowed where it was there already.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Borrowed(Datum<'a>),
    Owned(Value),
}

impl Val<'_> {
    /// The value, borrowed.
    pub(crate) fn datum(&self) -> Datum<'_> {
        match self {
            Val::Borrowed(datum) => *datum,
            Val::Owned(value) => value.as_datum(),
        }
    }

    /// The value, owned.
    pub(crate) fn into_value(self) -> Value {
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
