//! The functions that PostgreSQL names as those of operators, and of the orders of B-trees.
//!
//! A row of these tables names an operator. The binder makes of a call what it makes of the
//! operator, so nothing else computes it.

mod arithmetic;
mod comparisons;
mod order;
mod record_image;

use super::Body;
use super::catalog::{Param, Proc, proc};

pub(super) use arithmetic::{ARITHMETIC, PATTERNS, TEXTS};
pub(super) use comparisons::{COMPARISONS, COMPARISONS_IN_ZONE, EQUALITIES};
pub(super) use order::{EXTREMES, EXTREMES_OF_CHARS, ORDERS};
pub(in crate::expr) use order::{ORDER, ORDER_FOR_EQUALITY};
pub(super) use record_image::{OPERATORS as IMAGE_OPERATORS, PROCS as IMAGES};

/// What the binder makes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expr) enum OfOperator {
    /// The operator of this symbol.
    Symbol(&'static str),
    /// A number that says which of two values comes first.
    Order,
}

/// The function of an operator.
const fn of(
    oid: u32,
    name: &'static str,
    args: &'static [Param],
    result: Param,
    symbol: &'static str,
) -> Proc {
    proc(oid, name, args, result, Body::OfOperator(OfOperator::Symbol(symbol)))
}

/// The function of an operator that asks for the session's time zone.
const fn of_zone(
    oid: u32,
    name: &'static str,
    args: &'static [Param],
    result: Param,
    symbol: &'static str,
) -> Proc {
    of(oid, name, args, result, symbol).stable()
}
