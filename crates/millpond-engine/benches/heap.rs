//! Measures the heap alone, in memory: `cargo bench -p millpond-engine --bench heap -- [ROWS]`.
//!
//! Rows are as wide as those of pgbench_accounts. It prints nanoseconds per row for loads, warm
//! fetches (before and after VACUUM), scans, counts, and updates within a page.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use millpond_buffer::{BufferPool, Lsn, MemoryStore, PoolConfig, RelationId};
use millpond_engine::access::Tid;
use millpond_engine::access::heap::{
    ChangeOutcome, Changer, HeapRelation, HeapScan, InsertOptions, KeyChange, NewRow, count_rows,
    fetch, insert, insert_many, update, vacuum,
};
use millpond_engine::ctx::{Ctx, Shared};
use millpond_engine::proc::ProcArray;
use millpond_engine::rmgr::redo_of;
use millpond_engine::transam::{CommandId, Durability, Snapshot, Transactions, Xid};
use millpond_engine::wal::{FileLogStore, Log, LogConfig, LogStart};

const SESSIONS: u16 = 40;
const PAYLOAD: usize = 97;

fn open(
    directory: &std::path::Path,
    frames: usize,
) -> Result<(Shared, HeapRelation), Box<dyn Error>> {
    let config = LogConfig { max_sessions: SESSIONS as usize, redo_of, ..LogConfig::default() };
    let store = Arc::new(FileLogStore::open(directory, config.segment_bytes)?);
    let at = Lsn(config.segment_bytes);
    let log = Log::open(store, config, LogStart { end: at, durable: at, redo: at, start_no: 1 })?;
    let config = PoolConfig::new(frames, SESSIONS as usize);
    let pool = BufferPool::new(config, Arc::new(MemoryStore::new()), log.clone())?;
    let procs = ProcArray::new(SESSIONS);
    let txns = Transactions::new(procs.clone(), 1 << 16, Xid::FIRST);
    let shared = Shared::new(pool, log, procs, txns);
    let ctx = Ctx::new(&shared, "bench")?;
    shared.txns.finish_recovery(&ctx)?;
    let relation = RelationId::constant(1000);
    HeapRelation::create(&shared.pool, relation)?;
    let heap = HeapRelation::open(&shared.pool, relation, 100, SESSIONS as usize)?;
    Ok((shared, heap))
}

/// Wall time and the thread's processor time (the first field of schedstat). On a busy machine only
/// the latter is meaningful.
#[derive(Clone, Copy)]
struct Start(Instant, Option<u64>);

impl Start {
    fn now() -> Self {
        Self(Instant::now(), cpu_nanos())
    }
}

fn cpu_nanos() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn report(what: &str, rows: u64, start: Start) {
    let wall = start.0.elapsed().as_nanos() as f64 / rows as f64;
    let cpu = cpu_nanos().zip(start.1).map(|(now, then)| (now - then) as f64 / rows as f64);
    let cpu = cpu.unwrap_or(wall);
    println!("{what:40} {cpu:8.1} ns CPU a row ({wall:8.1} wall) {:8.2} M rows/s", 1e3 / cpu);
}

/// A pseudo-random sequence that covers all rows.
fn mixed(step: u64, rows: u64) -> usize {
    (step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % rows) as usize
}

fn time_fetches(
    what: &str,
    ctx: &Ctx,
    heap: &HeapRelation,
    tids: &[Tid],
    snapshot: &Snapshot,
) -> Result<(), Box<dyn Error>> {
    let mut row = Vec::new();
    let rows = tids.len() as u64;
    for (name, hot) in [("random", rows), ("within 1000 rows", rows.min(1000))] {
        for round in 0..2 {
            let start = Start::now();
            let count = 2_000_000;
            let mut bytes = 0;
            for step in 0..count {
                let tid = tids[mixed(step, hot)];
                fetch(ctx, heap, tid, snapshot, &mut row)?.ok_or("a row is missing")?;
                bytes += row.len();
            }
            assert_eq!(bytes as u64, count * PAYLOAD as u64);
            if round == 1 {
                report(&format!("fetch, {name}, {what}"), count, start);
            }
        }
    }
    Ok(())
}

