//! Parts of plans that run on several cores: the scan of a large table, with the filters and the
//! joins by hash tables and indexes above it.
//!
//! The planner marks where such a *fragment* ends ([`plan::query::gather`]). What is above it, and
//! what fills the hash tables, runs in the session. When the fragment begins, the session decides
//! by the size of the table and the settings whether threads are worth it. It has filled the hash
//! tables by then. They become a [`program`], which each thread runs on chunks of the table. The
//! session takes the rows in the order of the table ([`exchange`]). While there are none, it runs
//! the program on a chunk of its own.
//!
//! A thread stops at the next page when the session's statement ends or is cancelled. The session
//! waits for that before it goes on.
//!
//! [`plan::query::gather`]: crate::plan::query

mod exchange;
mod index_join;
mod program;
mod runner;

use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

use millpond_engine::catalog::TableDef;
use millpond_engine::session::{ParallelScan, Session};

use self::exchange::{Exchange, Piece, Taken, stopped};
use self::program::{Program, Step};
use self::runner::Runner;
use super::{Context, Work, kept};
use crate::analyze::tree::{JoinKind, Slot, slot_of};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::Access;
use crate::plan::external::Surroundings;
use crate::plan::query::gather::driving_scan;
use crate::plan::query::node::{NestedLoop, Node, Scan};
use crate::settings::SessionSettings;
use crate::system_relations::is_system;

pub(super) use self::index_join::{IndexJoin, Inner};
pub(super) use self::program::Probe;

/// Blocks of a chunk, at least and at most.
const CHUNK_BLOCKS: (u32, u32) = (8, 64);
/// Chunks of the least number that a table is cut into.
const LEAST_CHUNKS: u32 = 64;
/// How many chunks of each thread may be done or under way.
const CHUNKS_A_THREAD: usize = 4;

/// How many threads besides the session scan a table, as PostgreSQL decides it: one more for each
/// time that the table is three times as large as `min_parallel_table_scan_size`.
pub fn planned_workers(
    session: &Session,
    table: &TableDef,
    settings: &SessionSettings,
) -> Result<usize> {
    let blocks = i64::from(session.block_count(table)?);
    let least = settings.int("min_parallel_table_scan_size").max(1);
    if blocks < least {
        return Ok(0);
    }
    let (mut workers, mut threshold) = (1, least);
    while blocks >= threshold.saturating_mul(3) {
        workers += 1;
        threshold = threshold.saturating_mul(3);
    }
    let most = settings.int("max_parallel_workers_per_gather");
    Ok(workers.min(usize::try_from(most).unwrap_or(0)))
}

/// How many threads besides the session would run a fragment that ends with a node.
pub(super) fn workers_for(node: &Node, work: &Work<'_>) -> Result<usize> {
    match driving_scan(node) {
        Some(scan) => workers_of(scan, work),
        None => Ok(0),
    }
}

fn workers_of(scan: &Scan, work: &Work<'_>) -> Result<usize> {
    let is_read = matches!(scan.access, Access::Heap) && !is_system(&scan.table);
    if !is_read || !work.may_wait || work.threads.is_none() {
        return Ok(0);
    }
    planned_workers(work.session()?, &scan.table, work.facts.settings)
}

/// A fragment that has not begun: a scan, and what is done with its rows.
pub(super) struct Begun<'p> {
    scan: &'p Scan,
    workers: usize,
    steps: Vec<Step>,
    /// The slots of its rows.
    output: Vec<Slot>,
}

impl<'p> Begun<'p> {
    /// That of a scan, if it is worth it.
    pub(super) fn of_scan(scan: &'p Scan, work: &Work<'_>) -> Result<Option<Self>> {
        let workers = workers_of(scan, work)?;
        let begun = || Self { scan, workers, steps: Vec::new(), output: vec![scan.slot] };
        Ok((workers > 0).then(begun))
    }

    pub(super) fn filter(&mut self, condition: &Expr, cx: &Context<'_>) -> Result<()> {
        self.steps.push(Step::Filter(settled(condition, cx)?));
        Ok(())
    }

    pub(super) fn project(&mut self, slot: Slot, exprs: &[Expr], cx: &Context<'_>) -> Result<()> {
        let exprs = exprs.iter().map(|expr| settled(expr, cx)).collect::<Result<_>>()?;
        self.steps.push(Step::Project(slot, exprs));
        self.output = vec![slot];
        Ok(())
    }

    pub(super) fn probe(&mut self, probe: Probe) {
        self.add_inner(probe.kind, &probe.inner);
        self.steps.push(Step::Probe(probe));
    }

