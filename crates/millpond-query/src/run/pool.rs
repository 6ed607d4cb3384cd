//! Memory that the plans of a connection's statements use again. So a warm statement allocates
//! little, and does not count references to definitions that all sessions share.

use std::sync::Arc;

use millpond_engine::catalog::IndexDef;
use millpond_engine::session::IndexScan;
use millpond_engine::table::{KeyRange, RowBuf};

use super::outer_batch::Batch;
use super::{SlotRow, SlotRows};
use crate::exec::key::KeyRanges;

/// How many scans a connection keeps while it has no statement.
const SCANS_KEPT: usize = 8;
/// How many rows, and of which size at most.
const ROWS_KEPT: usize = 8;
const ROW_BYTES_KEPT: usize = 8 << 10;
/// And a batch of lookups, of this size at most.
const BATCH_BYTES_KEPT: usize = 16 << 10;

/// The scans and rows of a connection.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(super) scans: Vec<PooledScan>,
    pub(super) rows: Vec<RowBuf>,
    /// Of a nested loop that has ended.
    pub(super) batch: Option<Box<Batch>>,
}

/// A scan of an index.
#[derive(Debug, Default)]
pub(super) struct PooledScan {
    /// Where the definition of the index that it has read last is: another scan of the same index
    /// has no reference to count. It is only compared.
    index: usize,
    is_taken: bool,
    /// It has rows left, maybe.
    pub(super) is_running: bool,
    pub(super) scan: IndexScan,
    /// What is read by the scan, and what comes after it.
    pub(super) range: KeyRange,
    pub(super) ranges: KeyRanges,
}

impl Pool {
    /// Takes a scan for an index: its number.
    pub(super) fn take_scan(&mut self, index: &Arc<IndexDef>) -> usize {
        let index = Arc::as_ptr(index).addr();
        let same = |scan: &PooledScan| !scan.is_taken && scan.index == index;
        let found = self.scans.iter().position(same);
        let number = found.or_else(|| self.scans.iter().position(|scan| !scan.is_taken));
        let number = number.unwrap_or(self.scans.len());
        if number == self.scans.len() {
            self.scans.push(PooledScan::default());
        }
        if let Some(scan) = self.scans.get_mut(number) {
            (scan.is_taken, scan.index) = (true, index);
        }
        number
    }

    /// Takes back what a statement has used.
    pub(super) fn end_statement(&mut self, rows: SlotRows) {
        for scan in &mut self.scans {
            scan.is_taken = false;
            scan.ranges.trim();
            if scan.is_running {
                // What a long scan holds is not for the connection to keep.
                scan.scan.end();
                scan.is_running = false;
            }
        }
        self.scans.truncate(SCANS_KEPT);
        self.batch.take_if(|batch| batch.memory() > BATCH_BYTES_KEPT);
        for row in rows.into_rows() {
            if let SlotRow::Stored(row) = row
                && self.rows.len() < ROWS_KEPT
                && row.bytes().len() <= ROW_BYTES_KEPT
            {
                self.rows.push(row);
            }
        }
    }
}
