//! Scan of a system relation: its rows are computed, those of a key at once.

use std::cmp::Ordering;

use millpond_engine::table::Direction;

use super::{Context, SlotRow};
use crate::convert::would_block;
use crate::error::{Result, SqlError};
use crate::exec::key;
use crate::plan::query::node::Scan;
use crate::plan::{Access, IndexRange, KeyBounds, KeyList, KeyPart, Matches};
use crate::system_relations::{Source, View, source_of};
use crate::{Datum, Value};

/// A scan in execution: the rows that are left, once they have been computed.
#[derive(Default)]
pub(super) struct SystemScanState {
    rows: Option<std::vec::IntoIter<Vec<Value>>>,
}

/// What rows are wanted: the values of columns, and the ends of a range of another one.
struct Wanted {
    /// A NULL is wanted where the column is NULL.
    equal: Vec<(usize, Value)>,
    ends: Vec<RangeEnd>,
    /// A column that is not NULL.
    not_null: Option<usize>,
}

/// An end of a range: the column, the value, whether it is the lower one and whether it belongs to
/// the range.
#[derive(Clone)]
struct RangeEnd {
    column: usize,
    value: Value,
    lower: bool,
    inclusive: bool,
}

impl Wanted {
    fn holds(&self, row: &[Value]) -> bool {
        let equal = |(column, value): &(usize, Value)| {
            row.get(*column).is_some_and(|own| match value.is_null() {
                true => own.is_null(),
                false => order(own, value) == Some(Ordering::Equal),
            })
        };
        let within = |end: &RangeEnd| {
            let own = row.get(end.column).and_then(|own| order(own, &end.value));
            match own {
                Some(Ordering::Equal) => end.inclusive,
                Some(Ordering::Less) => !end.lower,
                Some(Ordering::Greater) => end.lower,
                None => false,
            }
        };
        let is_null = |column| row.get(column).is_none_or(Value::is_null);
        self.equal.iter().all(equal)
            && self.ends.iter().all(within)
            && !self.not_null.is_some_and(is_null)
    }
}

impl SystemScanState {
    pub(super) fn rescan(&mut self) {
        self.rows = None;
    }

