//! Materialize: rows that are kept, so that they can be read again.

use super::state::State;
use super::{Context, kept, parts};
use crate::analyze::tree::Slot;
use crate::error::Result;
use crate::memory::{Cursor, RowStore};
use crate::plan::query::node::Node;

pub(super) struct MaterializeState {
    input: State,
    slots: Vec<Slot>,
    rows: RowStore,
    cursor: Cursor,
    /// The input has no more rows.
    is_complete: bool,
    /// The input would give the same rows again.
    is_fixed: bool,
    bytes: Vec<u8>,
    /// The rows are those of an earlier run.
    must_forget: bool,
}

impl MaterializeState {
    pub(super) fn new(input: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(input, cx)?,
            slots: parts::output(input),
            rows: RowStore::new(cx.work().resources, "Materialize"),
            cursor: Cursor::default(),
            is_complete: false,
            is_fixed: parts::is_fixed(input, cx.plan.plan, &cx.plan.changes()),
            bytes: Vec::new(),
            must_forget: false,
        })
    }

    pub(super) fn rescan(&mut self) {
        if self.is_fixed {
            self.cursor.seek(0);
            return;
        }
        self.input.rescan();
        self.cursor.reset();
        (self.is_complete, self.must_forget) = (false, true);
    }

    pub(super) fn next(&mut self, input: &Node, cx: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.must_forget) {
            self.rows.clear()?;
        }
        if let Some(row) = self.rows.next(&mut self.cursor)? {
            kept::load(row, &self.slots, &mut cx.rows)?;
            cx.work().tick()?;
            return Ok(true);
        }
        if self.is_complete {
            return Ok(false);
        }
        if !self.input.next(input, cx)? {
            self.is_complete = true;
            return Ok(false);
        }
        self.bytes.clear();
        kept::save(cx, &self.slots, &mut self.bytes)?;
        self.rows.push(&self.bytes)?;
        self.cursor.seek(self.rows.end());
        Ok(true)
    }
}
