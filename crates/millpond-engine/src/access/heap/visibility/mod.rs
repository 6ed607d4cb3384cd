//! Visibility of row versions: which of them a statement sees or may change, and which are dead.
//!
//! Three questions, each answered from a tuple header and the statuses of its transactions:
//!
//! * [`visible`]: is the version part of a snapshot?
//! * [`update_status`]: may the running command replace or delete it *now*? The latest committed
//!   state decides, not the snapshot. `session/write.rs` says what each isolation level makes of
//!   the answer.
//! * [`dead_to_all`]: can pruning or vacuum remove it?
//!
//! A transaction that is in progress for [`visible`] has not drawn its commit number yet. So its
//! number will be above every snapshot taken so far: "in progress" and "committed after my
//! snapshot" are one answer (transam rule 4). None of the functions writes anything, and no answer
//! is stored in the header (transam rule 12).

#[cfg(test)]
mod tests;

use millpond_sync::mutant;

use super::header::{TupleFlags, TupleHeader};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::ids::{CommandId, Xid};
use crate::transam::{Horizon, LockStrength, Snapshot, XidStatus};

/// Lookup of transaction statuses (called fates) and combo ids: the session's, or a model's in
/// tests.
pub trait Fates {
    /// The status of a transaction. Waits while a commit draws its number.
    fn status(&self, xid: Xid) -> EngineResult<XidStatus>;
    /// The pair behind a combo id of the running transaction.
    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)>;
}

impl Fates for Ctx {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        self.txns().status(self, xid)
    }

    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.combos().borrow().pair(id)
    }
}

/// The command that made this version. The running transaction made the version.
fn own_cmin(header: &TupleHeader, fates: &impl Fates) -> EngineResult<CommandId> {
    if header.flags.contains(TupleFlags::COMBO_CID) {
        Ok(fates.combo(header.cid)?.0)
    } else {
        Ok(header.cid)
    }
}

/// The command that deleted this version. The running transaction deleted it.
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

/// What prevents a change of a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateStatus {
    /// Nothing, as far as xmax is concerned.
    Ok,
    /// Another running transaction has locked or replaced it, but the two locks do not conflict.
    Shared(Xid),
    /// Not visible to the command. Its maker is running or was rolled back; or the running
    /// transaction made it in this command, or deleted it in an earlier one.
    Invisible,
    /// This command, or one that it calls, has changed it already.
    SelfUpdated,
    /// Another transaction, still running, has locked, replaced or deleted it: wait for its end.
    InProgress(Xid),
    /// A committed transaction has replaced it; the header's ctid names the successor.
    Updated,
    /// A committed transaction has deleted it.
    Deleted,
}

/// Whether command `command` of transaction `own` may change or lock the version so strongly.
///
/// Call it under the page's exclusive latch; the answer `Ok` holds until the latch is released.
/// `own` is `None` while the session has no id; a session that changes something has one. If the
/// header says that others than xmax may hold the row, the heap checks that.
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

/// The part of [`update_status`] that is about xmax. It does not look at xmin.
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

/// What pruning and vacuum may do with a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadness {
    /// No snapshot sees it, now or later: it can be removed.
    Dead,
    /// Deleted by a commit with this number, but some snapshot may still see it.
    RecentlyDead(crate::ids::Csn),
    /// No transaction has deleted it.
    Live {
        /// Every snapshot, now or later, sees its maker's commit: it may be marked frozen.
        all_visible: bool,
    },
    /// Its maker is running.
    InsertInProgress(Xid),
    /// Its deleter is running.
    DeleteInProgress(Xid),
}

/// Whether any snapshot can still see the version. A stale horizon only errs towards keeping it.
///
/// To mark a page all-visible, `Live { all_visible: true }` is not enough: the row must not be
/// locked either (`has_no_xmax` of the header).
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

/// The command id field for a row version that the running transaction deletes or replaces in
/// `command`. Returns the field's value, and whether it is a combo id.
pub fn cid_for_delete(
    header: &TupleHeader,
    own: Xid,
    command: CommandId,
    combos: &mut crate::transam::ComboCids,
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
