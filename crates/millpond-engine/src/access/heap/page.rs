//! Heap pages: tuples behind line pointers, and the version chains between them.
//!
//! A heap page is an item page ([`crate::page::item`]) of kind `Heap`. Its own word at 24..32 is
//! the *prune hint*: the smallest id of a transaction that may have left something here to prune,
//! or 0. It is only a hint; vacuum looks at everything.
//!
//! Page flags: bit 0 is has-unused (item page), bit 1 is all-visible. On an all-visible page every
//! snapshot sees every version, so readers skip the headers (heap rule 7).
//!
//! A *chain* (PostgreSQL's HOT chain) begins at a root, a line pointer that index entries may name.
//! It is either a redirect or a tuple that is not HEAP_ONLY. The chain follows ctid while
//! HOT_UPDATED is set, all on one page. A member counts only if its xmin is its predecessor's xmax:
//! otherwise the line pointer was used again (heap rule 4).

use std::ops::Range;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageRead};
use millpond_sync::mutant;

use super::header::{
    CID, CTID_BLOCK, CTID_OFFSET, FLAGS as TUPLE_FLAGS, TUPLE_HEADER_LEN, TupleFlags, TupleHeader,
    XMAX,
};
use crate::access::Tid;
use crate::page::item::{self, LINE_LEN, LINES, LineState, MAX_ITEM_LEN};
use crate::page::{FLAGS, PageError, PageKind, PageMut, kind};
use crate::transam::{CommandId, Xid};

/// Page flag: every version is visible to every snapshot.
pub const FLAG_ALL_VISIBLE: u16 = 1 << 1;
/// Offset of the prune hint.
pub const PRUNE_HINT: usize = item::KIND_WORD;
/// The most bytes of columns that a row version can have.
pub const MAX_PAYLOAD: usize = MAX_ITEM_LEN - TUPLE_HEADER_LEN;

/// Whether this is a heap page. New (never written) pages are not.
#[inline]
pub fn is_heap<P: PageRead + ?Sized>(page: &P) -> bool {
    kind(page) == PageKind::Heap as u16
}

/// Whether the all-visible flag is set.
#[inline]
pub fn is_all_visible<P: PageRead + ?Sized>(page: &P) -> bool {
    page.u16(FLAGS) & FLAG_ALL_VISIBLE != 0
}

/// Sets or clears the all-visible flag.
pub fn set_all_visible<P: PageMut + ?Sized>(page: &mut P, on: bool) {
    let flags = page.u16(FLAGS);
    let wanted = if on { flags | FLAG_ALL_VISIBLE } else { flags & !FLAG_ALL_VISIBLE };
    if wanted != flags {
        page.put_u16(FLAGS, wanted);
    }
}

/// The prune hint.
#[inline]
pub fn prune_hint<P: PageRead + ?Sized>(page: &P) -> Xid {
    Xid(page.u64(PRUNE_HINT))
}

/// Notes that `xid` may leave something to prune here.
pub fn note_prunable<P: PageMut + ?Sized>(page: &mut P, xid: Xid) {
    let hint = prune_hint(page);
    if !hint.is_valid() || xid < hint {
        page.put_u64(PRUNE_HINT, xid.0);
    }
}

/// The bytes of the tuple (header and columns) behind line pointer `offset`; `None` if it is
/// invalid.
#[inline]
pub fn tuple<P: PageRead + ?Sized>(page: &P, offset: u16) -> Option<Range<usize>> {
    item::line(page, offset).item().filter(|range| range.len() >= TUPLE_HEADER_LEN)
}

/// The number of tuples on the page.
#[inline]
pub fn count_tuples<P: PageRead + ?Sized>(page: &P) -> u16 {
    item::count_items(page, TUPLE_HEADER_LEN)
}

/// The header behind line pointer `offset`.
#[inline]
pub fn header<P: PageRead + ?Sized>(page: &P, offset: u16) -> Option<TupleHeader> {
    header_of(page, item::line(page, offset))
}

