//! Outer rows of a nested loop that are read ahead, so that their inner rows are looked up together
//! ([`Session::lookup_many`]).
//!
//! The outer side goes on from the rows in its slots. Those are its last ones again once all that
//! were read ahead have been in the slots, in their order.
//!
//! [`Session::lookup_many`]: millpond_engine::session::Session::lookup_many

use millpond_engine::session::LookupBatch;

use super::folded::Folded;
use super::state::State;
use super::{Context, kept, parts};
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError};
use crate::exec::key;
use crate::plan::Access;
use crate::plan::query::node::{Node, Scan};
use crate::system_relations::is_system;

/// Outer rows of the first batch. Each later one has twice as many, so that a LIMIT leaves at most
/// half of the rows unused.
const FIRST_ROWS: usize = 8;
const MOST_ROWS: usize = 256;
/// A batch whose outer rows have this size in bytes takes no more.
const MOST_BYTES: usize = 256 << 10;

/// Outer rows, and the inner rows that their keys lead to.
pub(super) struct OuterRows {
    slots: Vec<Slot>,
    /// `None`: before the first batch and after the last one.
    batch: Option<Box<Batch>>,
    /// The next outer row.
    at: usize,
    /// How many to read next.
    size: usize,
    /// The outer side has ended.
    ended: bool,
    /// What the outer side failed with after these rows.
    failure: Option<SqlError>,
    /// The inner scan's filter.
    filter: Folded,
}

/// Memory that a connection uses again.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The outer rows, as [`kept`] has them.
    rows: Vec<u8>,
    ends: Vec<usize>,
    found: LookupBatch,
}

impl Batch {
    /// About how many bytes of memory it has.
    pub(super) fn memory(&self) -> usize {
        self.rows.capacity() + 8 * self.ends.capacity() + self.found.memory()
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.found.clear();
    }
}

impl OuterRows {
    /// `None` if the outer side may not be read ahead, or the inner one is no row by its key.
    pub(super) fn new(outer: &Node, inner: &Scan) -> Option<Self> {
        let by_key = matches!(inner.access, Access::Point { .. }) && !is_system(&inner.table);
        // A volatile function is called for the rows that are asked for, when they are.
        if !by_key || parts::is_volatile(outer) {
            return None;
        }
        let (slots, size) = (parts::output(outer), FIRST_ROWS);
        let (ended, failure, filter) = (false, None, Folded::default());
        Some(Self { slots, batch: None, at: 0, size, ended, failure, filter })
    }

    /// Begins anew with other outer rows.
    pub(super) fn reset(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.clear();
        }
        (self.at, self.size, self.ended, self.failure) = (0, FIRST_ROWS, false, None);
    }

    /// Puts the next outer row into its slots: its number. `None`: there is none left, and the last
    /// one is in the slots, from which the outer side goes on.
    pub(super) fn next_outer(&mut self, cx: &mut Context<'_>) -> Result<Option<usize>> {
        let Some(Batch { rows, ends, .. }) = self.batch.as_deref() else { return Ok(None) };
        let Some(end) = ends.get(self.at) else { return Ok(None) };
        let start = self.at.checked_sub(1).and_then(|before| ends.get(before));
        let row = rows.get(start.copied().unwrap_or(0)..*end).unwrap_or_default();
        kept::load(row, &self.slots, &mut cx.rows)?;
        self.at += 1;
        Ok(Some(self.at - 1))
    }

    /// Puts the inner row of an outer one into its slot; false if there is none that its filter
    /// takes.
    pub(super) fn inner(
        &mut self,
        number: usize,
        scan: &Scan,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        cx.work().count_row()?;
        let row = cx.stored_mut(scan.slot)?;
        let is_found = self.batch.as_ref().is_some_and(|batch| batch.found.row(number, row));
        Ok(is_found && self.filter.holds(scan.filter.as_ref(), cx)?)
    }

    /// Reads outer rows and looks up their inner rows. False at the end; `None` if a key may have
    /// more than one row.
    pub(super) fn fill(
        &mut self,
        state: &mut State,
        outer: &Node,
        scan: &Scan,
        cx: &mut Context<'_>,
    ) -> Result<Option<bool>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.ended {
            if let Some(batch) = self.batch.take() {
                cx.work().pool()?.batch = Some(batch);
            }
            return Ok(Some(false));
        }
        let Access::Point { index, .. } = &scan.access else { return Ok(None) };
        let session = cx.work().session()?;
        if session.may_see_keys_twice() {
            return Ok(None);
        }
        let mut batch = match self.batch.take() {
            Some(batch) => batch,
            None => cx.work().pool()?.batch.take().unwrap_or_default(),
        };
        self.at = 0;
        batch.clear();
        while batch.ends.len() < self.size && batch.rows.len() < MOST_BYTES {
            match read_outer((state, outer), (&self.slots, &mut batch), scan, cx) {
                Ok(true) => {}
                Ok(false) => {
                    self.ended = true;
                    break;
                }
                // The rows before it come first.
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        self.size = (self.size * 2).min(MOST_ROWS);
        session.lookup_many(&scan.table, index, &mut batch.found)?;
        self.batch = Some(batch);
        Ok(Some(true))
    }
}

/// Reads one outer row and notes its key. False at the end.
fn read_outer(
    (state, outer): (&mut State, &Node),
    (slots, batch): (&[Slot], &mut Batch),
    scan: &Scan,
    cx: &mut Context<'_>,
) -> Result<bool> {
    let Access::Point { index, key } = &scan.access else { return Ok(false) };
    if !state.next(outer, cx)? {
        return Ok(false);
    }
    let mut held = key::KeyVals::new();
    batch.found.push(index, key::exact(key, &cx.env(), &mut held)?.as_deref())?;
    kept::save(cx, slots, &mut batch.rows)?;
    batch.ends.push(batch.rows.len());
    Ok(true)
}
