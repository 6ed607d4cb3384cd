//! Statistics of a table, for the planner and for autovacuum, and its open heap.
//!
//! All definitions of a table share one [`TableStats`] as long as the table keeps its file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_buffer::PAGE_SIZE;

use crate::access::heap::{HeapCounts, HeapRelation, TUPLE_HEADER_LEN};
use crate::types::DataType;

/// The assumed width of a value of a variable-width type.
const GUESSED_WIDTH: usize = 16;
const LINE_POINTER: usize = 4;

/// The open heap of a table, and statistics of its rows. Counters are not logged. After a restart
/// the number of rows is estimated from the number of pages, until VACUUM or ANALYZE counts them.
#[derive(Default)]
pub struct TableStats {
    heap: OnceLock<OpenHeap>,
    rows_per_page: u64,
    vacuums: AtomicU64,
    autovacuums: AtomicU64,
    analyzes: AtomicU64,
    inserted_at_vacuum: AtomicU64,
}

struct OpenHeap {
    heap: HeapRelation,
    /// The estimated number of rows when the heap was opened.
    rows_before: u64,
}

impl TableStats {
    /// The statistics of a new table with columns of these types.
    pub(crate) fn new(types: impl Iterator<Item = DataType>) -> Self {
        let width: usize = types.map(|ty| ty.fixed_width().unwrap_or(GUESSED_WIDTH)).sum();
        let row = width + TUPLE_HEADER_LEN + LINE_POINTER;
        Self { rows_per_page: (PAGE_SIZE / row).max(1) as u64, ..Self::default() }
    }

    /// The open heap; the first call opens it with `open`.
    pub(crate) fn heap<E>(
        &self,
        open: impl FnOnce() -> Result<HeapRelation, E>,
    ) -> Result<&HeapRelation, E> {
        if let Some(open) = self.heap.get() {
            return Ok(&open.heap);
        }
        let heap = open()?;
        let rows_before = u64::from(heap.block_count()) * self.rows_per_page;
        Ok(&self.heap.get_or_init(|| OpenHeap { heap, rows_before }).heap)
    }

    pub(crate) fn vacuumed(&self, automatic: bool) {
        self.inserted_at_vacuum.store(self.counts().inserted, Ordering::Relaxed);
        self.vacuums.fetch_add(1, Ordering::Relaxed);
        self.autovacuums.fetch_add(u64::from(automatic), Ordering::Relaxed);
    }

    pub(crate) fn analyzed(&self) {
        self.analyzes.fetch_add(1, Ordering::Relaxed);
    }

    /// Rows inserted, updated and deleted since the engine started.
    pub fn counts(&self) -> HeapCounts {
        self.heap.get().map_or_else(HeapCounts::default, |open| open.heap.counters().counts())
    }

    /// The estimated number of rows.
    pub fn live_rows(&self) -> i64 {
        let Some(open) = self.heap.get() else { return 0 };
        let counters = open.heap.counters();
        let rows = counters.live_estimate().unwrap_or_else(|| {
            let counts = counters.counts();
            (open.rows_before + counts.inserted).saturating_sub(counts.deleted)
        });
        i64::try_from(rows).unwrap_or(i64::MAX)
    }

    /// The estimated number of row versions that VACUUM can remove.
    pub fn dead_rows(&self) -> i64 {
        let dead = self.heap.get().map_or(0, |open| open.heap.counters().dead_estimate());
        i64::try_from(dead).unwrap_or(i64::MAX)
    }

    /// Rows inserted since the last VACUUM.
    pub fn inserted_since_vacuum(&self) -> u64 {
        self.counts().inserted.saturating_sub(self.inserted_at_vacuum.load(Ordering::Relaxed))
    }

    /// The number of VACUUM runs, and how many of them autovacuum did.
    pub fn vacuums(&self) -> (u64, u64) {
        (self.vacuums.load(Ordering::Relaxed), self.autovacuums.load(Ordering::Relaxed))
    }

    /// The number of ANALYZE runs.
    pub fn analyzes(&self) -> u64 {
        self.analyzes.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for TableStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableStats")
            .field("live_rows", &self.live_rows())
            .field("dead_rows", &self.dead_rows())
            .finish_non_exhaustive()
    }
}
