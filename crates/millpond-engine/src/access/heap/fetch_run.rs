//! Reading the rows of several index entries that lead to one page: one optimistic read for all of them.
//!
//! Who follows an index whose order is that of the table comes to a page as often as it has rows. Looked up one by one,
//! each of them costs the way to the page (entry, version, tag) and the fate of its maker. Here the page is read
//! once: whole, if most of it may be wanted, and else only the columns of the rows that are seen. What the read made of
//! torn bytes is thrown away with them, as in [`super::fetch`].

use std::ops::Range;

use millpond_buffer::{PAGE_SIZE, PageRead, Ring};

use super::access_prune::prune_in_passing;
use super::fetch::{LONG_CHAIN, find_version, none_beyond_end};
use super::header::TupleHeader;
use super::last_fate::LastFate;
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::visibility::{Fates, visible};
use crate::transam::{Snapshot, Xid};

/// For so many rows the whole page is copied, which costs as much as the columns of some ten.
const WHOLE_PAGE_ROWS: usize = 8;

/// A version that is seen: where its chain begins, where it is, and where its columns are in the copy.
#[derive(Clone, Copy, Debug)]
struct Seen {
    root: u16,
    offset: u16,
    start: u16,
    end: u16,
}

/// The rows that some index entries lead to, all on one page, in the order of the entries. Keep it for the next page: it
/// keeps its memory.
#[derive(Debug)]
pub struct FetchedRun {
    /// What is needed of the page, where it is on the page.
    copy: Box<[u8; PAGE_SIZE]>,
    seen: Vec<Seen>,
    /// How many of them have been taken.
    taken: usize,
    at: Tid,
}

impl Default for FetchedRun {
    fn default() -> Self {
        Self { copy: Box::new([0; PAGE_SIZE]), seen: Vec::new(), taken: 0, at: Tid::MIN }
    }
}

/// What else was found while looking.
#[derive(Default)]
struct Findings {
    failure: Option<EngineError>,
    /// The page's prune hint, when a chain is long enough to care.
    hint: Option<Xid>,
}

impl FetchedRun {
    /// The next row: where it is, where its chain begins, and its columns.
    #[inline]
    pub fn next_row(&mut self) -> Option<(Tid, Tid, &[u8])> {
        let seen = self.seen.get(self.taken)?;
        self.taken += 1;
        let columns = self.copy.get(seen.start as usize..seen.end as usize).unwrap_or_default();
        let place = |offset| Tid::new(self.at.block, offset);
        Some((place(seen.offset), place(seen.root), columns))
    }

    /// Reads the rows whose chains begin at `roots`, all on the page of the first, that the snapshot sees. After an error
    /// there are none, and the call can be repeated.
    pub fn fetch(
        &mut self,
        ctx: &Ctx,
        heap: &HeapRelation,
        roots: &[Tid],
        snapshot: &Snapshot,
        ring: Option<&Ring>,
    ) -> EngineResult<()> {
        self.seen.clear();
        self.taken = 0;
        let Some(&first) = roots.first() else { return Ok(()) };
        self.at = first;
        let fates = LastFate::new(ctx);
        let (copy, seen) = (&mut *self.copy, &mut self.seen);
        let mut findings = Findings::default();
        let (session, main, wait) = (ctx.buffers(), &heap.main, ctx.wait());
        if roots.len() >= WHOLE_PAGE_ROWS {
            let read =
                session.read_with(main, first.block, wait, ring, |view| view.copy_page(copy));
            if none_beyond_end(read)?.is_some() {
                findings = find_all(&*copy, roots, snapshot, &fates, seen, |_| ());
            }
        } else {
            let read = session.read_with(main, first.block, wait, ring, |view| {
                seen.clear();
                let take = |columns: Range<usize>| {
                    let at = columns.start;
                    copy.get_mut(columns).into_iter().for_each(|to| view.copy(at, to));
                };
                findings = find_all(view, roots, snapshot, &fates, seen, take);
            });
            none_beyond_end(read)?;
        }
        if let Some(failure) = findings.failure {
            self.seen.clear();
            return Err(failure);
        }
        match findings.hint {
            Some(hint) => prune_in_passing(ctx, heap, first.block, hint, ring),
            None => Ok(()),
        }
    }
}

/// Finds on a page what the snapshot sees of the chains that begin at `roots`.
fn find_all<P: PageRead + ?Sized>(
    page: &P,
    roots: &[Tid],
    snapshot: &Snapshot,
    fates: &impl Fates,
    seen: &mut Vec<Seen>,
    mut take: impl FnMut(Range<usize>),
) -> Findings {
    let mut findings = Findings::default();
    for root in roots {
        let mut columns = 0..0;
        let sees = |header: &TupleHeader| match visible(header, snapshot, fates) {
            Ok(seen) => seen,
            Err(error) => {
                findings.failure = Some(error);
                false
            }
        };
        let found = find_version(page, root.offset, sees, |range| columns = range);
        if found.passed >= LONG_CHAIN {
            findings.hint = Some(Xid(found.hint));
        }
        if found.offset != 0 {
            let (start, end) = (columns.start as u16, columns.end as u16);
            take(columns);
            seen.push(Seen { root: root.offset, offset: found.offset, start, end });
        }
    }
    findings
}
