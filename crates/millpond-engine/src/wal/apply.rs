//! Do is redo: pages change only by applying a record that is already in the log.
//!
//! A resource manager gives one pure function from a page and a record to the changed page. The
//! forward path ([`log_and_apply`]) inserts the record and then runs that function; recovery runs the same
//! function. There is no second code path that could disagree (wal rule 1).

use millpond_buffer::{ExclusivePage, Lsn, PAGE_SIZE, PageChange, PageId, Wait, page_lsn};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::forks::is_system;
use super::log::Log;
use super::record::Record;
use super::rmgr::redo_of;
use crate::error::{EngineError, EngineResult};
use crate::transam::SessionNo;

/// A record cannot be applied to a page: one of the two is not what it should be.
#[derive(Clone, Debug, thiserror::Error)]
#[error("redo failed: {what}")]
pub struct RedoError {
    /// What does not fit.
    pub what: String,
}

impl RedoError {
    /// An error with this explanation.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

/// Bytes of a page that can be read and changed.
pub trait PageBytes {
    /// The page as it is now.
    fn bytes(&self) -> &[u8; PAGE_SIZE];
    /// Replaces `bytes.len()` bytes from `offset`, which lie inside the page.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Replaces the whole page.
    fn write_page(&mut self, page: &[u8; PAGE_SIZE]);
}

impl PageBytes for [u8; PAGE_SIZE] {
    fn bytes(&self) -> &[u8; PAGE_SIZE] {
        self
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn write_page(&mut self, page: &[u8; PAGE_SIZE]) {
        self.copy_from_slice(page);
    }
}

impl PageBytes for PageChange<'_> {
    fn bytes(&self) -> &[u8; PAGE_SIZE] {
        PageChange::bytes(self)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        PageChange::write(self, offset, bytes);
    }

    fn write_page(&mut self, page: &[u8; PAGE_SIZE]) {
        PageChange::write_page(self, page);
    }
}

/// A page while a record is applied to it.
pub struct PageEdit<'a> {
    page: PageId,
    target: &'a mut dyn PageBytes,
}

impl<'a> PageEdit<'a> {
    /// Edits `target`, which is `page`.
    pub fn new(page: PageId, target: &'a mut dyn PageBytes) -> Self {
        Self { page, target }
    }

    /// Which page this is.
    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// The page as it is now.
    pub fn bytes(&self) -> &[u8; PAGE_SIZE] {
        self.target.bytes()
    }

    /// Replaces bytes from `offset`; an error, and no change, if they reach beyond the page.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), RedoError> {
        match offset.checked_add(bytes.len()) {
            Some(end) if end <= PAGE_SIZE => {
                self.target.write(offset, bytes);
                Ok(())
            }
            _ => Err(RedoError::new(format!(
                "write of {} bytes at {offset} reaches beyond the page",
                bytes.len()
            ))),
        }
    }

    /// Replaces the whole page. The first 12 bytes (LSN and checksum) are the pool's: whatever is
    /// written there is overwritten later.
    pub fn write_page(&mut self, page: &[u8; PAGE_SIZE]) {
        self.target.write_page(page);
    }

    /// Zeroes the whole page.
    pub fn clear(&mut self) {
        self.target.write_page(&[0; PAGE_SIZE]);
    }
}

/// How one resource manager changes pages.
pub trait RmgrRedo: Sync {
    /// Applies a record to its block number `block_index`: a pure function of the page's bytes and
    /// the record. Checks what it is given: bytes that do not fit are an error, never a panic.
    ///
    /// The page's LSN is not its business; the caller sets it.
    fn redo(
        &self,
        info: u8,
        block_index: usize,
        block_data: &[u8],
        payload: &[u8],
        page: &mut PageEdit<'_>,
    ) -> Result<(), RedoError>;
}

/// What [`log_and_apply`] needs to know of the session that makes a change.
pub trait Logging {
    /// The log.
    fn log(&self) -> &Log;
    /// The session's slot; one thread at a time inserts on its behalf.
    fn stripe(&self) -> SessionNo;
    /// Whether the session may wait for the disk.
    fn wait(&self) -> Wait;
}

/// Pages as they are before a record changes them.
type Before<'p> = SmallVec<[&'p [u8; PAGE_SIZE]; 4]>;

/// The one way to change pages: inserts `record` and then applies it to `pages`, which are its blocks
/// in order, exclusively latched. Returns the record's end, which is now the pages' LSN.
///
/// After an error the pages are as they were. (Except if redo itself fails, which is a bug of its
/// manager: then log and pages disagree, so the log stops.)
pub fn log_and_apply(
    session: &impl Logging,
    pages: &mut [&mut ExclusivePage<'_>],
    record: Record<'_>,
) -> EngineResult<Lsn> {
    let log = session.log();
    let are_its_blocks = pages.len() == record.blocks.len()
        && pages.iter().zip(&record.blocks).all(|(page, block)| page.page_id() == block.page);
    if !are_its_blocks {
        return Err(EngineError::Internal { what: "a record comes with the pages it changes" });
    }
    if pages.is_empty() {
        return Ok(log.insert(session.stripe(), &record)?.end);
    }
    let redo = redo_of(record.rmgr)?;
    if session.wait() == Wait::Never && !log.has_room(record.max_bytes()) {
        return Err(EngineError::WouldBlock);
    }
    // Dirty before the record exists: a checkpoint that begins behind the record finds the pages,
    // one that begins before it will redo the record (wal rule 2).
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
            // Its first record, which is in the log, and the page is still latched (wal rule 17).
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
mod tests;
