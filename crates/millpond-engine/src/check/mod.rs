//! A complete consistency check of a database. `millpond check` runs it on a data directory that no
//! server uses ([`check_directory`]). Tests run the part for tables and indexes on an open engine
//! ([`check_engine`]). It checks:
//!
//! - the control file, both copies;
//! - the log: every record from the redo point to the end, and the length of every segment;
//! - the catalog: its pages, and that its rows define tables;
//! - the transaction status pages;
//! - the files in `base/`: none is missing, too short or too long, and the log knows each of them;
//! - every page of every table and index: its checksum, which each read from a file verifies. Free
//!   space maps are left out: they are hints, written without log, and repair themselves;
//! - heap pages, and that every visible row decodes by its table's definition;
//! - the structure of every index;
//! - every index entry against its row, and every visible row against its entries.
//!
//! All but the control file and the log is checked as recovery leaves it. So a torn page that redo
//! restores is no finding.
//!
//! A finding names the relation, or another part of the database. It names the block if it is
//! known. The check goes on after a finding, as far as it can:
//!
//! - A damaged page of an index ends the walk along its level. Pages behind it are reported as
//!   outside of the tree.
//! - At most 100 findings about the structure of an index are reported.
//! - If the database can't be opened, only the checksums of the pages in the files are checked.
//!
//! For n rows, the check takes n log n steps, even if many rows have the same key. It looks up the
//! entry of a row by key and TID.
//!
//! # What it changes
//! Nothing. A directory that was not shut down needs recovery before its tables can be checked. The
//! check recovers it in an overlay ([`millpond_vfs::OverlayVfs`]). The overlay keeps all changes in
//! memory and in a temporary file outside of the directory. The check locks the directory as a
//! server does, so the two never run at the same time.

mod entries;
mod files;
mod log;
mod statuses;
mod tables;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_buffer::IoMethod;
use millpond_vfs::{OsVfs, OverlayVfs, Spill, Vfs};

use crate::catalog::TableDef;
use crate::engine::{Engine, EngineConfig};
use crate::error::EngineResult;
use crate::recovery::{DataDirectory, DirectoryError};
use crate::session::Session;

pub use watch::{Finding, Part, Progress, Watch};

use watch::{Findings, Meter};

/// Bytes of recovery's changes that are kept in memory.
const MEMORY_BYTES: u64 = 64 << 20;

/// How much a check has covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Tables.
    pub tables: u64,
    /// Indexes.
    pub indexes: u64,
    /// Pages of both.
    pub pages: u64,
    /// Visible rows.
    pub rows: u64,
    /// Index entries.
    pub entries: u64,
    /// Log records.
    pub records: u64,
}

/// How to check a data directory. Start from [`CheckConfig::new`] and change what you need.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckConfig {
    /// The data directory.
    pub path: PathBuf,
    /// The file system of the directory; by default the operating system's.
    pub vfs: Arc<dyn Vfs>,
    /// The number of pages in the buffer pool.
    pub buffers: usize,
    /// Where recovery's changes go.
    pub changes: Spill,
}

impl CheckConfig {
    /// The check creates its temporary file, if it needs one, in the system's temporary directory
    /// (`TMPDIR`).
    pub fn new(path: impl AsRef<Path>) -> Self {
        let temporary = std::env::temp_dir();
        Self {
            path: path.as_ref().to_owned(),
            vfs: Arc::new(OsVfs),
            buffers: 16_384,
            changes: Spill::to_directory(MEMORY_BYTES, Arc::new(OsVfs), temporary),
        }
    }
}

/// Checks a data directory and changes nothing in it. Reports damage to `watch`. An error means
/// that the check could not finish. For example, a server uses the directory, a permission is
/// missing, or there is no room for temporary files.
pub fn check_directory(config: CheckConfig, watch: &mut dyn Watch) -> EngineResult<Checked> {
    let CheckConfig { path, vfs, buffers, changes } = config;
    files::check_names(&*vfs, &path, watch)?;
    files::refuse_inside(&*vfs, &path, changes.directory())?;
    let overlay: Arc<dyn Vfs> = Arc::new(OverlayVfs::new(Arc::clone(&vfs), changes));
    let directory = match DataDirectory::open(&*overlay, &path) {
        // What is missing has already been reported.
        Err(DirectoryError::Incomplete { .. }) => None,
        opened => Some(opened?),
    };
    let mut checked = Checked::default();
    let control = log::check(&vfs, &overlay, &path, &mut checked, watch)?;
    let (Some(directory), Some(control)) = (directory, control) else {
        files::check_pages(vfs, &path, watch)?;
        return Ok(checked);
    };
    watch.progress(Progress { part: Part::Recovery, done: 0, total: 0 });
    let mut engine_config = EngineConfig::new(&path);
    engine_config.vfs = overlay;
    engine_config.buffers = buffers;
    engine_config.wal_segment_bytes = control.segment_bytes;
    engine_config.autovacuum.enabled = false;
    engine_config.max_connections = 1;
    engine_config.max_parallel_workers = 0;
    engine_config.io_method = IoMethod::Sync;
    match Engine::open_in(engine_config, directory) {
        Ok(engine) => {
            files::report_settling(&engine, watch);
            statuses::check(&engine, watch)?;
            check_relations(&engine, &mut checked, watch)?;
        }
        Err(error) if error.is_damage() => {
            let what = format!("the database can't be opened: {error}");
            watch.found(Finding { relation: "recovery".to_owned(), block: None, what });
            files::check_pages(vfs, &path, watch)?;
        }
        Err(error) => return Err(error),
    }
    Ok(checked)
}

/// Checks all relations of an open engine. No other session may change anything meanwhile.
pub fn check_engine(
    engine: &Arc<Engine>,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<Checked> {
    let mut checked = Checked::default();
    check_relations(engine, &mut checked, &mut Findings(report))?;
    Ok(checked)
}

fn check_relations(
    engine: &Arc<Engine>,
    checked: &mut Checked,
    watch: &mut dyn Watch,
) -> EngineResult<()> {
    let session = engine.internal_session("check")?;
    let ctx = session.ctx();
    // While a snapshot is held, index pages that vacuum unlinks are not reused.
    let csn = ctx.txns().snapshot(ctx);
    let outcome = check_all(engine, &session, checked, watch);
    ctx.txns().release_snapshot(ctx, csn);
    outcome
}

fn check_all(
    engine: &Engine,
    session: &Session,
    checked: &mut Checked,
    watch: &mut dyn Watch,
) -> EngineResult<()> {
    let catalog = engine.catalog();
    let mut tables: Vec<_> = catalog.tables().collect();
    tables.sort_by_key(|table| table.oid);
    // A relation that can't be opened is reported when the check reaches it.
    let pages_of = |table: &TableDef| {
        let indexes = table.indexes.iter().map(|index| engine.index_block_count(index));
        let forks = indexes.chain([engine.block_count(table)]);
        forks.map(|blocks| u64::from(blocks.unwrap_or(0))).sum::<u64>()
    };
    let pages: u64 = tables.iter().map(|table| pages_of(table)).sum();
    let pages = pages + u64::from(engine.catalog_heap().block_count());
    let mut meter = Meter::new(watch, Part::Pages, pages);
    let catalog = engine.catalog_heap();
    tables::check_heap(session, "catalog", catalog, None, checked, &mut meter)?;
    for table in tables {
        tables::check_table(session, table, checked, &mut meter)?;
    }
    Ok(())
}