    pub(super) fn index(
        &mut self,
        join: &NestedLoop,
        inner: &Scan,
        cx: &Context<'_>,
    ) -> Result<()> {
        let (kind, outer) = (join.kind, self.output.clone());
        let on = join.on.as_ref().map(|on| settled(on, cx)).transpose()?;
        self.add_inner(kind, &[inner.slot]);
        let scan = Inner::of(inner, cx)?;
        self.steps.push(Step::Index(IndexJoin { kind, outer, scan, on }));
        Ok(())
    }

    fn add_inner(&mut self, kind: JoinKind, inner: &[Slot]) {
        if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            self.output.extend_from_slice(inner);
        }
    }

    /// Starts the threads.
    pub(super) fn start(self, cx: &Context<'_>) -> Result<Box<Fragment>> {
        let (work, plan) = (cx.work(), cx.plan.plan);
        let placed =
            |filter: &Expr| settled(filter, cx)?.map_columns(&mut |column| slot_of(column).1);
        let program = Arc::new(Program {
            table: Arc::clone(&self.scan.table),
            slot: self.scan.slot,
            filter: self.scan.filter.as_ref().map(placed).transpose()?,
            steps: self.steps,
            output: self.output,
            kinds: plan.slots.clone(),
            kept: plan.kept.clone(),
            surroundings: Arc::new(Surroundings::new(&cx.env())),
        });
        let scan = work.session()?.parallel_scan(&self.scan.table)?;
        Ok(Box::new(Fragment::start(program, &scan, self.workers, work)?))
    }
}

/// An expression for threads: what is the same for all rows is computed, subqueries among it.
pub(super) fn settled(expr: &Expr, cx: &Context<'_>) -> Result<Expr> {
    fn without_subplans(expr: Expr, cx: &Context<'_>) -> Result<Expr> {
        match expr {
            Expr::SubPlan(_) => cx.value(&expr).map(Expr::Const),
            other => other.map_parts(&mut |part| without_subplans(part, cx)),
        }
    }
    without_subplans(expr.clone(), cx)?.folded(&cx.env())
}

/// The chunks of a table.
#[derive(Clone, Copy)]
struct Chunks {
    blocks: u32,
    /// Blocks of a chunk.
    size: u32,
    /// The chunk that is read first. The others follow in a circle.
    first: u32,
}

impl Chunks {
    fn of(scan: &ParallelScan) -> Result<Self> {
        let blocks = scan.blocks();
        let size = (blocks / LEAST_CHUNKS).clamp(CHUNK_BLOCKS.0, CHUNK_BLOCKS.1);
        Ok(Self { blocks, size, first: scan.first_block()? / size })
    }

    fn count(self) -> u32 {
        self.blocks.div_ceil(self.size)
    }

    fn range(self, chunk: u32) -> Range<u32> {
        let at = (u64::from(self.first) + u64::from(chunk)) % u64::from(self.count().max(1));
        let start = at as u32 * self.size;
        start..start.saturating_add(self.size).min(self.blocks)
    }
}

/// A fragment in execution, as the session sees it.
pub(super) struct Fragment {
    exchange: Arc<Exchange>,
    program: Arc<Program>,
    scan: ParallelScan,
    chunks: Chunks,
    threads: Vec<JoinHandle<()>>,
    /// What the session runs itself. `None`: it only takes.
    runner: Option<Runner>,
    /// The chunk that it is at.
    own: Option<u32>,
    filling: Piece,
    /// The rows that are given now, and the next of them.
    piece: Piece,
    at: usize,
}

impl Fragment {
    fn start(
        program: Arc<Program>,
        scan: &ParallelScan,
        workers: usize,
        work: &Work<'_>,
    ) -> Result<Self> {
        let chunks = Chunks::of(scan)?;
        // A row that gives many is only for a thread, which can wait in the middle of it.
        let may_help = program.gives_one_row();
        let cores = work.threads.map_or(1, |threads| threads.cores());
        let workers = workers.min(if may_help { cores.saturating_sub(1) } else { cores }.max(1));
        let window = (CHUNKS_A_THREAD * (workers + 1)) as u32;
        let exchange = Arc::new(Exchange::new(chunks.count(), window, &work.resources.memory));
        let mut fragment = Self {
            exchange,
            program,
            scan: scan.clone(),
            chunks,
            threads: Vec::new(),
            runner: None,
            own: None,
            filling: Piece::default(),
            piece: Piece::default(),
            at: 0,
        };
        for _ in 0..workers {
            fragment.start_thread(work);
        }
        if may_help || fragment.threads.is_empty() {
            let scan = scan.worker_of_pieces()?;
            fragment.runner = Some(Runner::new(&fragment.program, &fragment.exchange, scan));
        }
        Ok(fragment)
    }

