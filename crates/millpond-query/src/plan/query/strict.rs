//! Which columns must not be NULL for a condition to hold.

use std::collections::BTreeSet;

use crate::analyze::tree::{Slot, slot_of};
use crate::expr::Expr;

/// Columns of which at least one is not NULL.
pub(super) type Strict = Vec<usize>;

/// What is not NULL in any row for which a condition holds.
pub(super) fn strict_columns(condition: &Expr) -> Vec<Strict> {
    match condition {
        Expr::And(list) => list.iter().flat_map(strict_columns).collect(),
        Expr::Or(list) => common(list.iter().map(strict_columns)),
        Expr::Not(e) | Expr::IsBool(e, Some(false), false) => false_columns(e),
        Expr::IsBool(e, Some(true), false) => strict_columns(e),
        Expr::IsNull(e, true) => each(null_if(e)),
        other => match other.as_element_comparison() {
            // It holds for all elements of an array that has none, whatever the value is.
            Some(comparison) if comparison.all => each(null_if(comparison.array)),
            Some(comparison) => each([comparison.value, comparison.array].map(null_if).concat()),
            None => each(null_if(other)),
        },
    }
}

/// What is not NULL in any row for which a condition is false.
fn false_columns(condition: &Expr) -> Vec<Strict> {
    match condition {
        Expr::And(list) => common(list.iter().map(false_columns)),
        Expr::Or(list) => list.iter().flat_map(false_columns).collect(),
        Expr::Not(e) => strict_columns(e),
        other => each(null_if(other)),
    }
}

fn each(columns: Vec<usize>) -> Vec<Strict> {
    columns.into_iter().map(|column| vec![column]).collect()
}

/// What is not NULL where one of several conditions holds: a column that each of them needs, or one
/// of the columns of an item of which each needs some.
fn common(mut lists: impl Iterator<Item = Vec<Strict>>) -> Vec<Strict> {
    let first = lists.next().unwrap_or_default();
    lists.fold(first, |common, other| {
        common.into_iter().filter_map(|columns| either(columns, &other)).collect()
    })
}

fn either(columns: Strict, others: &[Strict]) -> Option<Strict> {
    if others.contains(&columns) {
        return Some(columns);
    }
    let slot = slot(&columns);
    let other = others.iter().find(|other| self::slot(other) == slot)?;
    Some(columns.iter().chain(other).copied().collect::<BTreeSet<_>>().into_iter().collect())
}

/// The item whose columns they are: a condition's lists have those of one item each.
fn slot(columns: &Strict) -> Option<Slot> {
    columns.first().map(|column| slot_of(*column).0)
}

/// The columns whose NULL makes an expression NULL.
fn null_if(e: &Expr) -> Vec<usize> {
    match e {
        Expr::Column(column) => vec![*column],
        Expr::Neg(e) | Expr::Not(e) | Expr::Cast(e, ..) | Expr::In(e, _, _) => null_if(e),
        Expr::Arith(_, pair) | Expr::Compare(_, pair) | Expr::Concat(pair) => {
            let mut columns = null_if(&pair.0);
            columns.extend(null_if(&pair.1));
            columns
        }
        Expr::Like(like) => {
            let mut columns = null_if(&like.value);
            columns.extend(null_if(&like.pattern));
            columns
        }
        Expr::Func(func, args) if func.is_strict() => args.iter().flat_map(null_if).collect(),
        _ => Vec::new(),
    }
}
