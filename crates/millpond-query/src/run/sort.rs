//! Sort, Incremental Sort, and the first rows of an order (Top-N).
//!
//! What is in the slots of the input is kept beside the keys and put back. A sort that may need
//! much memory spills: see [`Sorter`].
//!
//! Threads sort what they read where that is worth it: see [`parts`].
//!
//! Where rows come in the order of the first keys, they are sorted in batches: a batch ends where
//! these keys change. The row that shows it is the first of the next batch. Before the input goes
//! on, that row is put back: joins below find their own row in its slots.

mod parts;
mod top;

use self::top::Top;
use super::parts::output;
use super::state::State;
use super::{Context, kept};
use crate::analyze::tree::Slot;
use crate::error::Result;
use crate::exec::row_count;
use crate::expr::Env;
use crate::memory::{Sorted, Sorter};
use crate::plan::SortKey;
use crate::plan::query::node::{Bound, Node};

pub(super) use self::parts::{PartialSort, SortedPart};

/// First rows that are kept in order while rows come. If more are wanted all rows are sorted.
const MAX_TOP: u64 = 1024;
/// A batch has at least this many rows, unless fewer are wanted.
const LEAST_BATCH: u64 = 32;

/// The keys of an order, and how many of the first ones rows come sorted by.
#[derive(Clone, Copy)]
pub(super) struct Keys<'p> {
    pub(super) all: &'p [SortKey],
    pub(super) presorted: usize,
    /// Threads may sort what they read.
    pub(super) in_parts: bool,
}

pub(super) struct SortState {
    input: State,
    slots: Vec<Slot>,
    rows: Rows,
    /// How many rows are wanted of those that are still to come; `None`: all.
    wanted: Option<u64>,
    batch: Batch,
    /// A row in the making, and its key.
    bytes: Vec<u8>,
    key: Vec<u8>,
}

/// Where one batch ends and the next begins.
#[derive(Default)]
struct Batch {
    /// Rows of the batch so far.
    count: u64,
    /// The first keys of its last row.
    first_keys: Vec<u8>,
    /// The first row of the next batch, if it has been read.
    ahead: Option<Vec<u8>>,
    /// There are no more rows.
    is_last: bool,
}

enum Rows {
    /// The input has not been read.
    Unread,
    Top {
        top: Top,
        given: usize,
    },
    Sorted(Box<Sorted>),
    End,
}

impl SortState {
    pub(super) fn new(input: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(input, cx)?,
            slots: output(input),
            rows: Rows::Unread,
            wanted: None,
            batch: Batch::default(),
            bytes: Vec::with_capacity(kept::SMALL_ROW),
            key: Vec::with_capacity(kept::SMALL_ROW),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        (self.rows, self.batch) = (Rows::Unread, Batch::default());
    }

    pub(super) fn next(
        &mut self,
        input: &Node,
        keys: Keys<'_>,
        bound: Option<&Bound>,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        if let Rows::Unread = self.rows {
            self.wanted = bound.map(|bound| rows_wanted(bound, cx)).transpose()?.flatten();
            self.rows = self.next_batch(input, keys, cx)?;
        }
        loop {
            if self.give(cx)? {
                return Ok(true);
            }
            if matches!(self.rows, Rows::End) || self.batch.is_last {
                self.rows = Rows::End;
                return Ok(false);
            }
            self.wanted = self.wanted.map(|wanted| wanted.saturating_sub(self.batch.count));
            self.rows = self.next_batch(input, keys, cx)?;
        }
    }

    /// Puts the next sorted row into the slots. False if there is none.
    fn give(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        match &mut self.rows {
            Rows::Top { top, given } => {
                let Some(row) = top.row(*given) else { return Ok(false) };
                *given += 1;
                kept::load(row, &self.slots, &mut cx.rows)?;
            }
            Rows::Sorted(sorted) => {
                let Some(row) = sorted.next()? else { return Ok(false) };
                kept::load(row, &self.slots, &mut cx.rows)?;
                cx.work().tick()?;
            }
            Rows::Unread | Rows::End => return Ok(false),
        }
        Ok(true)
    }

    fn next_batch(&mut self, input: &Node, keys: Keys<'_>, cx: &mut Context<'_>) -> Result<Rows> {
        self.batch.count = 0;
        let few = self.wanted.filter(|wanted| *wanted <= MAX_TOP).map(|wanted| wanted as usize);
        if few == Some(0) {
            return Ok(Rows::End);
        }
        if keys.in_parts
            && let Some(rows) = self.parts(input, keys, few, cx)?
        {
            return Ok(rows);
        }
        match few {
            Some(few) => self.top(input, keys, few, cx),
            None => self.sort(input, keys, cx),
        }
    }