/// The header that a line pointer of the page leads to.
#[inline]
pub fn header_of<P: PageRead + ?Sized>(page: &P, line: item::Line) -> Option<TupleHeader> {
    let range = line.item().filter(|range| range.len() >= TUPLE_HEADER_LEN)?;
    Some(TupleHeader::read(page, range.start))
}

/// A member of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its line pointer.
    pub offset: u16,
    /// Header and columns.
    pub bytes: Range<usize>,
    /// Its header.
    pub header: TupleHeader,
}

impl Member {
    /// The columns' bytes.
    #[inline]
    pub fn payload(&self) -> Range<usize> {
        self.bytes.start + TUPLE_HEADER_LEN..self.bytes.end
    }
}

/// A walk along a chain, from its root. It ends after as many steps as a page can have line
/// pointers, so torn or damaged bytes cannot make it run for ever.
#[derive(Clone, Debug)]
pub struct Chain {
    next: u16,
    /// The xmin that the next member must have; `None` for the first.
    prior_xmax: Option<Xid>,
    at_root: bool,
    steps_left: u16,
}

impl Chain {
    /// Starts at the root line pointer `offset`.
    #[inline]
    pub fn from_root(offset: u16) -> Self {
        Self { next: offset, prior_xmax: None, at_root: true, steps_left: item::MAX_LINES }
    }

    /// The next member.
    #[inline]
    pub fn next<P: PageRead + ?Sized>(&mut self, page: &P) -> Option<Member> {
        if self.next == 0 || self.steps_left == 0 {
            return None;
        }
        self.steps_left -= 1;
        let mut line = item::line(page, self.next);
        let mut redirected = false;
        if self.at_root && line.state() == LineState::Redirect {
            self.next = line.target();
            line = item::line(page, self.next);
            redirected = true;
        }
        let bytes = line.item().filter(|range| range.len() >= TUPLE_HEADER_LEN)?;
        let header = TupleHeader::read(page, bytes.start);
        // An index entry points at a heap-only tuple: the line pointer was used again.
        if self.at_root && !redirected && header.is_heap_only() {
            return None;
        }
        if self.prior_xmax.is_some_and(|xmax| xmax != header.xmin)
            && !mutant!("heap-chain-without-xmin")
        {
            return None;
        }
        let offset = self.next;
        self.at_root = false;
        self.prior_xmax = Some(header.xmax);
        self.next = if header.is_hot_updated() { header.ctid.offset } else { 0 };
        Some(Member { offset, bytes, header })
    }
}

/// Bytes that a tuple with `payload` bytes of columns takes, without its line pointer.
#[inline]
pub const fn tuple_space(payload: usize) -> usize {
    item::align8(TUPLE_HEADER_LEN + payload)
}

/// Bytes that a fill factor in percent keeps free for updates.
#[inline]
pub const fn reserve_for(fillfactor: u8) -> usize {
    let keep = if fillfactor >= 100 { 0 } else { 100 - fillfactor as usize };
    PAGE_SIZE * keep / 100
}

/// The line pointer that a new tuple would get. An empty page takes any tuple that fits a page,
/// whatever the reserve. A page that was never written counts as empty.
pub fn slot_for<P: PageRead + ?Sized>(page: &P, payload: usize, reserve: usize) -> Option<u16> {
    if !is_heap(page) {
        let fits = TUPLE_HEADER_LEN + payload <= MAX_ITEM_LEN;
        return (kind(page) == PageKind::New as u16 && fits).then_some(1);
    }
    let len = TUPLE_HEADER_LEN + payload;
    let reserve = if item::line_count(page) == 0 { 0 } else { reserve };
    item::slot_for(page, len, reserve)
}

/// What insertions that honour `reserve` can use of the page, for the free space map.
pub fn usable_space<P: PageRead + ?Sized>(page: &P, reserve: usize) -> usize {
    if is_heap(page) {
        let free = item::free_for_item(page);
        if item::line_count(page) == 0 { free } else { free.saturating_sub(reserve) }
    } else if kind(page) == PageKind::New as u16 {
        PAGE_SIZE - LINES - LINE_LEN
    } else {
        0
    }
}

