//! A file's bytes: what the kernel's page cache shows, and what the disk holds.
//!
//! A write changes the cache and is noted as a [`Change`]. A sync carries the noted changes to the
//! disk. A crash keeps the changes up to some moment between the last sync and now, chosen for each
//! sector separately. The length is that of another such moment. So bytes can survive without the
//! length, and the length without the bytes, which then are zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rand::Rng;
use rand::rngs::StdRng;

/// The unit that a medium can fail to read.
pub(super) const SECTOR: usize = 512;

/// A change of the bytes that is not durable.
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    bytes: Vec<u8>,
    len_after: usize,
}

impl Change {
    fn range(&self) -> Range<usize> {
        self.at..self.at + self.bytes.len()
    }
}

/// The bytes of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    cached: Vec<u8>,
    durable: Vec<u8>,
    /// What the disk held before the last sync; a stale read returns it.
    older: Vec<u8>,
    unsynced: Vec<Change>,
    unreadable: BTreeSet<usize>,
}

fn put(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    if bytes.len() < at + new.len() {
        bytes.resize(at + new.len(), 0);
    }
    bytes[at..at + new.len()].copy_from_slice(new);
}

fn copied(from: &[u8], at: usize, into: &mut [u8]) {
    into.fill(0);
    if let Some(rest) = from.get(at..) {
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
    }
}

impl Inode {
    /// A file with these bytes, all durable.
    pub fn holding(bytes: Vec<u8>) -> Self {
        Self { cached: bytes.clone(), durable: bytes, ..Self::default() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.cached
    }

    pub fn len(&self) -> usize {
        self.cached.len()
    }

    /// Copies the bytes from `at` on; returns how many there are.
    pub fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(at).min(into.len());
        copied(&self.cached, at, &mut into[..count]);
        count
    }

    /// Like [`Inode::read`], but returns what the disk held before the last sync.
    pub fn read_stale(&self, at: usize, into: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(at).min(into.len());
        copied(&self.older, at, &mut into[..count]);
        count
    }

    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        put(&mut self.cached, at, bytes);
        self.unreadable.retain(|sector| {
            let start = sector * SECTOR;
            start + SECTOR <= at || start >= at + bytes.len()
        });
        self.note(at, bytes.to_vec());
    }

    pub fn set_len(&mut self, len: usize) {
        let cut = self.len().saturating_sub(len);
        self.cached.resize(len, 0);
        self.note(len, vec![0; cut]);
    }

    fn note(&mut self, at: usize, bytes: Vec<u8>) {
        self.unsynced.push(Change { at, bytes, len_after: self.cached.len() });
    }

    /// Makes a sector unreadable until it is written.
    pub fn spoil(&mut self, at: usize) {
        self.unreadable.insert(at / SECTOR);
    }

    pub fn is_readable(&self, at: usize, bytes: usize) -> bool {
        let end = (at + bytes).div_ceil(SECTOR);
        self.unreadable.range(at / SECTOR..end.max(at / SECTOR)).next().is_none()
    }

    pub fn sync(&mut self) {
        if self.unsynced.is_empty() {
            return;
        }
        self.older.clone_from(&self.durable);
        let end = self.cached.len();
        for change in std::mem::take(&mut self.unsynced) {
            let range = change.range();
            let kept = range.start.min(end)..range.end.min(end);
            put(&mut self.durable, kept.start, &self.cached[kept]);
        }
        self.durable.resize(end, 0);
    }

    /// A sync that fails: some sectors reach the disk, and the kernel marks the others clean. It
    /// may keep showing their new contents, or forget them.
    pub fn fail_sync(&mut self, rng: &mut StdRng, sector: usize) {
        if self.unsynced.is_empty() {
            return;
        }
        self.older.clone_from(&self.durable);
        self.durable = self.survivors(rng, sector);
        self.unsynced.clear();
        if rng.random() {
            self.cached.clone_from(&self.durable);
        } else {
            let end = self.cached.len();
            self.durable.resize(end, 0);
        }
    }

    /// The machine crashes: unsynced changes survive sector by sector.
    pub fn crash(&mut self, rng: &mut StdRng, sector: usize) {
        if !self.unsynced.is_empty() {
            self.durable = self.survivors(rng, sector);
            self.unsynced.clear();
        }
        self.cached.clone_from(&self.durable);
        self.older.clone_from(&self.durable);
    }

    fn survivors(&self, rng: &mut StdRng, sector: usize) -> Vec<u8> {
        let changes = self.unsynced.len();
        match rng.random_range(0..6) {
            0 => return self.durable.clone(),
            1 => return self.with_all_changes(),
            _ => {}
        }
        let mut limits = BTreeMap::new();
        let mut bytes = self.durable.clone();
        for (number, change) in self.unsynced.iter().enumerate() {
            for piece in pieces(change.range(), sector) {
                let limit = *limits.entry(piece.start / sector).or_insert_with(|| {
                    if rng.random() { changes } else { rng.random_range(0..=changes) }
                });
                if number < limit {
                    let from = piece.start - change.at..piece.end - change.at;
                    put(&mut bytes, piece.start, &change.bytes[from]);
                }
            }
        }
        let moment = rng.random_range(0..=changes);
        let before = self.durable.len();
        let len = moment.checked_sub(1).map_or(before, |last| self.unsynced[last].len_after);
        bytes.resize(len, 0);
        bytes
    }

    fn with_all_changes(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.unsynced {
            put(&mut bytes, change.at, &change.bytes);
            bytes.resize(change.len_after, 0);
        }
        bytes
    }
}

/// Splits a range into parts that each lie in one sector.
fn pieces(range: Range<usize>, sector: usize) -> impl Iterator<Item = Range<usize>> {
    (range.start / sector..range.end.div_ceil(sector)).map(move |number| {
        (number * sector).max(range.start)..((number + 1) * sector).min(range.end)
    })
}
