//! Hash Join: the inner side's rows are kept in a table by their keys.
//!
//! Rows are kept in a store that spills. What finds them, an entry for each row, is in memory and
//! counted; a join of more rows than that has room for ends with 53200.

use super::key_table::KeyTable;
use super::state::State;
use super::{Context, SlotRow, datum_key, kept, parts};
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::memory::{Cursor, Held, RowStore};
use crate::plan::query::node::HashJoin;

const BYTES_OF_CHAIN: usize = size_of::<Chain>();
const BYTES_OF_ENTRY: usize = size_of::<Entry>();
/// No entry.
const NONE: u32 = u32::MAX;

/// An inner row.
struct Entry {
    place: u64,
    /// The next one with the same key.
    next: u32,
    has_match: bool,
}

/// The first and the last entry of a key.
struct Chain {
    first: u32,
    last: u32,
}

pub(super) struct HashJoinState {
    outer: State,
    inner: State,
    outer_slots: Vec<Slot>,
    inner_slots: Vec<Slot>,
    /// The inner side would give the same rows again.
    is_fixed: bool,
    rows: RowStore,
    cursor: Cursor,
    keys: KeyTable,
    /// By the numbers of keys.
    chains: Vec<Chain>,
    entries: Vec<Entry>,
    held: Held,
    phase: Phase,
    /// A key or a row in the making.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Phase {
    /// The inner side has not been read.
    Start,
    NextOuter,
    /// There is an outer row: the entry that is looked at next, and whether a row has matched.
    Matching(u32, bool),
    /// The inner rows without a match, from an entry on.
    Unmatched(u32),
    End,
}

