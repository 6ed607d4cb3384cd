//! How bulk work uses the buffer pool, by the settings of a session or of the database.

use millpond_buffer::{PAGE_SIZE, RingSizes, StreamOptions};
use millpond_engine::BulkAccess;

/// How bulk work uses the buffer pool, of settings that are numbers and switches.
pub fn bulk_access_of(int: impl Fn(&str) -> i64, bool: impl Fn(&str) -> bool) -> BulkAccess {
    let number = |name: &str| u32::try_from(int(name)).unwrap_or(0);
    let kilobytes = usize::try_from(int("maintenance_work_mem")).unwrap_or(0);
    let streams = |concurrency: &str| {
        StreamOptions::default()
            .with_io_concurrency(number(concurrency))
            .with_io_combine_limit(number("io_combine_limit"))
    };
    BulkAccess {
        rings: rings_of(&int),
        synchronize_scans: bool("synchronize_seqscans"),
        io_timing: bool("track_io_timing"),
        streams: streams("effective_io_concurrency"),
        maintenance_streams: streams("maintenance_io_concurrency"),
        maintenance_work_bytes: kilobytes.saturating_mul(1024),
    }
}

/// The rings' sizes, of settings that say them in kB.
fn rings_of(kilobytes: impl Fn(&str) -> i64) -> RingSizes {
    let pages = |name| pages_of(kilobytes(name).unsigned_abs());
    RingSizes::default()
        .with_bulk_read(pages("bulk_read_buffer_limit"))
        .with_bulk_write(pages("bulk_write_buffer_limit"))
        .with_vacuum(pages("vacuum_buffer_usage_limit"))
}

/// The number of pages in this many kB.
pub fn pages_of(kilobytes: u64) -> usize {
    usize::try_from(kilobytes * 1024 / PAGE_SIZE as u64).unwrap_or(0)
}
