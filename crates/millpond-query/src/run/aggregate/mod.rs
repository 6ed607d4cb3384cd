//! Aggregate: groups of rows, and what aggregate functions make of each.

mod accelerated;
mod accumulator;
mod array;
mod call;
mod groups;
mod hypothetical;
mod moments;
mod ordered_set;
mod parts;
mod put_together;
mod sum;

pub(crate) use accumulator::Accumulator;
pub(crate) use moments::{FloatMoments, Pairs};
pub(super) use parts::{PartGroups, PartialAggregation};
pub(crate) use sum::average_of;

use smallvec::SmallVec;

use self::call::CallState;
use self::groups::Groups;
use super::overflow::Overflow;
use super::state::State;
use super::{Context, SlotRow, kept};
use crate::Value;
use crate::analyze::tree::{AggregateCall, Slot};
use crate::error::Result;
use crate::expr::{Expr, Val};
use crate::memory::row_bytes::damaged;
use crate::memory::{Held, Rows};
use crate::plan::query::node::{Aggregate, Strategy};

pub(super) struct AggregateState {
    input: State,
    held: Held,
    phase: Phase,
    /// The group of sorted rows that is being read.
    current: Option<Group>,
    input_slots: Vec<Slot>,
    /// Rows of groups for which a hash table has no room.
    overflow: Overflow,
    /// A row that is kept.
    row: Vec<u8>,
    /// The second executor does not answer it.
    is_declined: bool,
}

enum Phase {
    Reading,
    /// All groups of a pass are there. The number is the next one's.
    Giving(Box<Groups>, usize),
    /// Groups that a second executor has made.
    Kept(Box<Rows>),
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

    fn add(
        &mut self,
        calls: (&Aggregate, &[AggregateCall]),
        cx: &Context<'_>,
        held: &mut Held,
    ) -> Result<()> {
        add_row(calls, &mut self.calls, cx, held)
    }

    fn give(mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<()> {
        give_row(aggregate, 0, self.keys, &mut self.calls, cx)
    }
}

/// The calls of an aggregation. After some rows those parts of their arguments are computed that
/// are the same for all rows. For few rows that would not pay.
struct Calls<'a> {
    written: &'a [AggregateCall],
    rows: usize,
    folded: Vec<AggregateCall>,
}

/// After how many rows.
const FOLDED_AFTER: usize = 256;

impl<'a> Calls<'a> {
    fn new(aggregate: &'a Aggregate) -> Self {
        Self { written: &aggregate.calls, rows: 0, folded: Vec::new() }
    }

    fn for_next_row(&mut self, cx: &Context<'_>) -> Result<&[AggregateCall]> {
        self.rows += 1;
        if self.rows == FOLDED_AFTER {
            let calls = self.written.iter().map(|call| call.folded(&cx.env()));
            self.folded = calls.collect::<Result<_>>()?;
        }
        Ok(if self.rows < FOLDED_AFTER { self.written } else { &self.folded })
    }
}

