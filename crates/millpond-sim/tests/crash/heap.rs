//! Crashes of the heap and its transactions, on a disk that loses power or fails at any call.
//!
//! Transactions insert, replace, delete and lock rows, roll back, vacuum and truncate, while other
//! sessions share row locks with them. After recovery the heap must be intact, and no session may
//! hold a row. Its contents must be the state after the last commit that was waited for, or after
//! one of the later transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond_buffer::{BufferPool, Fork, Lsn, PoolConfig, RelationId};
use millpond_engine::access::Tid;
use millpond_engine::access::heap::check::check_heap;
use millpond_engine::access::heap::{
    ChangeOutcome, Changer, HeapRelation, HeapScan, InsertOptions, Intent, KeyChange, NewRow,
    WantedLock, delete, insert, insert_many, lock_row, lock_successor, truncate_end, update,
    vacuum,
};
use millpond_engine::ctx::{Ctx, Shared};
use millpond_engine::maintenance::checkpointer::{Cause, CheckpointParts, Checkpoints};
use millpond_engine::proc::ProcArray;
use millpond_engine::recovery::{Recovering, RedoFiles, RedoParts};
use millpond_engine::transam::{
    CommandId, Durability, LockStrength, Snapshot, Transactions, Xid, XidStatus,
};
use millpond_engine::wal::storage::create_fork;
use millpond_engine::wal::{Decoded, RmgrId};
use millpond_engine::{EngineConfig, EngineError, EngineResult};
use millpond_sim::vfs::{SimFs, VfsFault};
use rand::Rng;
use rand::rngs::StdRng;

use super::machine::{
    IO_ERROR, POWER_LOSS, Reclaiming, Startable, for_each_seed, log_config, recover, start, stores,
};

const SEGMENT: u64 = 1 << 17;
const SESSIONS: u16 = 8;
const RELATION: RelationId = RelationId::constant(50);

type Rows = BTreeMap<u32, Vec<u8>>;

struct Replay<'a>(&'a Transactions);

impl RedoParts for Replay<'_> {
    fn restore(&mut self, state: &[u8]) -> EngineResult<()> {
        if let Some(next) = state.first_chunk() {
            self.0.restore_next(Xid(u64::from_le_bytes(*next)));
        }
        Ok(())
    }

    fn redo(&mut self, record: &Decoded<'_>, _: &mut RedoFiles) -> EngineResult<()> {
        self.0.redo_saw(record.xid);
        if record.rmgr == RmgrId::Transaction {
            self.0.redo(record.xid, record.info, record.payload)?;
        }
        Ok(())
    }
}

struct Parts(Ctx);

impl CheckpointParts for Parts {
    fn wait_for_commits(&mut self) {
        self.0.shared().procs.wait_for_commits();
    }

    fn log_statuses(&mut self) -> EngineResult<()> {
        self.0.txns().checkpoint(&self.0)
    }

    fn has_committed(&mut self, xid: Xid) -> EngineResult<bool> {
        Ok(matches!(self.0.txns().status(&self.0, xid)?, XidStatus::Committed(_)))
    }

    fn state(&mut self) -> Vec<u8> {
        self.0.txns().next_xid().0.to_le_bytes().to_vec()
    }
}

struct Machine {
    shared: Shared,
    checkpoints: Arc<Checkpoints>,
    _reclaiming: Option<Reclaiming>,
}

