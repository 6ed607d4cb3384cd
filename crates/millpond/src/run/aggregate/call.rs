//! A call of an aggregate function over the rows of one group: FILTER, DISTINCT and ORDER BY around
//! what the function itself takes in.

use millpond_engine::types::key::{KeyOrder, encode_sort_column};

use super::accumulator::{Accumulator, takes_null};
use crate::analyze::tree::{AggregateCall, AggregateFunction as F};
use crate::error::Result;
use crate::expr::{Env, Val};
use crate::memory::bytes_of;
use crate::run::datum_key::KeySet;
use crate::run::{Context, datum_key};
use crate::{Datum, Value};

/// About what an entry of a hash table takes beside its key's bytes.
const BYTES_OF_ENTRY: usize = 48;

/// A sort key, and values.
type SortedRow = (Vec<u8>, Vec<Value>);

/// What a call has taken in.
pub(super) struct CallState {
    accumulator: Accumulator,
    /// Keys of the values that have been taken in, if equal ones are left out.
    seen: Option<KeySet>,
    /// Values with their sort keys, if their order matters.
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
            seen: call.distinct.then(KeySet::default),
            rows: Vec::new(),
        }
    }

    /// Takes the current row in. Says about how many bytes it has grown by.
    pub(super) fn add(&mut self, call: &AggregateCall, cx: &Context<'_>) -> Result<usize> {
        if !cx.holds(call.filter.as_ref())? {
            return Ok(0);
        }
        let env = cx.env();
        if call.distinct || !call.order_by.is_empty() || call.args.len() > 1 {
            return self.add_any(call, &env);
        }
        match call.args.first() {
            None => self.accumulator.add(call.function, Datum::Null, Datum::Null),
            Some(arg) => self.accumulator.add(call.function, arg.eval(&env)?.datum(), Datum::Null),
        }
    }

    fn add_any(&mut self, call: &AggregateCall, env: &Env<'_>) -> Result<usize> {
        if is_ordered_set(call.function) {
            return self.add_sorted(call, env);
        }
        let first = call.args.first().map(|arg| arg.eval(env)).transpose()?;
        let second = call.args.get(1).map(|arg| arg.eval(env)).transpose()?;
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
        let mut key = Vec::new();
        for order in &call.order_by {
            order.push(env, &mut key)?;
        }
        if call.distinct {
            encode_sort_column(&first, KeyOrder::ASC, &mut key);
        }
        Ok(grown + self.keep(key, vec![first.to_value(), second.to_value()]))
    }

    /// An ordered-set aggregate takes its values in from its ORDER BY.
    fn add_sorted(&mut self, call: &AggregateCall, env: &Env<'_>) -> Result<usize> {
        let Some(by) = call.order_by.first() else { return Ok(0) };
        let value = by.expr.eval(env)?.into_value();
        if value.is_null() {
            return Ok(0);
        }
        let mut key = Vec::new();
        for order in &call.order_by {
            order.push(env, &mut key)?;
        }
        Ok(self.keep(key, vec![value]))
    }

    fn keep(&mut self, key: Vec<u8>, values: Vec<Value>) -> usize {
        let grown = size_of::<SortedRow>() + key.len() + bytes_of(&values);
        self.rows.push((key, values));
        grown
    }

    /// The result. `cx` has no row but may have outer ones.
    pub(super) fn finish(&mut self, call: &AggregateCall, cx: &Context<'_>) -> Result<Value> {
        let mut rows = std::mem::take(&mut self.rows);
        sort_in_pieces(&mut rows, cx)?;
        for (_, values) in &rows {
            cx.work().tick()?;
            let value = |i: usize| values.get(i).map_or(Datum::Null, Value::as_datum);
            self.accumulator.add(call.function, value(0), value(1))?;
        }
        let is_fraction = is_ordered_set(call.function);
        let fraction = call.args.first().filter(|_| is_fraction).map(|arg| cx.value(arg));
        let fraction = fraction.transpose()?.unwrap_or_default();
        let options = cx.format_options();
        self.accumulator.finish(call.function, call.ty, fraction.as_datum(), options)
    }
}

/// A stable sort that looks between pieces whether it is to stop. Each longer piece is two that are
/// sorted, which the standard sort only merges.
fn sort_in_pieces(rows: &mut [SortedRow], cx: &Context<'_>) -> Result<()> {
    const FIRST_PIECE: usize = 4096;
    let mut length = FIRST_PIECE;
    loop {
        for piece in rows.chunks_mut(length) {
            cx.work().tick()?;
            piece.sort_by(|(a, _), (b, _)| a.cmp(b));
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
