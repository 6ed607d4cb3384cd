//! Decides what pruning does with a version: looks up fates and returns a [`Verdict`].

use millpond_sync::mutant;

use super::header::{TupleFlags, TupleHeader};
use super::prune::{Fate, Verdict};
use crate::access::heap::visibility::{Deadness, Fates, dead_to_all};
use crate::error::EngineResult;
use crate::transam::{Horizon, XidStatus};

/// The version's fate as of `horizon`. A stale horizon only keeps more versions. `is_held`, asked
/// if the header has the flag, says whether transactions other than xmax hold the version.
pub fn judge(
    header: &TupleHeader,
    horizon: &Horizon,
    fates: &impl Fates,
    is_held: impl FnOnce() -> bool,
) -> EngineResult<Verdict> {
    if header.flags.contains(TupleFlags::XMIN_FROZEN) && header.has_no_xmax() {
        // Most versions of most pages are these.
        return Ok(Verdict { fate: Fate::Live, xmin_is_old: true, xmax_is_void: false });
    }
    let fate = match dead_to_all(header, horizon, fates)? {
        Deadness::Dead => Fate::Dead,
        Deadness::RecentlyDead(_) if mutant!("heap-prune-under-snapshots") => Fate::Dead,
        Deadness::RecentlyDead(_) => Fate::RecentlyDead,
        Deadness::Live { .. } => Fate::Live,
        Deadness::InsertInProgress(_) => Fate::Inserting,
        Deadness::DeleteInProgress(_) => Fate::Deleting,
    };
    let xmin_is_old = match fate {
        Fate::Dead | Fate::Inserting => false,
        _ if header.flags.contains(TupleFlags::XMIN_FROZEN) => true,
        _ => matches!(fates.status(header.xmin)?, XidStatus::Committed(csn) if csn <= horizon.csn),
    };
    let xmax_is_void = fate == Fate::Live
        && !header.has_no_xmax()
        && match fates.status(header.xmax)? {
            XidStatus::InProgress => false,
            XidStatus::Aborted => true,
            XidStatus::Committed(_) => header.is_locked_only(),
        }
        && !(header.has_more_lockers()
            && is_held()
            && !mutant!("heap-xmax-forgotten-under-holders"));
    Ok(Verdict { fate, xmin_is_old, xmax_is_void })
}
