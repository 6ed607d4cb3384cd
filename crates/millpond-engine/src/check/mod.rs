//! Proof that a database is whole: what `millpond check` runs on a data directory that nobody uses.
//!
//! - every page of every file: its checksum (by reading it), and that no file is missing. Not the free space
//!   maps: they are hints, written without log, and repair themselves;
//! - heap pages, and that every row decodes by its table's definition;
//! - the structure of every index;
//! - every index entry against its row, and every row against its entries, both ways.
//!
//! Findings name relation and block. The check goes on after a finding.

mod entries;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use millpond_buffer::{BlockNumber, BufferError};

use crate::access::heap;
use crate::access::heap::check::check_heap;
use crate::catalog::{IndexDef, TableDef};
use crate::engine::{Engine, EngineConfig};
use crate::error::{EngineError, EngineResult};
use crate::session::Session;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table or index.
    pub relation: String,
    /// The block, if it can be told.
    pub block: Option<BlockNumber>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "{}, block {}: {}", self.relation, block.0, self.what),
            None => write!(f, "{}: {}", self.relation, self.what),
        }
    }
}

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
    let session = engine.internal_session("check")?;
    let ctx = session.ctx();
    // Index pages that vacuum takes out of a tree are not used again while a snapshot is held.
    let csn = ctx.txns().snapshot(ctx);
    let checked = check_all(engine, &session, report);
    ctx.txns().release_snapshot(ctx, csn);
    checked
}

fn check_all(
    engine: &Engine,
    session: &Session,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<Checked> {
    let mut checked = Checked::default();
    let catalog = engine.catalog();
    let mut tables: Vec<_> = catalog.tables().collect();
    tables.sort_by_key(|table| table.oid);
    check_pages(session, "catalog", engine.catalog_heap(), &mut checked, report)?;
    for table in tables {
        check_table(session, table, &mut checked, report)?;
    }
    Ok(checked)
}

fn check_table(
    session: &Session,
    table: &TableDef,
    checked: &mut Checked,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<()> {
    checked.tables += 1;
    let heap = session.heap(table)?;
    check_pages(session, &table.name, heap, checked, report)?;
    for index in &table.indexes {
        checked.indexes += 1;
        let outcome = check_index(session, table, index, checked, report);
        match outcome {
            Ok(()) => {}
            Err(error) => go_on(&index.name, error, report)?,
        }
    }
    match entries::check_rows(session, table, checked, report) {
        Ok(()) => Ok(()),
        Err(error) => go_on(&table.name, error, report),
    }
}

/// Damage is a finding; anything else ends the check.
fn go_on(relation: &str, error: EngineError, report: &mut dyn FnMut(Finding)) -> EngineResult<()> {
    let block = match &error {
        EngineError::Buffer(BufferError::Checksum { page, .. }) => Some(page.block()),
        EngineError::Buffer(_) | EngineError::Corruption { .. } | EngineError::Table(_) => None,
        _ => return Err(error),
    };
    report(Finding { relation: relation.to_owned(), block, what: error.to_string() });
    Ok(())
}

fn check_pages(
    session: &Session,
    name: &str,
    heap: &heap::HeapRelation,
    checked: &mut Checked,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<()> {
    let ctx = session.ctx();
    let next = ctx.txns().next_xid();
    let pages = check_heap(ctx, heap, next, &mut |problem| {
        let line = match problem.offset {
            0 => String::new(),
            offset => format!("line {offset}: "),
        };
        report(Finding {
            relation: name.to_owned(),
            block: Some(problem.block),
            what: format!("{line}{}", problem.what),
        });
    })?;
    checked.pages += u64::from(pages);
    Ok(())
}

fn check_index(
    session: &Session,
    table: &TableDef,
    index: &IndexDef,
    checked: &mut Checked,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<()> {
    let tree = session.tree(index)?;
    let mut entries = 0;
    let mut found = Vec::new();
    let structure = {
        let mut each = |key: &[u8], tid| {
            entries += 1;
            match entries::check_entry(session, table, index, key, tid) {
                Ok(None) => {}
                Ok(Some(what)) => found.push(what),
                Err(error) => found.push(format!("entry for {tid}: {error}")),
            }
        };
        crate::access::btree::check(session.ctx(), tree, &mut each)?
    };
    checked.pages += u64::from(tree.block_count());
    checked.entries += entries;
    for what in structure.problems.into_iter().chain(found) {
        report(Finding { relation: index.name.clone(), block: None, what });
    }
    Ok(())
}
