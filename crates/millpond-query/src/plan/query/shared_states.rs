//! Calls of aggregate functions that take the same values in.

use crate::DataType;
use crate::analyze::tree::{AggregateCall, AggregateFunction};
use crate::expr::Expr;

/// For each call the first one whose state has what it needs, or itself.
pub(crate) fn shared_states(calls: &[AggregateCall]) -> Vec<usize> {
    let first = |(place, call)| {
        let same = calls.iter().position(|other| take_the_same(other, call));
        same.map_or(place, |same| same.min(place))
    };
    calls.iter().enumerate().map(first).collect()
}

fn take_the_same(a: &AggregateCall, b: &AggregateCall) -> bool {
    sums(a) && sums(b) && a.args == b.args
}

/// Whether it is a sum or an average of each row's value. An average of `real` is none: it adds in
/// double precision.
fn sums(call: &AggregateCall) -> bool {
    let is_sum = match call.function {
        AggregateFunction::Sum => call.ty != DataType::Float4,
        AggregateFunction::Avg => true,
        _ => false,
    };
    is_sum
        && !call.distinct
        && call.order_by.is_empty()
        && call.filter.is_none()
        && !call.args.iter().any(Expr::is_volatile)
}
