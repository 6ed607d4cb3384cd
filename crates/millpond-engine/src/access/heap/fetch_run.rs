//! Reads the rows of several index entries that lead to one page, with one optimistic read.
//!
//! A scan of an index in the table's order comes to each page as often as the page has rows. Looked
//! up one by one, each row costs a lookup of the page in the pool, and of the fate of the
//! transaction that made it. Here the page is read once: as a whole if many rows are wanted, else
//! only the columns of the visible rows.
//!
//! As in [`super::fetch()`], results made of torn bytes are discarded. The rows count only once the
//! pool has confirmed that the page did not change meanwhile. If the pool gives any other answer
//! (the page has left memory and may not be waited for, or was truncated), there are no rows.

use std::ops::Range;

use millpond_buffer::{PAGE_SIZE, PageRead, Ring};
use millpond_sync::mutant;

use super::access_prune::prune_in_passing;
use super::fetch::{LONG_CHAIN, find_version, none_beyond_end};
use super::header::TupleHeader;
use super::last_fate::LastFate;
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::access::heap::visibility::{Fates, visible};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::transam::{Snapshot, Xid};

/// From this many rows on, the whole page is copied. That costs as much as about ten rows' columns.
const WHOLE_PAGE_ROWS: usize = 8;

/// A visible version: where its chain begins, where it is, and where its columns are in the copy.
#[derive(Clone, Copy, Debug)]
struct Seen {
    root: u16,
    offset: u16,
    start: u16,
    end: u16,
}

/// The rows that some index entries lead to, all on one page, in the order of the entries. Reuse it
/// for the next page: it keeps its memory.
#[derive(Debug)]
pub struct FetchedRun {
    /// The part of the page that is needed, at its offset on the page.
    copy: Box<[u8; PAGE_SIZE]>,
    seen: Vec<Seen>,
    /// How many of `seen` have been returned.
    taken: usize,
    at: Tid,
}

impl Default for FetchedRun {
    fn default() -> Self {
        Self { copy: Box::new([0; PAGE_SIZE]), seen: Vec::new(), taken: 0, at: Tid::MIN }
    }
}

impl FetchedRun {
    /// The next row: its tid, the tid of its chain's root, and its columns.
    #[inline]
    pub fn next_row(&mut self) -> Option<(Tid, Tid, &[u8])> {
        let seen = self.seen.get(self.taken)?;
        self.taken += 1;
        let columns = self.copy.get(seen.start as usize..seen.end as usize).unwrap_or_default();
        let place = |offset| Tid::new(self.at.block, offset);
        Some((place(seen.offset), place(seen.root), columns))
    }

    /// Forgets the rows that have not been returned.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.taken = 0;
    }

    /// Reads the rows that the snapshot sees of the chains that begin at `roots`. All roots are on
    /// the page of the first. After an error there are no rows, and the call can be repeated.
    pub fn fetch(
        &mut self,
        ctx: &Ctx,
        heap: &HeapRelation,
        roots: &[Tid],
        snapshot: &Snapshot,
        ring: Option<&Ring>,
    ) -> EngineResult<()> {
        if let Some(hint) = self.find(ctx, heap, roots, snapshot, ring, ctx)? {
            prune_in_passing(ctx, heap, self.at.block, hint, ring);
        }
        Ok(())
    }

    /// The same without pruning. Returns the page's prune hint if a chain is long enough to be
    /// pruned.
    pub(super) fn find(
        &mut self,
        ctx: &Ctx,
        heap: &HeapRelation,
        roots: &[Tid],
        snapshot: &Snapshot,
        ring: Option<&Ring>,
        fates: &impl Fates,
    ) -> EngineResult<Option<Xid>> {
        self.clear();
        let Some(&first) = roots.first() else { return Ok(None) };
        self.at = first;
        let fates = LastFate::new(fates);
        let (copy, seen) = (&mut *self.copy, &mut self.seen);
        let (session, main, wait) = (ctx.buffers(), &heap.main, ctx.wait());
        let read = if roots.len() >= WHOLE_PAGE_ROWS {
            session
                .read_with(main, first.block, wait, ring, |view| view.copy_page(copy))
                .map(|()| find_all(&*copy, roots, snapshot, &fates, seen, |_| ()))
        } else {
            session.read_with(main, first.block, wait, ring, |view| {
                if !mutant!("heap-rows-of-first-try-kept") {
                    seen.clear();
                }
                let take = |columns: Range<usize>| {
                    let at = columns.start;
                    // Whole words: faster than to the byte.
                    let end = columns.end.next_multiple_of(8).min(PAGE_SIZE);
                    copy.get_mut(at..end).into_iter().for_each(|to| view.copy(at, to));
                };
                find_all(view, roots, snapshot, &fates, seen, take)
            })
        };
        let found = match none_beyond_end(read) {
            Ok(Some(Ok(hint))) => return Ok(hint),
            Ok(Some(Err(failure))) => Err(failure),
            Ok(None) => Ok(None),
            Err(error) => Err(error.into()),
        };
        // The rows were made of torn bytes, or are incomplete.
        if !mutant!("heap-torn-rows-kept") {
            seen.clear();
        }
        found
    }
}

/// Finds on a page what the snapshot sees of the chains that begin at `roots`. Returns the page's
/// prune hint if a chain is long enough to be pruned.
fn find_all<P: PageRead + ?Sized>(
    page: &P,
    roots: &[Tid],
    snapshot: &Snapshot,
    fates: &impl Fates,
    seen: &mut Vec<Seen>,
    mut take: impl FnMut(Range<usize>),
) -> EngineResult<Option<Xid>> {
    let (mut hint, mut failure) = (None, None);
    for root in roots {
        let mut columns = 0..0;
        let sees = |header: &TupleHeader| match visible(header, snapshot, fates) {
            Ok(seen) => seen,
            Err(error) => {
                failure = Some(error);
                false
            }
        };
        let found = find_version(page, root.offset, sees, |range| columns = range);
        if found.passed >= LONG_CHAIN {
            hint = Some(Xid(found.hint));
        }
        if found.offset != 0 {
            let (start, end) = (columns.start as u16, columns.end as u16);
            take(columns);
            seen.push(Seen { root: root.offset, offset: found.offset, start, end });
        }
    }
    failure.map_or(Ok(hint), Err)
}
