//! Aggregate: groups of rows, and what aggregate functions make of each.

mod accumulator;
mod array;
mod call;
mod groups;
mod moments;
mod ordered_set;

pub(crate) use accumulator::Accumulator;

use smallvec::SmallVec;

use self::call::CallState;
use self::groups::Groups;
use super::state::State;
use super::{Context, SlotRow, kept};
use crate::Value;
use crate::error::Result;
use crate::expr::Val;
use crate::memory::Held;
use crate::plan::query::node::{Aggregate, Strategy};

pub(super) struct AggregateState {
    input: State,
    held: Held,
    phase: Phase,
    /// The group of sorted rows that is being read.
    current: Option<Group>,
}

enum Phase {
    Reading,
    /// All groups are there. The number is the next one's.
    Giving(Box<Groups>, usize),
    End,
}

/// A group of sorted rows, or the only one.
struct Group {
    /// Its values of all keys.
    keys: Vec<Value>,
    calls: Vec<CallState>,
}

impl Group {
    fn new(aggregate: &Aggregate, keys: Vec<Value>) -> Self {
        Self { keys, calls: aggregate.calls.iter().map(CallState::new).collect() }
    }

    fn add(&mut self, aggregate: &Aggregate, cx: &Context<'_>, held: &mut Held) -> Result<()> {
        add_row(aggregate, &mut self.calls, cx, held)
    }

    fn give(mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<()> {
        give_row(aggregate, 0, self.keys, &mut self.calls, cx)
    }
}

/// Takes the current row into the calls of its group.
fn add_row(
    aggregate: &Aggregate,
    calls: &mut [CallState],
    cx: &Context<'_>,
    held: &mut Held,
) -> Result<()> {
    for (call, state) in aggregate.calls.iter().zip(calls) {
        let grown = state.add(call, cx)?;
        if grown > 0 {
            held.grow(grown)?;
        }
    }
    Ok(())
}

/// Puts a group's row into the slot. `set` is its number among the grouping sets.
fn give_row(
    aggregate: &Aggregate,
    set: usize,
    keys: impl IntoIterator<Item = Value>,
    calls: &mut [CallState],
    cx: &mut Context<'_>,
) -> Result<()> {
    let mut row = kept::take_values(cx.row_mut(aggregate.slot)?);
    row.extend(keys);
    for (call, state) in aggregate.calls.iter().zip(calls) {
        row.push(state.finish(call, cx)?);
    }
    let set = aggregate.sets.as_ref().and_then(|sets| sets.get(set));
    for keys in &aggregate.grouping {
        let is_left_out = |key: &usize| set.is_some_and(|set| !set.contains(key));
        let bits = keys.iter().fold(0, |bits, key| bits << 1 | i32::from(is_left_out(key)));
        row.push(Value::Int4(bits));
    }
    cx.set(aggregate.slot, SlotRow::Values(row))
}

impl AggregateState {
    pub(super) fn new(aggregate: &Aggregate, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(&aggregate.input, cx)?,
            held: Held::new(&cx.work().resources.memory, "Aggregate"),
            phase: Phase::Reading,
            current: None,
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.held.clear();
        (self.phase, self.current) = (Phase::Reading, None);
    }

    pub(super) fn next(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            match &mut self.phase {
                Phase::Giving(groups, next) => {
                    if groups.give(*next, aggregate, cx)? {
                        *next += 1;
                        return Ok(true);
                    }
                    self.phase = Phase::End;
                    self.held.clear();
                    return Ok(false);
                }
                Phase::End => return Ok(false),
                Phase::Reading => match (aggregate.strategy, &aggregate.sets) {
                    (Strategy::Plain, None) => return self.all(aggregate, cx),
                    (Strategy::Sorted, None) => return self.next_sorted(aggregate, cx),
                    _ => self.hash(aggregate, cx)?,
                },
            }
        }
    }

    /// One group, also of no rows.
    fn all(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<bool> {
        let mut group = Group::new(aggregate, Vec::new());
        while self.input.next(&aggregate.input, cx)? {
            cx.work().tick()?;
            group.add(aggregate, cx, &mut self.held)?;
        }
        self.phase = Phase::End;
        group.give(aggregate, cx)?;
        self.held.clear();
        Ok(true)
    }

    /// Reads until another group begins.
    fn next_sorted(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<bool> {
        while self.input.next(&aggregate.input, cx)? {
            cx.work().tick()?;
            if let Some(group) = &mut self.current
                && is_of_group(aggregate, group, cx)?
            {
                group.add(aggregate, cx, &mut self.held)?;
                continue;
            }
            let mut keys = Vec::with_capacity(aggregate.keys.len() + aggregate.calls.len());
            cx.values(aggregate.keys.iter(), &mut keys)?;
            let mut group = Group::new(aggregate, keys);
            let before = self.current.take();
            self.held.clear();
            group.add(aggregate, cx, &mut self.held)?;
            self.current = Some(group);
            if let Some(before) = before {
                before.give(aggregate, cx)?;
                return Ok(true);
            }
        }
        self.phase = Phase::End;
        let Some(last) = self.current.take() else { return Ok(false) };
        last.give(aggregate, cx)?;
        Ok(true)
    }

    /// Reads all rows into their groups.
    fn hash(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<()> {
        let whole = [(0..aggregate.keys.len()).collect()];
        let sets = aggregate.sets.as_deref().unwrap_or(&whole);
        let mut groups = Groups::default();
        while self.input.next(&aggregate.input, cx)? {
            cx.work().tick()?;
            let env = cx.env();
            let mut keys = SmallVec::<[Val<'_>; 4]>::with_capacity(aggregate.keys.len());
            for key in &aggregate.keys {
                keys.push(key.eval(&env)?);
            }
            for (number, set) in sets.iter().enumerate() {
                let calls =
                    groups.calls_of(aggregate, number, set, &keys, cx.work(), &mut self.held)?;
                add_row(aggregate, calls, cx, &mut self.held)?;
            }
        }
        // A set without keys is one group, also of no rows.
        if groups.is_empty() {
            for (number, set) in sets.iter().enumerate() {
                if set.is_empty() {
                    let nulls = vec![Val::Owned(Value::Null); aggregate.keys.len()];
                    groups.calls_of(aggregate, number, set, &nulls, cx.work(), &mut self.held)?;
                }
            }
        }
        self.phase = Phase::Giving(Box::new(groups), 0);
        Ok(())
    }
}

/// Whether the current row has the keys of a group.
fn is_of_group(aggregate: &Aggregate, group: &Group, cx: &Context<'_>) -> Result<bool> {
    let env = cx.env();
    for (key, value) in aggregate.keys.iter().zip(&group.keys) {
        if key.eval(&env)?.datum().sort_cmp(&value.as_datum()).is_ne() {
            return Ok(false);
        }
    }
    Ok(true)
}
