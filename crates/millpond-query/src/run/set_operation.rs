//! Append, INTERSECT and EXCEPT.

use std::mem;

use super::key_table::KeyTable;
use super::overflow::Overflow;
use super::state::State;
use super::{Context, SlotRow, datum_key, kept};
use crate::analyze::tree::{SetOperator, Slot};
use crate::error::{Result, SqlError};
use crate::memory::Held;
use crate::plan::query::node::Node;

/// What a count takes beside its row's key.
const BYTES_OF_COUNT: usize = size_of::<u64>();

/// The rows of all inputs, one after the other.
pub(super) struct AppendState {
    inputs: Vec<State>,
    current: usize,
}

impl AppendState {
    pub(super) fn new(inputs: &[(Node, Slot)], cx: &Context<'_>) -> Result<Self> {
        let inputs = inputs.iter().map(|(input, _)| State::new(input, cx));
        Ok(Self { inputs: inputs.collect::<Result<_>>()?, current: 0 })
    }

    pub(super) fn rescan(&mut self) {
        self.inputs.iter_mut().for_each(State::rescan);
        self.current = 0;
    }

    pub(super) fn next(
        &mut self,
        slot: Slot,
        inputs: &[(Node, Slot)],
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        while let (Some(state), Some((input, own))) =
            (self.inputs.get_mut(self.current), inputs.get(self.current))
        {
            if state.next(input, cx)? {
                take_over(*own, slot, cx)?;
                return Ok(true);
            }
            self.current += 1;
        }
        Ok(false)
    }
}

/// Moves the row of a slot to another.
fn take_over(from: Slot, to: Slot, cx: &mut Context<'_>) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let row = match cx.row_mut(from)? {
        SlotRow::Values(values) => {
            let values = mem::take(values);
            // The memory of the row before is used for the next one.
            let before = kept::take_values(cx.row_mut(to)?);
            cx.set(from, SlotRow::Values(before))?;
            values
        }
        _ => kept::values(cx.slots(), from)?,
    };
    cx.set(to, SlotRow::Values(row))
}

/// INTERSECT and EXCEPT: the right side's rows are counted, then the left side's rows are judged.
pub(super) struct SetOpState {
    left: State,
    right: State,
    /// Of the rows that are counted.
    keys: KeyTable,
    /// How often each is on the right side, as far as it has not been used up.
    counts: Vec<u64>,
    held: Held,
    /// Rows of both sides for which there is no room, each with its side.
    overflow: Overflow,
    phase: Phase,
    key: Vec<u8>,
    /// A row that is kept.
    row: Vec<u8>,
}

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Right,
    Left,
    /// Rows that found no room.
    Overflow,
}

/// The sides of rows that are kept.
const RIGHT: &[u8] = &[0];
const LEFT: &[u8] = &[1];

/// A row without ALL that has been given, or that must not be.
const DONE: u64 = u64::MAX;

impl SetOpState {
    pub(super) fn new(left: &Node, right: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            left: State::new(left, cx)?,
            right: State::new(right, cx)?,
            counts: Vec::new(),
            keys: KeyTable::default(),
            held: Held::new(&cx.work().resources.memory, "SetOp"),
            overflow: Overflow::new("SetOp"),
            phase: Phase::Right,
            key: Vec::new(),
            row: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.left.rescan();
        self.right.rescan();
        self.keys.clear();
        self.counts.clear();
        self.held.clear();
        self.overflow.clear();
        self.phase = Phase::Right;
    }