    pub(super) fn next(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<bool> {
        if self.rows.is_none() {
            self.rows = Some(rows(scan, cx)?.into_iter());
        }
        while let Some(row) = self.rows.as_mut().and_then(Iterator::next) {
            cx.work().count_row()?;
            cx.set(scan.slot, SlotRow::Values(row))?;
            if cx.holds(scan.filter.as_ref())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// All rows of the relation of a number.
pub(super) fn all_rows(oid: u32, cx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    computed(readable(oid, cx)?, &[], cx)
}

/// The relation of a number, if it can be read here.
fn readable(oid: u32, cx: &Context<'_>) -> Result<&'static View> {
    // Files may have to be opened, for their size.
    if !cx.work().may_wait {
        return Err(would_block());
    }
    source_of(oid).ok_or_else(|| SqlError::internal("a system relation without a view"))
}

/// The rows that the access gives, in its order.
fn rows(scan: &Scan, cx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let view = readable(scan.table.oid, cx)?;
    match &scan.access {
        Access::Nothing => Ok(Vec::new()),
        Access::Heap => computed(view, &[], cx),
        Access::Point { index, key } => {
            let columns: Vec<usize> = index.columns.iter().map(|column| column.column).collect();
            match equal_to(&columns, key, cx)? {
                Some(equal) => {
                    rows_with(view, &Wanted { equal, ends: Vec::new(), not_null: None }, cx)
                }
                None => Ok(Vec::new()),
            }
        }
        Access::Range(range) => rows_of_range(view, range, cx),
        Access::Tids(_) => Err(SqlError::internal("a system relation has no places")),
    }
}

fn rows_of_range(view: &View, range: &IndexRange, cx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let columns: Vec<usize> = range.index.columns.iter().map(|column| column.column).collect();
    let mut wanted = Vec::new();
    for bounds in &range.any_of {
        wanted_of(&columns, bounds, cx, &mut wanted)?;
    }
    let mut rows = Vec::new();
    if range.any_of.len() > 1 {
        // A row may be within several bounds: all are computed, and each is looked at once.
        rows = computed(view, &[], cx)?;
        rows.retain(|row| wanted.iter().any(|wanted| wanted.holds(row)));
    } else {
        for wanted in &wanted {
            rows.extend(rows_with(view, wanted, cx)?);
        }
    }
    rows.sort_by(|a, b| compare_by(&columns, a, b));
    if range.direction == Direction::Backward {
        rows.reverse();
    }
    Ok(rows)
}

/// Adds what rows within bounds have: nothing if no row can be within them, one for each value of a
/// list.
fn wanted_of(
    columns: &[usize],
    bounds: &KeyBounds,
    cx: &Context<'_>,
    into: &mut Vec<Wanted>,
) -> Result<()> {
    let Some(equal) = equal_to(columns, &bounds.equal, cx)? else { return Ok(()) };
    let mut rest = columns.iter().copied().skip(equal.len());
    let mut keys = vec![equal];
    if let Some(list) = &bounds.list
        && let Some(column) = rest.next()
    {
        let then: Vec<usize> = rest.by_ref().take(bounds.then.len()).collect();
        let Some(then) = equal_to(&then, &bounds.then, cx)? else { return Ok(()) };
        let key = |value| {
            let first = keys.iter().flatten().cloned();
            first.chain([(column, value)]).chain(then.iter().cloned()).collect()
        };
        keys = listed(list, cx)?.into_iter().map(key).collect();
    }
    let next = rest.next();
    let not_null = next.filter(|_| bounds.not_null);
    if let Some(ends) = ends(next, bounds, cx)? {
        into.extend(keys.into_iter().map(|equal| Wanted { equal, ends: ends.clone(), not_null }));
    }
    Ok(())
}

/// The values that key columns must have; `None` if no row can have them.
fn equal_to(
    columns: &[usize],
    parts: &[KeyPart],
    cx: &Context<'_>,
) -> Result<Option<Vec<(usize, Value)>>> {
    let mut held = key::KeyVals::new();
    let key = key::exact(parts, &cx.env(), &mut held)?;
    let pair = |(column, datum): (&usize, &Datum<'_>)| (*column, datum.to_value());
    Ok(key.map(|key| columns.iter().zip(&key).map(pair).collect()))
}

/// The different values of a list.
fn listed(list: &KeyList, cx: &Context<'_>) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    key::each_value(list, &cx.env(), &mut |value| {
        values.push(value.to_value());
        Ok(())
    })?;
    values.sort_by(|a, b| a.as_datum().sort_cmp(&b.as_datum()));
    values.dedup_by(|a, b| a.as_datum().sort_cmp(&b.as_datum()).is_eq());
    Ok(values)
}

/// The ends of a range; `None` if no row can be within them.
fn ends(
    column: Option<usize>,
    bounds: &KeyBounds,
    cx: &Context<'_>,
) -> Result<Option<Vec<RangeEnd>>> {
    let mut ends = Vec::new();
    for (end, lower) in [(&bounds.from, true), (&bounds.to, false)] {
        let (Some((part, inclusive)), Some(column)) = (end, column) else { continue };
        // The filter decides alone.
        if part.matches == Matches::Cast {
            continue;
        }
        let value = cx.value(&part.expr)?;
        if value.is_null() {
            return Ok(None);
        }
        ends.push(RangeEnd { column, value, lower, inclusive: *inclusive });
    }
    Ok(Some(ends))
}

/// The rows that are wanted.
fn rows_with(view: &View, wanted: &Wanted, cx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let mut rows = computed(view, &wanted.equal, cx)?;
    rows.retain(|row| wanted.holds(row));
    Ok(rows)
}

/// All that the relation computes for these values, which may be more than the rows that have them.
fn computed(view: &View, wanted: &[(usize, Value)], cx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let work = cx.work();
    let host = work.host.ok_or_else(|| SqlError::internal("a system relation without a host"))?;
    let catalog = work.session()?.catalog();
    let named = |(column, value): &(usize, Value)| {
        let named = view.columns.get(*column).filter(|_| !value.is_null());
        named.map(|(name, _)| (*name, value.clone()))
    };
    let wanted: Vec<(&str, Value)> = wanted.iter().filter_map(named).collect();
    let rows = (view.rows)(&Source::new(&catalog, host, &wanted));
    let row = |cells: Vec<_>| {
        let columns = view.columns.iter().map(|(_, kind)| *kind);
        columns.zip(cells).map(|(kind, cell)| kind.value(cell)).collect()
    };
    rows.into_iter().map(row).collect()
}

/// How two values compare: of one type, or integers. `None` with a NULL.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    if a.is_null() || b.is_null() {
        return None;
    }
    match (a.as_datum().as_i64(), b.as_datum().as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.sql_cmp(b),
    }
}

/// The order of an index: NULL comes last.
fn compare_by(columns: &[usize], a: &[Value], b: &[Value]) -> Ordering {
    for column in columns {
        let (Some(a), Some(b)) = (a.get(*column), b.get(*column)) else { continue };
        let found = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => order(a, b).unwrap_or(Ordering::Equal),
        };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}
