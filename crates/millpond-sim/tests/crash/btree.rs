//! Crashes of the B+tree: insertions with splits, and vacuums, on a disk that loses power or fails
//! at any call.
//!
//! After recovery the tree must be intact. It must hold every entry whose insertion was in the
//! durable log, and nothing that was never inserted.

use std::collections::BTreeMap;

use millpond_buffer::{
    BlockNumber, BufferSession, ExclusivePage, Lsn, RelHandle, RelationId, Wait,
};
use millpond_engine::EngineResult;
use millpond_engine::access::Tid;
use millpond_engine::access::btree::{self, Cursor, Direction, Env, InsertOutcome, Stamp};
use millpond_engine::maintenance::checkpointer::Cause;
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::storage::create_fork;
use millpond_engine::wal::{Record, log_and_apply};
use millpond_sim::vfs::{SimFs, VfsFault};
use rand::Rng;
use rand::rngs::StdRng;

use super::machine::{
    IO_ERROR, Machine, One, POWER_LOSS, Startable, for_each_seed, recover, start,
};

const SEGMENT: u64 = 1 << 17;

struct Tree(Machine);

impl Startable for Tree {
    fn start(disk: &SimFs, log_end: &mut Option<Lsn>) -> EngineResult<Self> {
        Machine::recovered(disk, SEGMENT, 24, log_end).map(Tree)
    }

    fn abandon(self) {
        self.0.log.abandon();
    }
}

struct TestEnv<'a> {
    log: One<'a>,
    session: BufferSession,
}

impl Env for TestEnv<'_> {
    fn buffers(&self) -> &BufferSession {
        &self.session
    }
    fn wait(&self) -> Wait {
        Wait::Allowed
    }
    /// With one thread, no other operation is ever in progress.
    fn is_over(&self, _: Stamp) -> bool {
        true
    }
    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn> {
        log_and_apply(&self.log, pages, record)
    }
}

impl Tree {
    fn env(&self) -> EngineResult<(TestEnv<'_>, RelHandle)> {
        let env = TestEnv { log: One(&self.0.log, SessionNo(0)), session: self.0.pool.session()? };
        Ok((env, self.0.pool.relation(RelationId::constant(5).main())?))
    }

    fn create(&self) -> EngineResult<Lsn> {
        let Machine { log, pool, .. } = &self.0;
        let rel = RelationId::constant(5).main();
        create_fork(&One(log, SessionNo(0)), pool, Xid(1), rel)?;
        let (env, rel) = self.env()?;
        btree::create(&env, &rel)?;
        log.flush(log.insert_position())?;
        Ok(log.insert_position())
    }
}

/// An operation, and the log positions before and after it. `after` is `None` if it failed.
struct Op {
    change: Change,
    before: Lsn,
    after: Option<Lsn>,
}

enum Change {
    Insert(Vec<u8>, u32),
    /// Removes all entries of one part of the key space.
    Vacuum(u32),
}

/// The number of parts of the key space. A vacuum of one part leaves empty pages.
const PARTS: u32 = 8;

fn part(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761) / (u32::MAX / PARTS + 1)
}

#[derive(Default)]
struct Ledger {
    /// The entries known to be in the tree.
    base: BTreeMap<Vec<u8>, u32>,
    ops: Vec<Op>,
    acknowledged: Lsn,
}

/// Keys that are long and uneven enough for many splits.
fn key(n: u32) -> Vec<u8> {
    let mixed = n.wrapping_mul(2_654_435_761);
    let mut key = mixed.to_be_bytes().to_vec();
    key.resize(4 + (mixed % 300) as usize, n as u8);
    key
}

fn tid(n: u32) -> Tid {
    Tid::new(BlockNumber(n), 1)
}

fn work(tree: &Tree, ledger: &mut Ledger, rng: &mut StdRng, steps: usize) -> EngineResult<()> {
    let (env, rel) = tree.env()?;
    for _ in 0..steps {
        let before = tree.0.log.insert_position();
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
        let after = done.is_ok().then(|| tree.0.log.insert_position());
        ledger.ops.push(Op { change, before, after });
        done?;
        if rng.random_bool(0.1) {
            // The flushed position, not a later one: a checkpoint may insert meanwhile.
            let upto = tree.0.log.insert_position();
            tree.0.log.flush(upto)?;
            ledger.acknowledged = upto;
        }
        if rng.random_bool(0.005) {
            tree.0.checkpoints.run(Cause::Requested)?;
        }
    }
    Ok(())
}

/// Checks the recovered tree against the operations, given that the log ended at `end`.
fn check(tree: &Tree, ledger: &mut Ledger, end: Lsn) {
    assert!(end >= ledger.acknowledged, "the log ends at {end}, before what was acknowledged");
    // For each entry: whether it must be there, and whether it may be there.
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
    let (env, rel) = tree.env().unwrap();
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
    assert!(found.keys().all(|key| expected.contains_key(key)), "an entry that was never inserted");
    ledger.base = found;
    ledger.acknowledged = Lsn::ZERO;
}

fn rounds(count: u64, fault: Option<VfsFault>) {
    for_each_seed(count, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut tree: Tree = start(&disk);
        let mut ledger = Ledger { acknowledged: tree.create().unwrap(), ..Ledger::default() };
        for _ in 0..4 {
            if let Some(fault) = fault {
                disk.fail_after(rng.random_range(0..600), fault);
            }
            for _ in 0..3 {
                let _ = work(&tree, &mut ledger, rng, 400);
            }
            tree.abandon();
            if fault.is_some() {
                disk.crash();
            } else {
                disk.kill();
            }
            let end;
            (tree, end) = recover(&disk, rng);
            check(&tree, &mut ledger, end);
        }
        tree.abandon();
    });
}

#[test]
fn power_loss_leaves_a_whole_tree() {
    rounds(12, Some(POWER_LOSS));
}

#[test]
fn a_killed_process_leaves_a_whole_tree() {
    rounds(5, None);
}

#[test]
fn one_failed_call_leaves_a_whole_tree() {
    rounds(8, Some(IO_ERROR));
}

#[test]
fn a_full_disk_leaves_a_whole_tree() {
    rounds(5, Some(VfsFault::DiskFull));
}