/// Takes the current row into the calls of its group.
fn add_row(
    (aggregate, calls): (&Aggregate, &[AggregateCall]),
    states: &mut [CallState],
    cx: &Context<'_>,
    held: &mut Held,
) -> Result<()> {
    let (env, work) = (cx.env(), cx.work());
    for (place, (call, state)) in calls.iter().zip(states).enumerate() {
        if aggregate.state_of(place) != place {
            continue;
        }
        let grown = state.add(call, &env, work)?;
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
    let key_count = row.len();
    for (place, call) in aggregate.calls.iter().enumerate() {
        let Some(state) = calls.get_mut(aggregate.state_of(place)) else { continue };
        let keys = (&*aggregate.keys, row.get(..key_count).unwrap_or_default());
        let value = state.finish(call, keys, cx)?;
        row.push(value);
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
            input_slots: super::parts::output(&aggregate.input),
            overflow: Overflow::new("Aggregate"),
            row: Vec::new(),
            is_declined: !accelerated::is_wanted(aggregate, cx),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.held.clear();
        self.overflow.clear();
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
                    if !self.overflow.next_pass() {
                        return Ok(false);
                    }
                    self.hash_overflow(aggregate, cx)?;
                }
                Phase::Kept(rows) => return accelerated::give(rows, aggregate, cx),
                Phase::End => return Ok(false),
                Phase::Reading if !self.is_declined => match accelerated::rows(aggregate, cx)? {
                    Some(rows) => self.phase = Phase::Kept(Box::new(rows)),
                    None => self.is_declined = true,
                },
                Phase::Reading => match (aggregate.strategy, &aggregate.sets) {
                    _ if aggregate.in_parts && self.add_parts(aggregate, cx)? => {}
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
        let mut calls = Calls::new(aggregate);
        while self.input.next(&aggregate.input, cx)? {
            cx.work().tick()?;
            group.add((aggregate, calls.for_next_row(cx)?), cx, &mut self.held)?;
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
                group.add((aggregate, &aggregate.calls), cx, &mut self.held)?;
                continue;
            }
            let mut keys = Vec::with_capacity(aggregate.keys.len() + aggregate.calls.len());
            cx.values(aggregate.keys.iter(), &mut keys)?;
            let mut group = Group::new(aggregate, keys);
            let before = self.current.take();
            self.held.clear();
            group.add((aggregate, &aggregate.calls), cx, &mut self.held)?;
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
        let whole = [put_together::whole(aggregate)];
        let sets = aggregate.sets.as_deref().unwrap_or(&whole);
        let mut groups = Groups::default();
        let mut calls = Calls::new(aggregate);
        // A key that is computed once more for a new group is the same.
        let is_plain = aggregate.sets.is_none() && !aggregate.keys.iter().any(varies);
        while self.input.next(&aggregate.input, cx)? {
            cx.work().tick()?;
            self.row.clear();
            let calls = calls.for_next_row(cx)?;
            if is_plain && let [whole] = sets {
                groups.set_key_of_row(&aggregate.keys, cx)?;
                let keys = || keys(aggregate, cx);
                self.add((aggregate, calls), &mut groups, (0, whole), keys, cx)?;
                continue;
            }
            let keys = keys(aggregate, cx)?;
            for (number, set) in sets.iter().enumerate() {
                groups.set_key((number, set), &keys);
                let keys = || Ok(keys.clone());
                self.add((aggregate, calls), &mut groups, (number, set), keys, cx)?;
            }
        }
        self.give_all(groups, aggregate, cx)
    }

    /// All rows have been read: gives their groups. A set without keys is one group, also of no
    /// rows.
    fn give_all(
        &mut self,
        mut groups: Groups,
        aggregate: &Aggregate,
        cx: &Context<'_>,
    ) -> Result<()> {
        let whole = [put_together::whole(aggregate)];
        let sets = aggregate.sets.as_deref().unwrap_or(&whole);
        if groups.is_empty() {
            for set in sets.iter().enumerate().filter(|(_, set)| set.is_empty()) {
                let nulls = Keys::from_elem(Val::Owned(Value::Null), aggregate.keys.len());
                groups.set_key(set, &nulls);
                let (held, overflow) = (&mut self.held, &mut self.overflow);
                groups.calls_of(aggregate, set.1, || Ok(nulls), cx.work(), held, overflow)?;
            }
        }
        self.phase = Phase::Giving(Box::new(groups), 0);
        Ok(())
    }

    /// The same for rows that found no room, of which each has its grouping set.
    fn hash_overflow(&mut self, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<()> {
        let whole = [put_together::whole(aggregate)];
        let sets = aggregate.sets.as_deref().unwrap_or(&whole);
        let mut groups = Groups::default();
        while let Some((number, row)) = self.overflow.next()? {
            cx.work().tick()?;
            kept::load(row, &self.input_slots, &mut cx.rows)?;
            let number = number.first_chunk().map(|number| u32::from_le_bytes(*number));
            let number = number.ok_or_else(damaged)? as usize;
            let set = sets.get(number).ok_or_else(damaged)?;
            let keys = keys(aggregate, cx)?;
            self.row.clear();
            groups.set_key((number, set), &keys);
            let calls = &aggregate.calls;
            self.add((aggregate, calls), &mut groups, (number, set), || Ok(keys), cx)?;
        }
        self.phase = Phase::Giving(Box::new(groups), 0);
        Ok(())
    }

    /// Adds the current row to the group whose key was set, in a grouping set; or keeps it, in
    /// [`Self::row`], if there is no room for the group.
    fn add<'k>(
        &mut self,
        (aggregate, exprs): (&Aggregate, &[AggregateCall]),
        groups: &mut Groups,
        set: (usize, &Vec<usize>),
        keys: impl FnOnce() -> Result<Keys<'k>>,
        cx: &Context<'_>,
    ) -> Result<()> {
        let (held, overflow) = (&mut self.held, &mut self.overflow);
        if let Some(calls) = groups.calls_of(aggregate, set.1, keys, cx.work(), held, overflow)? {
            return add_row((aggregate, exprs), calls, cx, held);
        }
        if self.row.is_empty() {
            kept::save(cx, &self.input_slots, &mut self.row)?;
        }
        let number = (set.0 as u32).to_le_bytes();
        self.overflow.push(groups.key(), &number, &self.row, cx.work())
    }
}

/// Whether an expression may have another value each time.
fn varies(expr: &Expr) -> bool {
    let mut has_query = false;
    expr.walk(&mut |part| has_query |= matches!(part, Expr::SubPlan(_)));
    has_query || expr.is_volatile()
}

/// The values of keys.
type Keys<'x> = SmallVec<[Val<'x>; 4]>;

/// The keys of the current row.
fn keys<'x>(aggregate: &'x Aggregate, cx: &'x Context<'_>) -> Result<Keys<'x>> {
    let env = cx.env();
    let mut keys = SmallVec::with_capacity(aggregate.keys.len());
    for key in &aggregate.keys {
        keys.push(key.eval(&env)?);
    }
    Ok(keys)
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
