//! Checks all that one heap page can show alone: bounds, overlaps, headers, chains.
//!
//! `millpond check` and tests use it. It reports problems and where they are; it repairs nothing.

use std::fmt;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageRead};

use super::header::{TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
use super::page::{self, FLAG_ALL_VISIBLE};
use super::relation::HeapRelation;
use crate::access::heap::visibility::Fates;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::page::item::{self, FLAG_HAS_UNUSED, LineSet, LineState};
use crate::page::{FLAGS, PageKind, kind};
use crate::transam::{Xid, XidStatus};

/// Something wrong with a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The block.
    pub block: BlockNumber,
    /// The line pointer, or 0 for the page as a whole.
    pub offset: u16,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => write!(f, "block {}: {}", self.block.0, self.what),
            offset => write!(f, "block {}, line pointer {offset}: {}", self.block.0, self.what),
        }
    }
}

/// Checks one page. `next_xid` is above every transaction id assigned so far.
pub fn check_page(
    bytes: &[u8; PAGE_SIZE],
    block: BlockNumber,
    next_xid: Xid,
    report: &mut dyn FnMut(Problem),
) {
    let mut problem = |offset, what: String| report(Problem { block, offset, what });
    if kind(bytes) == PageKind::New as u16 {
        if bytes[12..].iter().any(|&byte| byte != 0) {
            problem(0, "page kind is 0 (new) but the page is not empty".into());
        }
        return;
    }
    if let Err(error) = page::check(bytes) {
        problem(0, error.to_string());
        return;
    }
    let unknown = bytes.u16(FLAGS) & !(FLAG_HAS_UNUSED | FLAG_ALL_VISIBLE);
    if unknown != 0 {
        problem(0, format!("unknown page flags {unknown:#06x}"));
    }
    check_lines(bytes, &mut problem);
    let successors = check_tuples(bytes, block, next_xid, &mut problem);
    check_chains(bytes, &successors, &mut problem);
}

fn check_lines(bytes: &[u8; PAGE_SIZE], problem: &mut impl FnMut(u16, String)) {
    let count = item::line_count(bytes);
    let (lower, upper) = (bytes.u16(item::LOWER), bytes.u16(item::UPPER));
    let mut items: Vec<(usize, usize, u16)> = Vec::new();
    let mut any_unused = false;
    for offset in 1..=count {
        let line = item::line(bytes, offset);
        match line.state() {
            LineState::Unused => any_unused = true,
            LineState::Dead => {}
            LineState::Redirect => {
                let target = item::line(bytes, line.target());
                let heap_only =
                    page::header(bytes, line.target()).is_some_and(|header| header.is_heap_only());
                if line.target() == offset || !target.is_normal() || !heap_only {
                    let to = line.target();
                    problem(offset, format!("redirect to {to}, which is no heap-only tuple"));
                }
            }
            LineState::Normal => {
                let (at, len) = (line.target() as usize, line.len() as usize);
                if at < upper as usize || at + len > PAGE_SIZE || !at.is_multiple_of(8) {
                    problem(
                        offset,
                        format!("tuple at {at}..{} is outside {upper}..8192", at + len),
                    );
                } else if len < TUPLE_HEADER_LEN {
                    problem(offset, format!("tuple of {len} bytes is shorter than its header"));
                } else {
                    items.push((at, at + len, offset));
                }
            }
        }
    }
    items.sort_unstable();
    for pair in items.windows(2) {
        let ((_, end, first), (start, _, second)) = (pair[0], pair[1]);
        if start < end {
            problem(second, format!("tuple at {start} overlaps that of line pointer {first}"));
        }
    }
    if count > 0 && item::line(bytes, count).state() == LineState::Unused {
        problem(count, format!("the last line pointer (lower {lower}) is unused"));
    }
    if any_unused && bytes.u16(FLAGS) & FLAG_HAS_UNUSED == 0 {
        problem(0, "has unused line pointers, but its flag says that it has none".into());
    }
}

/// Checks headers. Returns the heap-only tuples that a predecessor or a redirect leads to.
fn check_tuples(
    bytes: &[u8; PAGE_SIZE],
    block: BlockNumber,
    next_xid: Xid,
    problem: &mut impl FnMut(u16, String),
) -> LineSet {
    let mut successors = LineSet::default();
    for offset in 1..=item::line_count(bytes) {
        let line = item::line(bytes, offset);
        if line.state() == LineState::Redirect {
            successors.insert(line.target());
        }
        let Some(header) = page::header(bytes, offset) else { continue };
        for (name, xid) in [("xmin", header.xmin), ("xmax", header.xmax)] {
            if xid >= next_xid {
                problem(
                    offset,
                    format!("{name} {xid} was never assigned: the next id is {next_xid}"),
                );
            }
        }
        if !header.xmin.is_valid() {
            problem(offset, "xmin is 0".into());
        }
        check_flags(&header, offset, problem);
        if bytes.u16(FLAGS) & FLAG_ALL_VISIBLE != 0
            && !header.has_no_xmax()
            && !header.is_locked_only()
        {
            problem(offset, format!("xmax {} on a page marked all-visible", header.xmax));
        }
        if header.is_hot_updated() {
            if header.ctid.block != block {
                let to = header.ctid;
                problem(offset, format!("replaced in the page, but its successor is {to}"));
            }
            let next = page::header(bytes, header.ctid.offset);
            // If an aborted transaction left the successor, that may be gone and its line pointer
            // used again.
            if next.is_some_and(|next| next.xmin == header.xmax && next.is_heap_only()) {
                if successors.contains(header.ctid.offset) {
                    let to = header.ctid.offset;
                    problem(
                        offset,
                        format!("its successor, line pointer {to}, has another predecessor"),
                    );
                }
                successors.insert(header.ctid.offset);
            }
        }
    }
    successors
}

