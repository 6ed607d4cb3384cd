//! Conditions that can serve as a part of a key.

use smallvec::SmallVec;

use super::Lookup;
use crate::Value;
use crate::expr::{Compare, Expr, literal_prefix};

/// Conditions that must all hold.
pub(crate) type Conjuncts<'e> = SmallVec<[&'e Expr; 8]>;

/// A conjunct that can serve as part of a key.
pub(super) struct Sargable<'e> {
    pub(super) column: usize,
    pub(super) op: Op<'e>,
    /// Its place among the conjuncts.
    pub(super) place: usize,
    /// Rows within its bounds may not meet it: it stays in the filter.
    pub(super) is_wider: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Op<'e> {
    Compare(Compare, &'e Expr),
    /// The column, as a value of another type, compares so.
    Cast(Compare, &'e Expr),
    In(&'e [Expr]),
    /// It is NULL, or if this is so, it is not.
    Null {
        not: bool,
    },
    /// It is among the elements of an array.
    Any(&'e Expr),
    /// It is LIKE a pattern.
    Like(&'e Expr),
}

/// The conditions that must all hold for a condition to hold.
pub fn conjuncts(condition: Option<&Expr>) -> &[Expr] {
    match condition {
        None => &[],
        Some(Expr::And(list)) => list,
        Some(one) => std::slice::from_ref(one),
    }
}

/// The conditions of which one must hold for an OR to hold; none for any other condition.
pub(super) fn disjuncts(condition: &Expr) -> Vec<&Expr> {
    let mut found = Vec::new();
    if !matches!(condition, Expr::Or(_)) {
        return found;
    }
    let mut open = vec![condition];
    while let Some(next) = open.pop() {
        match next {
            Expr::Or(list) => open.extend(list.iter().rev()),
            one => found.push(one),
        }
    }
    found
}

/// The condition that holds when all of these do; `None` for none.
pub fn all_of(mut conjuncts: Vec<Expr>) -> Option<Expr> {
    match conjuncts.len() {
        0 | 1 => conjuncts.pop(),
        _ => Some(Expr::And(conjuncts)),
    }
}

/// A filter whose parts that read no row come first: if one of them does not hold, the others are
/// not computed, and do not fail.
pub fn in_order(filter: Expr) -> Expr {
    match filter {
        Expr::And(mut conjuncts) => {
            conjuncts.sort_by_key(|conjunct| !conjunct.is_same_for_all_rows());
            Expr::And(conjuncts)
        }
        other => other,
    }
}

/// What conditions say of columns of all rows that meet them.
#[derive(Default)]
pub(in crate::plan) struct KnownColumns {
    /// They are equal to one value, or NULL.
    pub(in crate::plan) fixed: Vec<usize>,
    /// They are not NULL.
    pub(in crate::plan) not_null: Vec<usize>,
}

/// What conditions say of columns, as far as they can serve as a part of a key.
pub(in crate::plan) fn known_columns(lookup: &Lookup<'_, '_>, conjuncts: &[&Expr]) -> KnownColumns {
    let mut known = KnownColumns::default();
    for Sargable { column, op, .. } in sargables(lookup, conjuncts.iter().copied(), 0) {
        let is_null = matches!(op, Op::Null { not: false });
        if is_null || matches!(op, Op::Compare(Compare::Eq, _)) {
            known.fixed.push(column);
        }
        if !is_null {
            known.not_null.push(column);
        }
    }
    known
}

/// Those of some conjuncts that can serve as a part of a key. Places are counted from `first`.
pub(super) fn sargables<'e>(
    lookup: &Lookup<'_, '_>,
    conjuncts: impl Iterator<Item = &'e Expr>,
    first: usize,
) -> SmallVec<[Sargable<'e>; 4]> {
    let numbered = conjuncts.zip(first..);
    numbered.filter_map(|(conjunct, place)| sargable(lookup, conjunct, place)).collect()
}

impl Sargable<'_> {
    /// Whether it may turn out, when it is known, to leave out nothing.
    pub(super) fn may_leave_all(&self) -> bool {
        matches!(self.op, Op::Like(pattern) if !matches!(pattern, Expr::Const(_)))
    }
}

fn is_known_to_leave_all(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Const(Value::Text(pattern)) if literal_prefix(pattern).is_empty())
}

const TRUE: Expr = Expr::Const(Value::Bool(true));
const FALSE: Expr = Expr::Const(Value::Bool(false));

fn sargable<'e>(lookup: &Lookup<'_, '_>, conjunct: &'e Expr, place: usize) -> Option<Sargable<'e>> {
    let exact = |column, op| Sargable { column, op, place, is_wider: false };
    let wider = |column, op| Sargable { column, op, place, is_wider: true };
    let is = |column: &Expr, value: &'e Expr| {
        Some(exact(lookup.own_column(column)?, Op::Compare(Compare::Eq, value)))
    };
    match conjunct {
        // A boolean is what it is equal to.
        Expr::Column(_) => is(conjunct, &TRUE),
        Expr::IsBool(value, Some(true), false) => is(value, &TRUE),
        Expr::Not(value) | Expr::IsBool(value, Some(false), false) => is(value, &FALSE),
        Expr::Compare(op, pair) => {
            let own = |e: &Expr| match lookup.own_column(e) {
                Some(column) => Some((column, false)),
                None => Some((lookup.own_in_order(e)?, true)),
            };
            let ((column, is_cast), op, value) = match (own(&pair.0), own(&pair.1)) {
                (Some(own), _) if lookup.is_fixed(&pair.1) => (own, *op, &pair.1),
                (_, Some(own)) if lookup.is_fixed(&pair.0) => (own, op.flipped(), &pair.0),
                _ => return None,
            };
            if op == Compare::Ne {
                return None;
            }
            Some(match is_cast {
                true => wider(column, Op::Cast(op, value)),
                false => exact(column, Op::Compare(op, value)),
            })
        }
        Expr::In(value, list, false) => {
            let column = lookup.own_column(value)?;
            let is_fixed = list.iter().all(|item| lookup.is_fixed(item));
            is_fixed.then_some(exact(column, Op::In(list)))
        }
        Expr::Like(like) => {
            let column = lookup.own_text(&like.value)?;
            let is_plain = !like.negated && !like.ignore_case && like.escape.is_none();
            // Each row of another table might have a pattern that begins with `%`.
            let is_fixed = lookup.is_fixed(&like.pattern) && !like.pattern.has_column();
            let is_usable = is_plain && is_fixed && !is_known_to_leave_all(&like.pattern);
            is_usable.then_some(wider(column, Op::Like(&like.pattern)))
        }
        Expr::Or(sides) => {
            let (column, op, value) = first_of_row(lookup, sides)?;
            Some(wider(column, Op::Compare(op, value)))
        }
        Expr::IsNull(value, not) => Some(exact(lookup.own_column(value)?, Op::Null { not: *not })),
        other => {
            let (value, array) = other.as_equal_any()?;
            let column = lookup.own_column(value)?;
            lookup.is_fixed(array).then_some(exact(column, Op::Any(array)))
        }
    }
}

/// What a comparison of row values says of the first ones: of `a > x OR (a = x AND ..)` it is `a >=
/// x`.
fn first_of_row<'e>(
    lookup: &Lookup<'_, '_>,
    sides: &'e [Expr],
) -> Option<(usize, Compare, &'e Expr)> {
    let compared = |e| match sargable(lookup, e, 0)? {
        Sargable { column, op: Op::Compare(op, value), .. } => Some((column, op, value)),
        _ => None,
    };
    let (first, others) = sides.split_first()?;
    let (column, op, value) = compared(first)?;
    let weak = match op {
        Compare::Gt | Compare::Ge => Compare::Ge,
        Compare::Lt | Compare::Le => Compare::Le,
        Compare::Eq | Compare::Ne => return None,
    };
    let is_same = |side: &'e Expr| {
        let first = conjuncts(Some(side)).first();
        first.and_then(compared) == Some((column, Compare::Eq, value))
    };
    others.iter().all(is_same).then_some((column, weak, value))
}
