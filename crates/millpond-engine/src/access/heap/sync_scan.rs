//! Synchronized scans: a scan of a large table begins where another one is, and they go on together.
//!
//! What one reads is then still in memory for the other: the table is read once for both. Each scan still
//! reads each of its blocks once: from where it begins to the end of its range, then from the beginning of the range
//! to there (heap rule 12).
//!
//! **State.** One array of positions per table, in the memory that all sessions share. A scan in several parts has
//! a *lane* for each part, because the parts are far from each other; a scan in one part uses lane 0. A position outside
//! of a scan's range (one reported by a scan that was cut otherwise, or before the table shrank) is ignored.
//!
//! **Memory ordering.** Relaxed: positions are hints, and carry nothing but themselves. They are stored once in
//! [`REPORT_EVERY`] blocks, so a line that many sessions write is written rarely.
//!
//! The order of rows is then whatever the scans before left, as it is in PostgreSQL. What needs the blocks in order
//! (index builds, VACUUM) doesn't join anybody.

use std::ops::Range;

use millpond_sync::atomic::{AtomicU32, Ordering};

/// Blocks from one report of a position to the next: 128 kB.
pub(super) const REPORT_EVERY: u32 = 16;

/// How many parts of a scan can be told apart; further ones share.
pub const SCAN_LANES: usize = 16;

/// Where the scans of a table are.
#[derive(Debug, Default)]
pub(super) struct ScanPositions {
    lanes: [AtomicU32; SCAN_LANES],
}

impl ScanPositions {
    /// Where a scan of `range` begins.
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
