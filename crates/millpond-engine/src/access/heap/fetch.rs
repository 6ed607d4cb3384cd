//! Reading single rows, optimistically: no pin, no latch, no write to shared memory (heap rule 2).
//!
//! A warm fetch touches the page's first cache line, its line pointer, and the tuple's header and
//! columns. Unless the page is all-visible, it also touches the status of the transactions that the
//! header names. The closure's result is used only after the pool has confirmed that the page did
//! not change meanwhile. An error made of torn bytes is discarded with them.

use std::ops::Range;

use millpond_buffer::{BlockNumber, BufferError, PageRead};
use millpond_sync::mutant;

use super::access_prune::prune_in_passing;
use super::header::{self, TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
use super::last_fate::LastFate;
use super::page::{self, Chain, is_all_visible};
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::access::heap::visibility::{Fates, visible};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::page::item::{self, LineState};
use crate::transam::{Snapshot, Xid, XidStatus};

/// A chain with this many versions before the visible one is worth pruning.
pub(super) const LONG_CHAIN: u16 = 4;

/// Copies `len` bytes from `at` into `out`, which keeps its memory.
#[inline]
fn copy_out<P: PageRead + ?Sized>(page: &P, at: usize, len: usize, out: &mut Vec<u8>) {
    // Old content is overwritten: only growth has to be filled with zeros.
    if out.len() < len {
        out.resize(len, 0);
    } else {
        out.truncate(len);
    }
    page.copy(at, out);
}

/// A block that does not exist (any more) holds no row: vacuum may have truncated the heap.
pub(super) fn none_beyond_end<T>(result: Result<T, BufferError>) -> Result<Option<T>, BufferError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(BufferError::BeyondEnd { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a walk along a chain found. Small, so that it is returned in registers.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// The version's line pointer; 0: none is seen.
    pub(super) offset: u16,
    /// How many versions came before it.
    pub(super) passed: u16,
    /// The page's prune hint, if the chain is long enough to be pruned.
    pub(super) hint: u64,
}

/// [`Chain`] written out for the hottest path. It reads no more of a header than it needs, and only
/// the flags on an all-visible page. `take` gets the range of the visible version's columns.
#[inline]
pub(super) fn find_version<P: PageRead + ?Sized>(
    page: &P,
    root: u16,
    mut sees: impl FnMut(&TupleHeader) -> bool,
    mut take: impl FnMut(Range<usize>),
) -> Found {
    let mut found = Found::default();
    if !page::is_heap(page) {
        return found;
    }
    let all_visible = is_all_visible(page);
    let mut offset = root;
    let mut line = item::line(page, offset);
    let redirected = line.state() == LineState::Redirect;
    if redirected {
        offset = line.target();
        line = item::line(page, offset);
    }
    let mut prior_xmax = None;
    while found.passed < item::MAX_LINES {
        let Some(range) = line.item().filter(|range| range.len() >= TUPLE_HEADER_LEN) else {
            break;
        };
        let flags = header::read_flags(page, range.start);
        if found.passed == 0
            && !redirected
            && flags.contains(TupleFlags::HEAP_ONLY)
            && !mutant!("heap-root-of-any-kind")
        {
            break;
        }
        let mut next = 0;
        let seen = all_visible || {
            let header = TupleHeader::read(page, range.start);
            if prior_xmax.is_some_and(|xmax| xmax != header.xmin)
                && !mutant!("heap-chain-without-xmin")
            {
                break;
            }
            prior_xmax = Some(header.xmax);
            next = if header.is_hot_updated() { header.ctid.offset } else { 0 };
            sees(&header)
        };
        if seen {
            take(range.start + TUPLE_HEADER_LEN..range.end);
            found.offset = offset;
            break;
        }
        found.passed += 1;
        if next == 0 {
            break;
        }
        offset = next;
        line = item::line(page, offset);
    }
    if found.passed >= LONG_CHAIN {
        found.hint = page::prune_hint(page).0;
    }
    found
}

/// Finds the version that the snapshot sees of the row whose chain begins at `root` (the tid in an
/// index entry). Copies its columns into `out` and returns its tid.
#[inline]
pub fn fetch(
    ctx: &Ctx,
    heap: &HeapRelation,
    root: Tid,
    snapshot: &Snapshot,
    out: &mut Vec<u8>,
) -> EngineResult<Option<Tid>> {
    // A version's xmax is its successor's xmin: one look-up serves both.
    let fates = LastFate::new(ctx);
    // The error is kept outside the result: a large result would be copied on every read.
    let mut failure = None;
    let read = ctx.buffers().read(&heap.main, root.block, ctx.wait(), |view| {
        failure = None;
        let sees = |header: &TupleHeader| match visible(header, snapshot, &fates) {
            Ok(seen) => seen,
            Err(error) => {
                failure = Some(error);
                false
            }
        };
        let take = |columns: Range<usize>| copy_out(view, columns.start, columns.len(), out);
        find_version(view, root.offset, sees, take)
    });
    let Some(found) = none_beyond_end(read)? else { return Ok(None) };
    if let Some(error) = failure {
        return Err(error);
    }
    if found.passed >= LONG_CHAIN {
        prune_in_passing(ctx, heap, root.block, Xid(found.hint), None);
    }
    Ok((found.offset != 0).then(|| Tid::new(root.block, found.offset)))
}

/// Copies the columns of exactly the version at `tid` into `out`, if the snapshot sees it.
pub fn fetch_at(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    snapshot: &Snapshot,
    out: &mut Vec<u8>,
) -> EngineResult<bool> {
    let read = ctx.buffers().read(&heap.main, tid.block, ctx.wait(), |view| {
        let Some(range) = page::tuple(view, tid.offset).filter(|_| page::is_heap(view)) else {
            return Ok(false);
        };
        let header = TupleHeader::read(view, range.start);
        if !is_all_visible(view) && !visible(&header, snapshot, ctx)? {
            return Ok(false);
        }
        copy_out(view, range.start + TUPLE_HEADER_LEN, range.len() - TUPLE_HEADER_LEN, out);
        Ok(true)
    });
    none_beyond_end(read)?.unwrap_or(Ok(false))
}

/// The header of the version at `tid`, visible or not; `None` if there is none.
pub fn header_at(ctx: &Ctx, heap: &HeapRelation, tid: Tid) -> EngineResult<Option<TupleHeader>> {
    let read = ctx.buffers().read(&heap.main, tid.block, ctx.wait(), |view| {
        let range = page::tuple(view, tid.offset).filter(|_| page::is_heap(view))?;
        Some(TupleHeader::read(view, range.start))
    });
    Ok(none_beyond_end(read)?.flatten())
}

/// The newest version of a row that was replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest {
    /// Where it is.
    pub tid: Tid,
    /// The root of its chain, if that differs from the root of the version before it. Then it has
    /// an index entry of its own.
    pub root: Option<Tid>,
}

/// Follows a row from the version at `next` to the newest one that a committed transaction made,
/// and copies its columns into `out`. `by` is the transaction that made `next` when it replaced the
/// version before. `None`: the row has been deleted meanwhile.
///
/// A session that has waited long for a row may find many newer versions. Only the last one
/// matters.
pub fn fetch_newest(
    ctx: &Ctx,
    heap: &HeapRelation,
    next: Tid,
    by: Xid,
    out: &mut Vec<u8>,
) -> EngineResult<Option<Newest>> {
    let (mut at, mut maker, mut root) = (next, by, None);
    loop {
        ctx.check_interrupts()?;
        let read = ctx
            .buffers()
            .read(&heap.main, at.block, ctx.wait(), |view| follow(ctx, view, at, maker, root, out));
        match none_beyond_end(read)?.unwrap_or(Ok(Followed::Gone))? {
            Followed::Gone => return Ok(None),
            Followed::Newest(newest) => return Ok(Some(newest)),
            Followed::Elsewhere(next, by, last_root) => (at, maker, root) = (next, by, last_root),
        }
    }
}

/// How far a walk along a row's versions got on one page.
enum Followed {
    Gone,
    Newest(Newest),
    /// The next version is on another page. Fields: its tid, the transaction that made it, and the
    /// root found so far.
    Elsewhere(Tid, Xid, Option<Tid>),
}

fn follow<P: PageRead + ?Sized>(
    ctx: &Ctx,
    page: &P,
    mut at: Tid,
    mut maker: Xid,
    mut root: Option<Tid>,
    out: &mut Vec<u8>,
) -> EngineResult<Followed> {
    if !page::is_heap(page) {
        return Ok(Followed::Gone);
    }
    for _ in 0..item::MAX_LINES {
        let Some(range) = page::tuple(page, at.offset) else { return Ok(Followed::Gone) };
        let header = TupleHeader::read(page, range.start);
        if header.xmin != maker && !mutant!("heap-newest-without-maker") {
            return Ok(Followed::Gone);
        }
        if !header.is_heap_only() {
            root = Some(at);
        }
        let is_over = !header.has_no_xmax()
            && !header.is_locked_only()
            && matches!(ctx.status(header.xmax)?, XidStatus::Committed(_));
        if !is_over {
            copy_out(page, range.start + TUPLE_HEADER_LEN, range.len() - TUPLE_HEADER_LEN, out);
            return Ok(Followed::Newest(Newest { tid: at, root }));
        }
        if !header.flags.contains(TupleFlags::UPDATED_AWAY) {
            return Ok(Followed::Gone);
        }
        let next = header.ctid;
        if next.block != at.block {
            return Ok(Followed::Elsewhere(next, header.xmax, root));
        }
        (at, maker) = (next, header.xmax);
    }
    Ok(Followed::Gone)
}

/// The root of the version at `tid`: the tid in the index entries that lead to it, which all
/// versions of one chain share. A session needs it only when it must queue for the row and has not
/// come through an index. A version that no chain leads to is its own root.
pub fn root_of(ctx: &Ctx, heap: &HeapRelation, tid: Tid) -> EngineResult<Tid> {
    let read = ctx.buffers().read(&heap.main, tid.block, ctx.wait(), |view| {
        let range = page::tuple(view, tid.offset).filter(|_| page::is_heap(view))?;
        if !header::read_flags(view, range.start).contains(TupleFlags::HEAP_ONLY) {
            return None;
        }
        (1..=item::line_count(view)).find(|&root| {
            let mut chain = Chain::from_root(root);
            std::iter::from_fn(|| chain.next(view)).any(|member| member.offset == tid.offset)
        })
    });
    let root = none_beyond_end(read)?.flatten();
    Ok(root.map_or(tid, |root| Tid::new(tid.block, root)))
}

/// Whether a new version with these columns would fit the page of the one at `tid`, now and without
/// pruning. `true` without a tid.
pub fn has_room_beside(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Option<Tid>,
    columns: &[u8],
) -> EngineResult<bool> {
    let Some(tid) = tid else { return Ok(true) };
    let read = ctx.buffers().read(&heap.main, tid.block, ctx.wait(), |view| {
        page::slot_for(view, columns.len(), 0).is_some()
    });
    Ok(none_beyond_end(read)?.unwrap_or(true))
}

/// Whether a row exists now, with uncommitted changes counted: what a unique index asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// No version is alive, or can become so.
    Dead,
    /// This version is alive, or the asking transaction made it.
    Live(Tid),
    /// It depends on this transaction: wait for it and ask again.
    InProgress(Xid),
}

