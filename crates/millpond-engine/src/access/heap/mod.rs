//! The heap: rows under multi-version concurrency control, on slotted pages.
//!
//! Its rules are in README.md beside this file, cited as `(heap rule N)`.

mod access_prune;
mod change;
pub mod check;
pub mod fetch;
pub mod fetch_run;
mod fsm;
pub(crate) mod fsm_page;
pub mod header;
mod input;
pub mod insert;
pub mod judge;
mod last_fate;
pub mod lock;
pub mod page;
pub mod prune;
pub mod record;
pub mod redo;
pub mod relation;
mod row_prefetch;
pub(crate) mod row_turn;
pub mod scan;
mod scan_blocks;
mod sync_scan;
mod target;
pub mod truncate;
pub mod update;
pub mod vacuum;
pub mod visibility;

#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod tests;

pub use change::{ChangeOutcome, Changer};
pub use fetch::{
    Liveness, Newest, fetch, fetch_at, fetch_newest, has_room_beside, header_at, liveness, root_of,
};
pub use fetch_run::FetchedRun;
pub use header::{TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
pub use insert::{InsertOptions, NewRow, insert, insert_many};
pub use lock::{Intent, WantedLock, lock_row, lock_successor};
pub use page::MAX_PAYLOAD;
pub use relation::{HeapCounters, HeapCounts, HeapEvent, HeapRelation};
pub use row_prefetch::RowPrefetch;
pub use scan::{HeapScan, PageRows, count_rows};
pub(crate) use scan::{first_block, report_block};
pub use scan_blocks::{ParallelBlocks, ScanBlocks};
pub use sync_scan::SCAN_LANES;
pub use truncate::{is_worth_truncating, truncate_end};
pub use update::{KeyChange, delete, update};
pub use vacuum::{DeadTids, IndexPass, VacuumStats, vacuum};
