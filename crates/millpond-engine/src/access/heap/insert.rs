//! Inserting rows, one at a time or a page at a time.

use millpond_buffer::{PAGE_SIZE, Ring, Wait};

use super::change::log_has_room;
use super::header::{TUPLE_HEADER_LEN, TupleFlags};
use super::page::{self, MAX_PAYLOAD, NewTuple};
use super::record::{self, ManyRow};
use super::relation::{HeapEvent, HeapRelation};
use super::target::{Wanted, page_with_room};
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::page::PageKind;
use crate::page::item::{self, LINE_LEN, LineState, MAX_LINES};
use crate::transam::{CommandId, Xid};
use crate::wal::apply::log_and_apply;
use crate::wal::{ImageMode, Record, RmgrId};

/// A row to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewRow<'a> {
    /// Its columns, encoded.
    pub payload: &'a [u8],
    /// How many columns.
    pub natts: u16,
}

/// How [`insert_many`] works.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertOptions<'r> {
    /// The rows are visible to all snapshots at once (COPY FREEZE). Only for a table that no other
    /// session can see before this transaction commits, and whose file is removed if it aborts.
    pub frozen: bool,
    /// Fill only new pages: don't look for room in old ones.
    pub only_new: bool,
    /// The ring of a load that is large enough for one.
    pub ring: Option<&'r Ring>,
}

/// Fails if a row with that many bytes of columns can never be stored.
pub fn check_size(payload: usize) -> EngineResult<()> {
    if payload > MAX_PAYLOAD {
        return Err(EngineError::RowTooLarge { size: payload, limit: MAX_PAYLOAD });
    }
    Ok(())
}

/// The record flag and image mode for a page: a new page is built from nothing.
pub(super) fn image_mode(bytes: &[u8; PAGE_SIZE]) -> (u8, ImageMode) {
    if crate::page::kind(bytes) == PageKind::New as u16 {
        (record::INIT_PAGE, ImageMode::Never)
    } else {
        (0, ImageMode::IfNeeded)
    }
}

/// Inserts a row and returns where it is.
pub fn insert(
    ctx: &Ctx,
    heap: &HeapRelation,
    row: NewRow<'_>,
    xid: Xid,
    cid: CommandId,
) -> EngineResult<Tid> {
    check_size(row.payload.len())?;
    log_has_room(ctx, 1, row.payload.len())?;
    let wanted = Wanted {
        payload: row.payload.len(),
        reserve: heap.reserve(),
        avoid: None,
        only_new: false,
        ring: None,
    };
    let mut latched = page_with_room(ctx, heap, wanted)?;
    let Some(offset) = page::slot_for(latched.bytes(), wanted.payload, wanted.reserve) else {
        return Err(EngineError::Internal { what: "a page chosen for an insertion has no room" });
    };
    let (init, image) = image_mode(latched.bytes());
    let mut data = ctx.heap().scratch();
    let (flags, natts, payload) = (TupleFlags::NONE, row.natts, row.payload);
    record::encode_tuple(&mut data, &NewTuple { offset, xmin: xid, cid, flags, natts, payload });
    let record = Record::new(xid, RmgrId::Heap, record::INSERT | init, &[]).block(
        latched.page_id(),
        image,
        &data,
    );
    let tid = Tid::new(latched.block(), offset);
    log_and_apply(ctx, &mut [&mut latched], record)?;
    drop(latched);
    ctx.heap().give_back(data);
    heap.counters().add(ctx.no(), HeapEvent::Inserted, 1);
    Ok(tid)
}

