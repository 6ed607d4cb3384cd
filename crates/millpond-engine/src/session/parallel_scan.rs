//! Scans of a table by several threads, under one statement's snapshot.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::access::Tid;
use crate::access::heap::{self, ScanBlocks};
use crate::bulk::BulkAccess;
use crate::catalog::{IndexDef, TableDef};
use crate::engine::{Engine, PooledCtx};
use crate::error::{EngineError, EngineResult};
use crate::table::{Direction, KeyRange, RowBuf};
use crate::transam::{ComboCids, Snapshot};

use super::Session;
use super::lookup_many::LookupBatch;
use super::scan::{IndexScan, advance_page, count_page, next_page};

/// A table under one statement's snapshot, for several threads: see [`Session::parallel_scan`].
/// Cheap to clone. Usable until the session ends the statement; after that, workers get an error.
#[derive(Clone)]
pub struct ParallelScan {
    shared: Arc<SharedScan>,
}

struct SharedScan {
    engine: Arc<Engine>,
    table: Arc<TableDef>,
    blocks: u32,
    snapshot: Snapshot,
    combos: ComboCids,
    bulk_access: BulkAccess,
    /// Flags of the session: interrupted, and statement over.
    stop: [Arc<AtomicBool>; 2],
}

impl Session {
    /// A scan of a table that several threads share. It uses this statement's snapshot and sees
    /// what earlier statements of the transaction did.
    pub fn parallel_scan(&self, table: &Arc<TableDef>) -> EngineResult<ParallelScan> {
        let shared = SharedScan {
            engine: Arc::clone(&self.engine),
            table: Arc::clone(table),
            blocks: self.heap(table)?.block_count(),
            snapshot: self.snapshot()?,
            combos: self.ctx.combos().borrow().clone(),
            bulk_access: self.ctx.bulk_access(),
            stop: self.stop.flags(),
        };
        Ok(ParallelScan { shared: Arc::new(shared) })
    }
}

impl ParallelScan {
    /// The table.
    pub fn table(&self) -> &Arc<TableDef> {
        &self.shared.table
    }

    /// The number of blocks when the scan was made; the caller divides them among the workers.
    pub fn blocks(&self) -> u32 {
        self.shared.blocks
    }

    /// A worker over a range of blocks, for one thread.
    pub fn worker(&self, blocks: Range<u32>) -> EngineResult<ScanWorker> {
        let ctx = self.ctx()?;
        let heap = self.shared.engine.open_heap(&self.shared.table)?.clone();
        let blocks = blocks.start..blocks.end.min(self.shared.blocks);
        // If two scans are split into the same number of parts, equal parts get the same lane.
        let whole = u64::from(self.shared.blocks.max(1));
        let lane = (u64::from(blocks.start) * heap::SCAN_LANES as u64).div_ceil(whole) as usize;
        let scan = heap::HeapScan::over(heap, ScanBlocks::Range(blocks));
        let scan = scan.for_bulk(&ctx, lane);
        Ok(ScanWorker { shared: Arc::clone(&self.shared), ctx, scan })
    }

    /// A worker that gets its blocks piece by piece: see [`ScanWorker::go_on_with`]. The caller
    /// decides with which block the whole scan begins: see [`ParallelScan::first_block`].
    pub fn worker_of_pieces(&self) -> EngineResult<ScanWorker> {
        let ctx = self.ctx()?;
        let heap = self.shared.engine.open_heap(&self.shared.table)?.clone();
        let scan = heap::HeapScan::over(heap, ScanBlocks::Range(0..0)).for_bulk_pieces(&ctx);
        Ok(ScanWorker { shared: Arc::clone(&self.shared), ctx, scan })
    }

    fn ctx(&self) -> EngineResult<PooledCtx> {
        let ctx = self.shared.engine.worker_ctx()?;
        if self.shared.snapshot.own.is_some() {
            self.shared.combos.clone_into(&mut ctx.combos().borrow_mut());
        }
        ctx.set_bulk_access(self.shared.bulk_access);
        Ok(ctx)
    }

    /// The block with which a scan in pieces begins, to go on together with another scan of a large
    /// table. It goes to the last block, and then from block 0 to this one.
    pub fn first_block(&self) -> EngineResult<u32> {
        let heap = self.shared.engine.open_heap(&self.shared.table)?;
        let blocks = self.shared.blocks;
        Ok(if self.is_synchronized() { heap::first_block(heap, blocks) } else { 0 })
    }

