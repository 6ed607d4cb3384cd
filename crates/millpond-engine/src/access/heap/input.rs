//! Reading numbers from a log record of the heap.

use crate::page::PageError;

const TRUNCATED: PageError = PageError::Malformed("heap record ends too early");

/// Reads numbers from the front of a record's bytes.
pub(super) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], PageError> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(TRUNCATED)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PageError> {
        self.take(N)?.try_into().map_err(|_| TRUNCATED)
    }

    pub fn u8(&mut self) -> Result<u8, PageError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, PageError> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, PageError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, PageError> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn end(&self) -> Result<(), PageError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(PageError::Malformed("heap record is too long"))
        }
    }
}
