//! Locking rows, and who holds them.
//!
//! One holder of a row version stands in its xmax: the transaction that replaced or deleted it, if one did, else one
//! that locked it. Further ones are in the table of row locks in memory (`transam::row_locks`), and the flag
//! XMAX_IS_MULTI says that one must look there. So no reader has to: who made an end of a version is in the
//! version, and who merely locks it is no reader's business (heap rule 13).
//!
//! Only FOR KEY SHARE goes together with a change of the row, namely one that leaves its unique keys alone. Then
//! the row's holders hold the new version, too: `carry` when it is made, and [`lock_successor`] when the lock
//! comes later. On the old version they stay noted, because the change may be rolled back.

use millpond_buffer::{BlockNumber, ExclusivePage, PageId, Wait};
use millpond_sync::mutant;

use super::header::{TupleFlags, TupleHeader};
use super::page::{self, Mark};
use super::record;
use super::relation::HeapRelation;
use super::target::log_has_room;
use super::update::{ChangeOutcome, Changer, latch};
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::visibility::{Fates, UpdateStatus, update_status, xmax_status};
use crate::transam::{LockStrength, Locker, Lockers, RowVersion, XidStatus};
use crate::wal::apply::log_and_apply;
use crate::wal::{ImageMode, Record, RmgrId};

const NO_SUCCESSOR: Tid = Tid::new(BlockNumber(0), 0);

/// A version that the asking transaction may change or lock as it wants to.
pub(super) struct Standing {
    pub header: TupleHeader,
    /// Running transactions that hold it, too, without being in the way.
    pub others: Lockers,
    /// How strongly the asking transaction holds it already.
    pub own: Option<LockStrength>,
}

/// What asking for a lock is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// To hold it.
    Hold,
    /// To know what is in the way; nothing is held afterwards.
    Look,
}

/// A lock that is asked for.
#[derive(Clone, Copy)]
pub struct WantedLock {
    /// How strong.
    pub strength: LockStrength,
    /// What for.
    pub intent: Intent,
}

impl WantedLock {
    /// One that is to be held.
    pub fn hold(strength: LockStrength) -> Self {
        Self { strength, intent: Intent::Hold }
    }
}

/// Whether to ask who made a version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Matters,
    /// A successor is locked before its maker has ended.
    IsKnown,
}

fn version(page: PageId, offset: u16, header: &TupleHeader) -> RowVersion {
    RowVersion { page, offset, xmin: header.xmin }
}

/// Whether running transactions besides xmax hold a version. Under the page's exclusive latch.
pub(super) fn is_held(ctx: &Ctx, page: PageId, offset: u16, header: &TupleHeader) -> bool {
    header.has_more_lockers() && !ctx.txns().lockers(&version(page, offset, header)).is_empty()
}

/// How the version at `tid` stands to a transaction that wants to hold it: free enough, or what is in the way.
pub(super) fn standing(
    ctx: &Ctx,
    latched: &ExclusivePage<'_>,
    tid: Tid,
    wanted: LockStrength,
    by: Changer,
) -> EngineResult<Result<Standing, ChangeOutcome>> {
    if !page::is_heap(latched.bytes()) {
        return Ok(Err(ChangeOutcome::Invisible));
    }
    let Some(header) = page::header(latched.bytes(), tid.offset) else {
        return Ok(Err(ChangeOutcome::Invisible));
    };
    of_header(ctx, latched.page_id(), tid.offset, header, wanted, by, Maker::Matters)
}

fn of_header(
    ctx: &Ctx,
    page: PageId,
    offset: u16,
    header: TupleHeader,
    wanted: LockStrength,
    by: Changer,
    maker: Maker,
) -> EngineResult<Result<Standing, ChangeOutcome>> {
    let status = match maker {
        Maker::Matters => update_status(&header, Some(by.xid), by.cid, wanted, ctx)?,
        Maker::IsKnown => xmax_status(&header, Some(by.xid), by.cid, wanted, ctx)?,
    };
    let noted = || match header.has_more_lockers() {
        true => ctx.txns().lockers(&version(page, offset, &header)),
        false => Lockers::new(),
    };
    let holds = |noted: &Lockers| noted.iter().any(|locker| locker.xid == by.xid);
    let mut standing = Standing { header, others: Lockers::new(), own: None };
    match status {
        UpdateStatus::Ok if header.xmax == by.xid => standing.own = Some(header.strength()),
        UpdateStatus::Ok => {}
        UpdateStatus::Shared(xid) => {
            standing.others.push(Locker { xid, strength: header.strength() });
        }
        UpdateStatus::Invisible => return Ok(Err(ChangeOutcome::Invisible)),
        UpdateStatus::SelfUpdated => return Ok(Err(ChangeOutcome::SelfModified)),
        UpdateStatus::InProgress(xid) => {
            return Ok(Err(ChangeOutcome::InProgress { xid, holds: holds(&noted()) }));
        }
        UpdateStatus::Updated => {
            return Ok(Err(ChangeOutcome::Updated { next: header.ctid, by: header.xmax }));
        }
        UpdateStatus::Deleted => return Ok(Err(ChangeOutcome::Deleted)),
    }
    let noted = noted();
    for &locker in &noted {
        if locker.xid == by.xid {
            standing.own = standing.own.max(Some(locker.strength));
        } else if wanted.conflicts(locker.strength) {
            let holds = standing.own.is_some() || holds(&noted);
            return Ok(Err(ChangeOutcome::InProgress { xid: locker.xid, holds }));
        } else {
            standing.others.push(locker);
        }
    }
    Ok(Ok(standing))
}

