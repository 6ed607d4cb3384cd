//! Nested Loop: for each row of the outer side the inner side is run again.
//!
//! The inner side may be a row by its key. If there are more than a few outer rows, the inner rows
//! of many outer rows are then looked up together: see [`OuterRows`].

use std::mem;

use super::folded::Folded;
use super::gather::{Begun, can_settle, workers_for};
use super::outer_batch::OuterRows;
use super::state::State;
use super::{Context, SlotRow, parts};
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::{Result, SqlError};
use crate::plan::query::node::{NestedLoop, Node};

pub(super) struct NestedLoopState {
    outer: State,
    inner: State,
    /// There is an outer row.
    has_outer: bool,
    /// It has had a match.
    has_match: bool,
    inner_slots: Vec<Slot>,
    /// What was in the inner slots when they were made NULL, so that its memory is used again.
    set_aside: Vec<SlotRow>,
    is_null: bool,
    /// How many outer rows were taken one by one.
    singly: usize,
    batches: Together,
    /// What else must hold.
    on: Folded,
    begun: bool,
    /// The outer side gives the joined rows.
    is_gathered: bool,
}

/// Whether inner rows are looked up together.
enum Together {
    /// That is found out when there have been some outer rows.
    Unknown,
    Never,
    Batches(Box<OuterRows>),
}

/// After this number of outer rows, the next ones are looked up together. A short join does not pay
/// for what that needs, and a LIMIT that few rows satisfy reads no more of them.
const SINGLY: usize = 8;

impl NestedLoopState {
    pub(super) fn new(join: &NestedLoop, cx: &Context<'_>) -> Result<Self> {
        let inner_slots = match join.kind {
            JoinKind::Left => parts::output(&join.inner),
            JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => Vec::new(),
            JoinKind::Right | JoinKind::Full => {
                return Err(SqlError::internal("a nested loop keeps no inner rows"));
            }
        };
        Ok(Self {
            outer: State::new(&join.outer, cx)?,
            inner: State::new(&join.inner, cx)?,
            has_outer: false,
            has_match: false,
            set_aside: inner_slots.iter().map(|_| SlotRow::Null).collect(),
            inner_slots,
            is_null: false,
            singly: 0,
            batches: Together::Unknown,
            on: Folded::default(),
            begun: false,
            is_gathered: false,
        })
    }

    pub(super) fn rescan(&mut self) {
        self.outer.rescan();
        (self.has_outer, self.singly, self.begun) = (false, 0, false);
        if let Together::Batches(batches) = &mut self.batches {
            batches.reset();
        }
    }

    pub(super) fn next(&mut self, join: &NestedLoop, cx: &mut Context<'_>) -> Result<bool> {
        if !self.begun {
            self.start(join, cx)?;
        }
        if self.is_gathered {
            return self.outer.next(&join.outer, cx);
        }
        loop {
            if !self.has_outer {
                if self.singly >= SINGLY
                    && let Some(found) = self.next_of_batch(join, cx)?
                {
                    return Ok(found);
                }
                if !self.outer.next(&join.outer, cx)? {
                    return Ok(false);
                }
                self.singly += 1;
                (self.has_outer, self.has_match) = (true, false);
                self.put_back(cx)?;
                self.inner.rescan();
            }
            if self.next_match(join, cx)? {
                self.has_match = true;
                match join.kind {
                    JoinKind::Semi => {
                        self.has_outer = false;
                        return Ok(true);
                    }
                    JoinKind::Anti => self.has_outer = false,
                    _ => return Ok(true),
                }
            } else {
                self.has_outer = false;
                match join.kind {
                    JoinKind::Anti => return Ok(true),
                    JoinKind::Left if !self.has_match => {
                        self.put_aside(cx)?;
                        return Ok(true);
                    }
                    _ => {}
                }
            }
        }
    }

