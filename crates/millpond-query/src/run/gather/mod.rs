//! Parts of plans that run on several cores: the scan of a large table, with the filters and the
//! joins by hash tables and indexes above it, and the aggregation or the sorting of its rows.
//!
//! The planner marks where such a *fragment* ends ([`plan::query::gather`]). What is above it, and
//! what fills the hash tables, runs in the session. When the fragment begins, the session decides
//! by the size of the table and the settings whether threads are worth it. It has filled the hash
//! tables by then. They become a [`program`], which each thread runs on chunks of the table. The
//! session takes the rows in the order of the table ([`exchange`]). While there are none, it runs
//! the program on a chunk of its own. A program can stop after any row ([`runner`]), so the session
//! looks at the others' rows between its own.
//!
//! A thread stops at the next page when the session's statement ends or is cancelled. The session
//! waits for that before it goes on.
//!
//! [`plan::query::gather`]: crate::plan::query

mod chunk_work;
mod current;
mod exchange;
mod index_join;
#[cfg(all(test, not(loom)))]
mod made_chunks;
mod probe;
mod program;
mod runner;

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

use millpond_engine::EngineError;
use millpond_engine::catalog::TableDef;
use millpond_engine::session::{ParallelScan, ScanWorker, Session};

use self::chunk_work::{ChunkSource, OwnWork, work_off};
use self::exchange::{Exchange, Piece};
use self::program::{End, Program, Step};
use self::runner::Runner;
use super::aggregate::PartialAggregation;
use super::sort::PartialSort;
use super::{Context, Work, kept};
use crate::analyze::tree::{JoinKind, Slot, slot_of};
use crate::error::Result;
use crate::expr::Expr;
use crate::memory::ValueRoom;
use crate::plan::Access;
use crate::plan::external::Surroundings;
use crate::plan::query::gather::driving_scan;
use crate::plan::query::node::{NestedLoop, Node, Scan};
use crate::plan::query::node_walk::each_own;
use crate::scan_threads::Reserved;
use crate::settings::SessionSettings;
use crate::system_relations::is_system;

pub(super) use self::index_join::{IndexJoin, Inner};
pub(super) use self::probe::Probe;

/// Blocks of a chunk, at least and at most.
const CHUNK_BLOCKS: (u32, u32) = (8, 64);
/// Chunks of the least number that a table is cut into.
const LEAST_CHUNKS: u32 = 64;
/// How many chunks of each thread may be done or under way.
const CHUNKS_A_THREAD: usize = 4;

/// How many threads scan a table beside the session, as PostgreSQL decides it: one more for each
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

/// How many threads would run a fragment beside the session that ends with a node.
pub(super) fn workers_for(node: &Node, work: &Work<'_>) -> Result<usize> {
    match driving_scan(node) {
        Some(scan) => workers_of(scan, work),
        None => Ok(0),
    }
}

/// None where the session must not wait: what runs long is begun anew where it may.
pub(super) fn workers_of(scan: &Scan, work: &Work<'_>) -> Result<usize> {
    let is_read = matches!(scan.access, Access::Heap) && !is_system(&scan.table);
    if !is_read || !work.may_wait || work.threads.is_none() {
        return Ok(0);
    }
    planned_workers(work.session()?, &scan.table, work.facts.settings)
}

/// Whether the subqueries that threads need can be computed before. If one fails, the session runs
/// the fragment by itself: maybe no row asks for it. Their expressions are those of a node, `own`,
/// and those of the nodes below it.
pub(super) fn can_settle<'e>(
    own: impl Iterator<Item = &'e Expr>,
    below: &[&Node],
    cx: &Context<'_>,
) -> Result<bool> {
    let mut failed = false;
    let mut compute = |expr: &Expr| {
        expr.walk(&mut |part| {
            failed |= matches!(part, Expr::SubPlan(_)) && cx.value(part).is_err();
        });
    };
    own.for_each(&mut compute);
    below.iter().for_each(|node| each_of_fragment(node, &mut compute));
    cx.work().tick()?;
    Ok(!failed)
}

/// Visits the expressions of a part of a fragment that ends with a node.
fn each_of_fragment(node: &Node, visit: &mut dyn FnMut(&Expr)) {
    each_own(node, visit);
    match node {
        Node::Filter { input, .. } | Node::Project { input, .. } => each_of_fragment(input, visit),
        Node::HashJoin(join) => each_of_fragment(&join.outer, visit),
        Node::NestedLoop(join) => {
            each_own(&join.inner, visit);
            each_of_fragment(&join.outer, visit);
        }
        _ => {}
    }
}

/// A fragment that has not begun: a scan, and what is done with its rows.
pub(super) struct Begun<'p> {
    scan: &'p Scan,
    workers: usize,
    /// The scan for all threads, and the session's part of it.
    shared: ParallelScan,
    own: ScanWorker,
    steps: Vec<Step>,
    end: End,
    /// The slots of its rows.
    output: Vec<Slot>,
}

