//! Row values: `(a, b) = (c, d)` and the like, which are conditions on their parts.

use millpond_syntax::tree::{self, Name, Node, SelectStmt, SubLinkType};

use super::operator::{comparison_of, symbol_of};
use super::{Binder, Scope, Typed, beyond};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Compare, Expr, one_of};

/// How many parts of rows are compared in an OR of their own.
const MOST_SIDES: usize = 7;

/// The parts of a row value, if an expression is one.
pub(crate) fn parts_of_row(e: &tree::Expr) -> Option<&[tree::Expr]> {
    match &e.node {
        Node::RowExpr(parts, _) => Some(parts),
        _ => None,
    }
}

/// The query that an operand is.
fn query_of(e: &tree::Expr) -> Option<&SelectStmt> {
    match &e.node {
        Node::SubLink(link) if link.sub_link_type == SubLinkType::Expr => Some(&link.subselect),
        _ => None,
    }
}

impl Binder<'_> {
    /// A comparison of two row values; `None` if the operands are none.
    pub(super) fn row_operator(
        &mut self,
        left: &tree::Expr,
        name: &[Name],
        right: &tree::Expr,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Option<Typed>> {
        let Some(parts) = parts_of_row(left) else { return Ok(None) };
        let written = query_of(right);
        let others = parts_of_row(right).unwrap_or_default();
        if written.is_none() && others.is_empty() {
            return Ok(None);
        }
        let symbol = symbol_of(name)?;
        let Some(compare) = comparison_of(symbol) else {
            return Err(beyond(&format!("the operator {symbol} of row values")));
        };
        let literals: Vec<&tree::Expr> = parts.iter().chain(others).collect();
        let pairs = match written {
            Some(query) => self.pairs_of_query(parts, query, right.location, scope),
            None => self.pairs(parts, others, scope),
        };
        pairs
            .and_then(|pairs| self.compare_rows(compare, pairs))
            .map(|e| Some(Typed::bool(e)))
            .map_err(|error| self.place_operator(error, at, &literals))
    }

    fn pairs(
        &mut self,
        left: &[tree::Expr],
        right: &[tree::Expr],
        scope: &dyn Scope,
    ) -> Result<Vec<(Typed, Typed)>> {
        if left.len() != right.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
            ));
        }
        if left.is_empty() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot compare rows of zero length",
            ));
        }
        let left = left.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?;
        let right = right.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?;
        Ok(left.into_iter().zip(right).collect())
    }

    fn compare_rows(&mut self, compare: Compare, pairs: Vec<(Typed, Typed)>) -> Result<Expr> {
        let of_each = |binder: &mut Self, pairs: Vec<(Typed, Typed)>| {
            pairs
                .into_iter()
                .map(|(a, b)| binder.compare(compare, a, b))
                .collect::<Result<Vec<_>>>()
        };
        match compare {
            Compare::Eq => of_each(self, pairs).map(Expr::And),
            Compare::Ne => of_each(self, pairs).map(Expr::Or),
            _ => self.order_rows(compare, pairs),
        }
    }

    /// `(a, b) < (c, d)`: the first parts that differ decide. Each side of the OR is a range of an
    /// index on the parts, and the ranges are neighbours.
    fn order_rows(&mut self, compare: Compare, pairs: Vec<(Typed, Typed)>) -> Result<Expr> {
        let is_volatile =
            |pair: &(Typed, Typed)| pair.0.expr.is_volatile() || pair.1.expr.is_volatile();
        if pairs.iter().any(is_volatile) {
            return Err(beyond("an order of row values that change"));
        }
        let strict = match compare {
            Compare::Lt | Compare::Le => Compare::Lt,
            _ => Compare::Gt,
        };
        if pairs.is_empty() {
            return Err(SqlError::internal("an empty row"));
        }
        let (mut equal, mut sides) = (Vec::new(), Vec::new());
        let mut pairs = pairs.into_iter().peekable();
        while let Some((a, b)) = pairs.next() {
            let is_last = pairs.peek().is_none();
            let decides = if is_last { compare } else { strict };
            let decides = self.compare(decides, a.clone(), b.clone())?;
            sides.push(all_of(&equal, decides));
            if is_last {
                break;
            }
            equal.push(self.compare(Compare::Eq, a, b)?);
            // Each side repeats the parts before it: not for many.
            if equal.len() == MOST_SIDES {
                let rest = self.order_rows(compare, pairs.collect())?;
                sides.push(all_of(&equal, rest));
                break;
            }
        }
        Ok(one_of(sides))
    }

    /// `(a, b) [NOT] IN ((c, d), ...)`; `None` if the value is no row.
    pub(super) fn row_in_list(
        &mut self,
        value: &tree::Expr,
        list: &[tree::Expr],
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Option<Typed>> {
        let Some(left) = parts_of_row(value) else { return Ok(None) };
        let mut choices = Vec::with_capacity(list.len());
        for item in list {
            let Some(right) = parts_of_row(item) else {
                return Err(beyond("a row value among other values"));
            };
            let pairs = self.pairs(left, right, scope)?;
            choices.push(self.compare_rows(Compare::Eq, pairs)?);
        }
        let first = first_of(&choices);
        let mut any = Expr::Or(choices);
        if let Some(first) = first {
            any = Expr::And(vec![first, any]);
        }
        Ok(Some(Typed::bool(if negated { any.negated() } else { any })))
    }

    /// `(a, b) IS [NOT] NULL`: all parts are (not) NULL. `None` if the value is no row.
    pub(super) fn row_is_null(
        &mut self,
        value: &tree::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Option<Typed>> {
        let Some(parts) = parts_of_row(value) else { return Ok(None) };
        let parts = parts
            .iter()
            .map(|e| Ok(Expr::IsNull(Box::new(self.output(e, scope)?.0), negated)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Typed::bool(Expr::And(parts))))
    }

    /// `(a, b) IS [NOT] DISTINCT FROM (c, d)`; `None` if the operands are no rows.
    pub(super) fn row_distinct(
        &mut self,
        a: &tree::Expr,
        b: &tree::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Option<Typed>> {
        let (Some(left), Some(right)) = (parts_of_row(a), parts_of_row(b)) else {
            return Ok(None);
        };
        let parts = self
            .pairs(left, right, scope)?
            .into_iter()
            .map(|(a, b)| {
                let pair = self.alike(a, b, "IS DISTINCT FROM")?;
                Ok(Expr::Distinct(Box::new(pair), negated))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Typed::bool(if negated { Expr::And(parts) } else { Expr::Or(parts) })))
    }
}

/// What follows from `(a, b) = (c, d) OR (a, b) = (e, f) ...`, and an index can find rows by:
/// `a IN (c, e, ...)`.
fn first_of(choices: &[Expr]) -> Option<Expr> {
    let mut value = None;
    let mut list = Vec::with_capacity(choices.len());
    for choice in choices {
        let Expr::And(parts) = choice else { return None };
        let Some(Expr::Compare(Compare::Eq, pair)) = parts.first() else { return None };
        if pair.0.is_volatile() || pair.1.is_volatile() || *value.get_or_insert(&pair.0) != &pair.0
        {
            return None;
        }
        list.push(pair.1.clone());
    }
    Some(Expr::In(Box::new(value?.clone()), list, false))
}

/// Some conditions and one more.
fn all_of(conditions: &[Expr], last: Expr) -> Expr {
    if conditions.is_empty() {
        return last;
    }
    Expr::And(conditions.iter().cloned().chain([last]).collect())
}