    fn start(&mut self, join: &NestedLoop, cx: &mut Context<'_>) -> Result<()> {
        self.begun = true;
        self.renew_outer(join, cx)?;
        if join.gathers
            && workers_for(&join.outer, cx.work())? > 0
            && can_settle(join.on.iter(), &[&join.inner, &join.outer], cx)?
            && let Some(begun) = self.begin(join, cx)?
        {
            self.outer = State::Fragment(begun.start(cx)?);
            self.is_gathered = true;
        }
        Ok(())
    }

    /// Threads run the outer side for one run of the join.
    fn renew_outer(&mut self, join: &NestedLoop, cx: &Context<'_>) -> Result<()> {
        if self.outer.is_fragment() {
            self.outer = State::new(&join.outer, cx)?;
            self.is_gathered = false;
        }
        Ok(())
    }

    /// The join as a part of a fragment: of its own, or of a node above it. `None` if there is
    /// none, or if it ends below the join.
    pub(super) fn begin<'p>(
        &mut self,
        join: &'p NestedLoop,
        cx: &mut Context<'_>,
    ) -> Result<Option<Begun<'p>>> {
        self.begun = true;
        self.renew_outer(join, cx)?;
        let Node::Scan(inner) = &join.inner else { return Ok(None) };
        let Some(mut begun) = self.outer.begin_fragment(&join.outer, cx)? else { return Ok(None) };
        let session = cx.work().session()?;
        if session.may_see_keys_twice() {
            // Only the session looks for all rows of a key.
            self.outer = State::Fragment(begun.start(cx)?);
            return Ok(None);
        }
        if let Some(index) = inner.access.index() {
            session.check_index(index)?;
        }
        begun.index(join, inner, cx)?;
        Ok(Some(begun))
    }

    /// The next row, with inner rows that are looked up together. `None`: one by one.
    fn next_of_batch(&mut self, join: &NestedLoop, cx: &mut Context<'_>) -> Result<Option<bool>> {
        let Node::Scan(scan) = &join.inner else { return Ok(None) };
        if let Together::Unknown = self.batches {
            let batches = OuterRows::new(&join.outer, scan);
            self.batches =
                batches.map_or(Together::Never, |batches| Together::Batches(Box::new(batches)));
        }
        loop {
            self.put_back(cx)?;
            let Together::Batches(batches) = &mut self.batches else { return Ok(None) };
            let Some(number) = batches.next_outer(cx)? else {
                match batches.fill(&mut self.outer, &join.outer, scan, cx)? {
                    None => return Ok(None),
                    Some(false) => return Ok(Some(false)),
                    Some(true) => continue,
                }
            };
            let is_match =
                batches.inner(number, scan, cx)? && self.on.holds(join.on.as_ref(), cx)?;
            match join.kind {
                JoinKind::Left if !is_match => self.put_aside(cx)?,
                JoinKind::Anti if is_match => continue,
                JoinKind::Inner | JoinKind::Semi if !is_match => continue,
                _ => {}
            }
            return Ok(Some(true));
        }
    }

    /// The next inner row that matches.
    fn next_match(&mut self, join: &NestedLoop, cx: &mut Context<'_>) -> Result<bool> {
        while self.inner.next(&join.inner, cx)? {
            if self.on.holds(join.on.as_ref(), cx)? {
                return Ok(true);
            }
            cx.work().tick()?;
        }
        Ok(false)
    }

    /// Makes the inner columns NULL.
    fn put_aside(&mut self, cx: &mut Context<'_>) -> Result<()> {
        self.is_null = true;
        self.swap(cx)
    }

    fn put_back(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if mem::take(&mut self.is_null) { self.swap(cx) } else { Ok(()) }
    }

    fn swap(&mut self, cx: &mut Context<'_>) -> Result<()> {
        for (slot, aside) in self.inner_slots.iter().zip(&mut self.set_aside) {
            mem::swap(cx.row_mut(*slot)?, aside);
        }
        Ok(())
    }
}