impl<'p> Begun<'p> {
    /// That of a scan, if it is worth it.
    pub(super) fn of_scan(scan: &'p Scan, work: &Work<'_>) -> Result<Option<Self>> {
        let workers = workers_of(scan, work)?;
        if workers == 0 {
            return Ok(None);
        }
        let shared = work.session()?.parallel_scan(&scan.table)?;
        let own = match shared.worker_of_pieces() {
            Ok(own) => own,
            // All contexts are in use. The session's own scan needs none.
            Err(EngineError::LimitExceeded { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (steps, output) = (Vec::new(), vec![scan.slot]);
        Ok(Some(Self { scan, workers, shared, own, steps, end: End::Rows, output }))
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

    /// Its rows are aggregated: it gives groups.
    pub(super) fn aggregate(&mut self, parts: PartialAggregation) {
        self.end = End::Groups(parts);
    }

    /// Its rows are sorted: it gives runs of them.
    pub(super) fn sort(&mut self, sort: PartialSort) {
        self.end = End::Sorted(sort);
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
            end: self.end,
            output: self.output,
            kinds: Arc::clone(&plan.slots),
            window: plan.window.clone(),
            kept: plan.kept.clone(),
            surroundings: Arc::new(Surroundings::new(&cx.env())),
        });
        Ok(Box::new(Fragment::start(&program, (self.shared, self.own), self.workers, work)?))
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

/// A program on one thread, for one chunk after the other.
struct ChunkRunner {
    runner: Runner,
    scan: ParallelScan,
    chunks: Chunks,
}

impl ChunkSource for ChunkRunner {
    fn begin(&mut self, chunk: u32) {
        let blocks = self.chunks.range(chunk);
        // That other scans don't learn of it costs them a read.
        let _ = self.scan.report_block(blocks.start);
        self.runner.begin(blocks);
    }

    fn fill(&mut self, piece: &mut Piece, look: &dyn Fn() -> Result<()>) -> Result<bool> {
        self.runner.fill(piece, look)
    }
}

/// A fragment in execution, as the session sees it.
pub(super) struct Fragment {
    exchange: Arc<Exchange>,
    threads: Vec<JoinHandle<()>>,
    /// `None`: all rows have been taken.
    own: Option<OwnWork<ChunkRunner>>,
    /// The slots of its rows.
    output: Vec<Slot>,
    /// The rows that are given now, and the next of them.
    piece: Piece,
    at: usize,
}

impl Fragment {
    fn start(
        program: &Arc<Program>,
        (scan, own): (ParallelScan, ScanWorker),
        workers: usize,
        work: &Work<'_>,
    ) -> Result<Self> {
        let chunks = Chunks::of(&scan)?;
        let cores = work.threads.map_or(1, |threads| threads.cores());
        let workers = workers.min(cores.saturating_sub(1).max(1));
        let window = (CHUNKS_A_THREAD * (workers + 1)) as u32;
        let exchange = Arc::new(Exchange::new(chunks.count(), window, &work.resources.memory));
        let source = |worker| {
            let runner = Runner::new(program, &exchange, worker);
            ChunkRunner { runner, scan: scan.clone(), chunks }
        };
        let mut fragment = Self {
            exchange: Arc::clone(&exchange),
            threads: Vec::new(),
            own: Some(OwnWork::new(source(own))),
            output: program.output.clone(),
            piece: Piece::default(),
            at: 0,
        };
        for _ in 0..workers {
            let Some(place) = place_of_thread(work) else { break };
            let Ok(worker) = scan.worker_of_pieces() else { break };
            fragment.start_thread(place, source(worker), work);
        }
        Ok(fragment)
    }

    fn start_thread(&mut self, place: Reserved, mut source: ChunkRunner, work: &Work<'_>) {
        let (exchange, room) = (Arc::clone(&self.exchange), work.resources.memory.share());
        let started = place.start(move || {
            let _room = ValueRoom::enter(room);
            work_off(&mut source, &exchange);
        });
        match started {
            Ok(thread) => self.threads.push(thread),
            Err(error) => tracing::warn!(%error, "could not start a thread for a scan"),
        }
    }

    /// Puts the next row into the slots of the fragment. False at the end.
    pub(super) fn next(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        if !self.advance(cx)? {
            return Ok(false);
        }
        kept::load(self.bytes(), &self.output, &mut cx.rows)?;
        Ok(true)
    }

    /// The slots of its rows.
    pub(super) fn output(&self) -> &[Slot] {
        &self.output
    }

    /// The bytes of the row, or of the group, that [`Self::advance`] has gone to.
    pub(super) fn bytes(&self) -> &[u8] {
        self.at.checked_sub(1).and_then(|at| self.piece.row(at)).unwrap_or_default()
    }

    /// Goes to the next row. False at the end.
    pub(super) fn advance(&mut self, cx: &Context<'_>) -> Result<bool> {
        loop {
            if self.piece.row(self.at).is_some() {
                self.at += 1;
                cx.work().count_row()?;
                return Ok(true);
            }
            self.exchange.give_back(mem::take(&mut self.piece));
            let Some(own) = &mut self.own else { return Ok(false) };
            match own.next_piece(&self.exchange, &|| cx.work().tick())? {
                Some(piece) => (self.piece, self.at) = (piece, 0),
                None => self.end(),
            }
        }
    }

    /// Waits for the threads, and gives back what others may use meanwhile.
    fn end(&mut self) {
        self.exchange.stop();
        self.own = None;
        for thread in self.threads.drain(..) {
            // A panic has been reported as the end of its chunk.
            let _ = thread.join();
        }
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        self.end();
    }
}

/// A place for one more thread, if there is one.
fn place_of_thread(work: &Work<'_>) -> Option<Reserved> {
    let most = work.facts.settings.int("max_parallel_workers");
    work.threads?.reserve(usize::try_from(most).unwrap_or(0))
}