/// A tuple to be put on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewTuple<'a> {
    /// The line pointer it gets.
    pub offset: u16,
    /// The inserting transaction.
    pub xmin: Xid,
    /// Its command.
    pub cid: CommandId,
    /// Flags.
    pub flags: TupleFlags,
    /// How many columns.
    pub natts: u16,
    /// The columns.
    pub payload: &'a [u8],
}

/// Puts a tuple on the page.
pub fn put_tuple<P: PageMut + ?Sized>(page: &mut P, new: &NewTuple<'_>) -> Result<(), PageError> {
    let header = TupleHeader {
        xmin: new.xmin,
        xmax: Xid::INVALID,
        cid: new.cid,
        flags: new.flags,
        natts: new.natts,
        ctid: Tid::new(BlockNumber(0), 0),
    };
    let at = item::place(page, new.offset, TUPLE_HEADER_LEN + new.payload.len())?;
    page.write(at, &header.to_bytes());
    page.write(at + TUPLE_HEADER_LEN, new.payload);
    Ok(())
}

/// A tuple's header fields after a transaction deletes, replaces or locks it (not a difference).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which tuple.
    pub offset: u16,
    /// The transaction.
    pub xmax: Xid,
    /// The command id, or a combo id.
    pub cid: CommandId,
    /// All flags.
    pub flags: TupleFlags,
    /// The next version, or zero.
    pub next: Tid,
}

/// Marks a tuple deleted, replaced or locked.
pub fn mark<P: PageMut + ?Sized>(page: &mut P, mark: &Mark) -> Result<(), PageError> {
    let Some(range) = tuple(page, mark.offset) else {
        return Err(PageError::Line { offset: mark.offset, what: "no tuple to mark" });
    };
    let at = range.start;
    page.put_u64(at + XMAX, mark.xmax.0);
    page.put_u32(at + CID, mark.cid.0);
    page.put_u32(at + CTID_BLOCK, mark.next.block.0);
    page.put_u16(at + CTID_OFFSET, mark.next.offset);
    page.put_u16(at + TUPLE_FLAGS, mark.flags.0);
    if !mark.flags.contains(TupleFlags::XMAX_LOCK_ONLY) {
        if !mutant!("heap-deletion-leaves-all-visible") {
            set_all_visible(page, false);
        }
        note_prunable(page, mark.xmax);
    }
    Ok(())
}

/// Sets only the flags of a tuple.
pub fn set_flags<P: PageMut + ?Sized>(
    page: &mut P,
    offset: u16,
    flags: TupleFlags,
) -> Result<(), PageError> {
    let Some(range) = tuple(page, offset) else {
        return Err(PageError::Line { offset, what: "no tuple to flag" });
    };
    page.put_u16(range.start + TUPLE_FLAGS, flags.0);
    Ok(())
}

/// Clears xmax: its transaction aborted, or only locked the tuple and has ended.
pub fn clear_xmax<P: PageMut + ?Sized>(page: &mut P, offset: u16) -> Result<(), PageError> {
    let Some((range, header)) = tuple(page, offset).zip(header(page, offset)) else {
        return Err(PageError::Line { offset, what: "no tuple to unmark" });
    };
    let at = range.start;
    page.put_u64(at + XMAX, 0);
    page.put_u32(at + CTID_BLOCK, 0);
    page.put_u16(at + CTID_OFFSET, 0);
    let gone = TupleFlags::XMAX_BITS.with(TupleFlags::COMBO_CID);
    page.put_u16(at + TUPLE_FLAGS, header.flags.without(gone).0);
    Ok(())
}

/// Makes the page an empty heap page.
pub fn init<P: PageMut + ?Sized>(page: &mut P) {
    item::init(page, PageKind::Heap);
}

/// Checks that the page is a heap page with sensible bounds.
pub fn check<P: PageRead + ?Sized>(page: &P) -> Result<(), PageError> {
    if !is_heap(page) {
        return Err(PageError::Kind { found: kind(page), expected: PageKind::Heap });
    }
    item::check_bounds(page)
}
