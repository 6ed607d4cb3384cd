//! ORDER BY, and the index whose order makes it needless.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;
use millpond_syntax::tree::{
    self, Field, Name, Node, ResTarget, SortBy, SortByDir, SortByNulls, Value,
};
use millpond_types::key::{KeyOrder, encode_sort_column, encode_sort_int};

use super::access::{KnownColumns, Lookup};
use super::output::{star_of, tables_of_star};
use super::scope::FromScope;
use super::{Aggregate, Planner, UsableIndexes, access};
use crate::Datum;
use crate::analyze::column_name;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, beyond};
use crate::expr::{Env, Expr, Val};

/// One key of an ORDER BY that has to be sorted by.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

impl SortKey {
    /// Appends the key of a row: keys compare bytewise as the rows do.
    #[inline]
    pub(crate) fn push(&self, env: &Env<'_>, key: &mut Vec<u8>) -> Result<()> {
        match self.expr.int(env) {
            Some(int) => encode_sort_int(int, self.order(), key),
            None => self.push_value(&self.expr.operand(env, &mut Val::null())?, key),
        }
        Ok(())
    }

    /// Whether it is a column: to compute it can't fail.
    pub(crate) fn is_column(&self) -> bool {
        matches!(self.expr, Expr::Column(_))
    }

    #[inline]
    fn order(&self) -> KeyOrder {
        KeyOrder { descending: self.descending, nulls_first: self.nulls_first }
    }

    /// The same for a value that stands for the expression's.
    #[inline]
    pub(crate) fn push_value(&self, value: &Datum<'_>, key: &mut Vec<u8>) {
        encode_sort_column(value, self.order(), key);
    }
}

/// An index that gives an order, and which way to read it.
#[derive(Debug, Clone)]
pub(crate) struct Ordered<'t> {
    pub(crate) index: &'t Arc<IndexDef>,
    pub(crate) direction: Direction,
}

impl Planner<'_> {
    pub(super) fn sort_keys(
        &self,
        list: &[SortBy],
        targets: &[ResTarget],
        binder: &mut Binder<'_>,
        scope: &FromScope<'_>,
    ) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(list.len());
        for item in list {
            let expr = self.sort_expression(&item.node, targets, binder, scope)?;
            let descending = match item.sortby_dir {
                SortByDir::Default | SortByDir::Asc => false,
                SortByDir::Desc => true,
                SortByDir::Using(_) => return Err(beyond("ORDER BY USING")),
            };
            let nulls_first = match item.sortby_nulls {
                SortByNulls::Default => descending,
                SortByNulls::First => true,
                SortByNulls::Last => false,
            };
            // A constant orders nothing.
            if !matches!(expr, Expr::Const(_)) {
                keys.push(SortKey { expr, descending, nulls_first });
            }
        }
        Ok(keys)
    }

    /// A sort key. A number is an item's place. A name is that of an item's column, if one is
    /// called so. All else is an expression over the tables.
    fn sort_expression(
        &self,
        e: &tree::Expr,
        targets: &[ResTarget],
        binder: &mut Binder<'_>,
        scope: &FromScope<'_>,
    ) -> Result<Expr> {
        match &e.node {
            Node::ParamRef(_) if binder.is_lifted() => {
                return Err(beyond("a literal in ORDER BY"));
            }
            Node::AConst(Value::Integer(number)) => {
                let nth = match usize::try_from(*number) {
                    Ok(place) => nth_item(targets, place, binder, scope)?,
                    Err(_) => None,
                };
                return nth.ok_or_else(|| {
                    let what = format!("ORDER BY position {number} is not in select list");
                    let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, what);
                    self.source.place(error, e.location)
                });
            }
            Node::AConst(_) => {
                let what = "non-integer constant in ORDER BY";
                let error = SqlError::new(SqlState::SYNTAX_ERROR, what);
                return Err(self.source.place(error, e.location));
            }
            Node::ColumnRef(fields) => {
                let [Field::String(name)] = fields.as_slice() else {
                    return Ok(binder.output(e, scope)?.0);
                };
                let mut named = targets.iter().filter_map(|target| value_named(target, name));
                if let Some(first) = named.next() {
                    if named.next().is_some() || targets.iter().any(is_star) {
                        return Err(beyond("a name that several columns may have in ORDER BY"));
                    }
                    return Ok(binder.output(first, scope)?.0);
                }
            }
            _ => {}
        }
        Ok(binder.output(e, scope)?.0)
    }
}

fn is_star(target: &ResTarget) -> bool {
    target.val.as_ref().is_some_and(|e| star_of(e).is_some())
}

