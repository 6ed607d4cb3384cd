//! The table of resource managers: which one redoes which record. A log gets it when it is opened
//! ([`LogConfig::redo_of`](crate::wal::LogConfig)), so that it knows no manager itself.

use crate::access::btree::record::BTreeRedo;
use crate::access::heap::redo::HeapRedo;
use crate::transam::clog::ClogRedo;
use crate::wal::{RedoError, RmgrId, RmgrRedo, own_redo_of};

/// The redo function of a manager. A manager whose records never change pages has none.
pub fn redo_of(rmgr: RmgrId) -> Result<&'static dyn RmgrRedo, RedoError> {
    match rmgr {
        RmgrId::Heap => Ok(&HeapRedo),
        RmgrId::BTree => Ok(&BTreeRedo),
        RmgrId::Clog => Ok(&ClogRedo),
        other => own_redo_of(other),
    }
}