fn check_flags(header: &TupleHeader, offset: u16, problem: &mut impl FnMut(u16, String)) {
    let flags = header.flags;
    if flags.0 & !TupleFlags::ALL.0 != 0 {
        problem(offset, format!("unknown flags {:#06x}", flags.0));
    }
    if header.has_no_xmax() && flags.0 & TupleFlags::XMAX_BITS.0 != 0 {
        problem(offset, format!("flags {:#06x} describe an xmax, but xmax is 0", flags.0));
    }
    if flags.contains(TupleFlags::HOT_UPDATED) && !flags.contains(TupleFlags::UPDATED_AWAY) {
        problem(offset, "contradictory flags: replaced within the page, but not replaced".into());
    }
    if flags.contains(TupleFlags::XMAX_LOCK_ONLY) && flags.contains(TupleFlags::UPDATED_AWAY) {
        problem(offset, "contradictory flags: only locked, and replaced".into());
    }
    if flags.contains(TupleFlags::UPDATED_AWAY) != (header.ctid.offset != 0) {
        problem(offset, format!("successor {} contradicts flags {:#06x}", header.ctid, flags.0));
    }
}

fn check_chains(
    bytes: &[u8; PAGE_SIZE],
    successors: &LineSet,
    problem: &mut impl FnMut(u16, String),
) {
    for offset in 1..=item::line_count(bytes) {
        let Some(header) = page::header(bytes, offset) else { continue };
        // An aborted update leaves a heap-only version, which becomes unreachable once its
        // predecessor is locked, replaced or cleaned up again. Pruning never freezes such a
        // version.
        if header.is_heap_only()
            && !successors.contains(offset)
            && header.flags.contains(TupleFlags::XMIN_FROZEN)
        {
            problem(offset, "a frozen heap-only tuple that no chain reaches".into());
        }
    }
}

/// Checks every page of a heap. It reads through the pool, which verifies checksums. A damaged page
/// is reported as a problem, and the check goes on. Any other read error ends it.
pub fn check_heap(
    ctx: &Ctx,
    heap: &HeapRelation,
    next_xid: Xid,
    report: &mut dyn FnMut(Problem),
) -> EngineResult<u32> {
    let blocks = heap.block_count();
    let mut copy = Box::new([0; PAGE_SIZE]);
    for block in (0..blocks).map(BlockNumber) {
        check_block(ctx, heap, block, next_xid, &mut copy, report)?;
    }
    Ok(blocks)
}

/// Checks one page of a heap like [`check_heap`]. If the result is `true`, the page is in `copy`.
pub fn check_block(
    ctx: &Ctx,
    heap: &HeapRelation,
    block: BlockNumber,
    next_xid: Xid,
    copy: &mut [u8; PAGE_SIZE],
    report: &mut dyn FnMut(Problem),
) -> EngineResult<bool> {
    ctx.check_interrupts()?;
    let read = ctx.buffers().read(&heap.main, block, ctx.wait(), |view| view.copy_page(copy));
    match read.map_err(EngineError::from) {
        Ok(()) => {
            check_page(copy, block, next_xid, report);
            check_links(ctx, heap, copy, block, report)?;
            Ok(true)
        }
        Err(error) if error.is_damage() => {
            report(Problem { block, offset: 0, what: error.to_string() });
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Checks that links to other pages that a reader would follow lead to blocks that exist. It does
/// not look at those pages: the successor may be gone and its line pointer used again.
fn check_links(
    ctx: &Ctx,
    heap: &HeapRelation,
    copy: &[u8; PAGE_SIZE],
    block: BlockNumber,
    report: &mut dyn FnMut(Problem),
) -> EngineResult<()> {
    // Counted after the page was copied: a successor's page exists before its predecessor names it.
    let blocks = heap.block_count();
    for offset in 1..=item::line_count(copy) {
        let Some(header) = page::header(copy, offset) else { continue };
        let next = header.ctid;
        if !header.flags.contains(TupleFlags::UPDATED_AWAY)
            || next.block.0 < blocks
            || header.is_hot_updated()
        {
            continue;
        }
        let what = match leads_to_successor(ctx, &header) {
            Ok(false) => continue,
            Ok(true) => {
                format!("successor {next} is beyond the end of the table ({blocks} blocks)")
            }
            Err(error) if error.is_damage() => {
                format!("the status of its xmax {} is not known: {error}", header.xmax)
            }
            Err(error) => return Err(error),
        };
        report(Problem { block, offset, what });
    }
    Ok(())
}

/// Whether a reader of a replaced version would look for the successor. No reader does if the
/// update was rolled back. Its mark stays while others hold the row, and the successor may be gone
/// with its page. Nor does one if no snapshot sees the version any more: the successor may be gone
/// first.
fn leads_to_successor(ctx: &Ctx, header: &TupleHeader) -> EngineResult<bool> {
    match ctx.status(header.xmax)? {
        XidStatus::InProgress => Ok(true),
        XidStatus::Aborted => Ok(false),
        // The horizon is read last: what was removed before the page was copied was beyond it.
        XidStatus::Committed(csn) => Ok(csn > ctx.txns().recent_horizon().csn),
    }
}
