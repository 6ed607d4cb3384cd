//! The page stores: where pages live when they are not in memory.
//!
//! [`PageBuffer`] is memory for pages on their way to or from a store.

use crate::ids::{BlockNumber, Fork, RelFork, RelationId};
use crate::page::{AlignedPage, PageBytes, with_scratch, words};
use crate::{PAGE_SIZE, PageWords};
#[cfg(feature = "file-store")]
pub use file::{FileStore, FileStoreOptions, IoMethod};
pub use memory::MemoryStore;
#[cfg(all(test, not(loom)))]
pub(crate) use memory::as_inner;
use millpond_sync::sync::Mutex;
pub(crate) use pending::{EndOfTurn, Memory, Turn};
pub use pending::{PendingRead, PendingWrite};
#[cfg(feature = "file-store")]
pub(crate) use pending::{Transfer, Way};
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "file-store")]
mod file;
mod memory;
mod pending;

/// Why the store failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There are no such blocks.
    #[error("blocks {first} to {last} of {rel} do not exist: there are {blocks}",
        last = u64::from(first.0) + u64::from(*count).saturating_sub(1))]
    BeyondEnd {
        /// The fork.
        rel: RelFork,
        /// The first block asked for.
        first: BlockNumber,
        /// How many were asked for.
        count: u32,
        /// How many there are.
        blocks: u32,
    },
    /// The fork does not exist.
    #[error("{rel} does not exist in the store")]
    Missing {
        /// The fork.
        rel: RelFork,
    },
    /// The system reported an error.
    #[error("could not {operation}: {source}")]
    Io {
        /// What was tried, with its object, as in "write block 3 of relation 7".
        operation: Arc<str>,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
    /// An earlier sync failed, so nothing written since the last good sync is known to be durable.
    /// The store accepts nothing more.
    #[error("the store has stopped: {why}")]
    Stopped {
        /// The first failure.
        why: Arc<str>,
    },
}

impl StoreError {
    /// Wraps an error of the system.
    pub fn io(operation: impl Into<Arc<str>>, source: std::io::Error) -> Self {
        Self::Io { operation: operation.into(), source: Arc::new(source) }
    }

    /// Whether the device is full or a quota is used up. Nothing was lost, and the caller may try
    /// the operation again when there is room.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

/// A place for pages: files, memory, or a store of your own.
///
/// The pool never reads and writes the same page at the same time. It does read and write different
/// pages of a fork concurrently, and may extend the fork meanwhile.
pub trait PageStore: Send + Sync + 'static {
    /// Creates a fork; does nothing if it exists.
    fn create(&self, rel: RelFork) -> Result<(), StoreError>;

    /// Removes all forks of a relation; does nothing if there are none.
    fn remove(&self, relation: RelationId) -> Result<(), StoreError>;

    /// Whether the fork exists.
    fn exists(&self, rel: RelFork) -> Result<bool, StoreError>;

    /// The number of blocks of the fork; 0 if it doesn't exist.
    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError>;

    /// Makes blocks `first` to `first + count - 1` exist, zero-filled if they are new. After a
    /// crash the fork may be longer than it was said to be, but never shorter than what was synced.
    ///
    /// A new block reads as a page of zeros, here and in the pool: it has no checksum and no LSN. A
    /// store that wraps another (to encrypt, compress or sign pages) must pass such pages through
    /// unchanged. Blocks that the inner store has made by `extend` have never been written through
    /// the wrapper, and must still read as zeros.
    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError>;

    /// Cuts the fork down to `block_count` blocks; does nothing if it is no longer than that.
    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError>;

    /// Reads blocks from `first`, one into each page. Blocks beyond the end are
    /// [`StoreError::BeyondEnd`].
    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError>;

    /// Reads like [`PageStore::read`] if no device has to be waited for. Otherwise it returns
    /// `false` and leaves unspecified bytes in `pages`.
    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError>;

    /// Reads like [`PageStore::read`] into memory that other threads may be looking at: the frames
    /// of the pool. Only atomic stores to it are allowed; at best, the kernel alone fills it. The
    /// default implementation reads into a temporary buffer and copies.
    ///
    /// `Ok` means that every word of all pages has been stored. A word that was left out keeps its
    /// old value and may pass for part of the page (see [`PendingRead::finish`]). A read that fails
    /// leaves unspecified bytes in `pages`.
    fn read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<(), StoreError> {
        by_way_of_scratch(pages, |scratch| self.read(rel, first, scratch).map(|()| true))?;
        Ok(())
    }

    /// As [`PageStore::read_words`] if no device has to be waited for. Otherwise it returns `false`
    /// and leaves unspecified bytes in `pages`.
    fn try_read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<bool, StoreError> {
        by_way_of_scratch(pages, |scratch| self.try_read(rel, first, scratch))
    }

    /// Begins a read and ensures that some thread finishes it without the caller's help. A store
    /// that answers [`PageStore::reads_in_background`] with `true` does not wait for a device here.
    /// The default implementation does the read at once.
    ///
    /// [`PendingRead::finish`] may call this method again for the next read of a stream, and so may
    /// dropping a [`PendingRead`]. So a store must hold no lock that this method takes when it does
    /// either. A store must not forget a read ([`std::mem::forget`]): its blocks would be loading
    /// for ever.
    fn start_read(&self, mut read: PendingRead) {
        let result = read.read_from(self);
        read.finish(result);
    }

    /// Whether [`PageStore::start_read`] returns before the device has answered, so that several
    /// reads can be under way.
    fn reads_in_background(&self) -> bool {
        false
    }

