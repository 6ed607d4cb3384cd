//! How a long scan of an index comes to its rows: a page at a time, with pages of the table read ahead.
//!
//! A short scan looks up one row after the other. A long one knows from the leaves that it has copied which pages
//! come next; it copies some more leaves, lets a [`ReadStream`] read those pages ahead, and reads all rows of neighbouring
//! entries that are on one page together ([`heap::FetchedRun`]). The rows are copies made under the statement's snapshot,
//! so it is the same when they are looked at.

use millpond_buffer::{BlockNumber, ReadStream, RelHandle, Ring};

use crate::access::heap::{FetchedRun, HeapRelation};
use crate::access::{Tid, btree};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::transam::Snapshot;

use super::RowBuf;

/// A long scan copies leaves until it knows of so many pages to come, or as many as the stream looks ahead.
const PAGES_KNOWN: usize = 16;

/// What is ahead of a long scan.
#[derive(Debug)]
pub(super) struct LongScan {
    /// The ring for the table's pages, if the table is large.
    ring: Option<Ring>,
    stream: ReadStream,
    /// Entries of leaves that have been copied, from `at` on still to be read.
    entries: Vec<Tid>,
    at: usize,
    /// The stream has been told of the pages of those before this one.
    told: usize,
    /// How many pages the entries from `at` on lead to, counting neighbours that are on one page once.
    pages: usize,
    /// There are no more leaves.
    ended: bool,
    run: FetchedRun,
}

/// The tables and places that a scan reads.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) ctx: &'a Ctx,
    pub(super) heap: &'a HeapRelation,
    pub(super) tree: &'a RelHandle,
    pub(super) snapshot: &'a Snapshot,
}

impl LongScan {
    /// A scan that turns out to be long when it comes to the entry `next`.
    pub(super) fn new(ctx: &Ctx, ring: Option<Ring>, next: Tid) -> Self {
        Self {
            ring,
            stream: ReadStream::new(ctx.bulk_access().streams),
            entries: vec![next],
            at: 0,
            told: 0,
            pages: 1,
            ended: false,
            run: FetchedRun::default(),
        }
    }

    /// Copies the next row that has been read already, if there is one.
    #[inline]
    pub(super) fn next_row(&mut self, row: &mut RowBuf) -> bool {
        let Some((tid, root, columns)) = self.run.next_row() else { return false };
        row.set(tid, columns);
        row.root = Some(root);
        true
    }

    /// Reads the rows of the entries that come next, as far as they are on one page; false at the end. After an error it can
    /// be called again.
    pub(super) fn next_run(
        &mut self,
        source: Source<'_>,
        cursor: &mut btree::Cursor,
    ) -> EngineResult<bool> {
        let Source { ctx, heap, snapshot, .. } = source;
        ctx.check_interrupts()?;
        self.know_more(source, cursor)?;
        let (entries, told, ended) = (&self.entries, &mut self.told, self.ended);
        let mut blocks = || {
            let (block, end) = page_run(entries, *told)?;
            // The next leaf may have more entries for the last page.
            if end == entries.len() && !ended {
                return None;
            }
            *told = end;
            Some(block)
        };
        let (session, wait, ring) = (ctx.buffers(), ctx.wait(), self.ring.as_ref());
        self.stream.peek(session, &heap.main, wait, ring, &mut blocks);
        let Some((_, end)) = page_run(&self.entries, self.at) else { return Ok(false) };
        self.run.fetch(ctx, heap, &self.entries[self.at..end], snapshot, ring)?;
        self.stream.advance();
        self.at = end;
        self.pages = self.pages.saturating_sub(1);
        Ok(true)
    }

    /// Copies leaves until enough is known of what comes.
    fn know_more(&mut self, source: Source<'_>, cursor: &mut btree::Cursor) -> EngineResult<()> {
        while !self.ended && self.pages <= self.stream.distance().max(PAGES_KNOWN) {
            if self.at > self.entries.len() / 2 {
                self.entries.drain(..self.at);
                self.told -= self.at;
                self.at = 0;
            }
            let known = self.entries.len();
            self.ended = !cursor.next_leaf(source.ctx, source.tree, &mut self.entries)?;
            self.stream.ask_again();
            let last = known.checked_sub(1).filter(|&last| last >= self.at);
            let mut last = last.map(|last| self.entries[last].block);
            for tid in &self.entries[known..] {
                self.pages += usize::from(last.replace(tid.block) != Some(tid.block));
            }
        }
        Ok(())
    }
}

/// The page of the entry at `start`, and where the entries end that follow it and are on the same page.
fn page_run(entries: &[Tid], start: usize) -> Option<(BlockNumber, usize)> {
    let rest = entries.get(start..)?;
    let block = rest.first()?.block;
    let length = rest.iter().take_while(|tid| tid.block == block).count();
    Some((block, start + length))
}
