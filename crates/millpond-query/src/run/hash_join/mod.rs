//! Hash Join: the inner side's rows are kept in a table by their keys.
//!
//! The table has the memory of hash tables (`work_mem` times `hash_mem_multiplier`). If the rows
//! need more, both sides are cut into batches by the hashes of keys. One batch is joined after the
//! other: see [`batches`]. Rows of one key are never cut: beyond that memory they take what the
//! bound of all queries leaves.

mod batches;
mod first_match;
mod last_matches;
mod probed_by_threads;
mod table;

use std::mem;
use std::sync::Arc;

use self::batches::Batches;
pub(super) use self::probed_by_threads::SharedTable;
use self::table::JoinTable;
pub(super) use self::table::NONE;
use super::folded::Folded;
use super::state::State;
use super::{Context, SlotRow, datum_key, kept, parts};
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::Result;
use crate::expr::{Env, Expr, Val};
use crate::memory::{Cursor, Held, PartRows, Resources, RowStore};
use crate::plan::query::node::HashJoin;

/// The least memory of a table.
const LEAST_BYTES: usize = 64 << 10;

pub(super) struct HashJoinState {
    outer: State,
    inner: State,
    outer_slots: Vec<Slot>,
    inner_slots: Vec<Slot>,
    /// The inner side would give the same rows again.
    is_fixed: bool,
    /// The inner rows of the current batch.
    table: JoinTable,
    /// How many bytes the table may take.
    bound: usize,
    held: Held,
    /// `None`: all inner rows are in the table.
    batches: Option<Box<Batches>>,
    /// The table that threads have, and probe.
    shared: Option<Arc<SharedTable>>,
    /// The outer rows of the current batch, if it is not the first.
    outer_rows: PartRows,
    /// Inner rows with a NULL in their key, if the join keeps them.
    without_key: RowStore,
    cursor: Cursor,
    /// What else must hold.
    on: Folded,
    phase: Phase,
    key: Vec<u8>,
    row: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Phase {
    /// The inner side has not been read.
    Start,
    NextOuter,
    /// The outer side gives the joined rows. Inner rows without a match follow.
    Gathered,
    /// Threads read the outer side, and note which inner rows have a match.
    Marking,
    /// There is an outer row: the inner row that is looked at next, and whether one has matched.
    Matching(u32, bool),
    /// The inner rows of the batch without a match, behind one or from the first on. Those with a
    /// match, if it is a semi-join.
    Unmatched(u32),
    NextBatch,
    WithoutKey,
    End,
}

impl HashJoinState {
    pub(super) fn new(join: &HashJoin, cx: &Context<'_>) -> Result<Self> {
        let resources = cx.work().resources;
        let (plan, changes) = (cx.plan.plan, cx.plan.changes());
        let mut inner_slots = parts::output(&join.inner);
        let is_fixed = parts::is_fixed(&join.inner, plan, &changes)
            && join
                .keys
                .iter()
                .all(|(_, inner)| parts::is_expr_fixed(inner, plan, &changes, Some(&inner_slots)));
        if join.only_drops() && !join.gives_inner && join.on.is_none() {
            // That there is a row with the key is all that is asked.
            inner_slots.clear();
        }
        Ok(Self {
            outer: State::new(&join.outer, cx)?,
            inner: State::new(&join.inner, cx)?,
            outer_slots: parts::output(&join.outer),
            inner_slots,
            is_fixed,
            table: JoinTable::default(),
            bound: 0,
            held: held(resources),
            batches: None,
            shared: None,
            outer_rows: PartRows::default(),
            without_key: RowStore::new(resources, "Hash Join"),
            cursor: Cursor::default(),
            on: Folded::default(),
            phase: Phase::Start,
            key: Vec::new(),
            row: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.outer.rescan();
        let is_built = !matches!(self.phase, Phase::Start);
        if self.is_fixed && is_built && self.batches.is_none() && self.shared.is_none() {
            self.table.forget_matches();
            self.cursor.reset();
            self.phase = Phase::NextOuter;
            return;
        }
        self.inner.rescan();
        self.batches = None;
        self.clear_table();
        self.phase = Phase::Start;
    }

    fn clear_table(&mut self) {
        self.table.clear();
        self.held.clear();
    }

    pub(super) fn next(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            cx.work().tick()?;
            match self.phase {
                Phase::Start => {
                    let workers = self.workers(join, cx)?;
                    self.build(join, workers, cx)?;
                    self.phase = Phase::NextOuter;
                    if workers > 0 {
                        self.gather(join, cx)?;
                    }
                }
                Phase::Gathered => {
                    if self.outer.next(&join.outer, cx)? {
                        return Ok(true);
                    }
                    if !gives_inner(join) {
                        return Ok(false);
                    }
                    self.take_back(join, cx)?;
                }
                Phase::Marking => self.mark(join, cx)?,
                Phase::NextOuter => self.phase = self.next_outer(join, cx)?,
                Phase::Matching(entry, has_match) => {
                    if self.match_outer(join, cx, entry, has_match)? {
                        return Ok(true);
                    }
                }
                Phase::Unmatched(behind) => {
                    if self.next_unmatched(join, behind, cx)? {
                        return Ok(true);
                    }
                }
                Phase::NextBatch => self.phase = self.next_batch(join, cx)?,
                Phase::WithoutKey => return self.next_without_key(cx),
                Phase::End => return Ok(false),
            }
        }
    }

    /// Reads the inner side. A row with a NULL in its key matches nothing: it is kept only if the
    /// join keeps inner rows.
    ///
    /// The table has the memory of each thread that it is for, as PostgreSQL gives it.
    fn build(&mut self, join: &HashJoin, workers: usize, cx: &mut Context<'_>) -> Result<()> {
        if self.outer.is_fragment() {
            self.outer = State::new(&join.outer, cx)?;
        }
        self.shared = None;
        self.without_key.clear()?;
        self.cursor.reset();
        let bound = cx.work().resources.memory.hash_work().max(LEAST_BYTES);
        self.bound = bound.saturating_mul(workers + 1);
        while self.inner.next(&join.inner, cx)? {
            cx.work().tick()?;
            let has_key = self.set_key(join.keys.iter().map(|(_, inner)| inner), cx)?;
            if !has_key && !keeps_without_key(join) {
                continue;
            }
            self.row.clear();
            kept::save(cx, &self.inner_slots, &mut self.row)?;
            if has_key {
                self.keep(cx)?;
            } else {
                self.without_key.push(&self.row)?;
            }
        }
        self.table.link(cx.work(), join)
    }

    /// Sets the key of the current row. False if there is a NULL in it.
    fn set_key<'e>(
        &mut self,
        exprs: impl Iterator<Item = &'e Expr>,
        cx: &Context<'_>,
    ) -> Result<bool> {
        set_key(exprs, &cx.env(), &mut self.key)
    }

