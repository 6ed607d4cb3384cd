//! Synchronized scans: a scan of a large table begins where another one is, and they go on
//! together.
//!
//! What one scan reads is still in memory for the other, so the table is read once for both. Each
//! scan still reads each of its blocks once (heap rule 12). It goes from its start to the end of
//! its range, then from the beginning of the range to its start.
//!
//! **State.** Each table has one array of positions in shared memory. A scan in several parts has a
//! *lane* for each part, because the parts are far from each other. A scan in one part uses lane 0.
//! A position outside a scan's range is ignored. (It comes from a scan with other parts, or from
//! before the table shrank.)
//!
//! **Memory ordering.** Relaxed: positions are hints and publish no other data. A scan stores its
//! position once in [`REPORT_EVERY`] blocks, so the shared cache line is written rarely.
//!
//! As in PostgreSQL, the order of rows then depends on earlier scans. Work that needs the blocks in
//! order (index builds, VACUUM) doesn't join other scans.

use std::ops::Range;

use millpond_sync::atomic::{AtomicU32, Ordering};

/// Blocks from one report of a position to the next: 128 kB.
pub(super) const REPORT_EVERY: u32 = 16;

/// How many parts of a scan have a lane of their own; further parts share lanes.
pub const SCAN_LANES: usize = 16;

/// The positions of the scans of a table.
#[derive(Debug, Default)]
pub(super) struct ScanPositions {
    lanes: [AtomicU32; SCAN_LANES],
}

impl ScanPositions {
    /// The block with which a scan of `range` begins.
    pub(super) fn start(&self, lane: usize, range: &Range<u32>) -> u32 {
        let reported = self.lanes[lane % SCAN_LANES].load(Ordering::Relaxed);
        if range.contains(&reported) { reported } else { range.start }
    }

    /// A scan is about to read `block`.
    pub(super) fn report(&self, lane: usize, block: u32) {
        self.lanes[lane % SCAN_LANES].store(block, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_outside_of_the_range_is_ignored() {
        let positions = ScanPositions::default();
        positions.report(1, 50);
        assert_eq!(positions.start(1, &(40..60)), 50);
        assert_eq!(positions.start(1, &(50..51)), 50);
        assert_eq!(positions.start(1, &(51..60)), 51);
        assert_eq!(positions.start(1, &(10..50)), 10);
        assert_eq!(positions.start(0, &(3..60)), 3);
        assert_eq!(positions.start(1 + SCAN_LANES, &(0..60)), 50);
    }
}
