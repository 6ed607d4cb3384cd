//! Which manager redoes which record: the one place that knows them all.

use super::apply::{RedoError, RmgrRedo};
use super::record::RmgrId;
use crate::access::btree::record::BTreeRedo;
use crate::access::heap::redo::HeapRedo;
use crate::transam::clog::ClogRedo;

/// The redo function of a manager. A manager whose records never change pages has none.
pub fn redo_of(rmgr: RmgrId) -> Result<&'static dyn RmgrRedo, RedoError> {
    match rmgr {
        RmgrId::Heap => Ok(&HeapRedo),
        RmgrId::BTree => Ok(&BTreeRedo),
        RmgrId::Clog => Ok(&ClogRedo),
        RmgrId::Log | RmgrId::Transaction | RmgrId::Storage | RmgrId::Catalog => {
            Err(RedoError::new("this manager changes no pages"))
        }
    }
}
