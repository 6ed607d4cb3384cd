//! Reading and writing a frame's bytes as relaxed atomic words.
//!
//! A page's bytes are its words' bytes in memory order. So reading a little-endian integer takes
//! one load at an aligned offset, and at most two elsewhere.
//!
//! Page words are the standard library's atomics even under a model checker: the checker explores
//! the protocol around them, not each of 1,024 words.

use super::{PageBytes, PageRead};
use crate::PAGE_SIZE;
use millpond_sync::audit;
use millpond_sync::prefetch::prefetch;
use std::cmp::Ordering as Order;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words in a page.
pub const PAGE_WORDS: usize = PAGE_SIZE / 8;

/// The bytes of a frame, as optimistic readers see them, in memory order. They may be loaded
/// at any time, as [`AtomicU64`] allows.
pub type PageWords = [AtomicU64; PAGE_WORDS];

/// What an optimistic reader sees of a page. The page may be changing, so a reader can only copy
/// values out, and every offset is checked. Nothing read counts before the read has been validated.
#[derive(Clone, Copy)]
pub struct PageView<'a> {
    words: &'a PageWords,
}

impl<'a> PageView<'a> {
    pub(crate) fn new(words: &'a PageWords) -> Self {
        Self { words }
    }

    /// Copies the whole page.
    pub fn copy_page(&self, to: &mut PageBytes) {
        copy_out(self.words, to);
    }

    /// Asks the processor for the memory of some bytes that will be read soon: a hint.
    #[inline]
    pub fn prefetch(&self, bytes: Range<usize>) {
        if let Some(words) = self.words.get(bytes.start / 8..bytes.end.div_ceil(8)) {
            prefetch(words);
        }
    }

    /// The `bytes` (1 to 8) bytes at `offset` as a little-endian integer.
    #[inline(always)]
    fn load(&self, offset: usize, bytes: usize) -> u64 {
        let word = |at: usize| u64::from_le(self.words[at].load(Ordering::Relaxed));
        if offset > PAGE_SIZE - bytes {
            return self.load_at_edge(offset, bytes);
        }
        let (at, shift) = (offset / 8, offset % 8 * 8);
        let mut value = word(at) >> shift;
        if shift + bytes * 8 > 64 {
            // Inside the page, since the integer's last byte is.
            value |= word((at + 1) % PAGE_WORDS) << (64 - shift);
        }
        if bytes < 8 { value & ((1 << (bytes * 8)) - 1) } else { value }
    }

    /// Copies from any offset. Bytes outside the page are zeros.
    #[inline(never)]
    fn copy_from_anywhere(&self, offset: usize, to: &mut [u8]) {
        let mut at = offset;
        let (words, rest) = to.as_chunks_mut::<8>();
        for word in words {
            *word = self.load(at, 8).to_le_bytes();
            at = at.saturating_add(8);
        }
        for byte in rest {
            *byte = self.load(at, 1) as u8;
            at = at.saturating_add(1);
        }
    }

    #[cold]
    fn load_at_edge(&self, offset: usize, bytes: usize) -> u64 {
        (0..bytes).rev().fold(0, |value, at| {
            let byte = match offset.checked_add(at) {
                Some(inside) if inside < PAGE_SIZE => self.load(inside, 1),
                _ => 0,
            };
            value << 8 | byte
        })
    }
}

impl fmt::Debug for PageView<'_> {
    /// Without its bytes, which may be torn.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageView").finish_non_exhaustive()
    }
}

impl PageRead for PageView<'_> {
    #[inline(always)]
    fn u8(&self, offset: usize) -> u8 {
        self.load(offset, 1) as u8
    }

    #[inline(always)]
    fn u16(&self, offset: usize) -> u16 {
        self.load(offset, 2) as u16
    }

    #[inline(always)]
    fn u32(&self, offset: usize) -> u32 {
        self.load(offset, 4) as u32
    }

    #[inline(always)]
    fn u64(&self, offset: usize) -> u64 {
        self.load(offset, 8)
    }

    fn copy(&self, offset: usize, to: &mut [u8]) {
        // From a word boundary, where access methods put things, it copies word by word.
        let first = offset / 8;
        let wanted = first.checked_add(to.len().div_ceil(8)).map(|end| first..end);
        if offset.is_multiple_of(8)
            && let Some(words) = wanted.and_then(|range| self.words.get(range))
        {
            return copy_words(words, to);
        }
        self.copy_from_anywhere(offset, to);
    }

    fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Order {
        // A torn length can be anything; bytes outside the page read as zeros.
        let common = len.min(other.len());
        let (words, rest) = other[..common].as_chunks::<8>();
        let mut at = offset;
        for word in words {
            let (mine, theirs) = (self.load(at, 8).swap_bytes(), u64::from_be_bytes(*word));
            if mine != theirs {
                return mine.cmp(&theirs);
            }
            at = at.saturating_add(8);
        }
        for byte in rest {
            let mine = self.load(at, 1) as u8;
            if mine != *byte {
                return mine.cmp(byte);
            }
            at = at.saturating_add(1);
        }
        len.cmp(&other.len())
    }
}

