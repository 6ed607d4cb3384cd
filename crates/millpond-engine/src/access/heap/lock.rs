//! Row locks: taking them, and finding their holders.
//!
//! One holder of a row version is in its xmax: the transaction that replaced or deleted the version
//! if there is one. Else it is one that locked the version. Further holders are in the table of row
//! locks in memory (`transam::row_locks`); the flag XMAX_IS_MULTI says to look there. Readers need
//! not look: the transaction that ended a version is in the version, and locks do not concern them
//! (heap rule 13).
//!
//! Of all locks, only FOR KEY SHARE is compatible with a change of the row, and only with one that
//! keeps its unique keys. The holders of such a lock then hold the new version, too. `carry` adds
//! them when the version is made, [`lock_successor`] when the lock comes later. They also stay
//! noted on the old version, because the change may be rolled back.

use millpond_buffer::{BlockNumber, ExclusivePage, PageId, Wait};
use millpond_sync::mutant;

use super::change::{ChangeOutcome, Changer, latch, log_has_room, log_page_change};
use super::header::{TupleFlags, TupleHeader};
use super::page::{self, Mark};
use super::record;
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::access::heap::visibility::{Fates, UpdateStatus, update_status, xmax_status};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::{LockStrength, Locker, Lockers, RowVersion, XidStatus};

const NO_SUCCESSOR: Tid = Tid::new(BlockNumber(0), 0);

/// A version that the asking transaction may change or lock as requested.
pub(super) struct Standing {
    pub header: TupleHeader,
    /// Running transactions that hold it, too, without a conflict.
    pub others: Lockers,
    /// The strength with which the asking transaction holds it already.
    pub own: Option<LockStrength>,
}

/// What a lock request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// To hold the lock.
    Hold,
    /// To learn what conflicts with it; nothing is held afterwards.
    Look,
}

/// A lock request.
#[derive(Clone, Copy)]
pub struct WantedLock {
    /// The strength.
    pub strength: LockStrength,
    /// The purpose.
    pub intent: Intent,
}

impl WantedLock {
    /// A request for a lock that is to be held.
    pub fn hold(strength: LockStrength) -> Self {
        Self { strength, intent: Intent::Hold }
    }
}

/// Whether the fate of a version's maker matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Matters,
    /// A successor may be locked before its maker has ended.
    IsKnown,
}

fn version(page: PageId, offset: u16, header: &TupleHeader) -> RowVersion {
    RowVersion { page, offset, xmin: header.xmin }
}

/// Whether running transactions other than xmax hold a version. Needs the page's exclusive latch.
pub(super) fn is_held(ctx: &Ctx, page: PageId, offset: u16, header: &TupleHeader) -> bool {
    header.has_more_lockers() && !ctx.txns().lockers(&version(page, offset, header)).is_empty()
}

/// Whether a transaction may hold the version at `tid` with strength `wanted`. If not, the inner
/// error says what is in the way.
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

/// Logs and applies a record that only marks the version that `mark` names.
pub(super) fn log_mark(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    info: u8,
    mark: &Mark,
    by: Changer,
) -> EngineResult<()> {
    let mut data = ctx.heap().scratch();
    record::encode_mark(&mut data, mark);
    // A transaction that shares a lock may have logged nothing so far. Recovery must know every id
    // that is on a page, so that none is assigned again.
    let xid = by.xid.max(mark.xmax);
    log_page_change(ctx, latched, xid, info, data)
}

/// The header of a version whose xmax is the locker `head`. `more`: others hold the version, too.
fn locked_by(header: &TupleHeader, head: Locker, more: bool) -> TupleHeader {
    // A lock has no command: cid and its kind stay those of the insertion.
    let flags = header.flags.without(TupleFlags::XMAX_BITS).with(TupleFlags::lock(head.strength));
    let flags = if more { flags.with(TupleFlags::XMAX_IS_MULTI) } else { flags };
    TupleHeader { xmax: head.xid, flags, ctid: NO_SUCCESSOR, ..*header }
}

fn mark_of(offset: u16, header: &TupleHeader) -> Mark {
    let TupleHeader { xmax, cid, flags, ctid, .. } = *header;
    Mark { offset, xmax, cid, flags, next: ctid }
}

/// Makes the asking transaction a holder of a version that it may hold. If the page's header
/// already says what is needed, the page stays unchanged.
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
        // xmax stays the same transaction, above all if it has replaced the version. The lockers
        // are noted before the page is marked, because there may be no room for them.
        rest[head] = me;
        ctx.txns().set_lockers(row, rest)?;
        if header.has_more_lockers() {
            return Ok(());
        }
        let flags = header.flags.with(TupleFlags::XMAX_IS_MULTI);
        let new = TupleHeader { flags, ..*header };
        return log_mark(ctx, latched, record::LOCK, &mark_of(offset, &new), by);
    }
    // The page is marked first: if that fails, a weaker lock that is noted stays as it is.
    let new = locked_by(header, me, !rest.is_empty());
    log_mark(ctx, latched, record::LOCK, &mark_of(offset, &new), by)?;
    if header.has_more_lockers() {
        // Other lockers are noted already, so there is room.
        ctx.txns().set_lockers(row, rest)?;
    }
    Ok(())
}

/// Notes which transactions hold a row that is about to be replaced. On the old version these are
/// all but its new xmax; on the new one, all but the one that `carry` puts into its xmax. Call it
/// before the replacement is logged. It returns whether there are any. The versions are given by
/// page and line pointer.
///
/// The new version is noted first. That version does not exist yet, so its note counts for nothing
/// if there turns out to be no room for the rest. The note of the old version, with the changer's
/// own lock, changes last and as a whole.
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

/// Makes the holders of a row hold its new version, too, which was just put on the latched page.
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

/// Locks the version at `tid` for the transaction `by` as strongly as `wanted`, or only looks
/// whether it could. Transactions whose changes or locks conflict with the lock will find it in
/// progress. Locking what the transaction already holds changes nothing.
///
/// FOR KEY SHARE is compatible with a successor that has the same unique keys. Then
/// [`ChangeOutcome::Follow`] names it, and the caller [locks it](lock_successor), too.
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

/// Locks the successor of a version FOR KEY SHARE, or only looks whether it could. The successor's
/// maker must be `made_by`, and need not have committed. If no such version exists (any more), the
/// row ends here, and the answer is `Done` as well.
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

/// Takes a lock that nothing conflicts with, if the intent is to hold it.
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
    // Once this version is locked, the session may have to wait for the successor's page.
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

/// What a committed replacement means for a lock. FOR KEY SHARE, if the keys are the same, only has
/// to be taken on the successor.
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
