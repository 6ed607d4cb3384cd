//! Scalar subqueries that aggregate the rows of a key, computed once for all keys.
//!
//! `x < (SELECT avg(y) FROM t WHERE t.k = o.k)` reads all of `t` for each row of `o` if no index of
//! `t` has `k`. So the subquery becomes an item of FROM, grouped by `k` and left-joined. A key
//! without rows has NULL, as an aggregate of no rows has, and a count of 0.
//!
//! This changes the tree before it is planned. A subquery whose table is found by the key stays:
//! it reads only rows that are asked for.

use std::mem;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;

use super::from::slots_of_item;
use super::node::SlotKind;
use super::slot_set::SlotSet;
use crate::Value;
use crate::analyze::tree::{
    AggregateCall, AggregateFunction, Body, Distinct, FromItem, Grouping, Join, JoinKind, Query,
    Regression, Select, Slot, Subquery, SubqueryKind, column, slot_of,
};
use crate::error::Result;
use crate::expr::{Compare, Expr};
use crate::plan::access::{all_of, conjuncts};

/// Makes joins of what can be computed once for all keys.
pub(super) fn decorrelate(query: &mut Query, slots: &mut Vec<SlotKind>) -> Result<()> {
    if !query.locks.is_empty() {
        return Ok(());
    }
    match &mut query.body {
        Body::Select(select) => of_select(select, slots),
        Body::SetOperation(operation) => {
            decorrelate(&mut operation.left, slots)?;
            decorrelate(&mut operation.right, slots)
        }
        Body::Values(_) => Ok(()),
    }
}

fn of_select(select: &mut Select, slots: &mut Vec<SlotKind>) -> Result<()> {
    select.from.iter_mut().try_for_each(|item| of_item(item, slots))?;
    let Some(condition) = select.condition.as_ref().filter(|e| has_query(e)) else {
        return Ok(());
    };
    let mut list = conjuncts(Some(condition)).to_vec();
    for conjunct in &mut list {
        let inside = mem::replace(conjunct, Expr::NULL);
        *conjunct = within_queries(inside, slots)?;
    }
    if !list.iter().any(has_scalar) || finds_one_row(select) {
        select.condition = all_of(list);
        return Ok(());
    }
    let mut own = SlotSet::default();
    select.from.iter().for_each(|item| own.add(&slots_of_item(item)));
    let mut joins = Joins { own, slots, made: Vec::new() };
    let mut changed = Vec::with_capacity(list.len());
    for conjunct in list {
        changed.push(joins.replace(conjunct)?);
    }
    let made = joins.made;
    select.condition = all_of(changed);
    let left_join = |left, (right, on)| {
        FromItem::Join(Box::new(Join { kind: JoinKind::Left, left, right, on: all_of(on) }))
    };
    if let Some(items) = joined(mem::take(&mut select.from)) {
        select.from.push(made.into_iter().fold(items, left_join));
    }
    Ok(())
}

fn of_item(item: &mut FromItem, slots: &mut Vec<SlotKind>) -> Result<()> {
    match item {
        FromItem::Subquery { query, .. } => decorrelate(query, slots),
        FromItem::Join(join) => {
            of_item(&mut join.left, slots)?;
            of_item(&mut join.right, slots)
        }
        _ => Ok(()),
    }
}

fn has_query(e: &Expr) -> bool {
    let mut found = false;
    e.walk(&mut |part| found |= matches!(part, Expr::Subquery(_)));
    found
}

/// A condition with the same done in the queries of EXISTS and IN.
fn within_queries(e: Expr, slots: &mut Vec<SlotKind>) -> Result<Expr> {
    match e {
        Expr::Not(inner) => Ok(Expr::Not(Box::new(within_queries(*inner, slots)?))),
        Expr::Subquery(mut subquery) if has_scalar_inside(&subquery) => {
            let mut query = Query::clone(&subquery.query);
            decorrelate(&mut query, slots)?;
            subquery.query = Arc::new(query);
            Ok(Expr::Subquery(subquery))
        }
        other => Ok(other),
    }
}

/// Whether a subquery, which is none itself, has a scalar subquery inside.
fn has_scalar_inside(subquery: &Subquery) -> bool {
    let mut found = false;
    subquery.query.walk(&mut |e| found |= is_scalar(e));
    found && subquery.kind != SubqueryKind::Scalar
}

