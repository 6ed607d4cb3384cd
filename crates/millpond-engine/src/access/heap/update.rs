//! Replacing and deleting rows.
//!
//! Each operation looks at the version under the page's exclusive latch (heap rule 3). Then it
//! makes the change or says what is in the way.
//!
//! A new version stays in the page if there is room (after pruning, if needed). If no indexed
//! column changed either, it is heap-only (a HOT update): no index gets an entry. Otherwise it goes
//! to another page: both are latched in ascending order, and everything is checked again.

use millpond_buffer::{BlockNumber, ExclusivePage, Wait};
use millpond_sync::mutant;

use super::access_prune::prune_latched;
use super::change::{ChangeOutcome, Changer, latch, log_has_room, log_page_change};
use super::header::{TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
use super::insert::{NewRow, check_size, image_mode};
use super::lock::{Standing, carry, log_mark, note_survivors, standing};
use super::page::{self, Mark, NewTuple};
use super::record;
use super::relation::{HeapEvent, HeapRelation};
use super::target::{Wanted, page_with_room};
use crate::access::Tid;
use crate::access::heap::visibility::cid_for_delete;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::LockStrength;
use crate::wal::apply::log_and_apply;
use crate::wal::{ImageMode, Record, RmgrId};

/// How often an update that moves to another page tries again because the chosen page filled up.
const MOVES: usize = 64;

/// The mark that makes `by` the deleter or replacer of a version.
fn deletion_mark(
    ctx: &Ctx,
    tid: Tid,
    header: &TupleHeader,
    by: Changer,
    added: TupleFlags,
    next: Tid,
) -> EngineResult<Mark> {
    let (cid, combo) = cid_for_delete(header, by.xid, by.cid, &mut ctx.combos().borrow_mut())?;
    let kept = header.flags.without(TupleFlags::XMAX_BITS).without(TupleFlags::COMBO_CID);
    let flags = if combo { kept.with(TupleFlags::COMBO_CID) } else { kept };
    Ok(Mark { offset: tid.offset, xmax: by.xid, cid, flags: flags.with(added), next })
}

/// What an update does to keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyChange {
    /// No indexed column changes: no index needs a new entry.
    None,
    /// An indexed column changes, but none of a unique index.
    Plain,
    /// A column of a unique index changes. This conflicts with FOR KEY SHARE locks on the row.
    Unique,
}

impl KeyChange {
    /// The lock strength that the update counts as.
    pub fn strength(self) -> LockStrength {
        match self {
            KeyChange::None | KeyChange::Plain => LockStrength::NoKeyUpdate,
            KeyChange::Unique => LockStrength::Update,
        }
    }

    /// The flags that this gives the old version. A stronger lock that the transaction has on that
    /// version stays as strong.
    fn flags(self, own: Option<LockStrength>) -> TupleFlags {
        if own.max(Some(self.strength())) == Some(LockStrength::Update) {
            TupleFlags::UPDATED_AWAY.with(TupleFlags::KEYS_UPDATED)
        } else {
            TupleFlags::UPDATED_AWAY
        }
    }
}

/// Deletes the version at `tid`.
pub fn delete(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    log_has_room(ctx, 1, 64)?;
    let mut latched = latch(ctx, heap, tid.block)?;
    // No others hold the result: a deletion is compatible with no lock, and noted holders have
    // ended.
    let header = match standing(ctx, &latched, tid, LockStrength::Update, by)? {
        Ok(standing) => standing.header,
        Err(outcome) => return Ok(outcome),
    };
    let none = Tid::new(BlockNumber(0), 0);
    let mark = deletion_mark(ctx, tid, &header, by, TupleFlags::KEYS_UPDATED, none)?;
    log_mark(ctx, &mut latched, record::DELETE, &mark, by)?;
    heap.counters().add(ctx.no(), HeapEvent::Deleted, 1);
    Ok(ChangeOutcome::Done { tid, hot: false })
}

/// Refuses to replace a row that others also hold if the session may not wait. That takes two
/// records and, before the first, changes the note of the old version. If the log had no room for
/// the second, the change would be done, yet the session would be told that it has not begun.
fn check_can_finish(ctx: &Ctx, standing: &Standing) -> EngineResult<()> {
    let is_shared = !standing.others.is_empty() || standing.header.has_more_lockers();
    let may_stop = ctx.wait() == Wait::Never && !mutant!("heap-stops-between-two-records");
    if is_shared && may_stop { Err(EngineError::WouldBlock) } else { Ok(()) }
}

/// Replaces the version at `tid` by `row`.
pub fn update(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    row: NewRow<'_>,
    keys: KeyChange,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    check_size(row.payload.len())?;
    log_has_room(ctx, 4, 2 * row.payload.len() + 1024)?;
    let mut latched = latch(ctx, heap, tid.block)?;
    let standing = match standing(ctx, &latched, tid, keys.strength(), by)? {
        Ok(standing) => standing,
        Err(outcome) => return Ok(outcome),
    };
    check_can_finish(ctx, &standing)?;
    let mut slot = page::slot_for(latched.bytes(), row.payload.len(), 0);
    if slot.is_none() && prune_latched(ctx, heap, &mut latched)? {
        slot = page::slot_for(latched.bytes(), row.payload.len(), 0);
    }
    match slot {
        Some(slot) => update_in_page(ctx, heap, latched, (tid, slot), row, (keys, &standing), by),
        None => {
            drop(latched);
            update_moved(ctx, heap, tid, row, keys, by)
        }
    }
}