/// Logs and does a record that only marks the version at `latched`.
pub(super) fn log_mark(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    info: u8,
    mark: &Mark,
    by: Changer,
) -> EngineResult<()> {
    let mut data = ctx.heap().scratch();
    record::encode_mark(&mut data, mark);
    // Who shares a lock may have logged nothing so far. Recovery must know of every id that stands on a page, lest it
    // be given out again.
    let xid = by.xid.max(mark.xmax);
    let record = Record::new(xid, RmgrId::Heap, info, &[]).block(
        latched.page_id(),
        ImageMode::IfNeeded,
        &data,
    );
    log_and_apply(ctx, &mut [latched], record)?;
    ctx.heap().give_back(data);
    Ok(())
}

/// The header of a version whose xmax is the locker `head`, with or without others.
fn locked_by(header: &TupleHeader, head: Locker, more: bool) -> TupleHeader {
    // The lock says nothing of commands: cid and its kind stay those of the insertion.
    let flags = header.flags.without(TupleFlags::XMAX_BITS).with(TupleFlags::lock(head.strength));
    let flags = if more { flags.with(TupleFlags::XMAX_IS_MULTI) } else { flags };
    TupleHeader { xmax: head.xid, flags, ctid: NO_SUCCESSOR, ..*header }
}

fn mark_of(offset: u16, header: &TupleHeader) -> Mark {
    let TupleHeader { xmax, cid, flags, ctid, .. } = *header;
    Mark { offset, xmax, cid, flags, next: ctid }
}

/// Makes the asking transaction a holder of a version that has let it. A page whose header says already what is to be
/// said is left as it is.
fn hold(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    offset: u16,
    standing: &Standing,
    wanted: LockStrength,
    by: Changer,
) -> EngineResult<()> {
    let header = &standing.header;
    if standing.own.is_some_and(|own| own >= wanted) {
        return Ok(());
    }
    let me = Locker { xid: by.xid, strength: wanted };
    let row = version(latched.page_id(), offset, header);
    let mut rest = standing.others.clone();
    if let Some(head) = rest.iter().position(|locker| locker.xid == header.xmax) {
        // xmax stays who it is, above all if it has replaced the version. Noted first: there may be no room.
        rest[head] = me;
        ctx.txns().set_lockers(row, rest)?;
        if header.has_more_lockers() {
            return Ok(());
        }
        let flags = header.flags.with(TupleFlags::XMAX_IS_MULTI);
        let new = TupleHeader { flags, ..*header };
        return log_mark(ctx, latched, record::LOCK, &mark_of(offset, &new), by);
    }
    // Logged first: if that fails, a weaker lock that is noted stays one.
    let new = locked_by(header, me, !rest.is_empty());
    log_mark(ctx, latched, record::LOCK, &mark_of(offset, &new), by)?;
    if header.has_more_lockers() {
        // Others are noted already, so there is room.
        ctx.txns().set_lockers(row, rest)?;
    }
    Ok(())
}

/// Notes who holds a row that is about to be replaced: besides its new xmax, and on the new version. To be called
/// before the replacement is logged; says whether there is anybody. The versions are given by page and line pointer.
///
/// The new version comes first: it is not there yet, so what is noted of it counts for nothing if there turns out to be
/// no room for the rest. What is noted of the old one, the changer's own lock included, changes last and as a whole.
pub(super) fn note_survivors(
    ctx: &Ctx,
    old: (PageId, u16),
    header: &TupleHeader,
    new: (PageId, u16),
    others: &Lockers,
    by: Changer,
) -> EngineResult<bool> {
    let made = RowVersion { page: new.0, offset: new.1, xmin: by.xid };
    if others.len() > 1 {
        ctx.txns().set_lockers(made, others[1..].into())?;
    }
    if !others.is_empty() || header.has_more_lockers() {
        let noted = ctx.txns().set_lockers(version(old.0, old.1, header), others.clone());
        if noted.is_err() && others.len() > 1 {
            ctx.txns().set_lockers(made, Lockers::new())?;
        }
        noted?;
    }
    Ok(!others.is_empty())
}

