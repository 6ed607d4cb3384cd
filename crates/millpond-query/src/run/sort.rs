//! Sort, and the first rows of an order (Top-N).
//!
//! What is in the slots of the input is kept beside the keys and put back. A sort that may need
//! much memory spills: see [`Sorter`].

use super::state::State;
use super::{Context, kept, parts};
use crate::analyze::tree::Slot;
use crate::error::Result;
use crate::exec::row_count;
use crate::memory::{Held, Sorted, Sorter};
use crate::plan::SortKey;
use crate::plan::query::node::{Bound, Node};

/// First rows that are kept in order while rows come. If more are wanted all rows are sorted.
const MAX_TOP: u64 = 1024;

/// A row's key, and the row.
type KeyedRow = (Vec<u8>, Vec<u8>);

pub(super) struct SortState {
    input: State,
    slots: Vec<Slot>,
    rows: Rows,
    /// A row in the making, and its key.
    bytes: Vec<u8>,
    key: Vec<u8>,
}

enum Rows {
    /// The input has not been read.
    Unread,
    Top {
        rows: Vec<KeyedRow>,
        given: usize,
        _held: Held,
    },
    Sorted(Box<Sorted>),
    End,
}

impl SortState {
    pub(super) fn new(input: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(input, cx)?,
            slots: parts::output(input),
            rows: Rows::Unread,
            bytes: Vec::with_capacity(kept::SMALL_ROW),
            key: Vec::with_capacity(kept::SMALL_ROW),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.rows = Rows::Unread;
    }

    pub(super) fn next(
        &mut self,
        input: &Node,
        keys: &[SortKey],
        bound: Option<&Bound>,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        if let Rows::Unread = self.rows {
            self.rows = match bound.map(|bound| rows_wanted(bound, cx)).transpose()?.flatten() {
                Some(0) => Rows::End,
                Some(wanted) if wanted <= MAX_TOP => self.top(input, keys, wanted as usize, cx)?,
                _ => self.sort(input, keys, cx)?,
            };
        }
        match &mut self.rows {
            Rows::Top { rows, given, .. } => {
                let Some((_, row)) = rows.get(*given) else { return Ok(false) };
                *given += 1;
                kept::load(row, &self.slots, &mut cx.rows)?;
                Ok(true)
            }
            Rows::Sorted(sorted) => match sorted.next()? {
                Some(row) => {
                    kept::load(row, &self.slots, &mut cx.rows)?;
                    cx.work().tick()?;
                    Ok(true)
                }
                None => {
                    self.rows = Rows::End;
                    Ok(false)
                }
            },
            Rows::Unread | Rows::End => Ok(false),
        }
    }

    fn sort(&mut self, input: &Node, keys: &[SortKey], cx: &mut Context<'_>) -> Result<Rows> {
        let mut sorter = Sorter::new(cx.work().resources);
        while self.next_row(input, cx)? {
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
        keys: &[SortKey],
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Result<Rows> {
        let mut held = Held::new(&cx.work().resources.memory, "Sort");
        let mut top: Vec<KeyedRow> = Vec::new();
        let mut used = 0;
        while self.next_row(input, cx)? {
            let is_full = top.len() == wanted;
            let last =
                if is_full { Some(top.last().map_or(&[][..], |(key, _)| key)) } else { None };
            if !self.set_key(keys, last, cx)? {
                continue;
            }
            let place = top.partition_point(|(before, _)| *before <= self.key);
            let (mut key, mut row) = match if is_full { top.pop() } else { None } {
                Some((key, row)) => {
                    used -= key.capacity() + row.capacity();
                    (key, row)
                }
                None => (Vec::new(), Vec::with_capacity(kept::SMALL_ROW)),
            };
            key.clear();
            key.extend_from_slice(&self.key);
            row.clear();
            kept::save(cx, &self.slots, &mut row)?;
            used += key.capacity() + row.capacity();
            top.insert(place, (key, row));
            held.resize(used + top.capacity() * size_of::<KeyedRow>())?;
        }
        Ok(Rows::Top { rows: top, given: 0, _held: held })
    }

    fn next_row(&mut self, input: &Node, cx: &mut Context<'_>) -> Result<bool> {
        if !self.input.next(input, cx)? {
            return Ok(false);
        }
        cx.work().tick()?;
        Ok(true)
    }

    /// Makes the key of the current row. False if the row is not before `last`, the key of a row
    /// that came earlier. Then columns at the end may be missing. Other expressions are computed
    /// always: they may fail.
    fn set_key(&mut self, keys: &[SortKey], last: Option<&[u8]>, cx: &Context<'_>) -> Result<bool> {
        self.key.clear();
        let env = cx.env();
        let mut keys = keys.iter();
        while let Some(key) = keys.next() {
            key.push(&env, &mut self.key)?;
            if let Some(last) = last
                && last.get(..self.key.len()).unwrap_or(last) < self.key.as_slice()
                && keys.as_slice().iter().all(SortKey::is_column)
            {
                return Ok(false);
            }
        }
        Ok(last.is_none_or(|last| self.key.as_slice() < last))
    }
}

/// How many rows are wanted; `None` if all are.
fn rows_wanted(bound: &Bound, cx: &Context<'_>) -> Result<Option<u64>> {
    let env = cx.env();
    let offset = row_count(bound.offset.as_ref(), &env, true)?.unwrap_or(0);
    let limit = row_count(Some(&bound.limit), &env, false)?;
    Ok(limit.and_then(|limit| limit.checked_add(offset)))
}
