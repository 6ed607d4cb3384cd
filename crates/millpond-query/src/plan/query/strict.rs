//! Which columns must not be NULL for a condition to hold.

use crate::expr::Expr;

/// The columns that are not NULL in any row for which a condition holds.
pub(super) fn strict_columns(condition: &Expr) -> Vec<usize> {
    match condition {
        Expr::And(list) => list.iter().flat_map(strict_columns).collect(),
        Expr::Or(list) => common(list.iter().map(strict_columns)),
        Expr::Not(e) | Expr::IsBool(e, Some(false), false) => false_columns(e),
        Expr::IsBool(e, Some(true), false) => strict_columns(e),
        Expr::IsNull(e, true) => null_if(e),
        other => match other.as_element_comparison() {
            // It holds for all elements of an array that has none, whatever the value is.
            Some(comparison) if comparison.all => null_if(comparison.array),
            Some(comparison) => [comparison.value, comparison.array].map(null_if).concat(),
            None => null_if(other),
        },
    }
}

/// The columns that are not NULL in any row for which a condition is false.
fn false_columns(condition: &Expr) -> Vec<usize> {
    match condition {
        Expr::And(list) => common(list.iter().map(false_columns)),
        Expr::Or(list) => list.iter().flat_map(false_columns).collect(),
        Expr::Not(e) => strict_columns(e),
        other => null_if(other),
    }
}

/// The columns that are in all lists.
fn common(mut lists: impl Iterator<Item = Vec<usize>>) -> Vec<usize> {
    let first = lists.next().unwrap_or_default();
    lists.fold(first, |common, other| {
        common.into_iter().filter(|column| other.contains(column)).collect()
    })
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
