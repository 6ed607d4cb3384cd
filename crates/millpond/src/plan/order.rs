//! ORDER BY, and the index whose order makes it needless.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;
use millpond_engine::types::key::{KeyOrder, encode_sort_column};
use sqlparser::ast;

use super::access::Lookup;
use super::output::tables_of_star;
use super::scope::FromScope;
use super::{Aggregate, Planner, UsableIndexes, access};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, beyond};
use crate::expr::{Env, Expr};
use crate::parse::ident;

/// One key of an ORDER BY that has to be sorted by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortKey {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

impl SortKey {
    /// Appends the key of a row: keys compare bytewise as the rows do.
    #[inline]
    pub(crate) fn push(&self, env: &Env<'_>, key: &mut Vec<u8>) -> Result<()> {
        let order = KeyOrder { descending: self.descending, nulls_first: self.nulls_first };
        encode_sort_column(&self.expr.eval(env)?.datum(), order, key);
        Ok(())
    }
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
        scope: &FromScope<'_>,
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

    /// A sort key: a number is an item's place, a name first an item's alias, all else an
    /// expression over the tables.
    fn sort_expression(
        &self,
        e: &ast::Expr,
        projection: &[ast::SelectItem],
        binder: &mut Binder<'_>,
        scope: &FromScope<'_>,
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
                let is_alias = |item: &&ast::SelectItem| matches!(item, ast::SelectItem::ExprWithAlias { alias, .. } if ident(alias) == name);
                if projection.iter().filter(is_alias).count() > 1 {
                    return Err(beyond("a name of several columns in ORDER BY"));
                }
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
    scope: &FromScope<'_>,
) -> Result<Option<Expr>> {
    let mut at = 1;
    for item in projection {
        match item {
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => {
                for from in tables_of_star(item, Some(scope), &binder.source)? {
                    let nth = place.checked_sub(at).and_then(|n| from.columns().nth(n));
                    if let Some(column) = nth {
                        return Ok(Some(Expr::Column(column)));
                    }
                    at += from.table.columns.len();
                }
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

/// What to order by so that the first row has the only value asked for: `min` or `max` of a column
/// without NULLs.
pub(super) fn extreme_key(table: &TableDef, aggregates: &[Aggregate]) -> Option<Vec<SortKey>> {
    let [one] = aggregates else { return None };
    let (column, descending) = one.extreme_of_column()?;
    table.columns.get(column).filter(|def| def.not_null)?;
    Some(vec![SortKey { expr: Expr::Column(column), descending, nulls_first: descending }])
}

/// The index whose order serves sort keys over one table: they are its leading columns, all one
/// way. Columns that the condition makes equal to one value order nothing, in the index as among
/// the keys.
pub(super) fn wanted_order(
    lookup: &Lookup<'_>,
    indexes: &UsableIndexes<'_>,
    sort: &[SortKey],
    condition: Option<&Expr>,
) -> Option<Ordered> {
    if sort.is_empty() {
        return None;
    }
    let (table, fixed) = (lookup.table, access::fixed_columns(lookup, condition));
    let own = |key: &SortKey| lookup.own_column(&key.expr);
    let is_fixed = |key: &SortKey| own(key).is_some_and(|column| fixed.contains(&column));
    let keys: Vec<&SortKey> = sort.iter().filter(|key| !is_fixed(key)).collect();
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
            if own(key) != Some(column.column) {
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
