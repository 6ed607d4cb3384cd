//! Which manager redoes which record: the one place that knows them all.

use super::apply::{PageEdit, RedoError, RmgrRedo};
use super::info;
use super::record::{Reader, RmgrId};
use crate::access::btree::record::BTreeRedo;
use crate::access::heap::redo::HeapRedo;
use crate::transam::clog::ClogRedo;

/// The redo function of a manager. A manager whose records never change pages has none.
pub fn redo_of(rmgr: RmgrId) -> Result<&'static dyn RmgrRedo, RedoError> {
    match rmgr {
        RmgrId::Heap => Ok(&HeapRedo),
        RmgrId::BTree => Ok(&BTreeRedo),
        RmgrId::Clog => Ok(&ClogRedo),
        RmgrId::Log => Ok(&LogRedo),
        RmgrId::Transaction | RmgrId::Storage | RmgrId::Catalog => {
            Err(RedoError::new("this manager changes no pages"))
        }
    }
}

/// The log's own records that change pages.
struct LogRedo;

impl RmgrRedo for LogRedo {
    fn redo(
        &self,
        info: u8,
        _block_index: usize,
        block_data: &[u8],
        _payload: &[u8],
        page: &mut PageEdit<'_>,
    ) -> Result<(), RedoError> {
        if info != info::WRITE {
            return Err(RedoError::new(format!("record kind {info} of the log changes no pages")));
        }
        let malformed = || RedoError::new("malformed list of bytes to write");
        let mut rest = Reader(block_data);
        while !rest.0.is_empty() {
            let offset = rest.u16().ok_or_else(malformed)?;
            let length = rest.u16().ok_or_else(malformed)?;
            let bytes = rest.take(length.into()).ok_or_else(malformed)?;
            page.write(offset.into(), bytes)?;
        }
        Ok(())
    }
}