/// Lets the holders of a row hold its new version, which has just been put on the latched page.
pub(super) fn carry(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    offset: u16,
    others: &Lockers,
    by: Changer,
) -> EngineResult<()> {
    let head = others.first().filter(|_| !mutant!("heap-holders-left-behind"));
    let (Some(&head), Some(header)) = (head, page::header(latched.bytes(), offset)) else {
        return Ok(());
    };
    let new = locked_by(&header, head, others.len() > 1);
    log_mark(ctx, latched, record::LOCK, &mark_of(offset, &new), by)
}

/// Locks the version at `tid` for its transaction, as strongly as `wanted`, or only looks whether it could. Whoever wants
/// to change or lock it so that the two exclude each other will see it in progress. Locking what one holds already changes
/// nothing.
///
/// FOR KEY SHARE does not mind a successor that has the same unique keys: [`ChangeOutcome::Follow`] names it, and it is
/// to be [locked](lock_successor), too.
pub fn lock_row(
    ctx: &Ctx,
    heap: &HeapRelation,
    tid: Tid,
    wanted: WantedLock,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    log_has_room(ctx, 1, 64)?;
    let mut latched = latch(ctx, heap, tid.block)?;
    match standing(ctx, &latched, tid, wanted.strength, by)? {
        Ok(standing) => take(ctx, &mut latched, tid, &standing, wanted, by),
        Err(outcome) => Ok(follow(&latched, tid, wanted.strength, outcome)),
    }
}

/// Locks the successor of a version FOR KEY SHARE (or only looks whether it could), whether or not its maker, which must be
/// `made_by`, has committed. If there is no such version (any more), the row ends here, and that is done, too.
pub fn lock_successor(
    ctx: &Ctx,
    heap: &HeapRelation,
    (tid, made_by): (Tid, crate::transam::Xid),
    intent: Intent,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    let wanted = WantedLock { strength: LockStrength::KeyShare, intent };
    log_has_room(ctx, 1, 64)?;
    let nothing = ChangeOutcome::Done { tid, hot: false };
    let mut latched = latch(ctx, heap, tid.block)?;
    let header = match page::header(latched.bytes(), tid.offset) {
        Some(header) if page::is_heap(latched.bytes()) && header.xmin == made_by => header,
        _ => return Ok(nothing),
    };
    if ctx.status(header.xmin)? == XidStatus::Aborted {
        return Ok(nothing);
    }
    let page = latched.page_id();
    match of_header(ctx, page, tid.offset, header, wanted.strength, by, Maker::IsKnown)? {
        Ok(standing) => take(ctx, &mut latched, tid, &standing, wanted, by),
        Err(ChangeOutcome::SelfModified | ChangeOutcome::Invisible) => Ok(nothing),
        Err(outcome) => Ok(follow(&latched, tid, wanted.strength, outcome)),
    }
}

/// Takes a lock that nobody stands in the way of, if that is the intent.
fn take(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    tid: Tid,
    standing: &Standing,
    wanted: WantedLock,
    by: Changer,
) -> EngineResult<ChangeOutcome> {
    let header = &standing.header;
    let replacing = standing.others.iter().any(|locker| locker.xid == header.xmax);
    let follows = replacing && !header.is_locked_only();
    // The successor's page may have to be waited for, once this version is locked.
    if follows && ctx.wait() == Wait::Never {
        return Err(EngineError::WouldBlock);
    }
    if wanted.intent == Intent::Hold {
        hold(ctx, latched, tid.offset, standing, wanted.strength, by)?;
    }
    if follows {
        return Ok(ChangeOutcome::Follow { next: header.ctid, by: header.xmax });
    }
    Ok(ChangeOutcome::Done { tid, hot: false })
}

/// What a committed replacement means for a lock: for FOR KEY SHARE, if the keys are the same, only that the lock is to
/// be taken on the successor.
fn follow(
    latched: &ExclusivePage<'_>,
    tid: Tid,
    wanted: LockStrength,
    outcome: ChangeOutcome,
) -> ChangeOutcome {
    match (outcome, page::header(latched.bytes(), tid.offset)) {
        (ChangeOutcome::Updated { next, by }, Some(header))
            if !wanted.conflicts(header.strength()) =>
        {
            ChangeOutcome::Follow { next, by }
        }
        _ => outcome,
    }
}
