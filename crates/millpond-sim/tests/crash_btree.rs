//! Crashes under the B+tree: insertions with their splits, and vacuums, on a disk that loses power or fails at any call.
//!
//! After recovery the tree must be whole, hold every entry whose insertion was in the durable log, and nothing that
//! was not tried. Each test prints the seed of a failure; `CRASH_SEED=n` repeats one, `CRASH_ROUNDS=n` runs more.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::{
    BlockNumber, BufferPool, BufferSession, ExclusivePage, Lsn, PoolConfig, RelHandle, RelationId,
    Wait,
};
use millpond_engine::EngineResult;
use millpond_engine::access::Tid;
use millpond_engine::access::btree::{self, Cursor, Direction, Env, InsertOutcome, Stamp};
use millpond_engine::maintenance::checkpointer::{
    Cause, CheckpointConfig, CheckpointParts, Checkpoints,
};
use millpond_engine::recovery::{Recovering, RedoFiles, RedoParts};
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::storage::create_fork;
use millpond_engine::wal::{Decoded, Log, LogConfig, LogStore, Logging, Record, log_and_apply};
use millpond_sim::{Fault, SimDisk};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEGMENT: u64 = 1 << 17;

struct NoParts;

impl RedoParts for NoParts {
    fn restore(&mut self, _: &[u8]) -> EngineResult<()> {
        Ok(())
    }
    fn redo(&mut self, _: &Decoded<'_>, _: &mut RedoFiles) -> EngineResult<()> {
        Ok(())
    }
}

impl CheckpointParts for NoParts {
    fn wait_for_commits(&mut self) {}
    fn log_statuses(&mut self) -> EngineResult<()> {
        Ok(())
    }
    fn state(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

struct Machine {
    log: Arc<Log>,
    pool: Arc<BufferPool>,
    checkpoints: Arc<Checkpoints>,
}

fn start(disk: &Arc<SimDisk>) -> EngineResult<(Machine, Lsn)> {
    let pages = disk.pages();
    let store: Arc<dyn LogStore> = disk.log(SEGMENT);
    let config = LogConfig {
        segment_bytes: SEGMENT,
        buffer_bytes: 1 << 17,
        max_sessions: 4,
        writer_delay: Duration::from_millis(1),
        ..LogConfig::default()
    };
    let mut recovering = Recovering::open(store, &*pages, config)?;
    let log = Arc::clone(recovering.log());
    let end = log.insert_position();
    let result = (|| {
        let pool = BufferPool::new(PoolConfig::new(24, 6), pages, log.clone())?;
        recovering.redo(&pool, &mut NoParts)?;
        let config = CheckpointConfig { max_wal_bytes: 6 * SEGMENT, ..CheckpointConfig::default() };
        let checkpoints =
            Checkpoints::new(recovering, Arc::clone(&pool), Box::new(NoParts), config)?;
        checkpoints.run(Cause::EndOfRecovery)?;
        Ok((Machine { log: log.clone(), pool, checkpoints }, end))
    })();
    if result.is_err() {
        log.abandon();
    }
    result
}

/// Starts after a crash; sometimes the power goes during recovery, too. Gives where the log ended first.
fn recover(disk: &Arc<SimDisk>, rng: &mut StdRng) -> (Machine, Lsn) {
    for _ in 0..3 {
        if rng.random_bool(0.6) {
            break;
        }
        // Before the log can grow: only reads and page writes happen during redo.
        disk.fail_after(rng.random_range(0..40), Fault::PowerLoss);
        if let Ok((machine, end)) = start(disk) {
            disk.heal();
            return (machine, end);
        }
        disk.crash();
    }
    disk.heal();
    start(disk).unwrap()
}

struct TestEnv<'a> {
    machine: &'a Machine,
    session: BufferSession,
}

impl Logging for TestEnv<'_> {
    fn log(&self) -> &Log {
        &self.machine.log
    }
    fn stripe(&self) -> SessionNo {
        SessionNo(0)
    }
    fn wait(&self) -> Wait {
        Wait::Allowed
    }
}

impl Env for TestEnv<'_> {
    fn buffers(&self) -> &BufferSession {
        &self.session
    }
    fn wait(&self) -> Wait {
        Wait::Allowed
    }
    /// One thread: nothing else is ever under way.
    fn is_over(&self, _: Stamp) -> bool {
        true
    }
    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn> {
        log_and_apply(self, pages, record)
    }
}

impl Machine {
    fn env(&self) -> EngineResult<(TestEnv<'_>, RelHandle)> {
        let env = TestEnv { machine: self, session: self.pool.session()? };
        Ok((env, self.pool.relation(RelationId::constant(5).main())?))
    }

    fn create(&self) -> EngineResult<Lsn> {
        let (env, _) = self.env()?;
        create_fork(&env, &self.pool, Xid(1), RelationId::constant(5).main())?;
        btree::create(&env, &self.pool.relation(RelationId::constant(5).main())?)?;
        self.log.flush(self.log.insert_position())?;
        Ok(self.log.insert_position())
    }
}

/// Something that was tried, and the log before and after it. `after` is `None` if it failed.
struct Op {
    change: Change,
    before: Lsn,
    after: Option<Lsn>,
}

enum Change {
    Insert(Vec<u8>, u32),
    /// Removes all entries of a part of the key space.
    Vacuum(u32),
}

