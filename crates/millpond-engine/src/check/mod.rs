//! Proof that a database is whole: what `millpond check` runs on a data directory that nobody uses.
//!
//! - every page of every file: its checksum (by reading it), and that no file is missing. Not the free space
//!   maps: they are hints, written without log, and repair themselves;
//! - heap pages, and that every row decodes by its table's definition;
//! - the structure of every index;
//! - every index entry against its row, and every row against its entries, both ways.
//!
//! Findings name relation and block. The check goes on after a finding. It takes n log n steps for n rows: a row is
//! looked for by key and place, so it does not matter how many rows share its key.

mod entries;
mod tables;
mod watch;

use std::path::Path;
use std::sync::Arc;

use crate::catalog::TableDef;
use crate::engine::{Engine, EngineConfig};
use crate::error::EngineResult;
use crate::session::Session;

pub use watch::{Finding, Part, Progress, Watch};

use watch::{Findings, Meter};

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
}

/// Opens a data directory (recovering it if need be), checks all of it, and shuts it down.
pub fn check_directory(
    path: impl AsRef<Path>,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<Checked> {
    let mut config = EngineConfig::new(path);
    config.autovacuum = false;
    let engine = Engine::open(config)?;
    let checked = check_engine(&engine, report);
    engine.shutdown()?;
    checked
}

/// Checks all relations of an open engine. Others must not change anything meanwhile.
pub fn check_engine(
    engine: &Arc<Engine>,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<Checked> {
    check_relations(engine, &mut Findings(report))
}

fn check_relations(engine: &Arc<Engine>, watch: &mut dyn Watch) -> EngineResult<Checked> {
    let session = engine.internal_session("check")?;
    let ctx = session.ctx();
    // Index pages that vacuum takes out of a tree are not used again while a snapshot is held.
    let csn = ctx.txns().snapshot(ctx);
    let checked = check_all(engine, &session, watch);
    ctx.txns().release_snapshot(ctx, csn);
    checked
}

fn check_all(engine: &Engine, session: &Session, watch: &mut dyn Watch) -> EngineResult<Checked> {
    let mut checked = Checked::default();
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
    tables::check_heap(session, "catalog", catalog, None, &mut checked, &mut meter)?;
    for table in tables {
        tables::check_table(session, table, &mut checked, &mut meter)?;
    }
    Ok(checked)
}
