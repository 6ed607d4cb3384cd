//! Do is redo: pages change only by applying a record that is already in the log.
//!
//! A resource manager gives one pure function from a page and a record to the changed page. The
//! forward path ([`log_and_apply`]) inserts the record and then runs that function; recovery runs the same
//! function. There is no second code path that could disagree (wal rule 1).

use millpond_buffer::{PAGE_SIZE, PageId};

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
