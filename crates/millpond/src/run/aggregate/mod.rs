//! Aggregate: groups of rows, and what aggregate functions make of each.

mod accumulator;
mod array;
mod call;
mod moments;
mod ordered_set;

pub(crate) use accumulator::Accumulator;

use smallvec::SmallVec;

use self::call::CallState;
use super::state::State;
use super::{Context, SlotRow, datum_key, kept};
use crate::Value;
use crate::error::Result;
use crate::expr::Val;
use crate::memory::{Held, bytes_of};
use crate::plan::query::node::{Aggregate, Strategy};
use crate::run::datum_key::KeyMap;

/// About what a group takes beside its values and its key's bytes.
const BYTES_OF_GROUP: usize = 160;
/// About what the state of a call takes.
const BYTES_OF_CALL: usize = size_of::<CallState>();

pub(super) struct AggregateState {
    input: State,
    held: Held,
    phase: Phase,
    /// The group of sorted rows that is being read.
    current: Option<Group>,
}

enum Phase {
    Reading,
    /// All groups are there.
    Giving(std::vec::IntoIter<Group>),
    End,
}

/// A group.
struct Group {
    /// Its number among the grouping sets.
    set: usize,
    /// Its values of all keys; NULL for those that its set does not have.
    keys: Vec<Value>,
    calls: Vec<CallState>,
}

impl Group {
    fn new(aggregate: &Aggregate, set: usize, keys: Vec<Value>) -> Self {
        Self { set, keys, calls: aggregate.calls.iter().map(CallState::new).collect() }
    }

    /// Takes the current row in.
    fn add(&mut self, aggregate: &Aggregate, cx: &Context<'_>, held: &mut Held) -> Result<()> {
        for (call, state) in aggregate.calls.iter().zip(&mut self.calls) {
            let grown = state.add(call, cx)?;
            if grown > 0 {
                held.grow(grown)?;
            }
        }
        Ok(())
    }

    /// Puts the group's row into the slot.
    fn give(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<()> {
        let mut row = kept::take_values(cx.row_mut(aggregate.slot)?);
        row.append(&mut self.keys);
        for (call, state) in aggregate.calls.iter().zip(&mut self.calls) {
            row.push(state.finish(call, cx)?);
        }
        let set = aggregate.sets.as_ref().and_then(|sets| sets.get(self.set));
        for keys in &aggregate.grouping {
            let is_left_out = |key: &usize| set.is_some_and(|set| !set.contains(key));
            let bits = keys.iter().fold(0, |bits, key| bits << 1 | i32::from(is_left_out(key)));
            row.push(Value::Int4(bits));
        }
        cx.set(aggregate.slot, SlotRow::Values(row))
    }
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
                Phase::Giving(groups) => {
                    let Some(mut group) = groups.next() else {
                        self.phase = Phase::End;
                        self.held.clear();
                        return Ok(false);
                    };
                    group.give(aggregate, cx)?;
                    return Ok(true);
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
        let mut group = Group::new(aggregate, 0, Vec::new());
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
            let mut group = Group::new(aggregate, 0, keys);
            let before = self.current.take();
            self.held.clear();
            group.add(aggregate, cx, &mut self.held)?;
            self.current = Some(group);
            if let Some(mut before) = before {
                before.give(aggregate, cx)?;
                return Ok(true);
            }
        }
        self.phase = Phase::End;
        let Some(mut last) = self.current.take() else { return Ok(false) };
        last.give(aggregate, cx)?;
        Ok(true)
    }

    /// Reads all rows into their groups.
    fn hash(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<()> {
        let whole = [(0..aggregate.keys.len()).collect()];
        let sets = aggregate.sets.as_deref().unwrap_or(&whole);
        let mut groups = Groups { numbers: KeyMap::default(), groups: Vec::new(), key: Vec::new() };
        while self.input.next(&aggregate.input, cx)? {
            cx.work().tick()?;
            let env = cx.env();
            let mut keys = SmallVec::<[Val<'_>; 4]>::with_capacity(aggregate.keys.len());
            for key in &aggregate.keys {
                keys.push(key.eval(&env)?);
            }
            for (number, set) in sets.iter().enumerate() {
                let group = groups.of(aggregate, number, set, &keys, &mut self.held)?;
                group.add(aggregate, cx, &mut self.held)?;
            }
        }
        let Groups { numbers, mut groups, .. } = groups;
        drop(numbers);
        // A set without keys is one group, also of no rows.
        if groups.is_empty() {
            for (number, set) in sets.iter().enumerate() {
                if set.is_empty() {
                    let keys = vec![Value::Null; aggregate.keys.len()];
                    groups.push(Group::new(aggregate, number, keys));
                }
            }
        }
        self.phase = Phase::Giving(groups.into_iter());
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

/// Groups by their keys.
struct Groups {
    numbers: KeyMap<usize>,
    groups: Vec<Group>,
    key: Vec<u8>,
}

impl Groups {
    /// The group of a row in a grouping set.
    fn of(
        &mut self,
        aggregate: &Aggregate,
        number: usize,
        set: &[usize],
        keys: &[Val<'_>],
        held: &mut Held,
    ) -> Result<&mut Group> {
        self.key.clear();
        self.key.extend_from_slice(&(number as u32).to_le_bytes());
        for place in set {
            if let Some(key) = keys.get(*place) {
                datum_key::push(&key.datum(), &mut self.key);
            }
        }
        let found = match self.numbers.get(self.key.as_slice()) {
            Some(found) => *found,
            None => {
                let value = |(place, key): (usize, &Val<'_>)| {
                    if set.contains(&place) { key.datum().to_value() } else { Value::Null }
                };
                let keys: Vec<Value> = keys.iter().enumerate().map(value).collect();
                let calls = aggregate.calls.len() * BYTES_OF_CALL;
                held.grow(BYTES_OF_GROUP + bytes_of(&keys) + self.key.len() + calls)?;
                self.groups.push(Group::new(aggregate, number, keys));
                let found = self.groups.len() - 1;
                self.numbers.insert(self.key.as_slice().into(), found);
                found
            }
        };
        self.groups
            .get_mut(found)
            .ok_or_else(|| crate::error::SqlError::internal("a group out of range"))
    }
}
