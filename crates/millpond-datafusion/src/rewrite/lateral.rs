//! `CROSS JOIN LATERAL (SELECT e, ..) AS o(n, ..)` without a `FROM`: names for expressions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, JoinOperator, Select, SelectItem, SetExpr, TableFactor, VisitMut, VisitorMut,
};

use super::folded;

/// Replaces the names by their expressions throughout `select`, and drops the join.
pub fn select(select: &mut Select) {
    let mut names = Names(Vec::new());
    for from in &mut select.from {
        from.joins.retain(|join| {
            let found = matches!(join.join_operator, JoinOperator::CrossJoin(_))
                .then(|| named_expressions(&join.relation))
                .flatten();
            names.0.extend(found.iter().flatten().cloned());
            found.is_none()
        });
    }
    if names.0.is_empty() {
        return;
    }
    let _ = select.projection.visit(&mut names);
    let _ = select.from.visit(&mut names);
    let _ = select.selection.visit(&mut names);
    let _ = select.having.visit(&mut names);
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        let _ = keys.visit(&mut names);
    }
}

#[derive(Clone)]
struct Named {
    relation: String,
    column: String,
    expr: Expr,
}

/// What a lateral subquery without `FROM` and with all its columns named stands for.
fn named_expressions(factor: &TableFactor) -> Option<Vec<Named>> {
    let TableFactor::Derived { lateral: true, subquery, alias: Some(alias), .. } = factor else {
        return None;
    };
    let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
    let plain = select.from.is_empty()
        && select.selection.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && subquery.limit_clause.is_none()
        && select.projection.len() == alias.columns.len();
    if !plain {
        return None;
    }
    let columns = alias.columns.iter().zip(&select.projection);
    columns
        .map(|(column, item)| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(Named {
                relation: folded(&alias.name),
                column: folded(&column.name),
                expr: expr.clone(),
            }),
            _ => None,
        })
        .collect()
}

struct Names(Vec<Named>);

impl VisitorMut for Names {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [relation, column] = parts.as_slice()
        {
            let (relation, column) = (folded(relation), folded(column));
            if let Some(named) =
                self.0.iter().find(|named| named.relation == relation && named.column == column)
            {
                *expr = Expr::Nested(Box::new(named.expr.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}