/// Copies the bytes of words. The last word may have more bytes than `to` has room for.
#[inline]
fn copy_words(words: &[AtomicU64], to: &mut [u8]) {
    // Four at a time: one check for all of them.
    let (blocks, rest) = to.as_chunks_mut::<32>();
    let (four, one) = words.split_at(blocks.len() * 4);
    for (block, words) in blocks.iter_mut().zip(four.as_chunks::<4>().0) {
        for (chunk, word) in block.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
    }
    let (chunks, last) = rest.as_chunks_mut::<8>();
    for (chunk, word) in chunks.iter_mut().zip(one) {
        *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if let Some(word) = one.get(chunks.len()) {
        let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        last.copy_from_slice(&bytes[..last.len()]);
    }
}

/// Copies a frame out.
pub(crate) fn copy_out(words: &PageWords, to: &mut PageBytes) {
    let (chunks, _) = to.as_chunks_mut::<8>();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}

/// Notes that a store is about to fill the page. The audit counts this as bytes of pages, like what
/// is copied here.
#[inline]
pub(crate) fn to_be_filled(words: &PageWords) {
    audit::bytes_written(words);
}

/// Stores a whole page. The caller is the frame's only writer.
pub(crate) fn copy_in(words: &PageWords, from: &PageBytes) {
    audit::bytes_written(words);
    let (chunks, _) = from.as_chunks::<8>();
    for (word, chunk) in words.iter().zip(chunks) {
        word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
    }
}

/// Stores zeros. The caller is the frame's only writer.
pub(crate) fn clear(words: &PageWords) {
    audit::bytes_written(words);
    for word in words {
        word.store(0, Ordering::Relaxed);
    }
}

/// Stores bytes at an offset and leaves out those outside the page. The caller is the frame's only
/// writer.
pub(crate) fn store(words: &PageWords, offset: usize, from: &[u8]) {
    let inside = PAGE_SIZE.saturating_sub(offset).min(from.len());
    debug_assert_eq!(inside, from.len(), "a write beyond the end of the page");
    if inside == 0 {
        return;
    }
    let from = &from[..inside];
    audit::bytes_written(&words[offset / 8..(offset + inside).div_ceil(8).max(offset / 8)]);
    // First the bytes up to a word boundary, then whole words, then the rest.
    let head = (offset.wrapping_neg() % 8).min(from.len());
    let (first, rest) = from.split_at(head);
    if !first.is_empty() {
        store_part(words, offset, first);
    }
    let start = (offset + head) / 8;
    let (chunks, last) = rest.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        words[start + at].store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
    }
    if !last.is_empty() {
        store_part(words, (start + chunks.len()) * 8, last);
    }
}

/// Stores some bytes of one word.
fn store_part(words: &PageWords, offset: usize, from: &[u8]) {
    let word = &words[offset / 8];
    let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    let start = offset % 8;
    bytes[start..start + from.len()].copy_from_slice(from);
    word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> Box<PageWords> {
        Box::new([const { AtomicU64::new(0) }; PAGE_WORDS])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        /// Words behave as the bytes that they are.
        #[test]
        fn like_bytes(
            writes in prop::collection::vec((0..PAGE_SIZE, prop::collection::vec(any::<u8>(), 0..40)), 1..20),
            reads in prop::collection::vec((0..PAGE_SIZE + 20, 0usize..40), 1..20),
        ) {
            let words = words();
            let mut bytes = [0u8; PAGE_SIZE];
            for (offset, data) in &writes {
                let data = &data[..data.len().min(PAGE_SIZE - offset)];
                store(&words, *offset, data);
                bytes[*offset..*offset + data.len()].copy_from_slice(data);
            }
            let view = PageView::new(&words);
            let mut whole = [1u8; PAGE_SIZE];
            view.copy_page(&mut whole);
            prop_assert!(whole == bytes);
            for (offset, len) in reads {
                prop_assert_eq!(view.u8(offset), PageRead::u8(&bytes, offset));
                prop_assert_eq!(view.u16(offset), PageRead::u16(&bytes, offset));
                prop_assert_eq!(view.u32(offset), PageRead::u32(&bytes, offset));
                prop_assert_eq!(view.u64(offset), PageRead::u64(&bytes, offset));
                let (mut mine, mut theirs) = (vec![1; len], vec![2; len]);
                view.copy(offset, &mut mine);
                bytes.copy(offset, &mut theirs);
                prop_assert_eq!(&mine, &theirs);
                prop_assert_eq!(view.compare(offset, len, &theirs), Order::Equal);
                for other in [&[0x80u8; 3][..], &[0; 50], &writes[0].1] {
                    prop_assert_eq!(view.compare(offset, len, other), bytes.compare(offset, len, other));
                }
            }
        }
    }

    #[test]
    fn offsets_beyond_the_page_are_harmless() {
        let words = words();
        let view = PageView::new(&words);
        assert_eq!(view.u64(usize::MAX), 0);
        view.copy(usize::MAX - 3, &mut [0; 20]);
        assert_eq!(view.compare(usize::MAX - 3, usize::MAX, &[0; 9]), Order::Greater);
    }
}
