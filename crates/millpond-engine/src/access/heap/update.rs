//! Replacing, deleting and locking rows.
//!
//! Each looks at the version under the page's exclusive latch and either does it or says what is in the way
//! (heap rule 3). A replacement stays in the page when it has room (after pruning, if need be); if moreover no
//! indexed column changed it is heap-only: no index gets an entry. Otherwise it goes to another page: both
//! are latched in ascending order, after which everything is looked at again.

use millpond_buffer::{BlockNumber, ExclusivePage};

use super::access_prune::prune_latched;
use super::header::{TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
use super::insert::{NewRow, check_size, image_mode};
use super::page::{self, Mark, NewTuple};
use super::record;
use super::relation::{HeapEvent, HeapRelation};
use super::target::{Wanted, log_has_room, page_with_room};
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::visibility::{UpdateStatus, cid_for_delete, update_status};
use crate::transam::{CommandId, Xid};
use crate::wal::apply::log_and_apply;
use crate::wal::{ImageMode, Record, RmgrId};

/// How often a moved replacement looks for another page because the chosen one filled up.
const MOVES: usize = 64;

/// What became of a request to change a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeOutcome {
    /// Done. The row is now at `tid`; `hot`: no index needs to know.
    Done {
        /// Where the new version (of a deletion or lock: the version) is.
        tid: Tid,
        /// The new version is reached through the chain of the old one.
        hot: bool,
    },
    /// This command has changed it already.
    SelfModified,
    /// The version is not there for this command: made or deleted by what it can't see, or gone.
    Invisible,
    /// Another running transaction has changed or locked it: wait for it and ask again.
    InProgress(Xid),
    /// A committed transaction has replaced it.
    Updated {
        /// By this version.
        next: Tid,
        /// Which this transaction made: check it when following.
        by: Xid,
    },
    /// A committed transaction has deleted it.
    Deleted,
}

/// Who changes.
#[derive(Clone, Copy, Debug)]
pub struct Changer {
    /// The transaction.
    pub xid: Xid,
    /// Its command.
    pub cid: CommandId,
}

/// The header at `tid`, or what keeps the changer from changing it.
fn changeable(
    ctx: &Ctx,
    latched: &ExclusivePage<'_>,
    tid: Tid,
    by: Changer,
) -> EngineResult<Result<TupleHeader, ChangeOutcome>> {
    if !page::is_heap(latched.bytes()) {
        return Ok(Err(ChangeOutcome::Invisible));
    }
    let Some(header) = page::header(latched.bytes(), tid.offset) else {
        return Ok(Err(ChangeOutcome::Invisible));
    };
    Ok(match update_status(&header, Some(by.xid), by.cid, ctx)? {
        UpdateStatus::Ok => Ok(header),
        UpdateStatus::Invisible => Err(ChangeOutcome::Invisible),
        UpdateStatus::SelfUpdated => Err(ChangeOutcome::SelfModified),
        UpdateStatus::InProgress(xid) => Err(ChangeOutcome::InProgress(xid)),
        UpdateStatus::Updated => Err(ChangeOutcome::Updated { next: header.ctid, by: header.xmax }),
        UpdateStatus::Deleted => Err(ChangeOutcome::Deleted),
    })
}

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

fn latch<'s>(
    ctx: &'s Ctx,
    heap: &HeapRelation,
    block: BlockNumber,
) -> EngineResult<ExclusivePage<'s>> {
    Ok(ctx.buffers().pin(&heap.main, block, ctx.wait())?.into_exclusive()?)
}

/// Logs and does a record that only marks the version at `latched`.
fn log_mark(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    info: u8,
    mark: &Mark,
    by: Changer,
) -> EngineResult<()> {
    let mut data = ctx.heap().scratch();
    record::encode_mark(&mut data, mark);
    let record = Record::new(by.xid, RmgrId::Heap, info, &[]).block(
        latched.page_id(),
        ImageMode::IfNeeded,
        &data,
    );
    log_and_apply(ctx, &mut [latched], record)?;
    ctx.heap().give_back(data);
    Ok(())
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
    let header = match changeable(ctx, &latched, tid, by)? {
        Ok(header) => header,
        Err(outcome) => return Ok(outcome),
    };
    let none = Tid::new(BlockNumber(0), 0);
    let mark = deletion_mark(ctx, tid, &header, by, TupleFlags::KEYS_UPDATED, none)?;
    log_mark(ctx, &mut latched, record::DELETE, &mark, by)?;
    heap.counters().add(ctx.no(), HeapEvent::Deleted, 1);
    Ok(ChangeOutcome::Done { tid, hot: false })
}

