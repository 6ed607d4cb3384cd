//! ORDER BY, and the index whose order makes it needless.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;
use sqlparser::ast;

use super::scope::TableScope;
use super::{Aggregate, Planner, UsableIndexes, access};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, beyond};
use crate::parse::ident;

/// One key of an ORDER BY that has to be sorted by.
#[derive(Debug)]
pub(crate) struct SortKey {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// The index that gives an order, and which way to read it.
#[derive(Debug, Clone)]
pub(crate) struct Ordered {
    pub(crate) index: Arc<IndexDef>,
    pub(crate) direction: Direction,
}

impl Planner<'_> {
    pub(super) fn sort_keys(
        &self,
        order_by: Option<&ast::OrderBy>,
        projection: &[ast::SelectItem],
        binder: &mut Binder<'_>,
        scope: &TableScope<'_>,
    ) -> Result<Vec<SortKey>> {
        let Some(order_by) = order_by else { return Ok(Vec::new()) };
        let ast::OrderByKind::Expressions(list) = &order_by.kind else {
            return Err(beyond("ORDER BY ALL"));
        };
        let mut keys = Vec::with_capacity(list.len());
        for item in list {
            if item.with_fill.is_some() {
                return Err(beyond("WITH FILL"));
            }
            let expr = self.sort_expression(&item.expr, projection, binder, scope)?;
            let descending = item.options.asc == Some(false);
            let nulls_first = item.options.nulls_first.unwrap_or(descending);
            // A constant orders nothing.
            if !matches!(expr, Expr::Const(_)) {
                keys.push(SortKey { expr, descending, nulls_first });
            }
        }
        Ok(keys)
    }

    /// A sort key: a number is an item's place, a name first an item's alias, all else an expression over the table.
    fn sort_expression(
        &self,
        e: &ast::Expr,
        projection: &[ast::SelectItem],
        binder: &mut Binder<'_>,
        scope: &TableScope<'_>,
    ) -> Result<Expr> {
        match e {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(_) if binder.is_lifted() => {
                    return Err(beyond("a literal in ORDER BY"));
                }
                ast::Value::Number(number, _) => {
                    let out = || {
                        let error = SqlError::new(
                            SqlState::INVALID_COLUMN_REFERENCE,
                            format!("ORDER BY position {number} is not in select list"),
                        );
                        self.source.place(error, value.span)
                    };
                    let place: usize = number.parse().map_err(|_| out())?;
                    return nth_item(projection, place, binder, scope)
                        .transpose()
                        .unwrap_or_else(|| Err(out()));
                }
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "non-integer constant in ORDER BY",
                    ));
                }
            },
            ast::Expr::Identifier(name) => {
                let name = ident(name);
                for item in projection {
                    if let ast::SelectItem::ExprWithAlias { expr, alias } = item
                        && ident(alias) == name
                    {
                        return Ok(binder.output(expr, scope)?.0);
                    }
                }
            }
            _ => {}
        }
        Ok(binder.output(e, scope)?.0)
    }
}

/// The expression of the n-th output column, counted from 1, with stars spread out.
fn nth_item(
    projection: &[ast::SelectItem],
    place: usize,
    binder: &mut Binder<'_>,
    scope: &TableScope<'_>,
) -> Result<Option<Expr>> {
    let width = scope.table.columns.len();
    let mut at = 1;
    for item in projection {
        match item {
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => {
                if place >= at && place < at + width {
                    return Ok(Some(Expr::Column(place - at)));
                }
                at += width;
            }
            ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => {
                if at == place {
                    return Ok(Some(binder.output(e, scope)?.0));
                }
                at += 1;
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// What to order by so that the first row has the only value asked for: `min` or `max` of a column without NULLs.
pub(super) fn extreme_key(table: &TableDef, aggregates: &[Aggregate]) -> Option<Vec<SortKey>> {
    let [one] = aggregates else { return None };
    let (column, descending) = one.extreme_of_column()?;
    table.columns.get(column).filter(|def| def.not_null)?;
    Some(vec![SortKey { expr: Expr::Column(column), descending, nulls_first: descending }])
}

/// The index whose order serves the sort keys: they are its leading columns, all one way. Columns that the
/// condition makes equal to one value order nothing, in the index as among the keys.
pub(super) fn wanted_order(
    table: &TableDef,
    indexes: &UsableIndexes<'_>,
    sort: &[SortKey],
    condition: Option<&Expr>,
) -> Option<Ordered> {
    if sort.is_empty() {
        return None;
    }
    let fixed = access::fixed_columns(condition);
    let is_fixed = |expr: &Expr| matches!(expr, Expr::Column(column) if fixed.contains(column));
    let keys: Vec<&SortKey> = sort.iter().filter(|key| !is_fixed(&key.expr)).collect();
    indexes.of(table).find_map(|index| {
        let mut direction = None;
        let mut columns = index.columns.iter().filter(|column| !fixed.contains(&column.column));
        for key in &keys {
            let Some(column) = columns.next() else {
                // Beyond a whole unique key nothing is left to order.
                if index.unique && no_nulls(table, index) {
                    break;
                }
                return None;
            };
            if key.expr != Expr::Column(column.column) {
                return None;
            }
            let same = key.descending == column.order.descending;
            let nullable = !table.columns[column.column].not_null;
            if nullable && (key.nulls_first == column.order.nulls_first) != same {
                return None;
            }
            let way = if same { Direction::Forward } else { Direction::Backward };
            if *direction.get_or_insert(way) != way {
                return None;
            }
        }
        direction.map(|direction| Ordered { index: Arc::clone(index), direction })
    })
}

fn no_nulls(table: &TableDef, index: &IndexDef) -> bool {
    index.columns.iter().all(|column| table.columns[column.column].not_null)
}
