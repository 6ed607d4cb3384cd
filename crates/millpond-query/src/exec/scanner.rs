//! How a second executor reads tables: in parts, from several threads, under the statement's
//! snapshot.

use std::sync::Arc;

use millpond_buffer::PAGE_SIZE;
use millpond_engine::catalog::TableDef;
use millpond_engine::session::Session;
use millpond_engine::session::{ParallelScan, ScanWorker};
use millpond_engine::timeout::Cancellation;

use crate::cancel;
use crate::error::{Result, SqlError};
use crate::memory::Resources;
use crate::query::{RowSource, TableScanner};

/// The tables of one statement.
#[derive(Debug, Clone)]
pub struct Scanner {
    scans: Vec<ParallelScan>,
    cancel: Cancellation,
    resources: Arc<Resources>,
}

impl Scanner {
    pub(crate) fn new(
        session: &Session,
        tables: &[&Arc<TableDef>],
        cancel: Cancellation,
        resources: &Arc<Resources>,
    ) -> Result<Self> {
        let scans = tables
            .iter()
            .map(|table| session.parallel_scan(table))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Scanner { scans, cancel, resources: Arc::clone(resources) })
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

    fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    fn table_bytes(&self, table: &TableDef) -> u64 {
        let scan = self.scans.iter().find(|scan| scan.table().oid == table.oid);
        scan.map_or(0, |scan| u64::from(scan.blocks()) * PAGE_SIZE as u64)
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
