//! Reading single rows, optimistically: no pin, no latch, no write to shared memory (heap rule 2).
//!
//! A warm fetch touches the page's first cache line, its line pointer, the tuple's header and columns, and the
//! status of the transactions that the header names (none on an all-visible page). What the closure
//! returns is used only after the pool has seen that the page did not change meanwhile; an error
//! made of torn bytes is thrown away with them.

use millpond_buffer::{BlockNumber, BufferError, PAGE_SIZE, PageRead};

use super::access_prune::prune_in_passing;
use super::header::{TUPLE_HEADER_LEN, TupleHeader};
use super::page::{self, Chain, is_all_visible};
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::transam::visibility::{Fates, visible};
use crate::transam::{Snapshot, Xid, XidStatus};

/// A chain with so many versions before the visible one is worth pruning.
const LONG_CHAIN: u32 = 4;

/// Copies the columns at `range` into `out`.
#[inline]
fn copy_out<P: PageRead + ?Sized>(page: &P, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
    out.clear();
    out.resize(range.len().min(PAGE_SIZE), 0);
    page.copy(range.start, out);
}

/// A block that does not exist (any more) holds no row: vacuum may have cut it off.
fn none_beyond_end<T>(result: Result<T, BufferError>) -> Result<Option<T>, BufferError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(BufferError::BeyondEnd { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The version that the snapshot sees of the row whose chain begins at `root` (what an index entry
/// names): copies its columns into `out` and returns where it is.
#[inline]
pub fn fetch(
    ctx: &Ctx,
    heap: &HeapRelation,
    root: Tid,
    snapshot: &Snapshot,
    out: &mut Vec<u8>,
) -> EngineResult<Option<Tid>> {
    let read = ctx.buffers().read(&heap.main, root.block, ctx.wait(), |view| {
        let all_visible = is_all_visible(view);
        let mut chain = Chain::from_root(root.offset);
        let mut passed = 0;
        while let Some(member) = chain.next(view) {
            if all_visible || visible(&member.header, snapshot, ctx)? {
                copy_out(view, member.payload(), out);
                return EngineResult::Ok((Some(member.offset), passed));
            }
            passed += 1;
        }
        Ok((None, passed))
    });
    let Some(read) = none_beyond_end(read)? else { return Ok(None) };
    let (offset, passed) = read?;
    if passed >= LONG_CHAIN {
        prune_in_passing(ctx, heap, root.block)?;
    }
    Ok(offset.map(|offset| Tid::new(root.block, offset)))
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
        copy_out(view, range.start + TUPLE_HEADER_LEN..range.end, out);
        Ok(true)
    });
    none_beyond_end(read)?.unwrap_or(Ok(false))
}

/// Copies the columns of the version at `tid` into `out`, whoever sees it, and returns its header. With
/// `made_by` only if that transaction made it: to follow the link from a version that this one replaced
/// (heap rule 4).
pub fn fetch_version(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    made_by: Option<Xid>,
    out: &mut Vec<u8>,
) -> EngineResult<Option<TupleHeader>> {
    let read = ctx.buffers().read(&heap.main, tid.block, ctx.wait(), |view| {
        let range = page::tuple(view, tid.offset).filter(|_| page::is_heap(view))?;
        let header = TupleHeader::read(view, range.start);
        if made_by.is_some_and(|xid| xid != header.xmin) {
            return None;
        }
        copy_out(view, range.start + TUPLE_HEADER_LEN..range.end, out);
        Some(header)
    });
    Ok(none_beyond_end(read)?.flatten())
}

/// Whether a row exists as of now, uncommitted changes included: what a unique index asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// No version is, or may become, alive.
    Dead,
    /// This version is alive, or made by the asking transaction.
    Live(Tid),
    /// That depends on this transaction: wait for it and ask again.
    InProgress(Xid),
}

/// Whether the row whose chain begins at `root` exists as of now. `own`: the asking transaction.
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
    if !header.flags.contains(super::TupleFlags::XMIN_FROZEN) {
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
