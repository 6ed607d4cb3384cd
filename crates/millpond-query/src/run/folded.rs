//! Expressions of which the parts that are the same for all rows are computed once.

use super::Context;
use crate::error::Result;
use crate::expr::{Env, Expr};

/// After how many rows: for few it would not pay.
const FOLDED_AFTER: usize = 256;

/// An expression of a node, as it is evaluated for each row.
///
/// It lasts as long as the node's state. Parameters that a subplan gets for each of its runs stay
/// as they are.
#[derive(Default)]
pub(crate) struct Folded {
    rows: usize,
    expr: Option<Box<Expr>>,
}

impl Folded {
    /// The expression for the next row.
    #[inline]
    pub(super) fn of<'e>(
        &'e mut self,
        written: Option<&'e Expr>,
        cx: &Context<'_>,
    ) -> Result<Option<&'e Expr>> {
        self.after_rows(written, |written| fold(written, cx))
    }

    /// The same where there are no subplans.
    #[inline]
    pub(crate) fn of_env<'e>(
        &'e mut self,
        written: Option<&'e Expr>,
        env: &Env<'_>,
    ) -> Result<Option<&'e Expr>> {
        self.after_rows(written, |written| written.clone().folded(env))
    }

    #[inline]
    fn after_rows<'e>(
        &'e mut self,
        written: Option<&'e Expr>,
        fold: impl FnOnce(&Expr) -> Result<Expr>,
    ) -> Result<Option<&'e Expr>> {
        if self.rows < FOLDED_AFTER {
            self.rows += 1;
            if self.rows == FOLDED_AFTER {
                self.set(written, fold)?;
            }
        }
        Ok(self.expr.as_deref().or(written))
    }

    /// A function of its own, so that the path of each row needs few registers.
    #[cold]
    fn set(
        &mut self,
        written: Option<&Expr>,
        fold: impl FnOnce(&Expr) -> Result<Expr>,
    ) -> Result<()> {
        self.expr = written.map(|written| fold(written).map(Box::new)).transpose()?;
        Ok(())
    }

    /// Whether the next row meets a condition, if there is one.
    #[inline(always)]
    pub(super) fn holds(&mut self, written: Option<&Expr>, cx: &Context<'_>) -> Result<bool> {
        if written.is_none() {
            return Ok(true);
        }
        let condition = self.of(written, cx)?;
        cx.holds(condition)
    }
}

fn fold(written: &Expr, cx: &Context<'_>) -> Result<Expr> {
    let env = cx.env();
    let of_statement = env.params.get(..cx.work().param_count).unwrap_or(env.params);
    written.clone().folded(&Env { params: of_statement, ..env })
}