/// Inserts rows, one log record per page, and appends their tids to `tids`. Under [`Wait::Never`]
/// either all rows go to one page, or none is inserted.
pub fn insert_many(
    ctx: &Ctx,
    heap: &HeapRelation,
    rows: &[NewRow<'_>],
    xid: Xid,
    cid: CommandId,
    options: InsertOptions<'_>,
    tids: &mut Vec<Tid>,
) -> EngineResult<()> {
    let total: usize = rows.iter().map(|row| row.payload.len() + TUPLE_HEADER_LEN).sum();
    for row in rows {
        check_size(row.payload.len())?;
    }
    log_has_room(ctx, 1, total)?;
    let mut rest = rows;
    // A load that has reached the end of the heap stays there. Asking the map again for every page
    // would find nothing.
    let mut at_end = false;
    while let Some(first) = rest.first() {
        let wanted = Wanted {
            payload: first.payload.len(),
            reserve: heap.reserve(),
            avoid: None,
            only_new: options.only_new || at_end,
            ring: options.ring,
        };
        let mut latched = page_with_room(ctx, heap, wanted)?;
        let bytes = latched.bytes();
        let (init, image) = image_mode(bytes);
        at_end = init != 0 && options.ring.is_some();
        let was_all_visible =
            init != 0 || page::is_all_visible(bytes) || item::line_count(bytes) == 0;
        let flags = if options.frozen { TupleFlags::XMIN_FROZEN } else { TupleFlags::NONE };
        let slots = slots_for(bytes, rest, wanted.reserve, flags);
        if slots.is_empty() {
            return Err(EngineError::Internal {
                what: "a page chosen for an insertion has no room",
            });
        }
        if ctx.wait() == Wait::Never && slots.len() < rows.len() {
            return Err(EngineError::WouldBlock);
        }
        let mut data = ctx.heap().scratch();
        record::encode_many(&mut data, xid, cid, options.frozen && was_all_visible, &slots);
        let record = Record::new(xid, RmgrId::Heap, record::INSERT_MANY | init, &[]).block(
            latched.page_id(),
            image,
            &data,
        );
        let block = latched.block();
        log_and_apply(ctx, &mut [&mut latched], record)?;
        drop(latched);
        ctx.heap().give_back(data);
        tids.extend(slots.iter().map(|slot| Tid::new(block, slot.0)));
        rest = &rest[slots.len()..];
        heap.counters().add(ctx.no(), HeapEvent::Inserted, slots.len() as u64);
    }
    Ok(())
}

/// As many of the rows, in order, as fit the page, with the line pointers that they get.
fn slots_for<'a>(
    bytes: &[u8; PAGE_SIZE],
    rows: &[NewRow<'a>],
    reserve: usize,
    flags: TupleFlags,
) -> Vec<ManyRow<'a>> {
    let is_heap = page::is_heap(bytes);
    let count = if is_heap { item::line_count(bytes) } else { 0 };
    let mut free = if is_heap { item::hole(bytes) } else { PAGE_SIZE - item::LINES };
    let mut unused =
        (1..=count).filter(|&offset| item::line(bytes, offset).state() == LineState::Unused);
    let mut next_new = count + 1;
    let mut empty = count == 0;
    let mut slots = Vec::new();
    for row in rows {
        let space = page::tuple_space(row.payload.len());
        let reserve = if empty { 0 } else { reserve };
        let (offset, line) = match unused.next() {
            Some(offset) => (offset, 0),
            None if next_new <= MAX_LINES => (next_new, LINE_LEN),
            None => break,
        };
        if space + line + reserve > free {
            break;
        }
        free -= space + line;
        if line > 0 {
            next_new += 1;
        }
        empty = false;
        slots.push((offset, flags, row.natts, row.payload));
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::item::MAX_ITEM_LEN;

    #[test]
    fn a_page_takes_as_many_rows_as_putting_them_one_by_one() {
        for (len, reserve) in [(0, 0), (1, 0), (97, 0), (97, 820), (4000, 0), (8000, 4000)] {
            let payload = vec![1; len];
            let rows = vec![NewRow { payload: &payload, natts: 1 }; 300];
            let mut page = Box::new([0; PAGE_SIZE]);
            let slots = slots_for(&page, &rows, reserve, TupleFlags::NONE);
            page::init(&mut *page);
            let mut offsets = Vec::new();
            while let Some(offset) = page::slot_for(&*page, len, reserve) {
                item::place(&mut *page, offset, TUPLE_HEADER_LEN + len).unwrap();
                offsets.push(offset);
            }
            assert_eq!(slots.iter().map(|slot| slot.0).collect::<Vec<_>>(), offsets, "{len}");
        }
        assert!(check_size(MAX_PAYLOAD).is_ok() && check_size(MAX_PAYLOAD + 1).is_err());
        assert_eq!(MAX_PAYLOAD + TUPLE_HEADER_LEN, MAX_ITEM_LEN);
    }
}