    /// Starts a thread, if there may be one more.
    fn start_thread(&mut self, work: &Work<'_>) {
        let most = work.facts.settings.int("max_parallel_workers");
        let Some(threads) = work.threads else { return };
        let Some(place) = threads.reserve(usize::try_from(most).unwrap_or(0)) else { return };
        let Ok(scan) = self.scan.worker_of_pieces() else { return };
        let (program, exchange) = (Arc::clone(&self.program), Arc::clone(&self.exchange));
        let (whole, chunks) = (self.scan.clone(), self.chunks);
        let started = place.start(move || {
            let runner = Runner::new(&program, &exchange, scan);
            // The definitions that it holds are the session's to keep.
            drop(program);
            work_off(runner, &whole, chunks, &exchange);
        });
        match started {
            Ok(thread) => self.threads.push(thread),
            Err(error) => tracing::warn!(%error, "could not start a thread for a scan"),
        }
    }

    /// Puts the next row into the slots of the fragment. False at the end.
    pub(super) fn next(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            if let Some(row) = self.piece.row(self.at) {
                self.at += 1;
                kept::load(row, &self.program.output, &mut cx.rows)?;
                cx.work().count_row()?;
                return Ok(true);
            }
            self.exchange.give_back(std::mem::take(&mut self.piece));
            match self.next_piece(cx.work())? {
                Some(piece) => (self.piece, self.at) = (piece, 0),
                None => return Ok(false),
            }
        }
    }

    fn next_piece(&mut self, work: &Work<'_>) -> Result<Option<Piece>> {
        loop {
            work.tick()?;
            let taken = self.exchange.take(self.own, self.runner.is_some());
            // A thread that was stopped knows no reason, but the session does.
            let taken = taken.or_else(|error| work.tick().and(Err(error)))?;
            match taken {
                Taken::Piece(piece) => return Ok(Some(piece)),
                Taken::End => return Ok(None),
                Taken::Wait => self.exchange.wait(),
                Taken::Scan => self.scan_own(),
                Taken::Begin(chunk) => {
                    self.own = Some(chunk);
                    if let Some(runner) = &mut self.runner {
                        begin(runner, &self.scan, self.chunks, chunk);
                    }
                    self.scan_own();
                }
            }
        }
    }

    /// Goes on with the chunk of its own.
    fn scan_own(&mut self) {
        let (Some(runner), Some(chunk)) = (&mut self.runner, self.own) else { return };
        let filled = runner.fill(&mut self.filling, &mut |_| Ok(()));
        let handed = self.exchange.hand_over(chunk, &mut self.filling);
        let end = match filled.and_then(|more| handed.map(|()| more)) {
            Ok(true) => return,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        self.own = None;
        self.exchange.end(chunk, end);
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        self.exchange.stop();
        for thread in self.threads.drain(..) {
            // A panic has been reported as the end of its chunk.
            let _ = thread.join();
        }
    }
}

fn begin(runner: &mut Runner, scan: &ParallelScan, chunks: Chunks, chunk: u32) {
    let blocks = chunks.range(chunk);
    // That other scans don't learn of it costs them a read.
    let _ = scan.report_block(blocks.start);
    runner.begin(blocks);
}

/// What a thread does: chunk after chunk.
fn work_off(mut runner: Runner, scan: &ParallelScan, chunks: Chunks, exchange: &Exchange) {
    let mut piece = Piece::default();
    while let Some(chunk) = exchange.claim_waiting() {
        let mut claimed = Claimed { exchange, chunk, end: None };
        begin(&mut runner, scan, chunks, chunk);
        claimed.end = Some(scan_chunk(&mut runner, exchange, chunk, &mut piece));
    }
}

fn scan_chunk(
    runner: &mut Runner,
    exchange: &Exchange,
    chunk: u32,
    piece: &mut Piece,
) -> Result<()> {
    let mut hand_over = |piece: &mut Piece| exchange.hand_over_waiting(chunk, piece);
    loop {
        if exchange.is_stopped() {
            return Err(stopped());
        }
        match runner.fill(piece, &mut hand_over) {
            Ok(true) if !piece.is_full() => {}
            Ok(true) => hand_over(piece)?,
            Ok(false) => return hand_over(piece),
            // The rows before it come first.
            Err(error) => return hand_over(piece).and(Err(error)),
        }
    }
}

/// A chunk that a thread is at. It ends with the thread's panic, too, so that the session does not
/// wait for it.
struct Claimed<'e> {
    exchange: &'e Exchange,
    chunk: u32,
    end: Option<Result<()>>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let panicked = || Err(SqlError::internal("a thread of a scan has panicked"));
        self.exchange.end(self.chunk, self.end.take().unwrap_or_else(panicked));
    }
}
