//! Redo of the log's own records.

use super::info;
use super::page_edit::{PageEdit, RmgrRedo};
use super::record::{Reader, RmgrId};
use crate::error::RedoError;

/// The redo function of the log itself. It stands in for the table of all managers where a log has
/// no other records that change pages.
pub fn own_redo_of(rmgr: RmgrId) -> Result<&'static dyn RmgrRedo, RedoError> {
    match rmgr {
        RmgrId::Log => Ok(&LogRedo),
        _ => Err(RedoError::new("this manager changes no pages")),
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
