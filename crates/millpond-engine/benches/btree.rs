//! Measures the B+tree on the real pool and log: building, point lookups, scans, insertion.
//!
//! `cargo bench -p millpond-engine --bench btree -- [ENTRIES [DISTANCE]]`
//!
//! DISTANCE is the distance between keys. With the default of 2, leaves are narrow. With 1000 (for
//! up to 4 million entries) they are wide.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_buffer::{BlockNumber, BufferPool, FileStore, Lsn, PoolConfig, RelHandle, RelationId};
use millpond_engine::access::Tid;
use millpond_engine::access::btree::{self, Builder, Cursor, Direction, Tids};
use millpond_engine::proc::ProcArray;
use millpond_engine::rmgr::redo_of;
use millpond_engine::transam::{Transactions, Xid};
use millpond_engine::wal::{FileLogStore, Log, LogConfig, LogStart};
use millpond_engine::{Ctx, Shared};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SESSIONS: u16 = 8;

fn key(n: u32) -> [u8; 5] {
    let [a, b, c, d] = n.to_be_bytes();
    [1, a, b, c, d]
}

fn tid(n: u32) -> Tid {
    Tid::new(BlockNumber(n / 60), (n % 60) as u16 + 1)
}

fn open(directory: &std::path::Path, frames: usize) -> Result<Shared, Box<dyn Error>> {
    let config = LogConfig { max_sessions: usize::from(SESSIONS), redo_of, ..LogConfig::default() };
    let files = Arc::new(FileLogStore::open(&directory.join("wal"), config.segment_bytes)?);
    let start = LogStart { end: Lsn(4096), durable: Lsn(4096), redo: Lsn(4096), start_no: 1 };
    let log = Log::open(files, config, start)?;
    let store = Arc::new(FileStore::open(directory.join("base"))?);
    let sessions = usize::from(SESSIONS) + 2;
    let pool = BufferPool::new(PoolConfig::new(frames, sessions), store, log.clone())?;
    let procs = ProcArray::new(SESSIONS);
    let txns = Transactions::new(procs.clone(), 1 << 16, Xid::FIRST);
    Ok(Shared::new(pool, log, procs, txns))
}

/// The processor time of this thread, which other processes disturb least. Wall time where the
/// system does not report it.
struct Clock(Instant, Option<u64>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), Self::cpu_ns())
    }

    fn cpu_ns() -> Option<u64> {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        stat.split(' ').next()?.parse().ok()
    }

    fn elapsed(&self) -> Duration {
        match (self.1, Self::cpu_ns()) {
            (Some(from), Some(to)) => Duration::from_nanos(to - from),
            _ => self.0.elapsed(),
        }
    }
}

/// Runs `f` for every number and prints the mean time.
fn time(what: &str, numbers: &[u32], mut f: impl FnMut(u32)) {
    let start = Clock::start();
    for &n in numbers {
        f(n);
    }
    let each = start.elapsed().as_nanos() as f64 / numbers.len() as f64;
    println!("{what:<44} {each:>8.1} ns");
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let entries: u32 = args.next().map_or(Ok(5_000_000), |n| n.parse())?;
    let distance: u32 = args.next().map_or(Ok(2), |n| n.parse())?;
    let directory = tempfile::tempdir()?;
    let shared = open(directory.path(), entries as usize / 100 + 1000)?;
    let ctx = Ctx::new(&shared, "benchmark")?;
    let rel = RelationId::constant(16384).main();
    shared.pool.create(rel)?;
    let rel = shared.pool.relation(rel)?;

    let start = Clock::start();
    let mut builder = Builder::new(&ctx, &rel, None, 90)?;
    for n in 0..entries {
        builder.add(&key(n * distance), tid(n))?;
    }
    builder.finish()?;
    let rate = f64::from(entries) / start.elapsed().as_secs_f64() / 1e6;
    println!(
        "{:<44} {rate:>8.2} M entries/s",
        format!("bulk build of {entries}, {} pages", rel.block_count())
    );

    lookups_and_scans(&ctx, &rel, entries, distance)?;
    let fresh = random(entries, 300_000);
    time("insert, uniform", &fresh, |n| {
        btree::insert(&ctx, &rel, &key(n * distance + 1), tid(n), None).expect("insert");
    });
    let appended: Vec<u32> = (0..300_000).collect();
    time("insert, ascending at the end", &appended, |n| {
        btree::insert(&ctx, &rel, &key((entries + n) * distance), tid(n), None).expect("insert");
    });
    let report = btree::check(&ctx, &rel, &mut |_, _| {})?;
    println!(
        "check: {} entries, {} pages, {} levels, {} problems",
        report.entries,
        report.pages,
        report.levels,
        report.problems.len()
    );
    shared.log.close()?;
    Ok(())
}

/// Numbers in a random order, the same in each run.
fn random(below: u32, count: usize) -> Vec<u32> {
    let mut rng = SmallRng::seed_from_u64(1);
    (0..count).map(|_| rng.random_range(0..below)).collect()
}

fn lookups_and_scans(
    ctx: &Ctx,
    rel: &RelHandle,
    entries: u32,
    distance: u32,
) -> Result<(), Box<dyn Error>> {
    let mut tids = Tids::new();
    let mut look = |n: u32| {
        tids.clear();
        btree::lookup(ctx, rel, &key(n * distance), &mut tids).expect("lookup");
        assert_eq!(black_box(&tids)[..], [tid(n)]);
    };
    let everywhere = random(entries, 2_000_000);
    time("lookup, uniform over all", &everywhere, &mut look);
    time("lookup, uniform over all, again", &everywhere, &mut look);
    time("lookup, uniform over 10000", &random(10_000.min(entries), 2_000_000), &mut look);
    time("lookup, one key", &vec![entries / 2; 2_000_000], &mut look);
    let ascending: Vec<u32> = (0..2_000_000.min(entries)).collect();
    time("lookup, ascending", &ascending, &mut look);

    for (name, direction) in [("forward", Direction::Forward), ("backward", Direction::Backward)] {
        let mut cursor = Cursor::new(&[], None, direction);
        let start = Clock::start();
        let mut count = 0u32;
        while black_box(cursor.next(ctx, rel)?).is_some() {
            count += 1;
        }
        let each = start.elapsed().as_nanos() as f64 / f64::from(count);
        println!("{:<44} {each:>8.1} ns/entry", format!("scan {name} of {count}"));
    }
    let mut cursor = Cursor::new(&[], None, Direction::Forward);
    time("range of 10, uniform", &everywhere[..500_000], |n| {
        cursor.restart(&key(n * distance), Some(&key((n + 10) * distance)), Direction::Forward);
        while let Some(tid) = cursor.next(ctx, rel).expect("scan") {
            black_box(tid);
        }
    });
    Ok(())
}