    /// Keeps an inner row with its key: in the table, or for its batch.
    fn keep(&mut self, cx: &Context<'_>) -> Result<()> {
        if let Some(batches) = &mut self.batches {
            let batch = batches.of(&self.key);
            if batch != batches.current {
                return batches.inner.push(batch, &self.key, &self.row);
            }
        }
        let grown = self.table.push(&self.key, &self.row)?;
        let counted = self.held.grow(grown);
        if counted.is_ok() && self.table.used() <= self.bound {
            return Ok(());
        }
        let can_grow = self.batches.as_ref().is_none_or(|batches| batches.can_grow());
        if self.table.has_keys_to_part() && can_grow {
            return self.cut(cx);
        }
        counted
    }

    /// Makes more batches, and keeps in the table what is of the current one.
    fn cut(&mut self, cx: &Context<'_>) -> Result<()> {
        let work = cx.work();
        let new = || Box::new(Batches::new(work.resources));
        let batches = self.batches.get_or_insert_with(new);
        batches.grow();
        let before = mem::take(&mut self.table);
        self.held.clear();
        let table = &mut self.table;
        before.each(|key, row| {
            work.tick()?;
            let batch = batches.of(key);
            if batch != batches.current {
                return batches.inner.push(batch, key, row);
            }
            table.push(key, row).map(|_| ())
        })?;
        drop(before);
        self.held.grow(self.table.used())?;
        // If few keys have most of the rows, another cut is tried when it is worth its time.
        self.bound = self.bound.max(self.table.used().saturating_mul(2));
        Ok(())
    }