/// The value of an item, if its column has this name.
fn value_named<'t>(target: &'t ResTarget, name: &Name) -> Option<&'t tree::Expr> {
    let value = target.val.as_ref()?;
    let is_named = match &target.name {
        Some(alias) => alias == name,
        None => !is_star(target) && column_name(value) == *name,
    };
    is_named.then_some(value)
}

/// The expression of the n-th output column, counted from 1, with stars spread out.
fn nth_item(
    targets: &[ResTarget],
    place: usize,
    binder: &mut Binder<'_>,
    scope: &FromScope<'_>,
) -> Result<Option<Expr>> {
    let mut at = 1;
    for target in targets {
        let Some(e) = &target.val else { return Ok(None) };
        let Some(star) = star_of(e) else {
            if at == place {
                return Ok(Some(binder.output(e, scope)?.0));
            }
            at += 1;
            continue;
        };
        for from in tables_of_star(star, e.location, Some(scope), &binder.source)? {
            let nth = place.checked_sub(at).and_then(|n| from.columns().nth(n));
            if let Some(column) = nth {
                return Ok(Some(Expr::Column(column)));
            }
            at += from.table.columns.len();
        }
    }
    Ok(None)
}

/// What to order by so that the first row has the only value asked for: `min` or `max` of a column
/// without NULLs. An error for an indexed column with NULLs, and for several columns of indexes:
/// the planner of nodes leaves NULLs out, and reads several indexes.
pub(super) fn extreme_key(
    table: &TableDef,
    aggregates: &[Aggregate],
) -> Result<Option<Vec<SortKey>>> {
    let extremes = aggregates.iter().map(Aggregate::extreme_of_column);
    let Some(extremes) = extremes.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let has_nulls = |column: usize| table.columns.get(column).is_none_or(|def| !def.not_null);
    if let [(column, descending)] = extremes[..]
        && !has_nulls(column)
    {
        let expr = Expr::Column(column);
        return Ok(Some(vec![SortKey { expr, descending, nulls_first: descending }]));
    }
    let is_indexed = |(column, _): &(usize, bool)| {
        let has_column = |index: &Arc<IndexDef>| index.columns.iter().any(|c| c.column == *column);
        table.indexes.iter().any(has_column)
    };
    match extremes.iter().all(is_indexed) {
        true => Err(beyond("the first rows of several orders, or after NULLs")),
        false => Ok(None),
    }
}

/// The indexes whose order serves sort keys over one table: these are an index's leading columns,
/// all one way. Columns that conditions make equal to one value order nothing, in an index as
/// among the keys. Where a condition leaves out NULLs, it does not matter at which end they are.
pub(super) fn orders_of_indexes<'t>(
    lookup: &Lookup<'t, '_>,
    indexes: &'t UsableIndexes<'_>,
    sort: &[SortKey],
    conjuncts: &[&Expr],
) -> Vec<Ordered<'t>> {
    if sort.is_empty() {
        return Vec::new();
    }
    let known = access::known_columns(lookup, conjuncts);
    let is_fixed =
        |key: &SortKey| lookup.own_column(&key.expr).is_some_and(|own| known.fixed.contains(&own));
    let keys: Vec<&SortKey> = sort.iter().filter(|key| !is_fixed(key)).collect();
    let ordered = |index: &'t Arc<IndexDef>| {
        let direction = direction_for(lookup, index, &known, &keys)?;
        Some(Ordered { index, direction })
    };
    indexes.of(lookup.table).filter_map(ordered).collect()
}

/// Which way to read an index so that rows are in the order of the keys; `None` if neither way
/// gives it.
fn direction_for(
    lookup: &Lookup<'_, '_>,
    index: &IndexDef,
    known: &KnownColumns,
    keys: &[&SortKey],
) -> Option<Direction> {
    let table = lookup.table;
    let mut direction = None;
    let mut columns = index.columns.iter().filter(|column| !known.fixed.contains(&column.column));
    for key in keys {
        let Some(column) = columns.next() else {
            // Beyond a whole unique key nothing is left to order.
            if index.unique && no_nulls(table, index) {
                break;
            }
            return None;
        };
        if lookup.own_column(&key.expr) != Some(column.column) {
            return None;
        }
        let same = key.descending == column.order.descending;
        let place = column.column;
        let nullable = !table.columns[place].not_null && !known.not_null.contains(&place);
        if nullable && (key.nulls_first == column.order.nulls_first) != same {
            return None;
        }
        let way = if same { Direction::Forward } else { Direction::Backward };
        if *direction.get_or_insert(way) != way {
            return None;
        }
    }
    direction
}

fn no_nulls(table: &TableDef, index: &IndexDef) -> bool {
    index.columns.iter().all(|column| table.columns[column.column].not_null)
}
