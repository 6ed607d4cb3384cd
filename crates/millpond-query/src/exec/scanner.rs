//! How the query engine reads tables: in parts, from several threads, under the statement's
//! snapshot.

use std::sync::Arc;

use millpond_buffer::RelationId;
use millpond_engine::Engine;
use millpond_engine::catalog::{CatalogState, TableDef};
use millpond_engine::session::Session;
use millpond_engine::session::{ParallelScan, ScanWorker};
use millpond_engine::timeout::Cancellation;

use crate::cancel;
use crate::error::{Result, SqlError};
use crate::memory::Resources;
use crate::query::{RelationSize, RowSource, SessionInfo, TableScanner};
use crate::relation_size;

/// The tables of one statement.
#[derive(Debug, Clone)]
pub struct Scanner {
    scans: Vec<ParallelScan>,
    engine: Arc<Engine>,
    /// As the session sees it, its own DDL included.
    catalog: Arc<CatalogState>,
    cancel: Cancellation,
    info: SessionInfo,
    resources: Arc<Resources>,
}

impl Scanner {
    pub(super) fn new(
        session: &Session,
        tables: &[Arc<TableDef>],
        cancel: Cancellation,
        info: SessionInfo,
        resources: &Arc<Resources>,
    ) -> Result<Self> {
        let scans = tables
            .iter()
            .map(|table| session.parallel_scan(table))
            .collect::<Result<Vec<_>, _>>()?;
        let (engine, catalog) = (Arc::clone(session.engine()), session.catalog());
        let resources = Arc::clone(resources);
        Ok(Scanner { scans, engine, catalog, cancel, info, resources })
    }
}

impl TableScanner for Scanner {
    fn scan(&self, table: &Arc<TableDef>, part: usize, parts: usize) -> Result<Box<dyn RowSource>> {
        let scan = self
            .scans
            .iter()
            .find(|scan| scan.table().oid == table.oid)
            .ok_or_else(|| SqlError::internal("a table that was not announced"))?;
        let blocks = u64::from(scan.blocks());
        let at = |part: usize| (blocks * part as u64 / parts.max(1) as u64) as u32;
        let worker = scan.worker(at(part)..at(part + 1))?;
        Ok(Box::new(Source(worker)))
    }

    fn check_cancelled(&self) -> Result<()> {
        self.cancel.reason().map_or(Ok(()), |reason| Err(cancel::error(reason)))
    }

    fn session(&self) -> SessionInfo {
        self.info.clone()
    }

    fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    fn relation_size(&self, oid: u32) -> Result<Option<RelationSize>> {
        relation_size::of(&self.engine, &self.catalog, oid)
    }

    fn relation_filenode(&self, oid: u32) -> Option<u32> {
        relation_size::storage(&self.catalog, oid).map(RelationId::get)
    }
}

struct Source(ScanWorker);

impl RowSource for Source {
    fn next_page(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let mut outcome = Ok(());
        let more = self.0.next_page(&mut |_, tuple| {
            if outcome.is_ok() {
                outcome = each(tuple);
            }
            Ok(())
        })?;
        outcome.map(|()| more)
    }

    fn count_page(&mut self) -> Result<Option<usize>> {
        Ok(self.0.count_page()?)
    }
}