/// Whether the row whose chain begins at `root` exists now. `own`: the asking transaction.
pub fn liveness(
    ctx: &Ctx,
    heap: &HeapRelation,
    root: Tid,
    own: Option<Xid>,
) -> EngineResult<Liveness> {
    let read = ctx.buffers().read(&heap.main, root.block, ctx.wait(), |view| {
        let mut chain = Chain::from_root(root.offset);
        while let Some(member) = chain.next(view) {
            match version_liveness(&member.header, own, ctx)? {
                Liveness::Dead => {}
                Liveness::Live(_) => {
                    return Ok(Liveness::Live(Tid::new(root.block, member.offset)));
                }
                waiting => return Ok(waiting),
            }
        }
        Ok(Liveness::Dead)
    });
    none_beyond_end(read)?.unwrap_or(Ok(Liveness::Dead))
}

fn version_liveness(
    header: &TupleHeader,
    own: Option<Xid>,
    fates: &impl Fates,
) -> EngineResult<Liveness> {
    let fate = |xid: Xid| -> EngineResult<XidStatus> {
        if own == Some(xid) {
            return Ok(XidStatus::Committed(crate::transam::Csn::FROZEN));
        }
        fates.status(xid)
    };
    if !header.flags.contains(TupleFlags::XMIN_FROZEN) {
        match fate(header.xmin)? {
            XidStatus::InProgress => return Ok(Liveness::InProgress(header.xmin)),
            XidStatus::Aborted => return Ok(Liveness::Dead),
            XidStatus::Committed(_) => {}
        }
    }
    let live = Liveness::Live(Tid::new(BlockNumber(0), 0));
    if header.has_no_xmax() || header.is_locked_only() {
        return Ok(live);
    }
    Ok(match fate(header.xmax)? {
        XidStatus::InProgress => Liveness::InProgress(header.xmax),
        XidStatus::Aborted => live,
        XidStatus::Committed(_) => Liveness::Dead,
    })
}
