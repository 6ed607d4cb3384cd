//! Pages while records are applied to them, and the function by which a resource manager does it.

use millpond_buffer::{PAGE_SIZE, PageChange, PageId};

use super::record::RmgrId;
use crate::error::RedoError;

/// Bytes of a page that can be read and changed.
pub trait PageTarget {
    /// The page as it is now.
    fn bytes(&self) -> &[u8; PAGE_SIZE];
    /// Replaces `bytes.len()` bytes from `offset`, which lie inside the page.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Replaces the whole page.
    fn write_page(&mut self, page: &[u8; PAGE_SIZE]);
}

impl PageTarget for [u8; PAGE_SIZE] {
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

impl PageTarget for PageChange<'_> {
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
    target: &'a mut dyn PageTarget,
}

impl<'a> PageEdit<'a> {
    /// Edits `target`, which is `page`.
    pub fn new(page: PageId, target: &'a mut dyn PageTarget) -> Self {
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

    /// Replaces bytes from `offset`. Bytes beyond the page are an error, and change nothing.
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

    /// Replaces the whole page. The pool later overwrites the first 12 bytes (LSN and checksum).
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
    /// the record. It checks its input: bytes that do not fit are an error, never a panic.
    ///
    /// It does not set the page's LSN; the caller does.
    fn redo(
        &self,
        info: u8,
        block_index: usize,
        block_data: &[u8],
        payload: &[u8],
        page: &mut PageEdit<'_>,
    ) -> Result<(), RedoError>;
}

/// The table of the managers' redo functions.
pub type RedoOf = fn(RmgrId) -> Result<&'static dyn RmgrRedo, RedoError>;
