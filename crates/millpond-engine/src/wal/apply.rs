//! Do is redo: pages change only by applying a record that is already in the log.
//!
//! A resource manager has one pure function from a page and a record to the changed page. Normal
//! work ([`log_and_apply`]) inserts the record and then runs that function; recovery runs the same
//! function. There is no second code path that could disagree (wal rule 1).

use millpond_buffer::{ExclusivePage, Lsn, PAGE_SIZE, PageChange, Wait, page_lsn};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::forks::is_system;
use super::log::Log;
use super::page_edit::PageEdit;
use super::record::Record;
use crate::error::{EngineError, EngineResult};
use crate::ids::SessionNo;

/// What [`log_and_apply`] needs to know of the session that makes a change.
pub trait Logging {
    /// The log.
    fn log(&self) -> &Log;
    /// The session's slot. One thread at a time inserts on its behalf.
    fn stripe(&self) -> SessionNo;
    /// Whether the session may wait for the disk.
    fn wait(&self) -> Wait;
}

/// Pages as they are before a record changes them.
type Before<'p> = SmallVec<[&'p [u8; PAGE_SIZE]; 4]>;

/// The only way to change pages. Inserts `record` and then applies it to `pages`, which are its
/// blocks in order, exclusively latched. Returns the record's end, which is now the pages' LSN.
///
/// After an error the pages are as they were, with one exception: if redo itself fails, which is a
/// bug of its manager. Then log and pages disagree, so the log stops.
pub fn log_and_apply(
    session: &impl Logging,
    pages: &mut [&mut ExclusivePage<'_>],
    record: Record<'_>,
) -> EngineResult<Lsn> {
    let log = session.log();
    let are_its_blocks = pages.len() == record.blocks.len()
        && pages.iter().zip(&record.blocks).all(|(page, block)| page.page_id() == block.page);
    if !are_its_blocks {
        return Err(EngineError::Internal {
            what: "a log record came without the pages it changes",
        });
    }
    if pages.is_empty() {
        return Ok(log.insert(session.stripe(), &record)?.end);
    }
    let redo = log.redo_of(record.rmgr)?;
    if session.wait() == Wait::Never && !log.has_room(record.max_bytes()) {
        return Err(EngineError::WouldBlock);
    }
    // Dirty before the record exists. A checkpoint that begins behind the record finds the pages;
    // one that begins before the record redoes it (wal rule 2).
    let insert = |before: Before<'_>| log.insert_with_pages(session.stripe(), &record, &before);
    let too_early = match mutant!("wal-insert-before-mark") {
        true => Some(insert(pages.iter().map(|page| page.bytes()).collect())?),
        false => None,
    };
    let changes: SmallVec<[PageChange<'_>; 4]> =
        pages.iter_mut().map(|page| page.change()).collect();
    let inserted = match too_early {
        Some(inserted) => inserted,
        None => insert(changes.iter().map(|change| change.bytes()).collect())?,
    };
    for (index, mut change) in changes.into_iter().enumerate() {
        let block = &record.blocks[index];
        let is_new = page_lsn(change.bytes()) == Lsn::ZERO && !mutant!("wal-new-block-not-noted");
        if is_new || is_system(block.page.rel_fork()) {
            // The block's first record is in the log, and the page is still latched (wal rule 17).
            log.forks().write(block.page, inserted.end);
        }
        let mut edit = PageEdit::new(block.page, &mut change);
        if let Err(error) = redo.redo(record.info, index, block.data, record.payload, &mut edit) {
            if !mutant!("wal-go-on-after-failed-redo") {
                log.stop(&format!(
                    "record at {} does not apply to {}: {error}",
                    inserted.start, block.page
                ));
            }
            return Err(error.into());
        }
        change.publish(inserted.end);
    }
    Ok(inserted.end)
}

#[cfg(test)]
pub(super) mod tests;