    /// Waits, on the calling thread, for a condition that the end of some read will make true. That
    /// read need not have been begun here. A store that can use the thread's time does so until
    /// `is_done`, or for less. If it has nothing for the thread to do, it calls `sleep` once. The
    /// default implementation only sleeps. Reads also end without any call of this method. They may
    /// end here, on this thread, and others may begin.
    fn wait_for_read(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        if !is_done() {
            sleep();
        }
    }

    /// Writes blocks from `first`, one from each page. They must exist.
    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError>;

    /// Begins a write and ensures that some thread finishes it without the caller's help. Once it
    /// is finished, every [`PageStore::sync`] that begins after that covers it. The default
    /// implementation does the write at once.
    fn start_write(&self, write: PendingWrite) {
        let result = self.write(write.rel(), write.first(), &write.pages());
        write.finish(result);
    }

    /// Makes durable everything that was written, created, extended, truncated and removed before
    /// the call. A failure is final: from then on every sync and every write fails.
    fn sync(&self) -> Result<(), StoreError>;

    /// Every relation of which at least one fork exists.
    fn relations(&self) -> Result<Vec<RelationId>, StoreError>;

    /// Every fork that exists, with its number of blocks as [`PageStore::block_count`] returns it.
    /// A fork also counts if it has no first block but other files of it are left. The default
    /// implementation asks for each fork.
    fn forks(&self) -> Result<Vec<(RelFork, u32)>, StoreError> {
        let mut found = Vec::new();
        for relation in self.relations()? {
            for rel in Fork::ALL.map(|fork| relation.fork(fork)) {
                if self.exists(rel)? {
                    found.push((rel, self.block_count(rel)?));
                }
            }
        }
        Ok(found)
    }
}

/// Reads into scratch pages of the thread's own. If that succeeds, it copies them to `pages`.
fn by_way_of_scratch(
    pages: &[&PageWords],
    read: impl FnOnce(&mut [&mut [u8; PAGE_SIZE]]) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    with_scratch(pages.len(), |scratch| {
        let is_read = match scratch {
            [page] => read(&mut [&mut page.0])?,
            _ => read(&mut scratch.iter_mut().map(|page| &mut page.0).collect::<Vec<_>>())?,
        };
        if is_read {
            pages.iter().zip(scratch).for_each(|(words, page)| words::copy_in(words, &page.0));
        }
        Ok(is_read)
    })
}

/// Memory for pages that are read or written together: one piece, aligned for direct I/O.
pub struct PageBuffer {
    pages: Box<[AlignedPage]>,
    used: usize,
}

impl fmt::Debug for PageBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageBuffer({} pages)", self.used)
    }
}

impl PageBuffer {
    /// Memory for `pages` pages, zeroed. (The pool makes its own; a test of a store needs some,
    /// too.)
    #[must_use]
    pub fn new(pages: usize) -> Self {
        Self { pages: (0..pages).map(|_| AlignedPage([0; PAGE_SIZE])).collect(), used: pages }
    }

    /// The number of pages that it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// Uses the first `pages` of it.
    pub(crate) fn set_len(&mut self, pages: usize) {
        self.used = pages.min(self.pages.len());
    }

    /// The number of pages to be read or written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The pages.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &PageBytes> {
        self.pages[..self.used].iter().map(|page| &page.0)
    }

    /// The pages, to be filled.
    pub fn pages_mut(&mut self) -> Vec<&mut PageBytes> {
        self.pages[..self.used].iter_mut().map(|page| &mut page.0).collect()
    }

    /// Where its memory begins: `len` contiguous pages.
    #[cfg(any(test, all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.pages.as_mut_ptr().cast()
    }
}

/// Buffer sizes that are cached: 1, 2, 4 .. 128 pages.
const SIZES: usize = 8;
/// The most pages cached per size: 4 MiB.
const KEPT_PAGES: usize = 512;
/// The most buffers cached per size.
const KEPT_BUFFERS: usize = 64;

/// A cache of buffers, one list for each power of two.
#[derive(Default)]
pub(crate) struct Buffers {
    kept: [Mutex<Vec<PageBuffer>>; SIZES],
}

impl Buffers {
    pub(crate) fn take(&self, pages: usize) -> PageBuffer {
        let capacity = pages.next_power_of_two();
        let kept = self.kept.get(capacity.ilog2() as usize).and_then(|kept| kept.lock().pop());
        let mut buffer = kept.unwrap_or_else(|| PageBuffer::new(capacity));
        buffer.set_len(pages);
        buffer
    }

    pub(crate) fn keep(&self, buffer: PageBuffer) {
        let capacity = buffer.capacity();
        let Some(kept) = self.kept.get(capacity.max(1).ilog2() as usize) else { return };
        let mut kept = kept.lock();
        if capacity.is_power_of_two() && kept.len() < (KEPT_PAGES / capacity).min(KEPT_BUFFERS) {
            kept.push(buffer);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_are_aligned() {
        let mut buffer = PageBuffer::new(3);
        let start = buffer.start() as usize;
        assert_eq!(start % PAGE_SIZE.min(4096), 0);
        for (at, page) in buffer.pages().enumerate() {
            assert_eq!(page.as_ptr() as usize, start + at * PAGE_SIZE);
        }
        buffer.set_len(1);
        assert_eq!((buffer.len(), buffer.capacity(), buffer.pages_mut().len()), (1, 3, 1));
    }

    #[test]
    fn a_full_device_is_told_from_other_errors() {
        let error = StoreError::io("extend", std::io::ErrorKind::StorageFull.into());
        assert!(error.is_out_of_space());
        assert!(!StoreError::Missing { rel: RelationId::constant(1).main() }.is_out_of_space());
    }
}
