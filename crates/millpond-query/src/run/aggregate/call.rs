//! A call of an aggregate function over the rows of one group: FILTER, DISTINCT and ORDER BY around
//! what the function itself takes in.

use millpond_types::key::{KeyOrder, encode_sort_column};

use super::accumulator::{Accumulator, takes_null};
use super::{hypothetical, ordered_set};
use crate::analyze::tree::{AggregateCall, AggregateFunction as F};
use crate::error::{Result, SqlError};
use crate::expr::{Env, Expr, Val};
use crate::memory::{Collected, row_bytes};
use crate::run::key_table::KeyTable;
use crate::run::{Context, Work, datum_key};
use crate::{Datum, Value};

/// What a call has taken in.
pub(super) struct CallState {
    /// It has at most one argument, and takes each row's value in as it comes.
    is_plain: bool,
    accumulator: Accumulator,
    /// If equal values are left out: keys of those that have been taken in, and one in the making.
    seen: Option<Box<(KeyTable, Vec<u8>)>>,
    /// Values with their sort keys, if their order matters.
    rows: Option<Box<Collected>>,
}

/// Whether the order of values changes the result.
fn needs_order(call: &AggregateCall) -> bool {
    let is_ordered = matches!(
        call.function,
        F::StringAgg | F::ArrayAgg | F::ArrayAggOfArrays | F::JsonList(_) | F::JsonObject(_)
    );
    !call.order_by.is_empty() || (call.distinct && is_ordered)
}

fn is_ordered_set(function: F) -> bool {
    use F::{Hypothetical, Mode, PercentileCont, PercentileDisc};
    matches!(function, PercentileCont | PercentileDisc | Mode | Hypothetical(_))
}

impl CallState {
    pub(super) fn new(call: &AggregateCall) -> Self {
        Self {
            is_plain: call.filter.is_none()
                && !call.distinct
                && call.order_by.is_empty()
                && call.args.len() <= 1,
            accumulator: Accumulator::new(call.function),
            seen: call.distinct.then(Box::default),
            rows: None,
        }
    }

    /// Takes the row of `env` in. Says about how many bytes it has grown by.
    #[inline]
    pub(super) fn add(
        &mut self,
        call: &AggregateCall,
        env: &Env<'_>,
        work: &Work<'_>,
    ) -> Result<usize> {
        if !self.is_plain {
            return self.add_any(call, env, work);
        }
        match (&mut self.accumulator, call.args.first()) {
            (Accumulator::Count(count), None) => {
                *count += 1;
                Ok(0)
            }
            (accumulator, None) => accumulator.add(call.function, Datum::Null, Datum::Null),
            (accumulator, Some(arg)) => accumulator.add_expr(call.function, arg, env),
        }
    }

    /// Takes in what a thread has taken in of the group's rows that come next.
    pub(super) fn add_part(&mut self, call: &AggregateCall, part: [Datum<'_>; 3]) -> Result<usize> {
        self.accumulator.add_part(call.function, part)
    }

    fn add_any(&mut self, call: &AggregateCall, env: &Env<'_>, work: &Work<'_>) -> Result<usize> {
        if let Some(filter) = &call.filter
            && !filter.holds(env)?
        {
            return Ok(0);
        }
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
            let (seen, key) = &mut **seen;
            key.clear();
            datum_key::push(&first, key);
            datum_key::push(&second, key);
            grown = seen.enter(key, work)?.grown;
            if grown == 0 {
                return Ok(0);
            }
        }
        if !needs_order(call) {
            return Ok(grown + self.accumulator.add(call.function, first, second)?);
        }
        let write_key = |key: &mut Vec<u8>| {
            for order in &call.order_by {
                order.push(env, key)?;
            }
            if call.distinct {
                encode_sort_column(&first, KeyOrder::ASC, key);
            }
            Ok(())
        };
        Ok(grown + self.keep(write_key, &[first, second])?)
    }