    fn next_outer(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<Phase> {
        let has_rows = match &self.batches {
            Some(batches) if batches.current > 0 => return self.next_kept_outer(join, cx),
            Some(_) => true,
            None => !self.table.is_empty(),
        };
        if !has_rows && !keeps_outer(join) {
            return Ok(Phase::WithoutKey);
        }
        if !self.outer.next(&join.outer, cx)? {
            return Ok(after_outer(join));
        }
        if !self.set_key(join.keys.iter().map(|(outer, _)| outer), cx)? {
            return Ok(Phase::Matching(NONE, false));
        }
        if let Some(batches) = &mut self.batches {
            let batch = batches.of(&self.key);
            if batch != batches.current {
                self.row.clear();
                kept::save(cx, &self.outer_slots, &mut self.row)?;
                batches.outer.push(batch, &self.key, &self.row)?;
                return Ok(Phase::NextOuter);
            }
        }
        Ok(Phase::Matching(self.table.first(&self.key), false))
    }

    /// The next outer row of a batch that is not the first.
    fn next_kept_outer(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<Phase> {
        let Some(batches) = self.batches.as_deref_mut() else { return Ok(Phase::End) };
        let Some((key, row)) = batches.outer.next(&mut self.outer_rows)? else {
            return Ok(after_outer(join));
        };
        // There may be more batches than when it was kept.
        let batch = batches.of(key);
        if batch != batches.current {
            batches.outer.push(batch, key, row)?;
            return Ok(Phase::NextOuter);
        }
        kept::load(row, &self.outer_slots, &mut cx.rows)?;
        Ok(Phase::Matching(self.table.first(key), false))
    }

    /// Goes on with the outer row. True if there is a row to give.
    fn match_outer(
        &mut self,
        join: &HashJoin,
        cx: &mut Context<'_>,
        entry: u32,
        has_match: bool,
    ) -> Result<bool> {
        if join.seeks_one() && entry != NONE {
            let is_found = self.table.has_one(entry, |row| {
                cx.work().tick()?;
                kept::load(row, &self.inner_slots, &mut cx.rows)?;
                self.on.holds(join.on.as_ref(), cx)
            })?;
            self.phase = Phase::Matching(NONE, is_found);
            return Ok(is_found && join.kind == JoinKind::Semi);
        }
        let Some(row) = self.table.row(entry) else {
            self.phase = Phase::NextOuter;
            if has_match || !keeps_outer(join) {
                return Ok(false);
            }
            nullify(&self.inner_slots, cx)?;
            return Ok(true);
        };
        if join.gives_inner && self.table.has_match(entry) {
            self.phase = match join.on {
                // The rows of a key have matched together.
                None => Phase::NextOuter,
                Some(_) => Phase::Matching(self.table.next(entry), true),
            };
            return Ok(false);
        }
        kept::load(row, &self.inner_slots, &mut cx.rows)?;
        if !self.on.holds(join.on.as_ref(), cx)? {
            self.phase = Phase::Matching(self.table.next(entry), has_match);
            return Ok(false);
        }
        if gives_inner(join) {
            self.table.set_match(entry);
        }
        if join.gives_inner {
            // Rows are given when all matches are known.
            self.phase = Phase::Matching(self.table.next(entry), true);
            return Ok(false);
        }
        self.phase = match join.kind {
            JoinKind::Semi | JoinKind::Anti => Phase::NextOuter,
            _ => Phase::Matching(self.table.next(entry), true),
        };
        Ok(join.kind != JoinKind::Anti)
    }

    fn next_unmatched(
        &mut self,
        join: &HashJoin,
        behind: u32,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        let number = self.table.next_with(behind, join.kind == JoinKind::Semi);
        let Some(row) = self.table.row(number) else {
            self.phase = Phase::NextBatch;
            return Ok(false);
        };
        kept::load(row, &self.inner_slots, &mut cx.rows)?;
        nullify(&self.outer_slots, cx)?;
        self.phase = Phase::Unmatched(number);
        Ok(true)
    }

    /// Reads the inner rows of the next batch that may give rows.
    fn next_batch(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<Phase> {
        let Some(batches) = self.batches.as_deref_mut() else { return Ok(Phase::WithoutKey) };
        loop {
            batches.current += 1;
            if batches.current >= batches.count() {
                self.clear_table();
                return Ok(Phase::WithoutKey);
            }
            // Inner rows are read even without outer ones: they may be of a later batch by now.
            let has_inner = !batches.inner.is_empty(batches.current);
            let has_outer = !batches.outer.is_empty(batches.current);
            if has_inner || has_outer && keeps_outer(join) {
                break;
            }
        }
        self.outer_rows = batches.outer.take(batches.current);
        let mut rows = batches.inner.take(batches.current);
        self.clear_table();
        self.bound = cx.work().resources.memory.hash_work().max(LEAST_BYTES);
        while let Some(batches) = &self.batches
            && let Some((key, row)) = batches.inner.next(&mut rows)?
        {
            cx.work().tick()?;
            self.key.clear();
            self.key.extend_from_slice(key);
            self.row.clear();
            self.row.extend_from_slice(row);
            self.keep(cx)?;
        }
        self.table.link(cx.work(), join)?;
        Ok(Phase::NextOuter)
    }

    /// The inner rows that can't match come last.
    fn next_without_key(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let Some(row) = self.without_key.next(&mut self.cursor)? else {
            self.phase = Phase::End;
            return Ok(false);
        };
        kept::load(row, &self.inner_slots, &mut cx.rows)?;
        nullify(&self.outer_slots, cx)?;
        Ok(true)
    }
}

fn held(resources: &Resources) -> Held {
    Held::new(&resources.memory, "Hash Join")
}

/// Whether inner rows are given when all outer rows have been looked at.
fn gives_inner(join: &HashJoin) -> bool {
    matches!(join.kind, JoinKind::Right | JoinKind::Full) || join.gives_inner
}

/// Whether inner rows are given that can't match.
fn keeps_without_key(join: &HashJoin) -> bool {
    gives_inner(join) && join.kind != JoinKind::Semi
}

fn keeps_outer(join: &HashJoin) -> bool {
    matches!(join.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti) && !join.gives_inner
}

fn after_outer(join: &HashJoin) -> Phase {
    if gives_inner(join) { Phase::Unmatched(NONE) } else { Phase::NextBatch }
}

/// Sets the key of a row. False if there is a NULL in it.
pub(super) fn set_key<'e>(
    exprs: impl Iterator<Item = &'e Expr>,
    env: &Env<'_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    key.clear();
    for expr in exprs {
        if let Some(int) = expr.int(env) {
            datum_key::push_int(int.value, key);
            continue;
        }
        let mut held = Val::null();
        let value = expr.operand(env, &mut held)?;
        if value.is_null() {
            return Ok(false);
        }
        datum_key::push(&value, key);
    }
    Ok(true)
}

/// Makes all columns of some slots NULL.
fn nullify(slots: &[Slot], cx: &mut Context<'_>) -> Result<()> {
    slots.iter().try_for_each(|slot| cx.set(*slot, SlotRow::Null))
}
