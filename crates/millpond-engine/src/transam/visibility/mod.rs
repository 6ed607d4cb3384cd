//! Which row versions a statement sees, may change, and which nobody can see any more.
//!
//! Three questions, each answered from a tuple header and the fate of the transactions it names:
//!
//! * [`visible`]: is the version part of a snapshot?
//! * [`update_status`]: may the running command replace or delete it *now*? (not by snapshot: the latest
//!   committed state decides; what an isolation level makes of the answer is said in `session/write.rs`)
//! * [`dead_to_all`]: can pruning or vacuum take it away?
//!
//! A transaction that is in progress for [`visible`] has drawn no commit number yet, hence its number will
//! be above every snapshot taken so far: "in progress" and "committed after my snapshot" are one answer
//! (transam rule 4). None of the functions writes anything, and no answer is remembered in the header (transam
//! rule 12).

#[cfg(test)]
mod tests;

use millpond_sync::mutant;

use super::ids::{CommandId, Xid};
use super::row_locks::LockStrength;
use super::snapshot::{Horizon, Snapshot, XidStatus};
use crate::access::heap::{TupleFlags, TupleHeader};
use crate::error::EngineResult;

/// Where fates and combo ids are looked up: the session's context, or a model in tests.
pub trait Fates {
    /// The fate of a transaction; waits out the instant in which a commit draws its number.
    fn status(&self, xid: Xid) -> EngineResult<XidStatus>;
    /// The pair behind a combo id of the running transaction.
    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)>;
}

/// The command that made this version, which the running transaction did.
fn own_cmin(header: &TupleHeader, fates: &impl Fates) -> EngineResult<CommandId> {
    if header.flags.contains(TupleFlags::COMBO_CID) {
        Ok(fates.combo(header.cid)?.0)
    } else {
        Ok(header.cid)
    }
}

/// The command that deleted this version, which the running transaction did.
fn own_cmax(header: &TupleHeader, fates: &impl Fates) -> EngineResult<CommandId> {
    if header.flags.contains(TupleFlags::COMBO_CID) {
        Ok(fates.combo(header.cid)?.1)
    } else {
        Ok(header.cid)
    }
}

/// Whether some transaction deleted or replaced the version, or tried to.
fn has_deleter(header: &TupleHeader) -> bool {
    !header.has_no_xmax() && !header.is_locked_only()
}

/// Whether the version is part of the snapshot.
pub fn visible(
    header: &TupleHeader,
    snapshot: &Snapshot,
    fates: &impl Fates,
) -> EngineResult<bool> {
    if !header.flags.contains(TupleFlags::XMIN_FROZEN) {
        if snapshot.is_own(header.xmin) {
            if own_cmin(header, fates)? >= snapshot.command {
                return Ok(false);
            }
        } else {
            match fates.status(header.xmin)? {
                XidStatus::Committed(csn) if snapshot.sees(csn) => {}
                XidStatus::Committed(_) if mutant!("transam-later-commit-seen") => {}
                _ => return Ok(false),
            }
        }
    }
    if !has_deleter(header) {
        return Ok(true);
    }
    if snapshot.is_own(header.xmax) {
        return Ok(own_cmax(header, fates)? >= snapshot.command);
    }
    match fates.status(header.xmax)? {
        XidStatus::Committed(_) if mutant!("transam-later-deletion-seen") => Ok(false),
        XidStatus::Committed(csn) => Ok(!snapshot.sees(csn)),
        XidStatus::InProgress | XidStatus::Aborted => Ok(true),
    }
}

/// What stands in the way of changing a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateStatus {
    /// Nothing, as far as xmax goes.
    Ok,
    /// Another transaction, still running, has locked or replaced it, but not so strongly that the two exclude
    /// each other.
    Shared(Xid),
    /// It is not there for this command: its maker is running or was rolled back, or the running
    /// transaction made it in this or deleted it in an earlier command.
    Invisible,
    /// This very command (or one that it calls) has changed it already.
    SelfUpdated,
    /// Another transaction, still running, has locked, replaced or deleted it: wait for its end.
    InProgress(Xid),
    /// A committed transaction has replaced it; the header's ctid names the successor.
    Updated,
    /// A committed transaction has deleted it.
    Deleted,
}