    pub(super) fn next(&mut self, node: &Node, cx: &mut Context<'_>) -> Result<bool> {
        let Node::SetOp { slot, operator, all, left, right } = node else {
            return Err(SqlError::internal("a state of another node"));
        };
        while let Some(is_left) = self.next_row(left, right, cx)? {
            cx.work().tick()?;
            let gives = match is_left {
                true => self.judge(*operator, *all, left.1, cx)?,
                false => {
                    if let Some(count) = self.count_of(RIGHT, right.1, cx)? {
                        *count += 1;
                    }
                    false
                }
            };
            if gives {
                take_over(left.1, *slot, cx)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the right side, the left side, then what found no room in the same order. Says whether
    /// the row is of the left side.
    fn next_row(
        &mut self,
        left: &(Node, Slot),
        right: &(Node, Slot),
        cx: &mut Context<'_>,
    ) -> Result<Option<bool>> {
        if self.phase == Phase::Right {
            if self.right.next(&right.0, cx)? {
                return Ok(Some(false));
            }
            self.phase = Phase::Left;
        }
        if self.phase == Phase::Left {
            if self.left.next(&left.0, cx)? {
                return Ok(Some(true));
            }
            self.phase = Phase::Overflow;
        }
        loop {
            if let Some((side, row)) = self.overflow.next()? {
                let is_left = side == LEFT;
                let slot = if is_left { left.1 } else { right.1 };
                kept::load(row, &[slot], &mut cx.rows)?;
                return Ok(Some(is_left));
            }
            if !self.overflow.next_pass() {
                return Ok(None);
            }
            self.keys.clear();
            self.counts.clear();
            self.held.clear();
        }
    }

    /// Whether the row of the left side is in the result. If that can't be told yet, it is kept.
    fn judge(
        &mut self,
        operator: SetOperator,
        all: bool,
        slot: Slot,
        cx: &Context<'_>,
    ) -> Result<bool> {
        match (operator, all) {
            (SetOperator::Union, _) => return Err(SqlError::internal("a union is no SetOp")),
            // Whether it has been given must be known of every row.
            (SetOperator::Except, false) => {
                let count = self.count_of(LEFT, slot, cx)?;
                return Ok(count.is_some_and(|count| is_given(operator, all, count)));
            }
            _ => self.set_key(slot, cx)?,
        }
        let key = self.keys.find(&self.key);
        if let Some(count) = key.and_then(|key| self.counts.get_mut(key)) {
            return Ok(is_given(operator, all, count));
        }
        if self.overflow.has_begun() {
            self.keep(LEFT, slot, cx)?;
            return Ok(false);
        }
        Ok(operator != SetOperator::Intersect)
    }

    fn set_key(&mut self, slot: Slot, cx: &Context<'_>) -> Result<()> {
        self.key.clear();
        for value in kept::values(cx.slots(), slot)? {
            datum_key::push(&value.as_datum(), &mut self.key);
        }
        Ok(())
    }

    /// How often the row has been counted. `None` if there is no room for it: it is kept.
    fn count_of(&mut self, side: &[u8], slot: Slot, cx: &Context<'_>) -> Result<Option<&mut u64>> {
        self.set_key(slot, cx)?;
        let work = cx.work();
        if self.overflow.is_full(self.keys.len(), &self.held, work) {
            let Some(number) = self.keys.find(&self.key) else {
                self.keep(side, slot, cx)?;
                return Ok(None);
            };
            return Ok(self.counts.get_mut(number));
        }
        let key = self.keys.enter(&self.key, work)?;
        if key.is_new() {
            let grown = key.grown + BYTES_OF_COUNT;
            self.overflow.count(grown, self.keys.len(), &mut self.held, work.resources)?;
            self.counts.push(0);
        }
        Ok(self.counts.get_mut(key.number))
    }

    /// Keeps the row whose key was set.
    fn keep(&mut self, side: &[u8], slot: Slot, cx: &Context<'_>) -> Result<()> {
        self.row.clear();
        kept::save(cx, &[slot], &mut self.row)?;
        self.overflow.push(&self.key, side, &self.row, cx.work())
    }
}

/// Whether a row of the left side is in the result, with the count of its equals on the right.
fn is_given(operator: SetOperator, all: bool, count: &mut u64) -> bool {
    match (operator, all) {
        (SetOperator::Intersect, true) => {
            let is_there = *count > 0;
            *count = count.saturating_sub(1);
            is_there
        }
        (SetOperator::Intersect, false) => mem::replace(count, DONE) != DONE,
        (_, true) => {
            let is_there = *count > 0;
            *count = count.saturating_sub(1);
            !is_there
        }
        // Not on the right, and not given before.
        (_, false) => mem::replace(count, DONE) == 0,
    }
}
