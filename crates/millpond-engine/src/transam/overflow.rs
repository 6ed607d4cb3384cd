//! The overflow of the status ring: statuses that have left the ring and may still be needed.
//!
//! Statuses are kept by chunk, as the ring retires them. A chunk stays as long as one of its
//! transactions runs, or has committed after the horizon. For all others the one bit in the clog
//! ([`super::clog`]) is enough, and a search that finds no chunk says so ([`Found::Clog`]).
//!
//! A chunk is in memory while one of its transactions runs, because the end of that transaction
//! changes its word. When all have ended, the caller can write the chunk to a page of the commit
//! number file ([`super::csn_pages`]). It then calls [`Overflow::set_spilled`], which frees the
//! memory. So a snapshot that is held for long takes room on disk, not in memory.
//!
//! # The directory of the file
//! Places in the file are given out by extents of [`EXTENT`] chunks; the chunks of an extent are
//! neighbours in the file, too. An extent is forgotten as a whole, once no snapshot can tell its
//! commits apart. Then its place is reused.
//!
//! # Readers
//! A reader looks a chunk up under the lock and reads the page without it. Meanwhile the chunk may
//! be forgotten, and another chunk may get the page. The page says which chunk it holds. If it is
//! another one, the reader looks the chunk up again.
//!
//! Only the holder of the `upkeep` mutex adds, moves or forgets chunks. A session changes the word
//! of its own transaction without that mutex.

use std::collections::BTreeMap;

use millpond_buffer::BlockNumber;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::sync::Arc;
use millpond_sync::{CachePadded, mutant};

use super::chunk::{CHUNK, ChunkBits};
use super::snapshot::XidStatus;
use super::word::{Status, StatusWord};
use crate::ids::{Csn, Xid};

/// Chunks whose places in the file are given out and forgotten together.
const EXTENT: u64 = 64;

/// The statuses of one retired chunk, at least one of which is still needed.
pub(super) struct Kept {
    pub(super) words: Box<[StatusWord]>,
}

impl Kept {
    pub(super) fn word(&self, xid: Xid) -> &StatusWord {
        &self.words[(xid.0 % CHUNK) as usize]
    }

    /// For each of the chunk's transactions, its commit number, if it has one.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Option<Csn>> {
        self.words.iter().map(|word| match word.load().status() {
            Status::Committed(csn) => Some(csn),
            _ => None,
        })
    }
}

/// A chunk in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spilled {
    pub(super) chunk: u64,
    pub(super) block: BlockNumber,
}

/// Chunks in the file: neighbours by number and by place.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Its place in the file, counted in extents.
    place: u32,
    /// A bit for each chunk that is in the file.
    chunks: u64,
    /// No commit in it has a higher number.
    newest: Csn,
}

/// The place where the status of a transaction is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The status itself.
    Status(XidStatus),
    /// In the clog. It says only whether the transaction committed, and nothing else matters.
    Clog,
    /// It has ended, and the commit number file says how.
    Spilled(Spilled),
    /// Nowhere: this id was never drawn, or memory is damaged.
    Unknown,
}

#[derive(Default)]
struct Directory {
    in_memory: BTreeMap<u64, Arc<Kept>>,
    extents: BTreeMap<u64, Extent>,
    /// Places that can be reused.
    free: Vec<u32>,
    /// The number of places that were ever used.
    places: u32,
}

impl Directory {
    /// No id below this is in the directory.
    fn lowest(&self) -> u64 {
        let chunk = self.in_memory.keys().next().copied();
        let extent = self.extents.keys().next().map(|extent| extent * EXTENT);
        [chunk, extent].into_iter().flatten().min().map_or(u64::MAX, |chunk| chunk * CHUNK)
    }
}

#[cfg(not(any(loom, shuttle)))]
type Lock = millpond_sync::sync::RwLock<Directory>;
#[cfg(any(loom, shuttle))]
type Lock = models_lock::RwLock<Directory>;

/// A mutex with the interface of a reader-writer lock.
#[cfg(any(loom, shuttle))]
mod models_lock {
    use millpond_sync::sync::{Mutex, MutexGuard};
    #[derive(Default)]
    pub(super) struct RwLock<T>(Mutex<T>);
    impl<T> RwLock<T> {
        pub(super) fn read(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }
        pub(super) fn write(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }
    }
}

/// The statuses that have left the ring and are still needed.
pub(super) struct Overflow {
    directory: Lock,
    /// No id below this is in the directory.
    from: CachePadded<AtomicU64>,
}

impl Default for Overflow {
    fn default() -> Self {
        Self { directory: Lock::default(), from: CachePadded::new(AtomicU64::new(u64::MAX)) }
    }
}

impl Overflow {
    /// Changes the directory.
    fn change<T>(&self, change: impl FnOnce(&mut Directory) -> T) -> T {
        let mut directory = self.directory.write();
        let result = change(&mut directory);
        self.from.store(directory.lowest(), Ordering::Release);
        result
    }

