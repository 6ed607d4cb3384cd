//! Append, INTERSECT and EXCEPT.

use std::mem;

use super::key_table::KeyTable;
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
    is_counted: bool,
    key: Vec<u8>,
}

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
            is_counted: false,
            key: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.left.rescan();
        self.right.rescan();
        self.keys.clear();
        self.counts.clear();
        self.held.clear();
        self.is_counted = false;
    }

    pub(super) fn next(&mut self, node: &Node, cx: &mut Context<'_>) -> Result<bool> {
        let Node::SetOp { slot, operator, all, left, right } = node else {
            return Err(SqlError::internal("a state of another node"));
        };
        if !self.is_counted {
            while self.right.next(&right.0, cx)? {
                cx.work().tick()?;
                *self.count_of(right.1, cx)? += 1;
            }
            self.is_counted = true;
        }
        while self.left.next(&left.0, cx)? {
            cx.work().tick()?;
            let count = match (operator, all) {
                // Whether it has been given must be known of every row.
                (SetOperator::Except, false) => self.count_of(left.1, cx)?,
                (SetOperator::Union, _) => {
                    return Err(SqlError::internal("a union is no SetOp"));
                }
                _ => {
                    self.set_key(left.1, cx)?;
                    let key = self.keys.find(&self.key);
                    match (key.and_then(|key| self.counts.get_mut(key)), operator) {
                        (Some(count), _) => count,
                        (None, SetOperator::Intersect) => continue,
                        (None, _) => {
                            take_over(left.1, *slot, cx)?;
                            return Ok(true);
                        }
                    }
                }
            };
            if is_given(*operator, *all, count) {
                take_over(left.1, *slot, cx)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn set_key(&mut self, slot: Slot, cx: &Context<'_>) -> Result<()> {
        self.key.clear();
        for value in kept::values(cx.slots(), slot)? {
            datum_key::push(&value.as_datum(), &mut self.key);
        }
        Ok(())
    }

    /// How often the row has been counted.
    fn count_of(&mut self, slot: Slot, cx: &Context<'_>) -> Result<&mut u64> {
        self.set_key(slot, cx)?;
        let key = self.keys.enter(&self.key, cx.work())?;
        if key.is_new() {
            self.held.grow(key.grown + BYTES_OF_COUNT)?;
            self.counts.push(0);
        }
        self.counts.get_mut(key.number).ok_or_else(|| SqlError::internal("a key without a count"))
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
