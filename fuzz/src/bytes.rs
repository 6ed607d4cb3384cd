//! Turns an input's bytes into pages, choices and texts.
//!
//! First come the choices, then what is decoded. Missing bytes are zero: every input is valid.

use millpond_buffer::PAGE_SIZE;

/// The unread rest of an input.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> u64 {
        let mut word = [0; 8];
        word.fill_with(|| self.byte());
        u64::from_le_bytes(word)
    }

    /// The next `count` bytes, or as many as there are.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// One of several values, chosen by the next byte.
    pub fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// Bytes after a byte with their length.
    pub fn short(&mut self) -> &'a [u8] {
        let length = self.byte();
        self.take(length.into())
    }

    /// A page: one of `bases` with some bytes changed. The input has the number of changes, and for
    /// each its offset and its bytes after their length.
    pub fn page(&mut self, bases: &[[u8; PAGE_SIZE]]) -> Box<[u8; PAGE_SIZE]> {
        let mut page = Box::new([0; PAGE_SIZE]);
        page.copy_from_slice(&bases[usize::from(self.byte()) % bases.len()]);
        for _ in 0..self.byte() % 16 {
            let at = usize::from(self.u16()) % PAGE_SIZE;
            for (to, from) in page[at..].iter_mut().zip(self.short()) {
                *to = *from;
            }
        }
        page
    }
}

/// An input that [`Bytes::page`] reads as this base with these changes.
pub fn page_input(base: u8, changes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = vec![base, changes.len() as u8];
    for (at, bytes) in changes {
        out.extend_from_slice(&at.to_le_bytes());
        out.push(bytes.len() as u8);
        out.extend_from_slice(bytes);
    }
    out
}