fn time_scans(
    what: &str,
    ctx: &Ctx,
    heap: &HeapRelation,
    rows: u64,
    snapshot: &Snapshot,
) -> Result<(), Box<dyn Error>> {
    for round in 0..2 {
        let start = Start::now();
        let mut scan = HeapScan::new(heap.clone());
        let (mut seen, mut sum) = (0, 0u64);
        while let Some(page) = scan.next_page(ctx, snapshot)? {
            for (_, columns) in page.iter() {
                seen += 1;
                sum += u64::from(columns[0]);
            }
        }
        assert_eq!(seen, rows);
        if round == 1 {
            report(&format!("scan, {what}"), rows + (sum & 1), start);
        }
        let start = Start::now();
        assert_eq!(count_rows(ctx, heap, 0..heap.block_count(), snapshot, None)?, rows);
        if round == 1 {
            report(&format!("count, {what}"), rows, start);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows: u64 = match std::env::args().skip(1).find(|arg| arg != "--bench") {
        Some(argument) => argument.parse()?,
        None => 1_000_000,
    };
    let directory =
        std::env::temp_dir().join(format!("millpond-heap-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = run(rows, &directory);
    // The log's thread may still create segments: what cannot be removed stays.
    let _ = std::fs::remove_dir_all(&directory);
    result
}

fn run(rows: u64, directory: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let (shared, heap) = open(directory, (rows / 40) as usize + 2000)?;
    let ctx = Ctx::new(&shared, "bench")?;
    let xid = ctx.assign_xid()?;
    let payload = [1; PAYLOAD];
    let row = NewRow { payload: &payload, natts: 4 };
    let mut tids = Vec::new();
    let start = Start::now();
    let batch = vec![row; 1000];
    while (tids.len() as u64) < rows {
        let count = (rows - tids.len() as u64).min(1000) as usize;
        let options = InsertOptions { only_new: true, ..InsertOptions::default() };
        insert_many(&ctx, &heap, &batch[..count], xid, CommandId(0), options, &mut tids)?;
    }
    report("insert_many", rows, start);
    ctx.txns().commit(&ctx, &[], Durability::Background)?;
    println!("{} pages", heap.block_count());

    let csn = ctx.txns().snapshot(&ctx);
    let snapshot = Snapshot { csn, own: None, command: CommandId(0) };
    time_fetches("not yet vacuumed", &ctx, &heap, &tids, &snapshot)?;
    time_scans("not yet vacuumed", &ctx, &heap, rows, &snapshot)?;
    ctx.txns().release_snapshot(&ctx, csn);
    let start = Start::now();
    vacuum(&ctx, &heap, None, Some(&mut |_: &dyn Fn(Tid) -> bool| Ok(())))?;
    report("vacuum", rows, start);
    let csn = ctx.txns().snapshot(&ctx);
    let snapshot = Snapshot { csn, own: None, command: CommandId(0) };
    time_fetches("all-visible", &ctx, &heap, &tids, &snapshot)?;
    time_scans("all-visible", &ctx, &heap, rows, &snapshot)?;
    ctx.txns().release_snapshot(&ctx, csn);

    let updates = 200_000.min(rows);
    let start = Start::now();
    let mut hot = 0u64;
    for step in 0..updates {
        let xid = ctx.assign_xid()?;
        let csn = ctx.txns().snapshot(&ctx);
        let tid = tids[mixed(step, rows)];
        let by = Changer { xid, cid: CommandId(0) };
        match update(&ctx, &heap, tid, row, KeyChange::None, by)? {
            ChangeOutcome::Done { hot: true, .. } => hot += 1,
            ChangeOutcome::Done { .. } => {}
            // The sequence visited this row before.
            ChangeOutcome::Updated { .. } => {}
            ChangeOutcome::Invisible => {}
            other => return Err(format!("{other:?}").into()),
        }
        ctx.txns().release_snapshot(&ctx, csn);
        ctx.txns().commit(&ctx, &[], Durability::Background)?;
    }
    report("update and commit without sync", updates, start);
    println!("{hot} of {updates} updates in their page");
    for threads in [1, 4, 32] {
        hot_row(&shared, &heap, threads)?;
    }
    Ok(())
}

/// All sessions add one to the same row, as pgbench does to its branches.
fn hot_row(shared: &Shared, heap: &HeapRelation, threads: u16) -> Result<(), Box<dyn Error>> {
    let ctx = Ctx::new(shared, "bench")?;
    let row = NewRow { payload: &[0; 8], natts: 1 };
    let root = insert(&ctx, heap, row, ctx.assign_xid()?, CommandId(0))?;
    ctx.txns().commit(&ctx, &[], Durability::Background)?;
    // Stands in for the index: the roots of the row's chains, the newest last.
    let roots = Mutex::new(vec![root]);
    let each = 20_000 / u64::from(threads);
    let start = Start::now();
    let cpu: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (heap, roots) = (heap.clone(), &roots);
                scope.spawn(move || -> Result<u64, String> {
                    let before = cpu_nanos().unwrap_or(0);
                    let ctx = Ctx::new(shared, "bench").map_err(|error| error.to_string())?;
                    for _ in 0..each {
                        add_one(&ctx, &heap, roots).map_err(|error| error.to_string())?;
                    }
                    Ok(cpu_nanos().unwrap_or(0) - before)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| "panic".to_string())?)
            .sum::<Result<u64, String>>()
    })?;
    let rows = each * u64::from(threads);
    report(&format!("hot row, {threads} sessions"), rows, start);
    println!("{:8.1} ns CPU a transaction in the sessions", cpu as f64 / rows as f64);
    let csn = ctx.txns().snapshot(&ctx);
    let snapshot = Snapshot { csn, own: None, command: CommandId(0) };
    let mut bytes = Vec::new();
    find(&ctx, heap, &roots, &snapshot, &mut bytes).ok_or("the row is missing")?;
    println!("{:8} chains on as many pages", roots.lock().map_err(|_| "poisoned")?.len());
    let value = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    assert_eq!(value, Some(rows));
    ctx.txns().release_snapshot(&ctx, csn);
    Ok(())
}

fn find(
    ctx: &Ctx,
    heap: &HeapRelation,
    roots: &Mutex<Vec<Tid>>,
    snapshot: &Snapshot,
    bytes: &mut Vec<u8>,
) -> Option<Tid> {
    let roots = roots.lock().ok()?.clone();
    roots.iter().rev().find_map(|&root| fetch(ctx, heap, root, snapshot, bytes).ok()?)
}

fn add_one(ctx: &Ctx, heap: &HeapRelation, roots: &Mutex<Vec<Tid>>) -> Result<(), Box<dyn Error>> {
    let xid = ctx.assign_xid()?;
    let mut bytes = Vec::new();
    for command in 0.. {
        let csn = ctx.txns().snapshot(ctx);
        let snapshot = Snapshot { csn, own: Some(xid), command: CommandId(command) };
        // A session publishes the root of a version that moved only after its commit.
        let Some(tid) = find(ctx, heap, roots, &snapshot, &mut bytes) else {
            ctx.txns().release_snapshot(ctx, csn);
            continue;
        };
        let value = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) + 1;
        let payload = value.to_le_bytes();
        let row = NewRow { payload: &payload, natts: 1 };
        let by = Changer { xid, cid: CommandId(command) };
        let outcome = update(ctx, heap, tid, row, KeyChange::None, by)?;
        ctx.txns().release_snapshot(ctx, csn);
        match outcome {
            ChangeOutcome::Done { hot: true, .. } => break,
            ChangeOutcome::Done { tid, .. } => {
                roots.lock().map_err(|_| "poisoned")?.push(tid);
                break;
            }
            ChangeOutcome::InProgress { xid: other, .. } => ctx.wait_for_xid(other)?,
            ChangeOutcome::Updated { .. } => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    ctx.txns().commit(ctx, &[], Durability::Background)?;
    Ok(())
}