/// The new version goes to line pointer `places.1` of the same page.
fn update_in_page(
    ctx: &Ctx,
    heap: &HeapRelation,
    mut latched: ExclusivePage<'_>,
    places: (Tid, u16),
    row: NewRow<'_>,
    (keys, standing): (KeyChange, &Standing),
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    let (old, new_tid) = (places.0, Tid::new(places.0.block, places.1));
    let bytes = latched.bytes();
    // Pruning may have moved the version's bytes and cleared parts of its header.
    let Some((range, header)) = page::tuple(bytes, old.offset).zip(page::header(bytes, old.offset))
    else {
        return Err(EngineError::Internal { what: "pruning removed a row that can be changed" });
    };
    let hot = keys == KeyChange::None;
    let others = &standing.others;
    let (mut added, mut flags) = (keys.flags(standing.own), TupleFlags::IS_UPDATE);
    if hot {
        added = added.with(TupleFlags::HOT_UPDATED);
        flags = flags.with(TupleFlags::HEAP_ONLY);
    }
    let page = latched.page_id();
    if note_survivors(ctx, (page, old.offset), &header, (page, new_tid.offset), others, by)? {
        added = added.with(TupleFlags::XMAX_IS_MULTI);
    }
    let mark = deletion_mark(ctx, old, &header, by, added, new_tid)?;
    let new = NewTuple {
        offset: new_tid.offset,
        xmin: by.xid,
        cid: by.cid,
        flags,
        natts: row.natts,
        payload: row.payload,
    };
    let mut data = ctx.heap().scratch();
    record::encode_update(
        &mut data,
        &mark,
        &new,
        &bytes[range.start + TUPLE_HEADER_LEN..range.end],
    );
    log_page_change(ctx, &mut latched, by.xid, record::UPDATE, data)?;
    carry(ctx, &mut latched, new_tid.offset, others, by)?;
    drop(latched);
    heap.counters().add(ctx.no(), HeapEvent::Updated, 1);
    if hot {
        heap.counters().add(ctx.no(), HeapEvent::HotUpdated, 1);
    }
    Ok(ChangeOutcome::Done { tid: new_tid, hot })
}

/// The new version goes to another page.
fn update_moved(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    row: NewRow<'_>,
    keys: KeyChange,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    let wanted = Wanted {
        payload: row.payload.len(),
        reserve: heap.reserve(),
        avoid: Some(tid.block),
        only_new: false,
        ring: None,
    };
    for _ in 0..MOVES {
        // The candidate is unlatched again, because latches are taken in ascending order of blocks.
        let target = page_with_room(ctx, heap, wanted)?.unlatch();
        let old = ctx.buffers().pin(&heap.main, tid.block, ctx.wait())?;
        let (mut old, mut new) = if tid.block < target.block() {
            let old = old.into_exclusive()?;
            (old, target.into_exclusive()?)
        } else {
            let new = target.into_exclusive()?;
            (old.into_exclusive()?, new)
        };
        let standing = match standing(ctx, &old, tid, keys.strength(), by)? {
            Ok(standing) => standing,
            Err(outcome) => return Ok(outcome),
        };
        check_can_finish(ctx, &standing)?;
        let Standing { header, others, own } = standing;
        let Some(slot) = page::slot_for(new.bytes(), row.payload.len(), wanted.reserve) else {
            continue;
        };
        let new_tid = Tid::new(new.block(), slot);
        let mut added = keys.flags(own);
        let places = ((old.page_id(), tid.offset), (new.page_id(), slot));
        if note_survivors(ctx, places.0, &header, places.1, &others, by)? {
            added = added.with(TupleFlags::XMAX_IS_MULTI);
        }
        let mark = deletion_mark(ctx, tid, &header, by, added, new_tid)?;
        let tuple = NewTuple {
            offset: slot,
            xmin: by.xid,
            cid: by.cid,
            flags: TupleFlags::IS_UPDATE,
            natts: row.natts,
            payload: row.payload,
        };
        log_moved(ctx, (&mut old, &mark), (&mut new, &tuple), by)?;
        carry(ctx, &mut new, slot, &others, by)?;
        heap.counters().add(ctx.no(), HeapEvent::Updated, 1);
        return Ok(ChangeOutcome::Done { tid: new_tid, hot: false });
    }
    Err(EngineError::Internal { what: "every page found for a new row version filled up at once" })
}

fn log_moved<'s>(
    ctx: &Ctx,
    old: (&mut ExclusivePage<'s>, &Mark),
    new: (&mut ExclusivePage<'s>, &NewTuple<'_>),
    by: Changer,
) -> EngineResult<()> {
    let (init, image) = image_mode(new.0.bytes());
    let mut data = ctx.heap().scratch();
    record::encode_tuple(&mut data, new.1);
    let mut mark_data = Vec::with_capacity(32);
    record::encode_mark(&mut mark_data, old.1);
    let record = Record::new(by.xid, RmgrId::Heap, record::UPDATE_MOVED | init, &[])
        .block(new.0.page_id(), image, &data)
        .block(old.0.page_id(), ImageMode::IfNeeded, &mark_data);
    log_and_apply(ctx, &mut [new.0, old.0], record)?;
    ctx.heap().give_back(data);
    Ok(())
}
