//! NOT of conditions, as conditions that indexes and joins can use.

use super::{Compare, Expr, Like};
use crate::Value;

impl Compare {
    /// The comparison that holds where this one does not, if no side is NULL. All types have an
    /// order of all their values: NaN is equal to itself, too.
    fn negated(self) -> Self {
        match self {
            Compare::Eq => Compare::Ne,
            Compare::Ne => Compare::Eq,
            Compare::Lt => Compare::Ge,
            Compare::Ge => Compare::Lt,
            Compare::Gt => Compare::Le,
            Compare::Le => Compare::Gt,
        }
    }
}

impl Expr {
    /// `NOT` of a condition. NOT of NULL is NULL.
    pub(crate) fn negated(self) -> Self {
        let each = |list: Vec<Expr>| list.into_iter().map(Expr::negated).collect();
        match self {
            Expr::Compare(op, pair) => Expr::Compare(op.negated(), pair),
            Expr::Not(condition) => *condition,
            Expr::And(list) => Expr::Or(each(list)),
            Expr::Or(list) => Expr::And(each(list)),
            Expr::IsNull(e, not) => Expr::IsNull(e, !not),
            Expr::IsBool(e, what, not) => Expr::IsBool(e, what, !not),
            Expr::Distinct(pair, not) => Expr::Distinct(pair, !not),
            Expr::In(e, list, not) => Expr::In(e, list, !not),
            Expr::Like(like) => Expr::Like(Box::new(Like { negated: !like.negated, ..*like })),
            Expr::Const(Value::Bool(value)) => Expr::Const(Value::Bool(!value)),
            other => Expr::Not(Box::new(other)),
        }
    }
}