    /// Tells other scans of the table that a scan in pieces goes on with a block.
    pub fn report_block(&self, block: u32) -> EngineResult<()> {
        if self.is_synchronized() {
            heap::report_block(self.shared.engine.open_heap(&self.shared.table)?, block);
        }
        Ok(())
    }

    fn is_synchronized(&self) -> bool {
        let SharedScan { engine, blocks, bulk_access, .. } = &*self.shared;
        bulk_access.synchronize_scans && engine.pool().is_large(*blocks)
    }
}

impl std::fmt::Debug for ParallelScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParallelScan")
            .field("table", &self.shared.table.name)
            .field("blocks", &self.shared.blocks)
            .finish_non_exhaustive()
    }
}

/// One thread's share of a [`ParallelScan`].
pub struct ScanWorker {
    shared: Arc<SharedScan>,
    ctx: PooledCtx,
    scan: heap::HeapScan,
}

impl ScanWorker {
    /// Passes the visible rows of the next page that has any to `each`. Returns false at the end.
    /// Fails with `Cancelled` when the session is interrupted or has ended the statement.
    pub fn next_page(
        &mut self,
        each: &mut dyn FnMut(Tid, &[u8]) -> EngineResult<()>,
    ) -> EngineResult<bool> {
        self.check_stop()?;
        next_page(&mut self.scan, &self.ctx, &self.shared.snapshot, each)
    }

    /// Gives a worker of pieces the next blocks, when it has read those before.
    pub fn go_on_with(&mut self, blocks: Range<u32>) {
        self.scan.go_on_with(blocks.start..blocks.end.min(self.shared.blocks));
    }

    /// Goes to the next page that has visible rows, for [`ScanWorker::row`]. Returns false at the
    /// end. Fails as [`ScanWorker::next_page`] does.
    pub fn advance_page(&mut self) -> EngineResult<bool> {
        self.check_stop()?;
        advance_page(&mut self.scan, &self.ctx, &self.shared.snapshot)
    }

    /// A visible row of the page that was read last, by its number from 0: its place and its bytes.
    #[inline]
    pub fn row(&self, number: usize) -> Option<(Tid, &[u8])> {
        self.scan.page_rows().get(number)
    }

    /// The number of visible rows on the next page; `None` at the end. Fails as
    /// [`ScanWorker::next_page`] does.
    pub fn count_page(&mut self) -> EngineResult<Option<usize>> {
        self.check_stop()?;
        count_page(&mut self.scan, &self.ctx, &self.shared.snapshot)
    }

    /// [`Session::lookup_many`] under the scan's snapshot, for an index that the session has
    /// [checked][`Session::check_index`].
    ///
    /// [`Session::lookup_many`]: super::Session::lookup_many
    /// [`Session::check_index`]: super::Session::check_index
    pub fn lookup_many(
        &self,
        table: &TableDef,
        index: &IndexDef,
        batch: &mut LookupBatch,
    ) -> EngineResult<()> {
        self.check_stop()?;
        let engine = &self.shared.engine;
        let relations = (engine.open_heap(table)?, engine.open_tree(index)?);
        batch.look_up(&self.ctx, relations, &self.shared.snapshot)
    }

    /// Begins a scan of an index under the scan's snapshot. The session has
    /// [checked](super::Session::check_index) the index.
    pub fn start_index_scan(
        &self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        range: &KeyRange,
        direction: Direction,
        scan: &mut IndexScan,
    ) -> EngineResult<()> {
        self.check_stop()?;
        scan.start(table, index, range, direction, self.shared.snapshot);
        Ok(())
    }

    /// Copies the next row of such a scan into `row`: see [`IndexScan::next`].
    #[inline]
    pub fn next_of_index(&self, scan: &mut IndexScan, row: &mut RowBuf) -> EngineResult<bool> {
        self.check_stop()?;
        scan.next_for((&self.ctx, &self.shared.engine), row)
    }

    /// Fails with `Cancelled` when the session is interrupted or has ended the statement.
    #[inline]
    pub fn check_stop(&self) -> EngineResult<()> {
        let stop = self.shared.stop.iter().any(|stop| stop.load(Ordering::Relaxed));
        if stop { Err(EngineError::Cancelled) } else { Ok(()) }
    }
}

impl std::fmt::Debug for ScanWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScanWorker").field("table", &self.shared.table.name).finish_non_exhaustive()
    }
}
