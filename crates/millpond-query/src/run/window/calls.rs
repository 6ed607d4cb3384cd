//! What window functions return for each row of a partition.

use std::ops::Range;
use std::sync::Arc;

use super::frame::Frames;
use super::partition::Partition;
use crate::analyze::tree::{AggregateFunction, Window, WindowCall, WindowFunction as F};
use crate::error::{Result, SqlError, SqlState};
use crate::memory::{Held, SessionMemory};
use crate::run::Work;
use crate::run::aggregate::Accumulator;
use crate::types::FormatOptions;
use crate::{Datum, Value};

/// A partition with its frames.
#[derive(Clone, Copy)]
pub(super) struct Framed<'f> {
    pub(super) partition: &'f Partition,
    pub(super) frames: &'f Frames,
    pub(super) options: &'f FormatOptions,
}

/// A call over a partition.
struct Call<'c> {
    call: &'c WindowCall,
    /// Its number among the window's calls.
    number: usize,
    /// Where its arguments begin among those of all calls.
    first_arg: usize,
    partition: &'c Partition,
    frames: &'c Frames,
    options: &'c FormatOptions,
}

/// Makes the states of the calls for a new partition. Only aggregates have one.
pub(super) fn begin(
    window: &Window,
    memory: &Arc<SessionMemory>,
    states: &mut Vec<Option<Running>>,
) {
    let state = |call: &WindowCall| match call.function {
        F::Aggregate(function) => Some(Running::new(function, memory)),
        _ => None,
    };
    states.clear();
    states.extend(window.calls.iter().map(state));
}

/// Appends what the calls return for a row. The rows of a partition come in order. Each is asked
/// for when it is needed: the results of all rows may be much larger than the partition.
pub(super) fn results(
    window: &Window,
    (framed, row): (Framed<'_>, usize),
    states: &mut [Option<Running>],
    work: &Work<'_>,
    results: &mut Vec<Value>,
) -> Result<()> {
    let Framed { partition, frames, options } = framed;
    let mut first_arg = 0;
    for ((number, call), state) in window.calls.iter().enumerate().zip(states) {
        let own = Call { call, number, first_arg, partition, frames, options };
        first_arg += call.args.len();
        results.push(match state {
            None => own.value(row)?,
            Some(running) if frames.has_exclusion() => running.of_pieces(&own, row, work)?,
            Some(running) => running.of_range(&own, frames.whole(partition, row)?, work)?,
        });
    }
    Ok(())
}

impl Call<'_> {
    /// An argument's value for a row.
    fn arg(&self, row: usize, place: usize) -> Datum<'_> {
        let arg = self.partition.args.row(row).get(self.first_arg + place);
        arg.filter(|_| place < self.call.args.len()).map_or(Datum::Null, Value::as_datum)
    }

    fn value(&self, row: usize) -> Result<Value> {
        let peers = self.partition.peers(row);
        let count = self.partition.len();
        let number = |number: usize| Value::Int8(number as i64);
        Ok(match self.call.function {
            F::RowNumber => number(row + 1),
            F::Rank => number(peers.start + 1),
            F::DenseRank => {
                number(self.partition.group_of.get(row).copied().unwrap_or_default() + 1)
            }
            F::PercentRank if count <= 1 => Value::Float8(0.0),
            F::PercentRank => Value::Float8(peers.start as f64 / (count - 1) as f64),
            F::CumeDist => Value::Float8(peers.end as f64 / count as f64),
            F::Ntile => self.ntile(row)?,
            F::Lag => self.neighbour(row, true),
            F::Lead => self.neighbour(row, false),
            F::FirstValue => self.nth(row, Some(0))?,
            F::LastValue => self.nth(row, None)?,
            F::NthValue => self.nth_value(row)?,
            F::Aggregate(_) => return Err(SqlError::internal("an aggregate is another matter")),
        })
    }

    fn ntile(&self, row: usize) -> Result<Value> {
        let Some(buckets) = self.arg(0, 0).as_i64() else { return Ok(Value::Null) };
        if buckets <= 0 {
            return Err(SqlError::new(
                SqlState::INVALID_ARGUMENT_FOR_NTILE_FUNCTION,
                "argument of ntile must be greater than zero",
            ));
        }
        let (row, count) = (row as i64, self.partition.len() as i64);
        // The first buckets have one row more than the others.
        let (size, larger) = (count / buckets, count % buckets);
        let in_larger = larger * (size + 1);
        let bucket = match row.checked_sub(in_larger) {
            Some(behind) if behind >= 0 && size > 0 => larger + behind / size,
            _ => row / (size + 1),
        };
        Ok(Value::Int4(i32::try_from(bucket + 1).unwrap_or(i32::MAX)))
    }

    /// The value of a row at a distance, or else the default.
    fn neighbour(&self, row: usize, before: bool) -> Value {
        let offset = match self.call.args.len() {
            0 | 1 => 1,
            _ => match self.arg(row, 1).as_i64() {
                Some(offset) => i128::from(offset),
                None => return Value::Null,
            },
        };
        let place = row as i128 + if before { -offset } else { offset };
        match usize::try_from(place) {
            Ok(place) if place < self.partition.len() => self.arg(place, 0).to_value(),
            _ => self.arg(row, 2).to_value(),
        }
    }

    /// The value of a row of the frame, counted from 0; of the last one without a number.
    fn nth(&self, row: usize, number: Option<usize>) -> Result<Value> {
        let rows = self.frames.rows(self.partition, row)?;
        let found = match number {
            Some(number) => rows.iter().cloned().flatten().nth(number),
            None => rows.last().map(|range| range.end - 1),
        };
        Ok(found.map_or(Value::Null, |row| self.arg(row, 0).to_value()))
    }

    fn nth_value(&self, row: usize) -> Result<Value> {
        let Some(number) = self.arg(row, 1).as_i64() else { return Ok(Value::Null) };
        if number <= 0 {
            return Err(SqlError::new(
                SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION,
                "argument of nth_value must be greater than zero",
            ));
        }
        let mut left = usize::try_from(number - 1).unwrap_or(usize::MAX);
        for range in self.frames.rows(self.partition, row)? {
            if left < range.len() {
                return Ok(self.arg(range.start + left, 0).to_value());
            }
            left -= range.len();
        }
        Ok(Value::Null)
    }

    fn passes(&self, row: usize) -> bool {
        self.partition.passes.row(row).get(self.number).copied().unwrap_or(true)
    }
}