impl Startable for Machine {
    fn start(disk: &SimFs, log_end: &mut Option<Lsn>) -> EngineResult<Self> {
        let (pages, store) = stores(disk, SEGMENT)?;
        let mut recovering = Recovering::open(store, &*pages, log_config(SEGMENT))?;
        let log = Arc::clone(recovering.log());
        *log_end = Some(log.insert_position());
        let result = (|| {
            let config = PoolConfig::new(24, SESSIONS as usize + 4);
            let pool = BufferPool::new(config, pages, log.clone())?;
            let procs = ProcArray::new(SESSIONS);
            let txns = Transactions::new(procs.clone(), 1 << 14, Xid::FIRST);
            recovering.redo(&pool, &mut Replay(&txns))?;
            let shared = Shared::new(pool, log.clone(), procs, txns);
            let ctx = Ctx::new(&shared, "startup")?;
            shared.txns.finish_recovery(&ctx)?;
            for fork in [Fork::Main, Fork::Fsm] {
                create_fork(&ctx, &shared.pool, Xid::INVALID, RELATION.fork(fork))?;
            }
            let parts = Box::new(Parts(Ctx::new(&shared, "checkpointer")?));
            let mut config = EngineConfig::new("/data");
            config.max_wal_bytes = 6 * SEGMENT;
            let checkpoints =
                Checkpoints::new(recovering, Arc::clone(&shared.pool), parts, &config)?;
            checkpoints.run(Cause::EndOfRecovery)?;
            let _reclaiming = Reclaiming::sometimes(disk, &shared.pool);
            Ok(Machine { shared, checkpoints, _reclaiming })
        })();
        if result.is_err() {
            log.abandon();
        }
        result
    }

    fn abandon(self) {
        self.shared.log.abandon();
    }
}

impl Machine {
    fn heap(&self) -> EngineResult<HeapRelation> {
        Ok(HeapRelation::open(&self.shared.pool, RELATION, 90, SESSIONS as usize)?)
    }
}

fn key_of(columns: &[u8]) -> u32 {
    u32::from_le_bytes(*columns.first_chunk().unwrap())
}

fn columns(key: u32, rng: &mut StdRng) -> Vec<u8> {
    let mut columns = key.to_le_bytes().to_vec();
    let len =
        if rng.random_bool(0.05) { rng.random_range(0..7000) } else { rng.random_range(0..300) };
    let fill: u8 = rng.random();
    columns.resize(4 + len, fill);
    columns
}

/// The rows that a new snapshot sees, and their TIDs.
fn visible(ctx: &Ctx, heap: &HeapRelation) -> EngineResult<BTreeMap<u32, (Tid, Vec<u8>)>> {
    let csn = ctx.txns().snapshot(ctx);
    let snapshot = Snapshot { csn, own: ctx.proc().xid(), command: CommandId(u32::MAX) };
    let mut scan = HeapScan::new(heap.clone());
    let mut rows = BTreeMap::new();
    let result = loop {
        match scan.next_page(ctx, &snapshot) {
            Ok(Some(page)) => {
                for (tid, columns) in page.iter() {
                    let before = rows.insert(key_of(columns), (tid, columns.to_vec()));
                    assert!(before.is_none(), "key {} twice", key_of(columns));
                }
            }
            Ok(None) => break Ok(rows),
            Err(error) => break Err(error),
        }
    };
    ctx.txns().release_snapshot(ctx, csn);
    result
}

fn only_rows(rows: BTreeMap<u32, (Tid, Vec<u8>)>) -> Rows {
    rows.into_iter().map(|(key, (_, columns))| (key, columns)).collect()
}

/// The states that a recovery may produce: after the last commit that was waited for, and after
/// each later one.
struct Ledger {
    states: Vec<Rows>,
    next_key: u32,
}

/// Sessions that share rows with the one that changes them, across several of its transactions.
struct Sharers<'a>([Ctx; 3], &'a HeapRelation);

impl Sharers<'_> {
    /// One of them locks a version that was committed when the caller looked, unless another
    /// session conflicts.
    fn lock(&self, tid: Tid, rng: &mut StdRng) -> EngineResult<()> {
        let ctx = &self.0[rng.random_range(0..self.0.len())];
        let by = Changer { xid: ctx.assign_xid()?, cid: CommandId(0) };
        let strength =
            if rng.random_bool(0.7) { LockStrength::KeyShare } else { LockStrength::Share };
        let mut outcome = lock_row(ctx, self.1, tid, WantedLock::hold(strength), by)?;
        while let ChangeOutcome::Follow { next, by: maker } = outcome {
            outcome = lock_successor(ctx, self.1, (next, maker), Intent::Hold, by)?;
        }
        Ok(())
    }

    /// Changes or locks a row; ends the transactions that conflict.
    fn after_them(
        &self,
        rng: &mut StdRng,
        attempt: impl Fn() -> EngineResult<ChangeOutcome>,
    ) -> EngineResult<ChangeOutcome> {
        loop {
            let xid = match attempt()? {
                ChangeOutcome::InProgress { xid, .. } => xid,
                outcome => return Ok(outcome),
            };
            let holder = self.0.iter().find(|ctx| ctx.proc().xid() == Some(xid)).unwrap();
            if rng.random() {
                holder.txns().commit(holder, &[], Durability::Background)?;
            } else {
                holder.txns().abort(holder, &[]);
            }
        }
    }
}