/// Whether the command `command` of transaction `own` may change or lock the version this strongly.
///
/// To be asked under the page's exclusive latch; the answer `Ok` holds until the latch is given up.
/// `own` is `None` while the session has no id, which is never the case once it wants to change something.
/// Whether others than xmax hold the row is for the heap to find out, if the header says that it may be so.
pub fn update_status(
    header: &TupleHeader,
    own: Option<Xid>,
    command: CommandId,
    wanted: LockStrength,
    fates: &impl Fates,
) -> EngineResult<UpdateStatus> {
    let is_own = |xid: Xid| own == Some(xid);
    if !header.flags.contains(TupleFlags::XMIN_FROZEN) {
        if is_own(header.xmin) {
            if own_cmin(header, fates)? >= command {
                return Ok(UpdateStatus::Invisible);
            }
        } else if !fates.status(header.xmin)?.is_committed() {
            return Ok(UpdateStatus::Invisible);
        }
    }
    xmax_status(header, own, command, wanted, fates)
}

/// The part of [`update_status`] that is about xmax: whoever made the version, and whether that has committed.
pub fn xmax_status(
    header: &TupleHeader,
    own: Option<Xid>,
    command: CommandId,
    wanted: LockStrength,
    fates: &impl Fates,
) -> EngineResult<UpdateStatus> {
    if header.has_no_xmax() {
        return Ok(UpdateStatus::Ok);
    }
    if own == Some(header.xmax) {
        return if header.is_locked_only() {
            Ok(UpdateStatus::Ok)
        } else if own_cmax(header, fates)? >= command {
            Ok(UpdateStatus::SelfUpdated)
        } else {
            Ok(UpdateStatus::Invisible)
        };
    }
    match fates.status(header.xmax)? {
        XidStatus::InProgress if wanted.conflicts(header.strength()) => {
            Ok(UpdateStatus::InProgress(header.xmax))
        }
        XidStatus::InProgress => Ok(UpdateStatus::Shared(header.xmax)),
        XidStatus::Aborted => Ok(UpdateStatus::Ok),
        XidStatus::Committed(_) if header.is_locked_only() => Ok(UpdateStatus::Ok),
        XidStatus::Committed(_) if header.flags.contains(TupleFlags::UPDATED_AWAY) => {
            Ok(UpdateStatus::Updated)
        }
        XidStatus::Committed(_) => Ok(UpdateStatus::Deleted),
    }
}

/// What pruning and vacuum may make of a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadness {
    /// No snapshot sees it, now or later: it can go.
    Dead,
    /// Deleted by a commit with this number, but some snapshot may still see it.
    RecentlyDead(super::ids::Csn),
    /// Nobody has deleted it.
    Live {
        /// Every snapshot, now or later, sees it as far as its maker is concerned: it may be marked frozen.
        all_visible: bool,
    },
    /// Its maker is running.
    InsertInProgress(Xid),
    /// Its deleter is running.
    DeleteInProgress(Xid),
}

/// Whether the version can still be seen by anybody. A stale horizon only errs towards keeping it.
///
/// `Live { all_visible: true }` also needs that nobody has locked the row if a page is to be marked; the
/// header tells (`has_no_xmax`).
pub fn dead_to_all(
    header: &TupleHeader,
    horizon: &Horizon,
    fates: &impl Fates,
) -> EngineResult<Deadness> {
    let all_visible = if header.flags.contains(TupleFlags::XMIN_FROZEN) {
        true
    } else {
        match fates.status(header.xmin)? {
            XidStatus::InProgress => return Ok(Deadness::InsertInProgress(header.xmin)),
            XidStatus::Aborted => return Ok(Deadness::Dead),
            XidStatus::Committed(csn) => csn <= horizon.csn,
        }
    };
    if !has_deleter(header) {
        return Ok(Deadness::Live { all_visible });
    }
    match fates.status(header.xmax)? {
        XidStatus::InProgress => Ok(Deadness::DeleteInProgress(header.xmax)),
        XidStatus::Aborted => Ok(Deadness::Live { all_visible }),
        XidStatus::Committed(csn) if csn <= horizon.csn => Ok(Deadness::Dead),
        XidStatus::Committed(csn) => Ok(Deadness::RecentlyDead(csn)),
    }
}

/// The command id field for a row version that the running transaction deletes or replaces in `command`:
/// the field's value, and whether it is a combo id.
pub fn cid_for_delete(
    header: &TupleHeader,
    own: Xid,
    command: CommandId,
    combos: &mut super::combo::ComboCids,
) -> EngineResult<(CommandId, bool)> {
    if header.xmin != own || header.flags.contains(TupleFlags::XMIN_FROZEN) {
        return Ok((command, false));
    }
    let cmin = if header.flags.contains(TupleFlags::COMBO_CID) {
        combos.pair(header.cid)?.0
    } else {
        header.cid
    };
    Ok((combos.id(cmin, command)?, true))
}
