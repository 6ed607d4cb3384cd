//! The groups of a hash table.
//!
//! What many groups have is in few pieces of memory: see [`ByteRows`].

use super::call::CallState;
use super::{Keys, give_row};
use crate::Datum;
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Val};
use crate::memory::{ByteRows, Datums, Held, row_bytes};
use crate::plan::query::node::Aggregate;
use crate::run::key_table::KeyTable;
use crate::run::overflow::Overflow;
use crate::run::recent_ints::RecentInts;
use crate::run::{Context, Work, datum_key};

/// About what the state of a call takes.
const BYTES_OF_CALL: usize = size_of::<CallState>();
/// What stands before a group's key: the number of its grouping set.
const SET: usize = size_of::<u32>();

/// Groups by their keys, numbered from 0.
#[derive(Default)]
pub(super) struct Groups {
    numbers: KeyTable,
    /// Each group's values of all keys; NULL for those that its grouping set does not have.
    keys: ByteRows,
    /// Those of a group, behind those of the group before.
    calls: Vec<CallState>,
    /// The group that was found last.
    last: usize,
    /// Groups whose only key is an integer.
    recent: RecentInts,
    /// The integer that is the key, if there are no grouping sets.
    int: Option<i64>,
    /// The group of that integer, if it is among `recent`.
    found: Option<usize>,
    key: Vec<u8>,
}

impl Groups {
    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Sets the key of a row in a grouping set, which has a number.
    pub(super) fn set_key(&mut self, set: (usize, &Vec<usize>), keys: &[Val<'_>]) {
        (self.int, self.found) = (None, None);
        self.key.clear();
        self.key.extend_from_slice(&(set.0 as u32).to_le_bytes());
        for place in set.1 {
            if let Some(key) = keys.get(*place) {
                datum_key::push(&key.datum(), &mut self.key);
            }
        }
    }

    /// Sets the key of the current row, if there are no grouping sets.
    pub(super) fn set_key_of_row(&mut self, exprs: &[Expr], cx: &Context<'_>) -> Result<()> {
        let env = cx.env();
        self.int = match exprs {
            [expr] => expr.int(&env).map(|int| int.value),
            _ => None,
        };
        self.found = self.int.and_then(|int| self.recent.get(int));
        if self.found.is_some() {
            // There is no need for the key.
            return Ok(());
        }
        self.key.clear();
        self.key.extend_from_slice(&0u32.to_le_bytes());
        if let Some(int) = self.int {
            datum_key::push_int(int, &mut self.key);
            return Ok(());
        }
        for expr in exprs {
            match expr.int(&env) {
                Some(int) => datum_key::push_int(int.value, &mut self.key),
                None => datum_key::push(&expr.operand(&env, &mut Val::null())?, &mut self.key),
            }
        }
        Ok(())
    }

    /// The key that was set last, if its group was not found at once.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The calls of the group whose key was set. `None` if it is new and there is no room for it.
    /// `keys` gives the values of a new one.
    pub(super) fn calls_of<'k>(
        &mut self,
        aggregate: &Aggregate,
        set: &[usize],
        keys: impl FnOnce() -> Result<Keys<'k>>,
        work: &Work<'_>,
        held: &mut Held,
        overflow: &mut Overflow,
    ) -> Result<Option<&mut [CallState]>> {
        if let Some(group) = self.found {
            return calls_of_group(&mut self.calls, aggregate, group).map(Some);
        }
        // Rows of a group often come one after the other.
        if self.numbers.key(self.last).is_some_and(|key| key == self.key) {
            return calls_of_group(&mut self.calls, aggregate, self.last).map(Some);
        }
        if overflow.is_full(self.numbers.len(), held, work) {
            let Some(group) = self.numbers.find(&self.key) else { return Ok(None) };
            self.last = group;
            return calls_of_group(&mut self.calls, aggregate, group).map(Some);
        }
        let group = self.numbers.enter(&self.key, work)?;
        self.last = group.number;
        if group.is_new() {
            let keys = keys()?;
            let mut values = Datums::with_capacity(keys.len());
            for (place, key) in keys.iter().enumerate() {
                values.push(if set.contains(&place) { key.datum() } else { Datum::Null });
            }
            let grown = group.grown + self.keys.push_values(&values)?;
            let grown = grown + aggregate.calls.len() * BYTES_OF_CALL;
            overflow.count(grown, self.numbers.len(), held, work.resources)?;
            self.calls.extend(aggregate.calls.iter().map(CallState::new));
        }
        if let Some(int) = self.int {
            self.recent.note(int, group.number);
        }
        calls_of_group(&mut self.calls, aggregate, group.number).map(Some)
    }

    /// Puts a group's row into the slot. False if there is no such group.
    pub(super) fn give(
        &mut self,
        number: usize,
        aggregate: &Aggregate,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        let set = self.numbers.key(number).and_then(|key| key.first_chunk::<SET>());
        let (Some(set), Some(keys)) = (set, self.keys.get(number)) else { return Ok(false) };
        let set = u32::from_le_bytes(*set) as usize;
        let keys = row_bytes::read(keys)?;
        let calls = calls_of_group(&mut self.calls, aggregate, number)?;
        give_row(aggregate, set, keys.iter().map(Datum::to_value), calls, cx)?;
        Ok(true)
    }
}

fn calls_of_group<'c>(
    calls: &'c mut [CallState],
    aggregate: &Aggregate,
    group: usize,
) -> Result<&'c mut [CallState]> {
    let count = aggregate.calls.len();
    let calls = calls.get_mut(group * count..(group + 1) * count);
    calls.ok_or_else(|| SqlError::internal("a group out of range"))
}
