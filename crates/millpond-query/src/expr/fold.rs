//! Computing once what is the same for all rows of a scan.

use super::{Env, Expr};
use crate::error::Result;

impl Expr {
    /// The expression for rows that all see the same parameters: the parts without a column are
    /// computed now. A part that fails stays as it is, and fails for the first row that needs it.
    pub(crate) fn folded(self, env: &Env<'_>) -> Result<Expr> {
        if matches!(self, Expr::Const(_) | Expr::Column(_)) {
            return Ok(self);
        }
        if self.is_same_for_all_rows() {
            return Ok(match self.eval(env) {
                Ok(value) => Expr::Const(value.into_value()),
                Err(_) => self,
            });
        }
        self.map_parts(&mut |part| part.folded(env))
    }

    fn is_same_for_all_rows(&self) -> bool {
        let mut has_query = false;
        self.walk(&mut |e| has_query |= matches!(e, Expr::Subquery(_) | Expr::SubPlan(_)));
        !has_query && !self.waits() && self.is_fixed_by(&|_| false)
    }
}
