//! Which blocks a scan reads: a range of its own, or one that several workers share.

use std::ops::Range;
use std::sync::Arc;

use millpond_buffer::BlockNumber;
use millpond_sync::atomic::{AtomicU32, Ordering};

/// Blocks that several workers of one scan divide among themselves.
#[derive(Debug)]
pub struct ParallelBlocks {
    next: AtomicU32,
    end: u32,
    chunk: u32,
}

impl ParallelBlocks {
    /// The blocks of `range`, to be claimed in pieces of `chunk`.
    pub fn new(range: Range<u32>, chunk: u32) -> Self {
        Self { next: AtomicU32::new(range.start), end: range.end, chunk: chunk.max(1) }
    }

    /// The next piece. Relaxed: the counter publishes no other data.
    pub fn claim(&self) -> Option<Range<u32>> {
        // The counter can't overflow: at the end it is not raised any more.
        let claimed = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            (next < self.end).then(|| next.saturating_add(self.chunk))
        });
        claimed.ok().map(|start| start..start.saturating_add(self.chunk).min(self.end))
    }
}

/// Where a scan's blocks come from.
#[derive(Clone, Debug)]
pub enum ScanBlocks {
    /// This scan's own.
    Range(Range<u32>),
    /// Shared with other workers.
    Parallel(Arc<ParallelBlocks>),
}

/// The blocks that a scan has yet to read.
pub(super) struct Source {
    pub(super) blocks: ScanBlocks,
    pub(super) chunk: Range<u32>,
    /// What comes after `chunk`: the blocks before the one that a synchronized scan began with.
    pub(super) wrapped: Range<u32>,
}

impl Source {
    pub(super) fn new(blocks: ScanBlocks) -> Self {
        let chunk = match &blocks {
            ScanBlocks::Range(range) => range.clone(),
            ScanBlocks::Parallel(_) => 0..0,
        };
        Self { blocks, chunk, wrapped: 0..0 }
    }

    pub(super) fn next(&mut self) -> Option<BlockNumber> {
        if self.chunk.is_empty() {
            self.chunk = match &self.blocks {
                ScanBlocks::Range(_) => std::mem::take(&mut self.wrapped),
                ScanBlocks::Parallel(shared) => shared.claim()?,
            };
        }
        self.chunk.next().map(BlockNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_every_block_once() {
        let blocks = ParallelBlocks::new(3..20, 4);
        let claimed: Vec<u32> = std::iter::from_fn(|| blocks.claim()).flatten().collect();
        assert_eq!(claimed, (3..20).collect::<Vec<_>>());
        assert_eq!(ParallelBlocks::new(0..0, 4).claim(), None);
        assert_eq!(
            ParallelBlocks::new(u32::MAX - 1..u32::MAX, 9).claim().map(|r| r.len()),
            Some(1)
        );
    }
}
