//! Proof that a database is whole: what `millpond check` runs on a data directory that nobody uses.
//!
//! - the control file, both copies;
//! - the log: every record from the redo point to the end, and that no segment is cut short;
//! - the catalog: pages, and that its rows make tables;
//! - the status pages of transactions;
//! - every page of every table and index: its checksum (by reading it), and that no file is missing. Not the free
//!   space maps: they are hints, written without log, and repair themselves;
//! - heap pages, and that every row decodes by its table's definition;
//! - the structure of every index;
//! - every index entry against its row, and every row against its entries, both ways.
//!
//! Findings name relation and block. The check goes on after a finding. It takes n log n steps for n rows: a row is
//! looked for by key and place, so it does not matter how many rows share its key.
//!
//! # What it changes
//! Nothing. A directory that was not shut down needs recovery before anything can be said of its tables. The check
//! recovers it in an overlay ([`millpond_vfs::OverlayVfs`]), whose changes stay in memory and in a temporary file
//! outside of the directory. It locks the directory as a server does, so neither runs beside the other.

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

/// Bytes of changes by recovery that are kept in memory.
const MEMORY_BYTES: u64 = 64 << 20;

/// What was looked at.
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
    /// The file system that has it: the kernel's unless told otherwise.
    pub vfs: Arc<dyn Vfs>,
    /// Pages that are kept in memory.
    pub buffers: usize,
    /// Where recovery's changes go.
    pub changes: Spill,
}

impl CheckConfig {
    /// The temporary file, if one is needed, is made in the system's directory for such files (`TMPDIR`).
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

/// Checks a data directory and changes nothing in it. What is damaged is told to `watch`; an error is what kept the
/// check from coming to its end: a server that uses the directory, a missing permission, no room for temporary files.
pub fn check_directory(config: CheckConfig, watch: &mut dyn Watch) -> EngineResult<Checked> {
    let CheckConfig { path, vfs, buffers, changes } = config;
    files::check_names(&*vfs, &path, watch)?;
    files::refuse_inside(&*vfs, &path, changes.directory())?;
    let overlay: Arc<dyn Vfs> = Arc::new(OverlayVfs::new(Arc::clone(&vfs), changes));
    let directory = match DataDirectory::open(&*overlay, &path) {
        // What is missing is a finding already.
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
    engine_config.autovacuum = false;
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

/// Checks all relations of an open engine. Others must not change anything meanwhile.
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
    // Index pages that vacuum takes out of a tree are not used again while a snapshot is held.
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
    // A relation that can't be opened is a finding once its turn comes.
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
