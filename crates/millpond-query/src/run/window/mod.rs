//! WindowAgg: functions over the rows around each row of a partition.
//!
//! A partition is read to its end before its first row is given. Its rows are kept in a store that
//! spills; what functions look at (order, arguments) is in memory and counted. What they return for
//! a row is computed when the row is given.

mod calls;
mod frame;
mod partition;
mod range;

pub(crate) use range::in_range;

use self::calls::{Framed, Running};
use self::frame::Frames;
use self::partition::Partition;
use super::state::State;
use super::{Context, SlotRow, kept, parts};
use crate::Value;
use crate::analyze::tree::{Slot, Window};
use crate::error::Result;
use crate::memory::{Cursor, Held, RowStore};
use crate::plan::query::node::Node;

pub(super) struct WindowState {
    input: State,
    slots: Vec<Slot>,
    rows: RowStore,
    cursor: Cursor,
    held: Held,
    partition: Partition,
    /// The state of each call; `None` unless it is an aggregate.
    calls: Vec<Option<Running>>,
    given: usize,
    /// The first row of the next partition: its key and its place among the kept rows.
    ahead: Option<(Vec<Value>, Vec<u8>)>,
    frames: Option<Frames>,
    is_over: bool,
    bytes: Vec<u8>,
}

impl WindowState {
    pub(super) fn new(input: &Node, _window: &Window, cx: &Context<'_>) -> Result<Self> {
        let resources = cx.work().resources;
        Ok(Self {
            input: State::new(input, cx)?,
            slots: parts::output(input),
            rows: RowStore::new(resources, "WindowAgg"),
            cursor: Cursor::default(),
            held: Held::new(&resources.memory, "WindowAgg"),
            partition: Partition::default(),
            calls: Vec::new(),
            given: 0,
            ahead: None,
            frames: None,
            is_over: false,
            bytes: Vec::with_capacity(kept::SMALL_ROW),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.partition.clear();
        (self.given, self.ahead, self.frames, self.is_over) = (0, None, None, false);
        self.calls.clear();
        self.held.clear();
    }

    pub(super) fn next(
        &mut self,
        input: &Node,
        window: &Window,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        cx.work().tick()?;
        if self.given == self.partition.len() && !self.next_partition(input, window, cx)? {
            return Ok(false);
        }
        let Some(row) = self.rows.next(&mut self.cursor)? else { return Ok(false) };
        kept::load(row, &self.slots, &mut cx.rows)?;
        let mut results = kept::take_values(cx.row_mut(window.slot)?);
        let Some(frames) = &self.frames else { return Ok(false) };
        let framed = Framed { partition: &self.partition, frames, options: cx.format_options() };
        let at = (framed, self.given);
        calls::results(window, at, &mut self.calls, cx.work(), &mut results)?;
        cx.set(window.slot, SlotRow::Values(results))?;
        self.given += 1;
        Ok(true)
    }

    /// Reads the next partition and finds its peers. Returns false if there is none.
    fn next_partition(
        &mut self,
        input: &Node,
        window: &Window,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        self.rows.clear()?;
        self.cursor.reset();
        self.held.clear();
        self.partition.clear();
        self.calls.clear();
        self.given = 0;
        let mut key = None;
        if let Some((ahead, row)) = self.ahead.take() {
            kept::load(&row, &self.slots, &mut cx.rows)?;
            self.add_row(window, cx)?;
            key = Some(ahead);
        }
        while !self.is_over {
            if !self.input.next(input, cx)? {
                self.is_over = true;
                break;
            }
            cx.work().tick()?;
            let mut own = Vec::with_capacity(window.partition_by.len());
            cx.values(window.partition_by.iter(), &mut own)?;
            if key.as_ref().is_some_and(|key| !is_same(key, &own)) {
                let mut row = Vec::new();
                kept::save(cx, &self.slots, &mut row)?;
                self.ahead = Some((own, row));
                break;
            }
            key.get_or_insert(own);
            self.add_row(window, cx)?;
        }
        if self.partition.len() == 0 {
            return Ok(false);
        }
        self.partition.find_peers(window, cx.work())?;
        if self.frames.is_none() {
            self.frames = Some(Frames::new(window, cx)?);
        }
        calls::begin(window, &cx.work().resources.memory, &mut self.calls);
        Ok(true)
    }

    /// Keeps the current row as one of the partition.
    fn add_row(&mut self, window: &Window, cx: &Context<'_>) -> Result<()> {
        self.bytes.clear();
        kept::save(cx, &self.slots, &mut self.bytes)?;
        self.rows.push(&self.bytes)?;
        let grown = self.partition.add(window, cx)?;
        self.held.grow(grown)
    }
}

/// Whether two rows are of one partition.
fn is_same(a: &[Value], b: &[Value]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.as_datum().sort_cmp(&b.as_datum()).is_eq())
}