    /// An ordered-set aggregate takes its values in from its ORDER BY.
    fn add_sorted(&mut self, call: &AggregateCall, env: &Env<'_>) -> Result<usize> {
        let Some(by) = call.order_by.first() else { return Ok(0) };
        if let F::Hypothetical(_) = call.function {
            return self.keep(|key| call.order_by.iter().try_for_each(|by| by.push(env, key)), &[]);
        }
        let value = by.expr.eval(env)?;
        if value.is_null() {
            return Ok(0);
        }
        let datum = value.datum();
        let write_key = |key: &mut Vec<u8>| {
            by.push_value(&datum, key);
            Ok(())
        };
        self.keep(write_key, &[datum])
    }

    /// Keeps values under the key that `write_key` writes.
    fn keep(
        &mut self,
        write_key: impl FnOnce(&mut Vec<u8>) -> Result<()>,
        values: &[Datum<'_>],
    ) -> Result<usize> {
        let rows = self.rows.get_or_insert_default();
        let (_, before) = rows.sizes();
        rows.push_with(write_key, |row| row_bytes::push(values, row))?;
        let (_, after) = rows.sizes();
        Ok(after - before)
    }

    /// The result. `cx` has no row but may have outer ones. `keys` are those of the group, with
    /// their values.
    pub(super) fn finish(
        &mut self,
        call: &AggregateCall,
        keys: Keys<'_>,
        cx: &Context<'_>,
    ) -> Result<Value> {
        let look = || cx.work().tick();
        let mut rows = self.rows.take().unwrap_or_default();
        rows.sort(&look)?;
        if is_ordered_set(call.function) {
            return of_ordered_set(call, &direct_arguments(call, keys, cx)?, &rows, look);
        }
        for row in rows.rows() {
            cx.work().tick()?;
            let values = row_bytes::read(row)?;
            let value = |i: usize| values.get(i).copied().unwrap_or(Datum::Null);
            self.accumulator.add(call.function, value(0), value(1))?;
        }
        self.accumulator.finish(call.function, call.ty, cx.format_options())
    }
}

/// The result of an ordered-set aggregate, of its direct arguments and its sorted rows.
fn of_ordered_set(
    call: &AggregateCall,
    direct: &[Value],
    rows: &Collected,
    look: impl Fn() -> Result<()>,
) -> Result<Value> {
    let fraction = direct.first().map_or(Datum::Null, Value::as_datum);
    match call.function {
        F::Mode => ordered_set::mode(rows, look),
        F::PercentileDisc => ordered_set::discrete(rows, fraction, call.ty),
        F::PercentileCont => ordered_set::continuous(rows, fraction, call.ty),
        F::Hypothetical(what) => {
            let mut key = Vec::new();
            for (value, order) in direct.iter().zip(&call.order_by) {
                order.push_value(&value.as_datum(), &mut key);
            }
            hypothetical::place_of(&key, rows, what, look)
        }
        _ => Err(SqlError::internal("an aggregate of another kind")),
    }
}

/// The keys by which rows are grouped, and the values that a group has. A key that a grouping set
/// leaves out is NULL.
pub(super) type Keys<'k> = (&'k [Expr], &'k [Value]);

/// The arguments of an ordered-set aggregate: expressions of the group's keys.
fn direct_arguments(
    call: &AggregateCall,
    (keys, values): Keys<'_>,
    cx: &Context<'_>,
) -> Result<Vec<Value>> {
    let value = |arg: &Expr| {
        let mut arg = arg.clone();
        arg.change(&mut |part| {
            let found = keys.iter().position(|key| key == part).and_then(|place| values.get(place));
            if let Some(value) = found {
                *part = Expr::Const(value.clone());
            }
            Ok(found.is_some())
        })?;
        cx.value(&arg)
    };
    call.args.iter().map(value).collect()
}

fn datum<'v>(value: &'v Option<Val<'_>>) -> Datum<'v> {
    value.as_ref().map_or(Datum::Null, Val::datum)
}