impl HashJoinState {
    pub(super) fn new(join: &HashJoin, cx: &Context<'_>) -> Result<Self> {
        let resources = cx.work().resources;
        let (plan, changes) = (cx.plan.plan, cx.plan.changes());
        let inner_slots = parts::output(&join.inner);
        let is_fixed = parts::is_fixed(&join.inner, plan, &changes)
            && join
                .keys
                .iter()
                .all(|(_, inner)| parts::is_expr_fixed(inner, plan, &changes, Some(&inner_slots)));
        Ok(Self {
            outer: State::new(&join.outer, cx)?,
            inner: State::new(&join.inner, cx)?,
            outer_slots: parts::output(&join.outer),
            inner_slots,
            is_fixed,
            rows: RowStore::new(resources, "Hash Join"),
            cursor: Cursor::default(),
            keys: KeyTable::default(),
            chains: Vec::new(),
            entries: Vec::new(),
            held: Held::new(&resources.memory, "Hash Join"),
            phase: Phase::Start,
            bytes: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.outer.rescan();
        let is_built = !matches!(self.phase, Phase::Start);
        if self.is_fixed && is_built {
            self.entries.iter_mut().for_each(|entry| entry.has_match = false);
            self.phase = Phase::NextOuter;
            return;
        }
        self.inner.rescan();
        self.keys.clear();
        self.chains.clear();
        self.entries.clear();
        self.held.clear();
        self.phase = Phase::Start;
    }

    pub(super) fn next(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            cx.work().tick()?;
            match self.phase {
                Phase::Start => {
                    self.build(join, cx)?;
                    self.phase = Phase::NextOuter;
                }
                Phase::NextOuter => self.phase = self.next_outer(join, cx)?,
                Phase::Matching(entry, has_match) => {
                    if self.match_outer(join, cx, entry, has_match)? {
                        return Ok(true);
                    }
                }
                Phase::Unmatched(from) => return self.next_unmatched(from, cx),
                Phase::End => return Ok(false),
            }
        }
    }

    /// Reads the inner side into the table. A row with a NULL in its key matches nothing: it is
    /// kept only if the join keeps inner rows.
    fn build(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<()> {
        self.rows.clear()?;
        self.cursor.reset();
        let keeps_all = matches!(join.kind, JoinKind::Right | JoinKind::Full);
        let too_many = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many rows to hash");
        while self.inner.next(&join.inner, cx)? {
            cx.work().tick()?;
            let has_key = self.key(join.keys.iter().map(|(_, inner)| inner), cx)?;
            if !has_key && !keeps_all {
                continue;
            }
            let key = match has_key {
                true => Some(self.keys.enter(&self.bytes, cx.work())?),
                false => None,
            };
            self.bytes.clear();
            kept::save(&cx.rows, &self.inner_slots, &mut self.bytes)?;
            let place = self.rows.push(&self.bytes)?;
            let number = u32::try_from(self.entries.len()).map_err(too_many)?;
            self.held.grow(BYTES_OF_ENTRY)?;
            self.entries.push(Entry { place, next: NONE, has_match: false });
            let Some(key) = key else { continue };
            match self.chains.get_mut(key.number) {
                Some(chain) => {
                    if let Some(last) = self.entries.get_mut(chain.last as usize) {
                        last.next = number;
                    }
                    chain.last = number;
                }
                None => {
                    self.held.grow(key.grown + BYTES_OF_CHAIN)?;
                    self.chains.push(Chain { first: number, last: number });
                }
            }
        }
        Ok(())
    }

    /// The key of the current row. False if there is a NULL in it.
    fn key<'e>(&mut self, exprs: impl Iterator<Item = &'e Expr>, cx: &Context<'_>) -> Result<bool> {
        self.bytes.clear();
        let env = cx.env();
        for expr in exprs {
            let value = expr.eval(&env)?;
            if value.is_null() {
                return Ok(false);
            }
            datum_key::push(&value.datum(), &mut self.bytes);
        }
        Ok(true)
    }

    fn next_outer(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<Phase> {
        let keeps_inner = matches!(join.kind, JoinKind::Right | JoinKind::Full);
        let keeps_outer = matches!(join.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti);
        if self.entries.is_empty() && !keeps_outer {
            return Ok(Phase::End);
        }
        if !self.outer.next(&join.outer, cx)? {
            return Ok(if keeps_inner { Phase::Unmatched(0) } else { Phase::End });
        }
        let has_key = self.key(join.keys.iter().map(|(outer, _)| outer), cx)?;
        let key = if has_key { self.keys.find(&self.bytes) } else { None };
        let chain = key.and_then(|key| self.chains.get(key));
        Ok(Phase::Matching(chain.map_or(NONE, |chain| chain.first), false))
    }

    /// Goes on with the outer row. True if there is a row to give.
    fn match_outer(
        &mut self,
        join: &HashJoin,
        cx: &mut Context<'_>,
        entry: u32,
        has_match: bool,
    ) -> Result<bool> {
        let Some(found) = self.entries.get_mut(entry as usize) else {
            self.phase = Phase::NextOuter;
            let keeps = matches!(join.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti);
            if has_match || !keeps {
                return Ok(false);
            }
            nullify(&self.inner_slots, cx)?;
            return Ok(true);
        };
        let next = found.next;
        self.cursor.seek(found.place);
        let row =
            self.rows.next(&mut self.cursor)?.ok_or_else(crate::memory::row_bytes::damaged)?;
        kept::load(row, &self.inner_slots, &mut cx.rows)?;
        if !cx.holds(join.on.as_ref())? {
            self.phase = Phase::Matching(next, has_match);
            return Ok(false);
        }
        match join.kind {
            JoinKind::Semi => self.phase = Phase::NextOuter,
            JoinKind::Anti => {
                self.phase = Phase::NextOuter;
                return Ok(false);
            }
            JoinKind::Right | JoinKind::Full => {
                found.has_match = true;
                self.phase = Phase::Matching(next, true);
            }
            JoinKind::Inner | JoinKind::Left => self.phase = Phase::Matching(next, true),
        }
        Ok(true)
    }

    fn next_unmatched(&mut self, from: u32, cx: &mut Context<'_>) -> Result<bool> {
        let mut entry = from;
        while let Some(found) = self.entries.get(entry as usize) {
            entry += 1;
            if found.has_match {
                continue;
            }
            self.cursor.seek(found.place);
            let row =
                self.rows.next(&mut self.cursor)?.ok_or_else(crate::memory::row_bytes::damaged)?;
            kept::load(row, &self.inner_slots, &mut cx.rows)?;
            nullify(&self.outer_slots, cx)?;
            self.phase = Phase::Unmatched(entry);
            return Ok(true);
        }
        self.phase = Phase::End;
        Ok(false)
    }
}

/// Makes all columns of some slots NULL.
fn nullify(slots: &[Slot], cx: &mut Context<'_>) -> Result<()> {
    slots.iter().try_for_each(|slot| cx.set(*slot, SlotRow::Null))
}
