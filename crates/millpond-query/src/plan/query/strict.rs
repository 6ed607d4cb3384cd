//! Which columns must not be NULL for a condition to hold.

use crate::expr::Expr;

/// The columns that are not NULL in any row for which a condition holds.
pub(super) fn strict_columns(condition: &Expr) -> Vec<usize> {
    match condition {
        Expr::And(list) => list.iter().flat_map(strict_columns).collect(),
        Expr::Or(list) => {
            let mut lists = list.iter().map(strict_columns);
            let first = lists.next().unwrap_or_default();
            lists.fold(first, |common, other| {
                common.into_iter().filter(|column| other.contains(column)).collect()
            })
        }
        Expr::IsNull(e, true) | Expr::IsBool(e, Some(true), false) => null_if(e),
        other => null_if(other),
    }
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
        _ => Vec::new(),
    }
}
