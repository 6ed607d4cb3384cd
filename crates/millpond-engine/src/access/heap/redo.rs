//! The heap's part in "do is redo": its records, applied to pages by the log.

use std::cmp::Ordering;

use millpond_buffer::PageRead;

use super::record;
use crate::page::PageMut;
use crate::wal::{PageEdit, RedoError, RmgrRedo};

/// Applies heap records (heap rule 1).
pub struct HeapRedo;

impl RmgrRedo for HeapRedo {
    fn redo(
        &self,
        info: u8,
        block_index: usize,
        block_data: &[u8],
        _payload: &[u8],
        page: &mut PageEdit<'_>,
    ) -> Result<(), RedoError> {
        let id = page.page_id();
        record::apply(page, info, block_index, block_data).map_err(|error| {
            RedoError::new(format!(
                "{id}: heap record {info:#04x} for block {block_index}: {error}"
            ))
        })
    }
}

impl PageRead for PageEdit<'_> {
    fn u8(&self, offset: usize) -> u8 {
        self.bytes().u8(offset)
    }

    fn u16(&self, offset: usize) -> u16 {
        self.bytes().u16(offset)
    }

    fn u32(&self, offset: usize) -> u32 {
        self.bytes().u32(offset)
    }

    fn u64(&self, offset: usize) -> u64 {
        self.bytes().u64(offset)
    }

    fn copy(&self, offset: usize, to: &mut [u8]) {
        self.bytes().copy(offset, to);
    }

    fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
        self.bytes().compare(offset, len, other)
    }
}

impl PageMut for PageEdit<'_> {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        // This fails only beyond the page's end, where this trait stores nothing either.
        let _ = PageEdit::write(self, offset, bytes);
    }
}