/// Locks the version at `tid` for its transaction: others that want to change or lock it will see it in
/// progress. Locking what one holds already changes nothing.
pub fn lock_row(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    log_has_room(ctx, 1, 64)?;
    let mut latched = latch(ctx, heap, tid.block)?;
    let header = match changeable(ctx, &latched, tid, by)? {
        Ok(header) => header,
        Err(outcome) => return Ok(outcome),
    };
    let done = ChangeOutcome::Done { tid, hot: false };
    if header.xmax == by.xid {
        return Ok(done);
    }
    // The lock says nothing of commands: cid and its kind stay those of the insertion.
    let flags = header.flags.without(TupleFlags::XMAX_BITS);
    let lock = TupleFlags::XMAX_LOCK_ONLY.with(TupleFlags::LOCK_STRENGTH);
    let mark = Mark {
        offset: tid.offset,
        xmax: by.xid,
        cid: header.cid,
        flags: flags.with(lock),
        next: Tid::new(BlockNumber(0), 0),
    };
    log_mark(ctx, &mut latched, record::LOCK, &mark, by)?;
    Ok(done)
}

/// Replaces the version at `tid` by `row`. `keys_changed`: whether the value of any indexed column did.
pub fn update(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    row: NewRow<'_>,
    keys_changed: bool,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    check_size(row.payload.len())?;
    log_has_room(ctx, 3, 2 * row.payload.len() + 1024)?;
    let mut latched = latch(ctx, heap, tid.block)?;
    if let Err(outcome) = changeable(ctx, &latched, tid, by)? {
        return Ok(outcome);
    }
    let mut slot = page::slot_for(latched.bytes(), row.payload.len(), 0);
    if slot.is_none() && prune_latched(ctx, heap, &mut latched)? {
        slot = page::slot_for(latched.bytes(), row.payload.len(), 0);
    }
    match slot {
        Some(slot) => update_in_page(ctx, heap, latched, (tid, slot), row, keys_changed, by),
        None => {
            drop(latched);
            update_moved(ctx, heap, tid, row, by)
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
    keys_changed: bool,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    let (old, new_tid) = (places.0, Tid::new(places.0.block, places.1));
    let bytes = latched.bytes();
    // Pruning may have moved the version's bytes and tidied its header.
    let Some((range, header)) = page::tuple(bytes, old.offset).zip(page::header(bytes, old.offset))
    else {
        return Err(EngineError::Internal { what: "pruning removed a row that can be changed" });
    };
    let hot = !keys_changed;
    let (added, flags) = if hot {
        let added = TupleFlags::UPDATED_AWAY.with(TupleFlags::HOT_UPDATED);
        (added, TupleFlags::IS_UPDATE.with(TupleFlags::HEAP_ONLY))
    } else {
        (TupleFlags::UPDATED_AWAY.with(TupleFlags::KEYS_UPDATED), TupleFlags::IS_UPDATE)
    };
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
    let record = Record::new(by.xid, RmgrId::Heap, record::UPDATE, &[]).block(
        latched.page_id(),
        ImageMode::IfNeeded,
        &data,
    );
    log_and_apply(ctx, &mut [&mut latched], record)?;
    drop(latched);
    ctx.heap().give_back(data);
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
        // The candidate is unlatched again: latches are taken in ascending order of blocks.
        let target = page_with_room(ctx, heap, wanted)?.unlatch();
        let old = ctx.buffers().pin(&heap.main, tid.block, ctx.wait())?;
        let (mut old, mut new) = if tid.block < target.block() {
            let old = old.into_exclusive()?;
            (old, target.into_exclusive()?)
        } else {
            let new = target.into_exclusive()?;
            (old.into_exclusive()?, new)
        };
        let header = match changeable(ctx, &old, tid, by)? {
            Ok(header) => header,
            Err(outcome) => return Ok(outcome),
        };
        let Some(slot) = page::slot_for(new.bytes(), row.payload.len(), wanted.reserve) else {
            continue;
        };
        let new_tid = Tid::new(new.block(), slot);
        let added = TupleFlags::UPDATED_AWAY.with(TupleFlags::KEYS_UPDATED);
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
