//! Computing once what is the same for all rows of a scan.

use super::disjunction::careful_disjunction;
use super::{Among, Env, Expr};
use crate::error::Result;

impl Expr {
    /// The expression for rows that all see the same parameters: the parts without a column are
    /// computed now. A part that fails stays as it is, and fails for the first row that needs it.
    /// Parameters that turn out to be equal may show what all sides of an OR have in common. Many
    /// constants among which a value is looked for are put in order.
    pub fn folded(self, env: &Env<'_>) -> Result<Expr> {
        if matches!(self, Expr::Const(_) | Expr::Column(_)) {
            return Ok(self);
        }
        if self.is_same_for_all_rows() {
            return Ok(match self.eval(env) {
                Ok(value) => Expr::Const(value.into_value()),
                Err(_) => self,
            });
        }
        Ok(match self.map_parts(&mut |part| part.folded(env))? {
            Expr::Or(arms) => careful_disjunction(arms),
            other => Among::instead_of(other),
        })
    }

    /// The expression without the parts that are NULL whatever else they read: an operator or a
    /// function is not called for a NULL, and so its other arguments need not be computed. They
    /// could fail. One that reads nothing is computed, too, and its error is reported.
    pub fn without_null_calls(self) -> Result<Expr> {
        let mut has_null = false;
        self.walk(&mut |e| has_null |= *e == Expr::NULL);
        if has_null { self.null_calls_folded() } else { Ok(self) }
    }

    fn null_calls_folded(self) -> Result<Expr> {
        let expr = self.map_parts(&mut Self::null_calls_folded)?;
        let is_null = |args: &[&Expr]| {
            args.contains(&&Expr::NULL)
                && args.iter().all(|arg| matches!(arg, Expr::Const(_)) || arg.varies())
        };
        let folds = match &expr {
            Expr::Neg(e) | Expr::Not(e) | Expr::Cast(e, ..) => is_null(&[e]),
            Expr::Arith(_, pair) | Expr::Compare(_, pair) | Expr::Concat(pair) => {
                is_null(&[&pair.0, &pair.1])
            }
            Expr::Func(func, args) => func.is_strict() && is_null(&Vec::from_iter(args)),
            _ => false,
        };
        Ok(if folds { Expr::NULL } else { expr })
    }

    /// Whether it may have another value for another row or at another time.
    fn varies(&self) -> bool {
        let mut varies = false;
        self.walk_all(&mut |e| {
            varies |= match e {
                Expr::Column(_) | Expr::Subquery(_) | Expr::SubPlan(_) => true,
                Expr::Func(func, _) => !func.is_immutable(),
                _ => false,
            };
        });
        varies
    }

    /// Whether it uses a column, within a subquery, too.
    pub(crate) fn has_column(&self) -> bool {
        let mut found = false;
        self.walk_all(&mut |e| found |= matches!(e, Expr::Column(_)));
        found
    }

    /// Whether it has a subquery that has no plan yet.
    pub(crate) fn has_subquery(&self) -> bool {
        let mut found = false;
        self.walk_all(&mut |e| found |= matches!(e, Expr::Subquery(_)));
        found
    }

    /// Whether it reads no row, in the row's place or by a query, and has one value for all rows.
    pub(crate) fn is_same_for_all_rows(&self) -> bool {
        let mut has_query = false;
        self.walk(&mut |e| has_query |= matches!(e, Expr::Subquery(_) | Expr::SubPlan(_)));
        !has_query && !self.waits() && self.is_fixed_by(&|_| false)
    }
}