fn is_scalar(e: &Expr) -> bool {
    matches!(e, Expr::Subquery(subquery) if subquery.kind == SubqueryKind::Scalar)
}

fn has_scalar(e: &Expr) -> bool {
    let mut found = false;
    e.walk(&mut |part| found |= is_scalar(part));
    found
}

/// The items of a FROM as one.
fn joined(items: Vec<FromItem>) -> Option<FromItem> {
    let join = |left, right| {
        FromItem::Join(Box::new(Join { kind: JoinKind::Inner, left, right, on: None }))
    };
    items.into_iter().reduce(join)
}

/// Whether a condition fixes a row of one of the tables: then the subquery runs few times.
fn finds_one_row(select: &Select) -> bool {
    select.from.iter().any(|item| {
        let FromItem::Table { slot, table, .. } = item else { return false };
        let is_fixed = |place: usize| {
            conjuncts(select.condition.as_ref()).iter().any(|conjunct| match conjunct {
                Expr::Compare(Compare::Eq, pair) => {
                    let is_column = |e: &Expr| *e == Expr::Column(column(*slot, place));
                    let is_constant = |e: &Expr| e.is_fixed_by(&|_| false);
                    is_column(&pair.0) && is_constant(&pair.1)
                        || is_column(&pair.1) && is_constant(&pair.0)
                }
                _ => false,
            })
        };
        let mut unique = table.indexes.iter().filter(|index| index.unique);
        unique.any(|index| index.columns.iter().all(|key| is_fixed(key.column)))
    })
}

/// The joins that a SELECT gets.
struct Joins<'s> {
    /// The slots of its FROM.
    own: SlotSet,
    slots: &'s mut Vec<SlotKind>,
    made: Vec<(FromItem, Vec<Expr>)>,
}

/// What a subquery is when it is computed once.
struct Grouped {
    query: Query,
    /// Its keys, then its aggregates.
    width: usize,
    /// What the keys are compared with.
    outer: Vec<Expr>,
}

impl Joins<'_> {
    /// A condition with columns of new items in place of subqueries. What is computed only under a
    /// condition stays.
    fn replace(&mut self, e: Expr) -> Result<Expr> {
        match &e {
            Expr::Case(..) | Expr::Coalesce(_) | Expr::And(_) | Expr::Or(_) => Ok(e),
            Expr::Subquery(subquery) if subquery.kind == SubqueryKind::Scalar => {
                Ok(self.column_for(&subquery.query)?.unwrap_or(e))
            }
            Expr::Subquery(_) => Ok(e),
            _ => e.map_parts(&mut |part| self.replace(part)),
        }
    }

    /// The expression that stands for a subquery, whose item is noted; `None` if it must stay.
    fn column_for(&mut self, query: &Query) -> Result<Option<Expr>> {
        let Body::Select(select) = &query.body else { return Ok(None) };
        let Some(grouping) = &select.grouping else { return Ok(None) };
        let [target] = select.targets.as_slice() else { return Ok(None) };
        if !is_one_aggregate(query, select, grouping)
            || !is_over(target, &SlotSet::one(grouping.slot))
        {
            return Ok(None);
        }
        let slot = |more: usize| u16::try_from(self.slots.len() + more).ok().map(Slot);
        let (Some(group_slot), Some(slot)) = (slot(0), slot(1)) else { return Ok(None) };
        let Some(grouped) = self.grouped(query, select, grouping, group_slot) else {
            return Ok(None);
        };
        let Grouped { query, width, outer } = grouped;
        let keys = outer.len();
        let of_item = |place: usize| Expr::Column(column(slot, place));
        let value = with_columns(target.clone(), &|number| {
            let place = slot_of(number).1;
            let found = of_item(keys + place);
            let counts = grouping.aggregates.get(place).is_some_and(|call| is_count(call.function));
            if counts { zero_if_null(found) } else { found }
        })?;
        let equal = |(place, outer)| Expr::Compare(Compare::Eq, Box::new((of_item(place), outer)));
        let on = outer.into_iter().enumerate().map(equal).collect();
        self.slots.extend([SlotKind::Computed(width), SlotKind::Computed(width)]);
        let alias = "subquery".to_owned();
        let item = FromItem::Subquery { slot, query: Box::new(query), alias };
        self.made.push((item, on));
        Ok(Some(value))
    }

    /// The query with the conditions that tie it to the SELECT as keys of groups.
    fn grouped(
        &self,
        query: &Query,
        select: &Select,
        grouping: &Grouping,
        slot: Slot,
    ) -> Option<Grouped> {
        let mut inner = SlotSet::default();
        select.from.iter().for_each(|item| inner.add(&slots_of_item(item)));
        let (mut keys, mut outer, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for conjunct in conjuncts(select.condition.as_ref()) {
            if is_over(conjunct, &inner) {
                rest.push(conjunct.clone());
                continue;
            }
            let Expr::Compare(Compare::Eq, pair) = conjunct else { return None };
            let (key, other) = match (is_over(&pair.0, &inner), is_over(&pair.1, &inner)) {
                (true, false) => (&pair.0, &pair.1),
                (false, true) => (&pair.1, &pair.0),
                _ => return None,
            };
            if !is_over(other, &self.own) {
                return None;
            }
            keys.push(key.clone());
            outer.push(other.clone());
        }
        // Other arguments might fail for rows of keys that the query does not ask for.
        let is_safe = |call: &AggregateCall| {
            call.args.iter().all(|arg| matches!(arg, Expr::Column(_) | Expr::Const(_)))
                && call.order_by.is_empty()
                && call.filter.is_none()
                && call.args.iter().all(|arg| is_over(arg, &inner))
        };
        let are_safe = grouping.aggregates.iter().all(is_safe);
        if keys.is_empty() || !are_safe || select.from.iter().any(|item| !is_simple(item, &keys)) {
            return None;
        }
        let width = keys.len() + grouping.aggregates.len();
        let grouping = Grouping { slot, keys, ..grouping.clone() };
        let select = Select {
            condition: all_of(rest),
            grouping: Some(grouping),
            targets: (0..width).map(|place| Expr::Column(column(slot, place))).collect(),
            ..select.clone()
        };
        let body = Body::Select(Box::new(select));
        let query = Query { body, order_by: Vec::new(), columns: Vec::new(), ..query.clone() };
        Some(Grouped { query, width, outer })
    }
}

