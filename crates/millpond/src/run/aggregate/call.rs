//! A call of an aggregate function over the rows of one group: FILTER, DISTINCT and ORDER BY around
//! what the function itself takes in.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::accumulator::{Accumulator, takes_null};
use crate::analyze::tree::{AggregateCall, AggregateFunction as F};
use crate::error::Result;
use crate::expr::{Expr, Val};
use crate::memory::{KeyOrder, bytes_of, compare_keys};
use crate::plan::SortKey;
use crate::run::{Context, datum_key};
use crate::{Datum, Value};

/// About what an entry of a hash table takes beside its key's bytes.
const BYTES_OF_ENTRY: usize = 48;

/// Sort keys and values.
type SortedRow = (Vec<Value>, Vec<Value>);

/// What a call has taken in.
pub(super) struct CallState {
    accumulator: Accumulator,
    /// Keys of the values that have been taken in, if equal ones are left out.
    seen: Option<HashSet<Box<[u8]>>>,
    /// Sort keys and values, if their order matters.
    rows: Vec<SortedRow>,
}

/// Whether the order of values changes the result.
fn needs_order(call: &AggregateCall) -> bool {
    let is_ordered =
        matches!(call.function, F::StringAgg | F::ArrayAgg | F::JsonList(_) | F::JsonObject(_));
    !call.order_by.is_empty() || (call.distinct && is_ordered)
}

fn is_ordered_set(function: F) -> bool {
    matches!(function, F::PercentileCont | F::PercentileDisc | F::Mode)
}

impl CallState {
    pub(super) fn new(call: &AggregateCall) -> Self {
        Self {
            accumulator: Accumulator::new(call.function),
            seen: call.distinct.then(HashSet::new),
            rows: Vec::new(),
        }
    }

    /// Takes the current row in. Says about how many bytes it has grown by.
    pub(super) fn add(&mut self, call: &AggregateCall, cx: &Context<'_>) -> Result<usize> {
        if !cx.holds(call.filter.as_ref())? {
            return Ok(0);
        }
        if is_ordered_set(call.function) {
            return self.add_sorted(call, cx);
        }
        let env = cx.env();
        let first = call.args.first().map(|arg| arg.eval(&env)).transpose()?;
        let second = call.args.get(1).map(|arg| arg.eval(&env)).transpose()?;
        let (first, second) = (datum(&first), datum(&second));
        if first.is_null() && !takes_null(call.function) {
            return Ok(0);
        }
        let mut grown = 0;
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            datum_key::push(&first, &mut key);
            datum_key::push(&second, &mut key);
            if seen.contains(key.as_slice()) {
                return Ok(0);
            }
            grown = key.len() + BYTES_OF_ENTRY;
            seen.insert(key.into());
        }
        if !needs_order(call) {
            return Ok(grown + self.accumulator.add(call.function, first, second)?);
        }
        let mut keys = Vec::with_capacity(call.order_by.len());
        cx.values(call.order_by.iter().map(|key| &key.expr), &mut keys)?;
        let values = vec![first.to_value(), second.to_value()];
        grown += bytes_of(&keys) + bytes_of(&values);
        self.rows.push((keys, values));
        Ok(grown)
    }

    /// An ordered-set aggregate takes its values in from its ORDER BY.
    fn add_sorted(&mut self, call: &AggregateCall, cx: &Context<'_>) -> Result<usize> {
        let mut keys = Vec::with_capacity(call.order_by.len());
        cx.values(call.order_by.iter().map(|key| &key.expr), &mut keys)?;
        if keys.first().is_none_or(Value::is_null) {
            return Ok(0);
        }
        let grown = bytes_of(&keys);
        self.rows.push((keys, Vec::new()));
        Ok(grown)
    }

    /// The result. `cx` has no row but may have outer ones.
    pub(super) fn finish(&mut self, call: &AggregateCall, cx: &Context<'_>) -> Result<Value> {
        let by_value = KeyOrder { descending: false, nulls_first: false };
        let order: Vec<KeyOrder> = call.order_by.iter().map(SortKey::order).collect();
        let mut rows = std::mem::take(&mut self.rows);
        sort_in_pieces(&mut rows, cx, &|(a_keys, a), (b_keys, b)| {
            let order = compare_keys(&order, a_keys, b_keys);
            if call.distinct { order.then_with(|| compare_keys(&[by_value], a, b)) } else { order }
        })?;
        let options = cx.format_options();
        if !is_ordered_set(call.function) {
            for (_, values) in &rows {
                cx.work().tick()?;
                let value = |i: usize| values.get(i).map_or(Datum::Null, Value::as_datum);
                self.accumulator.add(call.function, value(0), value(1))?;
            }
            return self.accumulator.finish(call.function, call.ty, Datum::Null, options);
        }
        for (keys, _) in &rows {
            cx.work().tick()?;
            let value = keys.first().map_or(Datum::Null, Value::as_datum);
            self.accumulator.add(call.function, value, Datum::Null)?;
        }
        let fraction = call.args.first().map(|arg: &Expr| cx.value(arg)).transpose()?;
        let fraction = fraction.unwrap_or_default();
        self.accumulator.finish(call.function, call.ty, fraction.as_datum(), options)
    }
}

/// A stable sort that looks between pieces whether it is to stop. Each longer piece is two that are
/// sorted, which the standard sort only merges.
fn sort_in_pieces(
    rows: &mut [SortedRow],
    cx: &Context<'_>,
    compare: &dyn Fn(&SortedRow, &SortedRow) -> Ordering,
) -> Result<()> {
    const FIRST_PIECE: usize = 4096;
    let mut length = FIRST_PIECE;
    loop {
        for piece in rows.chunks_mut(length) {
            cx.work().tick()?;
            piece.sort_by(compare);
        }
        if length >= rows.len() {
            return Ok(());
        }
        length *= 2;
    }
}

fn datum<'v>(value: &'v Option<Val<'_>>) -> Datum<'v> {
    value.as_ref().map_or(Datum::Null, Val::datum)
}
