//! Making an expression from another one, and looking into the queries inside of one.

use super::{Expr, Like, SubPlanCall};
use crate::analyze::tree::{Subquery, SubqueryKind};
use crate::error::Result;

/// What makes an expression of another one.
pub(crate) type Map<'m> = &'m mut dyn FnMut(Expr) -> Result<Expr>;

impl Expr {
    /// The same expression over other parts: `map` is called for each direct part.
    pub(crate) fn map_parts(self, map: Map<'_>) -> Result<Expr> {
        Ok(match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) => self,
            Expr::Neg(e) => Expr::Neg(boxed(*e, map)?),
            Expr::Not(e) => Expr::Not(boxed(*e, map)?),
            Expr::IsNull(e, not) => Expr::IsNull(boxed(*e, map)?, not),
            Expr::IsBool(e, what, not) => Expr::IsBool(boxed(*e, map)?, what, not),
            Expr::Cast(e, ty, explicit) => Expr::Cast(boxed(*e, map)?, ty, explicit),
            Expr::Arith(op, pair) => Expr::Arith(op, both(*pair, map)?),
            Expr::Compare(op, pair) => Expr::Compare(op, both(*pair, map)?),
            Expr::Distinct(pair, not) => Expr::Distinct(both(*pair, map)?, not),
            Expr::Concat(pair) => Expr::Concat(both(*pair, map)?),
            Expr::And(list) => Expr::And(all(list, map)?),
            Expr::Or(list) => Expr::Or(all(list, map)?),
            Expr::Coalesce(list) => Expr::Coalesce(all(list, map)?),
            Expr::Func(func, list) => Expr::Func(func, all(list, map)?),
            Expr::In(e, list, not) => Expr::In(boxed(*e, map)?, all(list, map)?, not),
            Expr::Among(among) => Expr::Among(Box::new(among.map(map)?)),
            Expr::Case(whens, otherwise) => {
                let whens = whens
                    .into_iter()
                    .map(|(when, then)| Ok((map(when)?, map(then)?)))
                    .collect::<Result<_>>()?;
                Expr::Case(whens, otherwise.map(|e| boxed(*e, map)).transpose()?)
            }
            Expr::Like(like) => {
                let Like { value, pattern, escape, ignore_case, negated } = *like;
                let (value, pattern) = (map(value)?, map(pattern)?);
                let escape = escape.map(&mut *map).transpose()?;
                Expr::Like(Box::new(Like { value, pattern, escape, ignore_case, negated }))
            }
            Expr::Subquery(subquery) => {
                let Subquery { kind, query } = *subquery;
                let kind = match kind {
                    SubqueryKind::Any(left, op) => SubqueryKind::Any(all(left, map)?, op),
                    SubqueryKind::All(left, op) => SubqueryKind::All(all(left, map)?, op),
                    kind => kind,
                };
                Expr::Subquery(Box::new(Subquery { kind, query }))
            }
            Expr::SubPlan(call) => {
                let SubPlanCall { number, column, args, left } = *call;
                let (args, left) = (all(args, map)?, all(left, map)?);
                Expr::SubPlan(Box::new(SubPlanCall { number, column, args, left }))
            }
        })
    }

    /// The expression with other numbers of its columns.
    pub fn map_columns(self, map: &mut dyn FnMut(usize) -> usize) -> Result<Expr> {
        match self {
            Expr::Column(column) => Ok(Expr::Column(map(column))),
            other => other.map_parts(&mut |part| part.map_columns(map)),
        }
    }

    /// Calls `visit` for the expression, all its parts, and all expressions of queries in it.
    pub(crate) fn walk_all(&self, visit: &mut dyn FnMut(&Expr)) {
        self.walk(&mut |e| {
            visit(e);
            if let Expr::Subquery(subquery) = e {
                subquery.query.walk(visit);
            }
        });
    }
}

fn boxed(e: Expr, map: Map<'_>) -> Result<Box<Expr>> {
    Ok(Box::new(map(e)?))
}

fn both((a, b): (Expr, Expr), map: Map<'_>) -> Result<Box<(Expr, Expr)>> {
    Ok(Box::new((map(a)?, map(b)?)))
}

fn all(list: Vec<Expr>, map: Map<'_>) -> Result<Vec<Expr>> {
    list.into_iter().map(map).collect()
}