/// Runs one transaction; returns the rows after it.
fn transaction(
    ctx: &Ctx,
    sharers: &Sharers<'_>,
    ledger: &mut Ledger,
    rng: &mut StdRng,
) -> EngineResult<Rows> {
    let heap = sharers.1;
    let mut rows = visible(ctx, heap)?;
    let before: Vec<Tid> = rows.values().map(|row| row.0).collect();
    let xid = ctx.assign_xid()?;
    for command in 0..rng.random_range(1..6) {
        while rng.random_bool(0.4) && !before.is_empty() {
            sharers.lock(before[rng.random_range(0..before.len())], rng)?;
        }
        let by = Changer { xid, cid: CommandId(command) };
        let key = rng.random_range(0..ledger.next_key + 1);
        let found = rows.range(key..).next().map(|(&key, (tid, _))| (key, *tid));
        match (rng.random_range(0..10), found) {
            (0..=1, _) | (_, None) => {
                let new = columns(ledger.next_key, rng);
                let tid = insert(ctx, heap, NewRow { payload: &new, natts: 2 }, xid, by.cid)?;
                rows.insert(ledger.next_key, (tid, new));
                ledger.next_key += 1;
            }
            (2, _) => {
                let all: Vec<_> = (0..20).map(|n| columns(ledger.next_key + n, rng)).collect();
                let new: Vec<_> = all.iter().map(|payload| NewRow { payload, natts: 2 }).collect();
                let mut tids = Vec::new();
                insert_many(ctx, heap, &new, xid, by.cid, InsertOptions::default(), &mut tids)?;
                for (columns, tid) in all.into_iter().zip(tids) {
                    rows.insert(key_of(&columns), (tid, columns));
                }
                ledger.next_key += 20;
            }
            (3..=6, Some((key, tid))) => {
                let new = columns(key, rng);
                let row = NewRow { payload: &new, natts: 2 };
                let keys = if rng.random() { KeyChange::None } else { KeyChange::Plain };
                let update = || update(ctx, heap, tid, row, keys, by);
                let done = sharers.after_them(rng, update)?;
                let ChangeOutcome::Done { tid, .. } = done else { panic!("{done:?}") };
                rows.insert(key, (tid, new));
            }
            (7..=8, Some((key, tid))) => {
                let done = sharers.after_them(rng, || delete(ctx, heap, tid, by))?;
                assert!(matches!(done, ChangeOutcome::Done { .. }), "{done:?}");
                rows.remove(&key);
            }
            (_, Some((_, tid))) => {
                let strength = LockStrength::ALL[rng.random_range(0..4)];
                let lock = || lock_row(ctx, heap, tid, WantedLock::hold(strength), by);
                let done = sharers.after_them(rng, lock)?;
                assert!(matches!(done, ChangeOutcome::Done { .. }), "{done:?}");
            }
        }
    }
    Ok(only_rows(rows))
}