/// Whether a query is a list of aggregates of all its rows, and nothing is done with the result.
fn is_one_aggregate(query: &Query, select: &Select, grouping: &Grouping) -> bool {
    query.ctes.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.is_empty()
        && select.having.is_none()
        && select.windows.is_empty()
        && matches!(select.distinct, Distinct::No)
        && grouping.keys.is_empty()
        && grouping.sets.is_none()
        && grouping.grouping.is_empty()
        // Without rows it is neither NULL nor a constant.
        && !grouping
            .aggregates
            .iter()
            .any(|call| matches!(call.function, AggregateFunction::Hypothetical(_)))
}

/// An expression with others in place of its columns.
fn with_columns(e: Expr, replace: &dyn Fn(usize) -> Expr) -> Result<Expr> {
    match e {
        Expr::Column(number) => Ok(replace(number)),
        e => e.map_parts(&mut |part| with_columns(part, replace)),
    }
}

/// Whether an expression is the same for all rows that agree in columns of these slots. One with a
/// query inside is taken for one that is not.
fn is_over(e: &Expr, slots: &SlotSet) -> bool {
    !has_query(e) && e.is_fixed_by(&|column| slots.contains(slot_of(column).0))
}

/// Whether an item of the subquery is a table that none of the keys finds rows of.
fn is_simple(item: &FromItem, keys: &[Expr]) -> bool {
    match item {
        FromItem::Table { slot, table, .. } => !keys.iter().any(|key| leads(key, *slot, table)),
        FromItem::Join(join) => {
            join.kind == JoinKind::Inner
                && join.on.is_none()
                && is_simple(&join.left, keys)
                && is_simple(&join.right, keys)
        }
        _ => false,
    }
}

/// Whether an index of the table begins with a key.
fn leads(key: &Expr, slot: Slot, table: &TableDef) -> bool {
    table.indexes.iter().any(|index| {
        let first = index.columns.first();
        first.is_some_and(|first| *key == Expr::Column(column(slot, first.column)))
    })
}

/// Whether an aggregate of no rows is 0.
fn is_count(function: AggregateFunction) -> bool {
    matches!(
        function,
        AggregateFunction::Count
            | AggregateFunction::CountRows
            | AggregateFunction::Regression(Regression::Count)
    )
}

fn zero_if_null(count: Expr) -> Expr {
    Expr::Coalesce(vec![count, Expr::Const(Value::Int8(0))])
}