/// An aggregate over a frame that moves.
pub(super) struct Running {
    function: AggregateFunction,
    accumulator: Accumulator,
    /// The memory of the accumulator.
    held: Held,
    /// The rows that it has taken in.
    rows: Range<usize>,
    /// Its result, as long as they stay the same.
    result: Option<Value>,
}

impl Running {
    fn new(function: AggregateFunction, memory: &Arc<SessionMemory>) -> Self {
        let (accumulator, held) = (Accumulator::new(function), Held::new(memory, "WindowAgg"));
        Self { function, accumulator, held, rows: 0..0, result: None }
    }

    fn of_range(&mut self, call: &Call<'_>, rows: Range<usize>, work: &Work<'_>) -> Result<Value> {
        if rows == self.rows
            && let Some(result) = &self.result
        {
            return Ok(result.clone());
        }
        let goes_on = rows.start >= self.rows.start && rows.end >= self.rows.end;
        let leaves = self.rows.start..rows.start.min(self.rows.end);
        if !goes_on || !self.take_out(call, leaves)? {
            self.start_anew(rows.start);
        } else if rows.start > self.rows.end {
            self.rows = rows.start..rows.start;
        }
        self.rows.start = rows.start;
        for row in self.rows.end.max(rows.start)..rows.end {
            work.tick()?;
            self.add(call, row)?;
        }
        self.rows = rows;
        self.finish(call)
    }

    /// Over a frame with rows left out.
    fn of_pieces(&mut self, call: &Call<'_>, row: usize, work: &Work<'_>) -> Result<Value> {
        self.start_anew(0);
        for row in call.frames.rows(call.partition, row)?.iter().cloned().flatten() {
            work.tick()?;
            self.add(call, row)?;
        }
        self.finish(call)
    }

    fn start_anew(&mut self, from: usize) {
        self.accumulator = Accumulator::new(self.function);
        self.held.clear();
        (self.rows, self.result) = (from..from, None);
    }

    fn add(&mut self, call: &Call<'_>, row: usize) -> Result<()> {
        self.result = None;
        if call.passes(row) {
            let (first, second) = (call.arg(row, 0), call.arg(row, 1));
            self.held.grow(self.accumulator.add(self.function, first, second)?)?;
        }
        Ok(())
    }

    /// Takes out rows that have left the frame. False if the function can't do that.
    fn take_out(&mut self, call: &Call<'_>, rows: Range<usize>) -> Result<bool> {
        for row in rows {
            self.result = None;
            if call.passes(row) && !self.accumulator.take_out(self.function, call.arg(row, 0)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&mut self, call: &Call<'_>) -> Result<Value> {
        let result = self.accumulator.finish(self.function, call.call.ty, call.options)?;
        self.result = Some(result.clone());
        Ok(result)
    }
}
