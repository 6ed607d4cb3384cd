//! How a long index scan reads its rows: one heap page at a time, with later heap pages read ahead.
//!
//! A short scan looks up the rows of the next few entries. A long one copies several leaves ahead
//! of its position, so it knows which heap pages come next. It lets a [`ReadStream`] read those
//! pages ahead. It reads all rows of consecutive entries on one page together
//! ([`heap::FetchedRun`]). The rows are copies made under the statement's snapshot, so they do not
//! depend on when they are read.

use millpond_buffer::{BlockNumber, ReadStream, RelHandle, Ring};

use crate::access::heap::{FetchedRun, HeapRelation, RowPrefetch};
use crate::access::{Tid, btree};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::transam::Snapshot;

use crate::table::RowBuf;

/// A long scan copies leaves until it knows this many later heap pages, or as many as the stream
/// looks ahead.
const PAGES_KNOWN: usize = 16;

/// The look-ahead of a long scan.
#[derive(Debug)]
pub(super) struct LongScan {
    /// The ring for the table's pages, if the table is large.
    ring: Option<Ring>,
    stream: ReadStream,
    /// Entries of copied leaves. Those from `at` on have yet to be read.
    entries: Vec<Tid>,
    at: usize,
    /// The stream already knows the pages of the entries before this one.
    told: usize,
    /// How many heap pages the entries from `at` on lead to. Consecutive entries on one page count
    /// once.
    pages: usize,
    /// There are no more leaves.
    ended: bool,
    prefetch: RowPrefetch,
    run: FetchedRun,
}

/// What a scan reads from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) ctx: &'a Ctx,
    pub(super) heap: &'a HeapRelation,
    pub(super) tree: &'a RelHandle,
    pub(super) snapshot: &'a Snapshot,
}

impl LongScan {
    /// Starts the look-ahead of a scan that turns out to be long at the entries `next`, which are
    /// on one page.
    pub(super) fn new(ctx: &Ctx, ring: Option<Ring>, next: Vec<Tid>) -> Self {
        Self {
            ring,
            stream: ReadStream::new(ctx.bulk_access().streams),
            entries: next,
            at: 0,
            told: 0,
            pages: 1,
            ended: false,
            prefetch: RowPrefetch::default(),
            run: FetchedRun::default(),
        }
    }

    /// Copies the next row of the current page, if there is one.
    #[inline]
    pub(super) fn next_row(&mut self, row: &mut RowBuf) -> bool {
        row.set_next_of(&mut self.run)
    }

    /// Reads the rows of the next entries that are on one page. Returns false at the end. It can be
    /// called again after an error.
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
        let read = (end - self.at, usize::MAX);
        self.prefetch.prefetch(ctx, heap, read, |place| self.entries.get(end + place).copied());
        self.run.fetch(ctx, heap, &self.entries[self.at..end], snapshot, ring)?;
        self.stream.advance();
        self.at = end;
        self.pages = self.pages.saturating_sub(1);
        Ok(true)
    }

    /// Copies leaves until enough of the next pages are known.
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

/// The page of the entry at `start`, and the end of the entries after it that are on the same page.
fn page_run(entries: &[Tid], start: usize) -> Option<(BlockNumber, usize)> {
    let rest = entries.get(start..)?;
    let block = rest.first()?.block;
    let length = rest.iter().take_while(|tid| tid.block == block).count();
    Some((block, start + length))
}