    /// The words of a transaction's chunk, if they are in memory.
    pub(super) fn in_memory(&self, xid: Xid) -> Option<Arc<Kept>> {
        self.directory.read().in_memory.get(&(xid.0 / CHUNK)).cloned()
    }

    /// The status of a transaction that has left the ring. Waits out the committing mark.
    pub(super) fn find(&self, xid: Xid) -> Found {
        if xid.0 < self.from.load(Ordering::Acquire) {
            return Found::Clog;
        }
        let chunk = xid.0 / CHUNK;
        let kept = {
            let directory = self.directory.read();
            match directory.in_memory.get(&chunk) {
                Some(kept) => Arc::clone(kept),
                None => return spilled(&directory, chunk).map_or(Found::Clog, Found::Spilled),
            }
        };
        let word = kept.word(xid);
        loop {
            let loaded = word.load();
            match loaded.status() {
                Status::Committing(_) => word.wait_committing(loaded),
                status => return status.settled().map_or(Found::Unknown, Found::Status),
            }
        }
    }

    pub(super) fn insert(&self, chunk: u64, kept: Arc<Kept>) {
        self.change(|directory| directory.in_memory.insert(chunk, kept));
    }

    /// The chunks in memory, oldest first.
    pub(super) fn chunks(&self) -> Vec<u64> {
        self.directory.read().in_memory.keys().copied().collect()
    }

    /// How many chunks are in memory.
    pub(super) fn len(&self) -> usize {
        self.directory.read().in_memory.len()
    }

    /// Which ids of a chunk have committed, and whether no snapshot needs the chunk's numbers.
    pub(super) fn bits(&self, chunk: u64, horizon: Csn) -> Option<(ChunkBits, bool)> {
        let kept = self.directory.read().in_memory.get(&chunk).cloned()?;
        let mut bits = ChunkBits { settled: true, ..ChunkBits::default() };
        let mut old = true;
        for (index, word) in kept.words.iter().enumerate() {
            let status = word.load().status();
            bits.note(index as u64, status);
            let is_young = matches!(status, Status::Committed(csn) if csn > horizon);
            old &= !is_young || mutant!("transam-needed-numbers-forgotten");
        }
        let forgettable = old && bits.settled;
        Some((bits, forgettable))
    }

    /// Takes a chunk out of memory, after its clog bits were written.
    pub(super) fn forget(&self, chunk: u64) {
        self.change(|directory| directory.in_memory.remove(&chunk));
    }

    /// A place in the file for a chunk. No reader looks there before
    /// [`set_spilled`](Self::set_spilled).
    pub(super) fn place(&self, chunk: u64) -> BlockNumber {
        self.change(|directory| {
            let Directory { extents, free, places, .. } = directory;
            let extent = extents.entry(chunk / EXTENT).or_insert_with(|| {
                let place = free.pop().unwrap_or_else(|| {
                    *places += 1;
                    *places - 1
                });
                Extent { place, chunks: 0, newest: Csn::INVALID }
            });
            block_of(extent, chunk)
        })
    }

    /// Takes a chunk out of memory that is now in the file at its [`place`](Self::place).
    pub(super) fn set_spilled(&self, chunk: u64, newest: Csn) {
        self.change(|directory| {
            if let Some(extent) = directory.extents.get_mut(&(chunk / EXTENT)) {
                extent.chunks |= 1 << (chunk % EXTENT);
                extent.newest = extent.newest.max(newest);
                directory.in_memory.remove(&chunk);
            }
        });
    }

    /// Whether a place in the file is given out. If not, the file holds nothing that is needed.
    pub(super) fn has_spilled(&self) -> bool {
        !self.directory.read().extents.is_empty()
    }

    /// Forgets the extents whose commit numbers no snapshot needs, and those without any.
    pub(super) fn forget_spilled(&self, horizon: Csn) {
        if !self.has_spilled() {
            return;
        }
        self.change(|directory| {
            let Directory { extents, free, places, .. } = directory;
            extents.retain(|_, extent| {
                let is_needed = extent.newest > horizon;
                if !is_needed {
                    free.push(extent.place);
                }
                is_needed
            });
            if extents.is_empty() {
                free.clear();
                *places = 0;
            }
        });
    }
}

fn block_of(extent: &Extent, chunk: u64) -> BlockNumber {
    BlockNumber(extent.place * EXTENT as u32 + (chunk % EXTENT) as u32)
}

fn spilled(directory: &Directory, chunk: u64) -> Option<Spilled> {
    let extent = directory.extents.get(&(chunk / EXTENT))?;
    let is_there = extent.chunks & 1 << (chunk % EXTENT) != 0;
    is_there.then(|| Spilled { chunk, block: block_of(extent, chunk) })
}
