//! Memory for pages that are written in the background, kept for the next who needs some.
//!
//! Sizes are powers of two, and each is kept for its own.

use crate::store::PageBuffer;
use millpond_sync::sync::Mutex;

/// Sizes that are kept: 1, 2, 4 .. 128 pages.
const SIZES: usize = 8;
/// Pages that are kept of each size, at most: 4 MiB.
const KEPT_PAGES: usize = 512;
/// Buffers of a size that are kept, at most.
const KEPT_BUFFERS: usize = 64;

/// Buffers that nobody uses just now.
#[derive(Default)]
pub(crate) struct Buffers {
    kept: [Mutex<Vec<PageBuffer>>; SIZES],
}

impl Buffers {
    /// Memory for `pages` pages.
    pub(crate) fn take(&self, pages: usize) -> PageBuffer {
        let capacity = pages.next_power_of_two();
        let kept = self.kept.get(capacity.ilog2() as usize).and_then(|kept| kept.lock().pop());
        let mut buffer = kept.unwrap_or_else(|| PageBuffer::new(capacity));
        buffer.set_len(pages);
        buffer
    }

    /// Takes memory back.
    pub(crate) fn keep(&self, buffer: PageBuffer) {
        let capacity = buffer.capacity();
        let Some(kept) = self.kept.get(capacity.max(1).ilog2() as usize) else { return };
        let mut kept = kept.lock();
        if capacity.is_power_of_two() && kept.len() < (KEPT_PAGES / capacity).min(KEPT_BUFFERS) {
            kept.push(buffer);
        }
    }
}