/// The key space has so many parts; a vacuum of one leaves empty pages.
const PARTS: u32 = 8;

fn part(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761) / (u32::MAX / PARTS + 1)
}

#[derive(Default)]
struct Ledger {
    /// What is known to be in the tree.
    base: BTreeMap<Vec<u8>, u32>,
    ops: Vec<Op>,
    acknowledged: Lsn,
}

/// Keys long and uneven enough for many splits.
fn key(n: u32) -> Vec<u8> {
    let mixed = n.wrapping_mul(2_654_435_761);
    let mut key = mixed.to_be_bytes().to_vec();
    key.resize(4 + (mixed % 300) as usize, n as u8);
    key
}

fn tid(n: u32) -> Tid {
    Tid::new(BlockNumber(n), 1)
}

fn work(
    machine: &Machine,
    ledger: &mut Ledger,
    rng: &mut StdRng,
    steps: usize,
) -> EngineResult<()> {
    let (env, rel) = machine.env()?;
    for _ in 0..steps {
        let before = machine.log.insert_position();
        let change = if rng.random_bool(0.004) {
            Change::Vacuum(rng.random_range(0..PARTS))
        } else {
            let n = rng.random_range(0..1 << 20);
            Change::Insert(key(n), n)
        };
        let done = match &change {
            Change::Insert(key, n) => btree::insert(&env, &rel, key, tid(*n), None).map(|done| {
                assert_eq!(done, InsertOutcome::Done);
            }),
            Change::Vacuum(rest) => {
                btree::vacuum(&env, &rel, None, &|tid| part(tid.block.get()) == *rest).map(|_| ())
            }
        };
        let after = done.is_ok().then(|| machine.log.insert_position());
        ledger.ops.push(Op { change, before, after });
        done?;
        if rng.random_bool(0.1) {
            // The position flushed, not a later one: a checkpoint may insert meanwhile.
            let upto = machine.log.insert_position();
            machine.log.flush(upto)?;
            ledger.acknowledged = upto;
        }
        if rng.random_bool(0.005) {
            machine.checkpoints.run(Cause::Requested)?;
        }
    }
    Ok(())
}

/// Checks the recovered tree against what was tried, with the log having ended at `end`.
fn check(machine: &Machine, ledger: &mut Ledger, end: Lsn) {
    assert!(end >= ledger.acknowledged, "the log ends at {end}, before what was acknowledged");
    // For each entry: must it be there, may it be there.
    let mut expected: BTreeMap<Vec<u8>, (u32, bool, bool)> =
        ledger.base.iter().map(|(key, n)| (key.clone(), (*n, true, true))).collect();
    for op in ledger.ops.drain(..) {
        if op.before >= end {
            continue;
        }
        let certain = op.after.is_some_and(|after| after <= end);
        match op.change {
            Change::Insert(key, n) => {
                let entry = expected.entry(key).or_insert((n, false, false));
                entry.1 |= certain;
                entry.2 = true;
            }
            Change::Vacuum(rest) => {
                for entry in expected.values_mut().filter(|entry| part(entry.0) == rest) {
                    entry.1 = false;
                    entry.2 &= !certain;
                }
            }
        }
    }
    let (env, rel) = machine.env().unwrap();
    let report = btree::check(&env, &rel, &mut |_, _| {}).unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    let mut found = BTreeMap::new();
    let mut cursor = Cursor::new(&[], None, Direction::Forward);
    while let Some(tid) = cursor.next(&env, &rel).unwrap() {
        found.insert(cursor.key().to_vec(), tid.block.get());
    }
    for (key, (n, must, may)) in &expected {
        let there = found.get(key) == Some(n);
        assert!(there || !must, "entry {n} is lost");
        assert!(!there || *may, "entry {n} has come back");
    }
    assert!(found.keys().all(|key| expected.contains_key(key)), "an entry that nobody inserted");
    ledger.base = found;
    ledger.acknowledged = Lsn::ZERO;
}

fn rounds(count: u64, fault: Option<Fault>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seeds = match number("CRASH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CRASH_ROUNDS").unwrap_or(count),
    };
    for seed in seeds {
        eprintln!("CRASH_SEED={seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed);
        let (mut machine, _) = start(&disk).unwrap();
        let mut ledger = Ledger { acknowledged: machine.create().unwrap(), ..Ledger::default() };
        for _ in 0..4 {
            if let Some(fault) = fault {
                disk.fail_after(rng.random_range(0..600), fault);
            }
            for _ in 0..3 {
                let _ = work(&machine, &mut ledger, &mut rng, 400);
            }
            machine.log.abandon();
            if fault.is_some() {
                disk.crash();
            } else {
                disk.kill();
            }
            let end;
            (machine, end) = recover(&disk, &mut rng);
            check(&machine, &mut ledger, end);
        }
        machine.log.abandon();
    }
}

#[test]
fn power_loss_leaves_a_whole_tree() {
    rounds(12, Some(Fault::PowerLoss));
}

#[test]
fn a_killed_process_leaves_a_whole_tree() {
    rounds(5, None);
}

#[test]
fn one_failed_call_leaves_a_whole_tree() {
    rounds(8, Some(Fault::Once));
}

#[test]
fn a_full_disk_leaves_a_whole_tree() {
    rounds(5, Some(Fault::DiskFull));
}
