//! Unique, and its hashed form: rows that are equal to one before are left out.

use super::key_table::KeyTable;
use super::overflow::Overflow;
use super::recent_ints::RecentInts;
use super::state::State;
use super::{Context, datum_key, kept, parts};
use crate::analyze::tree::Slot;
use crate::error::Result;
use crate::expr::{Expr, Val};
use crate::memory::Held;
use crate::plan::query::node::Node;

pub(super) struct DistinctState {
    input: State,
    input_slots: Vec<Slot>,
    /// The input has been read: what follows are rows that found no room.
    is_read: bool,
    /// Keys of all rows of a pass, where rows are not sorted.
    seen: KeyTable,
    /// Those of them that are one integer and came last.
    recent: RecentInts,
    held: Held,
    overflow: Overflow,
    /// The key of the row before, where they are.
    last: Option<Vec<u8>>,
    key: Vec<u8>,
    /// A row that is kept.
    row: Vec<u8>,
}

impl DistinctState {
    pub(super) fn new(input: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(input, cx)?,
            input_slots: parts::output(input),
            is_read: false,
            seen: KeyTable::default(),
            recent: RecentInts::default(),
            held: Held::new(&cx.work().resources.memory, "Unique"),
            overflow: Overflow::new("Unique"),
            last: None,
            key: Vec::new(),
            row: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.is_read = false;
        self.forget_keys();
        self.overflow.clear();
        self.last = None;
    }

    pub(super) fn next(
        &mut self,
        input: &Node,
        keys: &[Expr],
        sorted: bool,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        while self.next_row(input, cx)? {
            cx.work().tick()?;
            let env = cx.env();
            let only_int = match keys {
                [key] if !sorted => key.int(&env).map(|int| int.value),
                _ => None,
            };
            if only_int.is_some_and(|int| self.recent.get(int).is_some()) {
                continue;
            }
            self.key.clear();
            for key in keys {
                if let Some(int) = key.int(&env) {
                    datum_key::push_int(int.value, &mut self.key);
                    continue;
                }
                datum_key::push(&key.operand(&env, &mut Val::null())?, &mut self.key);
            }
            if sorted {
                if self.last.as_ref() != Some(&self.key) {
                    let last = self.last.get_or_insert_default();
                    std::mem::swap(last, &mut self.key);
                    return Ok(true);
                }
                continue;
            }
            let is_new = self.is_new(cx)?;
            if is_new && let Some(int) = only_int {
                self.recent.note(int, 0);
            }
            if is_new {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the input, then what found no room.
    fn next_row(&mut self, input: &Node, cx: &mut Context<'_>) -> Result<bool> {
        if !self.is_read {
            if self.input.next(input, cx)? {
                return Ok(true);
            }
            self.is_read = true;
        }
        loop {
            if let Some((_, row)) = self.overflow.next()? {
                kept::load(row, &self.input_slots, &mut cx.rows)?;
                return Ok(true);
            }
            if !self.overflow.next_pass() {
                return Ok(false);
            }
            self.forget_keys();
        }
    }

    fn forget_keys(&mut self) {
        self.seen.clear();
        self.recent.clear();
        self.held.clear();
    }

    /// Whether no row before was equal. A row for which there is no room is kept for later.
    fn is_new(&mut self, cx: &Context<'_>) -> Result<bool> {
        let work = cx.work();
        if self.overflow.is_full(self.seen.len(), &self.held, work) {
            if self.seen.find(&self.key).is_none() {
                self.row.clear();
                kept::save(cx, &self.input_slots, &mut self.row)?;
                self.overflow.push(&self.key, &[], &self.row, work)?;
            }
            return Ok(false);
        }
        let key = self.seen.enter(&self.key, work)?;
        if key.is_new() {
            self.overflow.count(key.grown, self.seen.len(), &mut self.held, work.resources)?;
        }
        Ok(key.is_new())
    }
}
