//! Chunks: ids that retire together, and the bits that say which of them have committed.

use super::word::Status;

/// Ids that retire together. Also the unit in which the clog is written.
#[cfg(not(any(loom, shuttle)))]
pub const CHUNK: u64 = 1024;
/// Small, for the model checkers.
#[cfg(any(loom, shuttle))]
pub const CHUNK: u64 = 2;

/// The commits of a chunk, as they go into the clog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ChunkBits {
    pub(crate) bytes: [u8; CHUNK.div_ceil(8) as usize],
    /// No transaction of the chunk can still commit.
    pub(crate) settled: bool,
}

impl Default for ChunkBits {
    fn default() -> Self {
        ChunkBits { bytes: [0; CHUNK.div_ceil(8) as usize], settled: false }
    }
}

impl ChunkBits {
    pub(super) fn note(&mut self, index: u64, status: Status) {
        match status {
            Status::Committed(_) => self.set(index),
            Status::Aborted(_) => {}
            _ => self.settled = false,
        }
    }

    pub(crate) fn set(&mut self, index: u64) {
        self.bytes[(index / 8) as usize] |= 1 << (index % 8);
    }

    pub(crate) fn contains(&self, index: u64) -> bool {
        self.bytes[(index / 8) as usize] & (1 << (index % 8)) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.iter().all(|b| *b == 0)
    }
}
