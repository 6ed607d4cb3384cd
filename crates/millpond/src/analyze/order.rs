//! ORDER BY and DISTINCT.

use sqlparser::ast;

use super::level::{Clause, Level};
use super::targets::{Target, span_of};
use super::tree::Distinct;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, beyond};
use crate::expr::types::{Ty, comparable};
use crate::parse::ident;
use crate::plan::SortKey;

/// The items of ORDER BY.
pub(super) fn items(order_by: &ast::OrderBy) -> Result<&[ast::OrderByExpr]> {
    match &order_by.kind {
        ast::OrderByKind::Expressions(list) if order_by.interpolate.is_none() => Ok(list),
        _ => Err(beyond("ORDER BY ALL")),
    }
}

/// A sort key as it is written, over a bound expression.
pub(super) fn sort_key(item: &ast::OrderByExpr, expr: Expr) -> Result<SortKey> {
    if item.with_fill.is_some() {
        return Err(beyond("WITH FILL"));
    }
    let descending = item.options.asc == Some(false);
    let nulls_first = item.options.nulls_first.unwrap_or(descending);
    Ok(SortKey { expr, descending, nulls_first })
}

/// What a number or a name in ORDER BY or the like means: the place of a target.
pub(super) fn place_of(
    e: &ast::Expr,
    targets: &[Target],
    clause: &str,
    binder: &Binder<'_>,
) -> Result<Option<usize>> {
    match e {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(_) if binder.is_lifted() => {
                Err(beyond(&format!("a literal in {clause}")))
            }
            ast::Value::Number(number, _) => {
                let place: usize = number.parse().unwrap_or(0);
                match place.checked_sub(1).filter(|place| *place < targets.len()) {
                    Some(place) => Ok(Some(place)),
                    None if number.contains(['.', 'e', 'E']) => {
                        Err(binder.source.place(non_integer(clause), value.span))
                    }
                    None => Err(binder.source.place(
                        SqlError::new(
                            SqlState::INVALID_COLUMN_REFERENCE,
                            format!("{clause} position {number} is not in select list"),
                        ),
                        value.span,
                    )),
                }
            }
            ast::Value::Placeholder(_) => Ok(None),
            _ => Err(binder.source.place(non_integer(clause), value.span)),
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr }
            if matches!(expr.as_ref(), ast::Expr::Value(value)
                if matches!(value.value, ast::Value::Number(..))) =>
        {
            let error = SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("{clause} position {e} is not in select list"),
            );
            Err(binder.source.place(error, span_of(e)))
        }
        ast::Expr::Identifier(name) => {
            let folded = ident(name);
            let mut of_name = targets.iter().enumerate().filter(|(_, t)| t.desc.name == folded);
            let Some((first, target)) = of_name.next() else { return Ok(None) };
            if of_name.any(|(_, other)| other.expr != target.expr) {
                let error = SqlError::new(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("{clause} \"{folded}\" is ambiguous"),
                );
                return Err(binder.source.place(error, name.span));
            }
            Ok(Some(first))
        }
        ast::Expr::Nested(inner) => place_of(inner, targets, clause, binder),
        _ => Ok(None),
    }
}

/// Values of some types can't be compared.
pub(super) fn check_order(ty: Ty, operator: &str) -> Result<()> {
    match ty {
        Ty::Known(ty) if comparable(ty, ty).is_none() => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify {operator} operator for type {}", ty.base()),
        )),
        _ => Ok(()),
    }
}

fn non_integer(clause: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))
}

impl Level<'_> {
    /// Binds ORDER BY over a select list.
    pub(super) fn order_by(
        &self,
        order_by: Option<&ast::OrderBy>,
        targets: &[Target],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<SortKey>> {
        let Some(order_by) = order_by else { return Ok(Vec::new()) };
        self.within(Clause::OrderBy, || {
            items(order_by)?
                .iter()
                .map(|item| {
                    let (expr, ty) = match place_of(&item.expr, targets, "ORDER BY", binder)? {
                        Some(place) => (targets[place].expr.clone(), targets[place].ty),
                        None => {
                            let (expr, ty) = binder.output(&item.expr, self)?;
                            (expr, Ty::Known(ty))
                        }
                    };
                    check_order(ty, "an ordering")
                        .map_err(|error| binder.place_at(error, &item.expr))?;
                    sort_key(item, expr)
                })
                .collect()
        })
    }

    /// Binds DISTINCT, and checks that ORDER BY goes with it.
    pub(super) fn distinct(
        &self,
        distinct: Option<&ast::Distinct>,
        order: &[SortKey],
        order_by: Option<&ast::OrderBy>,
        targets: &[Target],
        binder: &mut Binder<'_>,
    ) -> Result<Distinct> {
        let spans: Vec<_> = match order_by {
            Some(order_by) => items(order_by)?.iter().map(|item| span_of(&item.expr)).collect(),
            None => Vec::new(),
        };
        let refuse = |at: usize, what: &str| {
            let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, what);
            match spans.get(at) {
                Some(span) => binder.source.place(error, *span),
                None => error,
            }
        };
        match distinct {
            None | Some(ast::Distinct::All) => Ok(Distinct::No),
            Some(ast::Distinct::Distinct) => {
                for target in targets {
                    check_order(target.ty, "an equality")
                        .map_err(|error| binder.source.place(error, target.span))?;
                }
                let is_target = |key: &SortKey| targets.iter().any(|t| t.expr == key.expr);
                match order.iter().position(|key| !is_target(key)) {
                    Some(at) => Err(refuse(
                        at,
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    )),
                    None => Ok(Distinct::All),
                }
            }
            Some(ast::Distinct::On(list)) => {
                let mut keys: Vec<Expr> = Vec::with_capacity(list.len());
                let mut places = Vec::with_capacity(list.len());
                for e in list {
                    let key = self.within(Clause::DistinctOn, || -> Result<Expr> {
                        Ok(match place_of(e, targets, "DISTINCT ON", binder)? {
                            Some(place) => targets[place].expr.clone(),
                            None => binder.output(e, self)?.0,
                        })
                    })?;
                    places.push(match keys.iter().position(|other| *other == key) {
                        Some(at) => at,
                        None => {
                            keys.push(key);
                            keys.len() - 1
                        }
                    });
                }
                check_initial(&keys, order).map_err(|key| {
                    let what =
                        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                    let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, what);
                    match places.iter().position(|at| *at == key) {
                        Some(at) => binder.source.place(error, span_of(&list[at])),
                        None => error,
                    }
                })?;
                Ok(Distinct::On(keys))
            }
        }
    }
}

/// Fails with the place of a key of DISTINCT ON that another sort key comes before.
fn check_initial(keys: &[Expr], order: &[SortKey]) -> std::result::Result<(), usize> {
    let mut seen = vec![false; keys.len()];
    let mut skipped = false;
    for sorted in order {
        match keys.iter().position(|key| *key == sorted.expr) {
            Some(at) if skipped => return Err(at),
            Some(at) => seen[at] = true,
            None => skipped = true,
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(at) if skipped => Err(at),
        _ => Ok(()),
    }
}