    fn sort(&mut self, input: &Node, keys: Keys<'_>, cx: &mut Context<'_>) -> Result<Rows> {
        let mut sorter = Sorter::new(cx.work().resources);
        while self.next_row(input, keys, cx)? {
            self.set_key(keys, None, cx)?;
            self.bytes.clear();
            kept::save(cx, &self.slots, &mut self.bytes)?;
            sorter.push(&self.key, &self.bytes, &|| cx.work().tick())?;
        }
        Ok(Rows::Sorted(Box::new(sorter.finish(&|| cx.work().tick())?)))
    }

    /// Keeps the first `wanted` rows in order.
    fn top(
        &mut self,
        input: &Node,
        keys: Keys<'_>,
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Result<Rows> {
        let mut top = Top::new(wanted, &cx.work().resources.memory);
        while self.next_row(input, keys, cx)? {
            if self.set_key(keys, top.last(), cx)? {
                top.insert(&self.key, |row| kept::save(cx, &self.slots, row))?;
            }
        }
        Ok(Rows::Top { top, given: 0 })
    }

    /// Brings the next row of the batch into the slots. False at the batch's end.
    fn next_row(&mut self, input: &Node, keys: Keys<'_>, cx: &mut Context<'_>) -> Result<bool> {
        let is_new = match self.batch.ahead.take() {
            Some(row) => {
                kept::load(&row, &self.slots, &mut cx.rows)?;
                false
            }
            None => {
                if self.batch.is_last || !self.input.next(input, cx)? {
                    self.batch.is_last = true;
                    return Ok(false);
                }
                cx.work().tick()?;
                true
            }
        };
        if is_new && keys.presorted > 0 && self.is_ahead(keys, cx)? {
            return Ok(false);
        }
        self.batch.count += 1;
        Ok(true)
    }

    /// Whether the row that has been read is the first of the next batch. Then it is kept.
    fn is_ahead(&mut self, keys: Keys<'_>, cx: &Context<'_>) -> Result<bool> {
        self.key.clear();
        let env = cx.env();
        keys.all.iter().take(keys.presorted).try_for_each(|key| key.push(&env, &mut self.key))?;
        let least = self.wanted.map_or(LEAST_BATCH, |wanted| wanted.min(LEAST_BATCH));
        let is_ahead = self.batch.count >= least && self.batch.first_keys != self.key;
        std::mem::swap(&mut self.batch.first_keys, &mut self.key);
        if is_ahead {
            let mut row = Vec::with_capacity(kept::SMALL_ROW);
            kept::save(cx, &self.slots, &mut row)?;
            self.batch.ahead = Some(row);
        }
        Ok(is_ahead)
    }

    /// Makes the key of the current row. False if the row is not before `last`, the key of a row
    /// that came earlier. Then the key may lack columns at its end.
    fn set_key(&mut self, keys: Keys<'_>, last: Option<&[u8]>, cx: &Context<'_>) -> Result<bool> {
        // The first keys are there already.
        self.key.clone_from(&self.batch.first_keys);
        let keys = keys.all.get(keys.presorted..).unwrap_or_default();
        push_keys(keys, &cx.env(), last, &mut self.key)
    }
}

/// Appends the keys of the row of `env`. False if the whole is not before `last`. Then columns at
/// the end may be missing. Other expressions are computed always: they may fail.
fn push_keys(
    keys: &[SortKey],
    env: &Env<'_>,
    last: Option<&[u8]>,
    whole: &mut Vec<u8>,
) -> Result<bool> {
    let mut keys = keys.iter();
    while let Some(key) = keys.next() {
        key.push(env, whole)?;
        if let Some(last) = last
            && last.get(..whole.len()).unwrap_or(last) < whole.as_slice()
            && keys.as_slice().iter().all(SortKey::is_column)
        {
            return Ok(false);
        }
    }
    Ok(last.is_none_or(|last| whole.as_slice() < last))
}

/// How many rows are wanted; `None` if all are.
fn rows_wanted(bound: &Bound, cx: &Context<'_>) -> Result<Option<u64>> {
    let env = cx.env();
    let offset = row_count(bound.offset.as_ref(), &env, true)?.unwrap_or(0);
    let limit = row_count(Some(&bound.limit), &env, false)?;
    Ok(limit.and_then(|limit| limit.checked_add(offset)))
}
