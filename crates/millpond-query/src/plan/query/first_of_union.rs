//! `(...) UNION ALL (...) ORDER BY ... LIMIT n`: only the first n rows of each side can be among
//! the first n of all. A side that finds its rows in the order by an index ends after them.

use crate::Value;
use crate::analyze::tree::{Body, Distinct, Query, SetOperation, Slot, column};
use crate::expr::{Arith, Compare, Expr};
use crate::plan::SortKey;

/// Which rows of a set operation are wanted.
pub(super) struct FirstRows<'q> {
    slot: Slot,
    order_by: &'q [SortKey],
    /// How many of each side.
    limit: Expr,
}

impl<'q> FirstRows<'q> {
    /// What a query wants of its set operation, if it has an order and an end.
    pub(super) fn of(query: &'q Query, operation: &SetOperation) -> Option<Self> {
        let is_plain = operation.all && !query.with_ties && query.locks.is_empty();
        let limit = query.limit.as_ref().filter(|_| is_plain && !query.order_by.is_empty())?;
        let limit = with_offset(limit, query.offset.as_ref());
        Some(Self { slot: operation.slot, order_by: &query.order_by, limit })
    }

    /// A side that gives no more than these rows. `None` if it has an order or an end of its own,
    /// or if what it is ordered by should not be computed twice.
    pub(super) fn of_side(&self, side: &Query) -> Option<Query> {
        let Body::Select(select) = &side.body else { return None };
        let is_open = side.order_by.is_empty() && side.limit.is_none() && side.offset.is_none();
        if !is_open || !side.locks.is_empty() || !matches!(select.distinct, Distinct::No) {
            return None;
        }
        let own_key = |key: &SortKey| {
            let places = 0..select.targets.len();
            let mut own = places.filter(|at| key.expr == Expr::Column(column(self.slot, *at)));
            let target = select.targets.get(own.next()?)?;
            is_cheap(target).then(|| SortKey { expr: target.clone(), ..key.clone() })
        };
        let order_by = self.order_by.iter().map(own_key).collect::<Option<_>>()?;
        Some(Query { order_by, limit: Some(self.limit.clone()), ..side.clone() })
    }
}

/// Whether a value may be computed for the order and again for the result.
fn is_cheap(target: &Expr) -> bool {
    !target.has_subquery() && !target.is_volatile()
}

/// LIMIT plus OFFSET; NULL, which is no limit, if that is beyond all numbers.
fn with_offset(limit: &Expr, offset: Option<&Expr>) -> Expr {
    let Some(offset) = offset else { return limit.clone() };
    let is_large = |count: &Expr| {
        let half = Expr::Const(Value::Int8(i64::MAX / 2));
        Expr::Compare(Compare::Gt, Box::new((count.clone(), half)))
    };
    let too_large = Expr::Or(vec![is_large(limit), is_large(offset)]);
    let sum = Expr::Arith(Arith::Add, Box::new((limit.clone(), offset.clone())));
    Expr::Case(vec![(too_large, Expr::NULL)], Some(Box::new(sum)))
}