fn work(
    machine: &Machine,
    ledger: &mut Ledger,
    rng: &mut StdRng,
    steps: usize,
) -> EngineResult<()> {
    let ctx = Ctx::new(&machine.shared, "client")?;
    let heap = machine.heap()?;
    let sharer = || Ctx::new(&machine.shared, "client");
    let sharers = Sharers([sharer()?, sharer()?, sharer()?], &heap);
    for _ in 0..steps {
        let after = transaction(&ctx, &sharers, ledger, rng)?;
        if rng.random_bool(0.15) {
            ctx.txns().abort(&ctx, &[]);
        } else if rng.random_bool(0.5) {
            // From here on the commit may be durable, whatever the call returns.
            ledger.states.push(after.clone());
            ctx.txns().commit(&ctx, &[], Durability::Flush)?;
            ledger.states = vec![after];
        } else {
            ledger.states.push(after);
            ctx.txns().commit(&ctx, &[], Durability::Background)?;
        }
        if rng.random_bool(0.03) {
            // With an index pass that does nothing, or without one: both ways to free line
            // pointers.
            let mut none = |_: &dyn Fn(Tid) -> bool| Ok(());
            vacuum(&ctx, &heap, None, if rng.random() { Some(&mut none) } else { None })?;
            truncate_end(&ctx, &heap)?;
        }
        if rng.random_bool(0.02) {
            machine.checkpoints.run(Cause::Requested)?;
        }
    }
    Ok(())
}

fn check(machine: &Machine, ledger: &mut Ledger) {
    let ctx = Ctx::new(&machine.shared, "check").unwrap();
    let heap = machine.heap().unwrap();
    let next = ctx.txns().next_xid();
    check_heap(&ctx, &heap, next, &mut |problem| panic!("{problem}")).unwrap();
    let rows = only_rows(visible(&ctx, &heap).unwrap());
    let found = ledger.states.iter().rposition(|state| *state == rows);
    let Some(found) = found else {
        let last = ledger.states.last().unwrap();
        let differing: Vec<_> =
            (0..ledger.next_key).filter(|key| rows.get(key) != last.get(key)).take(20).collect();
        panic!("no state of {} fits; keys unlike the last: {differing:?}", ledger.states.len());
    };
    ledger.states = vec![ledger.states.swap_remove(found)];
    // No session holds a row any more.
    let by = Changer { xid: ctx.assign_xid().unwrap(), cid: CommandId(0) };
    for (tid, _) in visible(&ctx, &heap).unwrap().values() {
        let locked =
            lock_row(&ctx, &heap, *tid, WantedLock::hold(LockStrength::Update), by).unwrap();
        assert!(matches!(locked, ChangeOutcome::Done { .. }), "{locked:?}");
    }
    ctx.txns().abort(&ctx, &[]);
    // Vacuum can remove what crashes left behind, and changes no row.
    let stats = vacuum(&ctx, &heap, None, None).unwrap();
    assert_eq!((stats.live as usize, stats.not_yet_removable), (rows.len(), 0), "{stats:?}");
    assert_eq!(only_rows(visible(&ctx, &heap).unwrap()), rows);
}

fn rounds(count: u64, fault: Option<VfsFault>) {
    for_each_seed(count, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut machine: Machine = start(&disk);
        let mut ledger = Ledger { states: vec![Rows::new()], next_key: 0 };
        for _ in 0..4 {
            if let Some(fault) = fault {
                disk.fail_after(rng.random_range(0..500), fault);
            }
            match work(&machine, &mut ledger, rng, 120) {
                Ok(()) | Err(EngineError::InDoubt { .. } | EngineError::Wal(_)) => {}
                Err(EngineError::Buffer(_)) => {}
                Err(error) => panic!("unexpected: {error}"),
            }
            machine.abandon();
            if fault.is_some() {
                disk.crash();
            } else {
                disk.kill();
            }
            (machine, _) = recover(&disk, rng);
            check(&machine, &mut ledger);
        }
        machine.abandon();
    });
}

#[test]
fn power_loss_loses_nothing_acknowledged() {
    rounds(12, Some(POWER_LOSS));
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    rounds(6, None);
}

#[test]
fn one_failed_call_loses_nothing_acknowledged() {
    rounds(8, Some(IO_ERROR));
}

#[test]
fn a_full_disk_loses_nothing_acknowledged() {
    rounds(6, Some(VfsFault::DiskFull));
}
