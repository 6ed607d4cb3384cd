//! Transactions over a real pool and log: fates, snapshots, horizons, retirement, commits that fail, recovery.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millpond_buffer::{BlockNumber, Lsn, RelationId, Wait};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::ctx::Ctx;
use crate::error::EngineError;
use crate::lmgr::{LockMode, LockTag, LockWait};
use crate::testing::{Fixture, LOG_START};
use crate::wal::reader::{LogReader, Step};
use crate::wal::{FileLogStore, RmgrId};

fn commit(ctx: &Ctx) -> Option<Csn> {
    ctx.txns().commit(ctx, &[], Durability::Background).unwrap()
}

fn status(ctx: &Ctx, xid: Xid) -> XidStatus {
    ctx.txns().status(ctx, xid).unwrap()
}

#[test]
fn fates_and_snapshots_of_a_few_transactions() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let txns = a.txns().clone();
    let before = txns.snapshot(&b);
    let first = a.assign_xid().unwrap();
    assert_eq!(a.assign_xid().unwrap(), first);
    assert!(first.is_normal());
    assert_eq!(status(&b, first), XidStatus::InProgress);
    let csn = txns.commit(&a, &[], Durability::Flush).unwrap().unwrap();
    assert_eq!(status(&b, first), XidStatus::Committed(csn));
    assert_eq!(a.proc().xid(), None);
    let after = txns.snapshot(&b);
    assert!(before < csn && csn <= after);
    let second = a.assign_xid().unwrap();
    assert!(second > first);
    txns.abort(&a, &[]);
    assert_eq!(status(&b, second), XidStatus::Aborted);
    assert_eq!(commit(&a), None, "a transaction without changes has no number");
    assert_eq!(status(&b, Xid::FROZEN), XidStatus::Committed(Csn::FROZEN));
    assert_eq!(txns.horizon().csn, before);
    txns.release_snapshot(&b, before);
    assert_eq!(txns.horizon().csn, after);
    txns.release_snapshot(&b, after);
    let horizon = txns.horizon();
    assert_eq!((horizon.csn, horizon.oldest_running_xid), (txns.last_csn(), txns.next_xid()));
    assert_eq!(txns.recent_horizon(), horizon);
    let unknown = txns.status(&b, Xid(txns.next_xid().0 + 5));
    assert!(matches!(unknown, Err(EngineError::Corruption { .. })));
}

#[test]
fn a_session_that_ends_rolls_back_and_lets_go() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    a.lock(LockTag::Relation(7), LockMode::AccessExclusive).unwrap();
    a.txns().snapshot(&a);
    b.set_wait(Wait::Never);
    let table = LockTag::Relation(7);
    assert!(matches!(b.lock(table, LockMode::AccessShare), Err(EngineError::WouldBlock)));
    let nowait = b.lock_nowait(table, LockMode::AccessShare);
    assert!(matches!(nowait, Err(EngineError::LockNotAvailable { .. })));
    assert!(matches!(b.wait_for_xid(xid), Err(EngineError::WouldBlock)));
    drop(a);
    assert_eq!(status(&b, xid), XidStatus::Aborted);
    b.lock(table, LockMode::AccessShare).unwrap();
    b.wait_for_xid(xid).unwrap();
    assert_eq!(b.txns().horizon().oldest_running_xid, b.txns().next_xid());
}

/// Ids by the thousand through a ring of the smallest size, beside a transaction and a snapshot that last.
#[test]
fn statuses_outlive_the_ring() {
    let fixture = Fixture::with(8, 64, 1);
    let (worker, old, reader) = (fixture.ctx(), fixture.ctx(), fixture.ctx());
    let txns = worker.txns().clone();
    let seed = 11;
    let mut rng = StdRng::seed_from_u64(seed);
    let long_running = old.assign_xid().unwrap();
    let held = txns.snapshot(&reader);
    let mut fates = Vec::new();
    for round in 0..20_000u64 {
        let xid = worker.assign_xid().unwrap();
        let csn = if rng.random_range(0..3) > 0 {
            commit(&worker)
        } else {
            txns.abort(&worker, &[]);
            None
        };
        fates.push((xid, csn));
        if round % 5_000 == 0 {
            txns.checkpoint(&worker).unwrap();
        }
        let (xid, csn) = fates[rng.random_range(0..fates.len())];
        match (status(&reader, xid), csn) {
            (XidStatus::Committed(seen), Some(csn)) => {
                assert_eq!(seen, csn, "{xid} of seed {seed}: a held snapshot must tell them apart");
            }
            (XidStatus::Aborted, None) => {}
            other => panic!("{xid} of seed {seed}: {other:?}"),
        }
        assert_eq!(status(&reader, long_running), XidStatus::InProgress);
    }
    assert!(txns.ring.retired() > long_running, "it left the ring");
    let late = commit(&old).unwrap();
    assert_eq!(status(&reader, long_running), XidStatus::Committed(late));
    assert!(late > held);
    assert!(txns.ring.kept_chunks().len() > 4);
    txns.maintain(&worker).unwrap();
    assert!(txns.ring.kept_chunks().len() > 4, "the snapshot still needs them");
    txns.release_snapshot(&reader, held);
    txns.maintain(&worker).unwrap();
    assert_eq!(txns.ring.kept_chunks(), []);
    for (xid, csn) in &fates {
        let expected = csn.is_some();
        assert_eq!(status(&reader, *xid).is_committed(), expected, "{xid} of seed {seed}");
    }
    assert_eq!(status(&reader, long_running), XidStatus::Committed(Csn::FROZEN));
}

#[test]
fn a_long_transaction_may_abort_after_it_left_the_ring() {
    let fixture = Fixture::with(8, 64, 1);
    let (worker, old) = (fixture.ctx(), fixture.ctx());
    let xid = old.assign_xid().unwrap();
    for _ in 0..10_000 {
        worker.assign_xid().unwrap();
        commit(&worker);
    }
    assert!(worker.txns().ring.retired() > xid);
    assert_eq!(status(&worker, xid), XidStatus::InProgress);
    worker.txns().abort(&old, &[]);
    assert_eq!(status(&worker, xid), XidStatus::Aborted);
    worker.txns().maintain(&worker).unwrap();
    assert_eq!(worker.txns().ring.kept_chunks(), []);
    assert_eq!(status(&worker, xid), XidStatus::Aborted);
}

#[test]
fn a_full_ring_is_no_reason_to_wait_where_waiting_is_forbidden() {
    let fixture = Fixture::with(2, 64, 1);
    let ctx = fixture.ctx();
    ctx.set_wait(Wait::Never);
    let mut refused = 0;
    for _ in 0..10_000 {
        match ctx.assign_xid() {
            Ok(_) => {
                commit(&ctx);
            }
            Err(EngineError::WouldBlock) => {
                refused += 1;
                ctx.set_wait(Wait::Allowed);
                ctx.assign_xid().unwrap();
                commit(&ctx);
                ctx.set_wait(Wait::Never);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..10).contains(&refused), "{refused} refusals");
}

#[test]
fn commits_in_two_halves_and_in_the_background() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    let ticket = a.txns().commit_start(&a, &[], Durability::Flush).unwrap();
    assert!(!ticket.is_ready() && a.proc().is_in_commit());
    assert_eq!(status(&b, xid), XidStatus::InProgress, "not before it is durable");
    a.log().flush(ticket.lsn).unwrap();
    let csn = a.txns().commit_finish(&a, ticket).unwrap().unwrap();
    assert_eq!(status(&b, xid), XidStatus::Committed(csn));
    assert!(!a.proc().is_in_commit());
    a.assign_xid().unwrap();
    let ticket = a.txns().commit_start(&a, &[], Durability::Background).unwrap();
    assert!(ticket.is_ready());
    assert!(a.txns().commit_finish(&a, ticket).unwrap().is_some());
}

/// `commit_siblings`: counted are others that have changed something and wait for no lock.
#[test]
fn a_commit_lets_others_join_if_enough_are_at_work() {
    let fixture = Fixture::new();
    let ctxs = [fixture.ctx(), fixture.ctx(), fixture.ctx()];
    let waiter = fixture.ctx();
    let pause = |siblings| {
        let delay = Duration::from_micros(1);
        ctxs[0].set_commit_delay(CommitDelay { delay, siblings });
        ctxs[0].commit_pause() == delay
    };
    ctxs[0].assign_xid().unwrap();
    assert!(pause(0) && !pause(1), "one's own transaction does not count");
    ctxs[1].assign_xid().unwrap();
    ctxs[2].txns().snapshot(&ctxs[2]);
    assert!(pause(1) && !pause(2), "nor does one that only reads");
    waiter.assign_xid().unwrap();
    assert!(pause(2) && !pause(3));
    // One of them waits for a lock.
    let table = LockTag::Relation(7);
    ctxs[0].lock(table, LockMode::AccessExclusive).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || waiter.lock(table, LockMode::AccessShare).unwrap());
        while pause(2) {
            std::thread::yield_now();
        }
        assert!(pause(1));
        // Each commit that leads pauses or not, as it is set when it commits.
        let pauses = || ctxs[0].log().stats().pauses;
        let before = pauses();
        assert!(pause(1));
        ctxs[0].txns().commit(&ctxs[0], &[], Durability::Flush).unwrap();
        assert_eq!(pauses(), before + 1);
    });
    ctxs[0].assign_xid().unwrap();
    ctxs[0].set_commit_delay(CommitDelay::default());
    let before = ctxs[0].log().stats().pauses;
    ctxs[0].txns().commit(&ctxs[0], &[], Durability::Flush).unwrap();
    assert_eq!(ctxs[0].log().stats().pauses, before);
}

#[test]
fn a_session_that_goes_away_in_the_middle_of_a_commit_has_committed() {
    fn is_send<T: Send>() {}
    is_send::<Ctx>();
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    let _ticket = a.txns().commit_start(&a, &[], Durability::Flush).unwrap();
    drop(a);
    assert!(status(&b, xid).is_committed());
    b.txns().checkpoint(&b).unwrap();
}

#[test]
fn a_commit_under_a_failing_log_is_in_doubt() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    let ticket = a.txns().commit_start(&a, &[], Durability::Flush).unwrap();
    a.lock(LockTag::Relation(7), LockMode::AccessExclusive).unwrap();
    let waiter = std::thread::spawn(move || (b.wait_for_xid(xid), b));
    while !a.locks().list().iter().any(|lock| !lock.granted) {
        std::thread::yield_now();
    }
    fixture.shared.log.stop("a test");
    if fixture.shared.log.flushed() >= ticket.lsn {
        // The log's thread was quicker than the test.
        return;
    }
    let finished = a.txns().commit_finish(&a, ticket);
    assert!(matches!(finished, Err(EngineError::InDoubt { .. })), "{finished:?}");
    let (waited, b) = waiter.join().unwrap();
    assert!(matches!(waited, Err(EngineError::InDoubt { .. })), "{waited:?}");
    assert_eq!(status(&b, xid), XidStatus::InProgress);
    assert!(a.locks().list().is_empty());
    a.assign_xid().unwrap();
    assert!(matches!(
        a.txns().commit_start(&a, &[], Durability::Flush),
        Err(EngineError::InDoubt { .. })
    ));
}

#[test]
fn waiters_wake_when_the_transaction_ends() {
    let fixture = Fixture::new();
    let runner = fixture.ctx();
    for round in 0..50 {
        let xid = runner.assign_xid().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let ctx = fixture.ctx();
                scope.spawn(move || {
                    ctx.wait_for_xid(xid).unwrap();
                    assert!(!status(&ctx, xid).is_in_progress());
                });
            }
            if round % 2 == 0 {
                commit(&runner);
            } else {
                runner.txns().abort(&runner, &[]);
            }
        });
    }
    assert!(runner.locks().list().is_empty());
}

#[test]
fn rows_are_changed_in_the_order_of_arrival() {
    let fixture = Fixture::new();
    let writer = fixture.ctx();
    let xid = writer.assign_xid().unwrap();
    let order = AtomicU64::new(0);
    let tid = crate::access::Tid::new(BlockNumber(3), 4);
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let (ctx, order) = (fixture.ctx(), &order);
            let number = ctx.no();
            scope.spawn(move || {
                let held = ctx.wait_for_row(16384, tid, LockStrength::Update, xid).unwrap();
                assert_eq!(order.fetch_add(1, Ordering::SeqCst), turn);
                drop(held);
            });
            while !writer.locks().list().iter().any(|l| !l.granted && l.session == number) {
                std::thread::yield_now();
            }
        }
        commit(&writer);
    });
    assert!(writer.locks().list().is_empty());
    assert!(
        writer.wait_for_row(16384, tid, LockStrength::Update, xid).is_ok(),
        "nobody is in the way"
    );
}

#[test]
fn two_transactions_that_wait_for_each_other_are_a_deadlock() {
    let fixture = Fixture::new();
    fixture.shared.locks.set_deadlock_timeout(Duration::from_millis(10));
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let (xa, xb) = (a.assign_xid().unwrap(), b.assign_xid().unwrap());
    let run = |ctx: Ctx, other: Xid| {
        let result = ctx.wait_for_xid(other);
        ctx.txns().abort(&ctx, &[]);
        result
    };
    let results = std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(move || run(a, xb)), scope.spawn(move || run(b, xa)));
        [a.join().unwrap(), b.join().unwrap()]
    });
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let EngineError::Deadlock { detail } = &failed[0] else { panic!("{failed:?}") };
    for line in detail.lines() {
        assert!(line.contains("waits for ShareLock on transaction "), "{line}");
    }
}

#[test]
fn row_waits_time_out_after_lock_timeout() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    b.set_lock_timeout(Some(Duration::from_millis(5)));
    assert!(matches!(b.wait_for_xid(xid), Err(EngineError::LockTimeout)));
    let until = LockWait::Until(Instant::now());
    assert!(matches!(b.txns().wait_for(&b, xid, until), Err(EngineError::LockTimeout)));
}

/// A ledger in memory: each transaction notes its id in two places; no snapshot may see it in one only.
#[test]
fn snapshots_are_consistent_under_concurrent_commits() {
    const WRITERS: usize = 3;
    const ROUNDS: usize = 4_000;
    let fixture = Fixture::with(8, 64, 1);
    let ledger: Vec<[AtomicU64; 2]> = (0..WRITERS).map(|_| Default::default()).collect();
    let stop = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (ledger, stop, acknowledged) = (&ledger, &stop, &acknowledged);
        let writers: Vec<_> = (0..WRITERS)
            .map(|index| {
                let ctx = fixture.ctx();
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let xid = ctx.assign_xid().unwrap();
                        ledger[index][0].store(xid.0, Ordering::Release);
                        ledger[index][1].store(xid.0, Ordering::Release);
                        let csn = commit(&ctx).unwrap();
                        acknowledged.fetch_max(csn.0, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            let ctx = fixture.ctx();
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at_least = acknowledged.load(Ordering::SeqCst);
                    let csn = ctx.txns().snapshot(&ctx);
                    assert!(csn.0 >= at_least, "an acknowledged commit is not seen");
                    assert!(ctx.txns().recent_horizon().csn <= csn);
                    let sees = |xid: u64| {
                        matches!(status(&ctx, Xid(xid)), XidStatus::Committed(c) if c <= csn)
                    };
                    for pair in ledger {
                        let xid = pair[1].load(Ordering::Acquire);
                        // The same question twice: the answer must not change under a snapshot.
                        if xid != 0 {
                            let first = sees(xid);
                            std::thread::yield_now();
                            assert_eq!(first, sees(xid), "{xid} under {csn}");
                        }
                    }
                    ctx.txns().release_snapshot(&ctx, csn);
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Replays what a fixture's log has after `from` into a fresh set of transactions over the same pages.
fn restart(fixture: &Fixture, from: Lsn) -> (crate::ctx::Shared, Vec<RelationId>) {
    fixture.shared.log.flush(fixture.shared.log.insert_position()).unwrap();
    let end = fixture.shared.log.flushed();
    fixture.shared.log.abandon();
    let files = Arc::new(FileLogStore::open(fixture.directory.path(), 1 << 20).unwrap());
    let path = fixture.directory.path();
    let shared = Fixture::assemble(8, 64, 1, &fixture.store, path, end, 2);
    let mut reader = LogReader::new(files, from).unwrap();
    let mut dropped = Vec::new();
    while let Step::Record(record) = reader.next().unwrap() {
        shared.txns.redo_saw(record.xid);
        if record.rmgr == RmgrId::Transaction {
            dropped.extend(shared.txns.redo(record.xid, record.info, record.payload).unwrap());
        }
    }
    let ctx = Ctx::new(&shared, "startup").unwrap();
    shared.txns.finish_recovery(&ctx).unwrap();
    (shared, dropped)
}

#[test]
fn recovery_knows_who_committed() {
    let fixture = Fixture::with(8, 64, 1);
    let file = RelationId::constant(20_000);
    let (mut committed, mut lost) = (Vec::new(), Vec::new());
    {
        let (a, b) = (fixture.ctx(), fixture.ctx());
        for round in 0..3_000 {
            let xid = a.assign_xid().unwrap();
            if round % 3 == 0 {
                a.txns().abort(&a, &[]);
                lost.push(xid);
            } else {
                let files: &[RelationId] = if round == 100 { &[file] } else { &[] };
                a.txns().commit(&a, files, Durability::Background).unwrap();
                committed.push(xid);
            }
        }
        lost.push(b.assign_xid().unwrap());
        // What a crash leaves: `b` never ends. Dropping it here only adds an abort record.
    }
    let (shared, dropped) = restart(&fixture, LOG_START);
    assert_eq!(dropped, [file]);
    let ctx = Ctx::new(&shared, "test").unwrap();
    for xid in &committed {
        assert_eq!(status(&ctx, *xid), XidStatus::Committed(Csn::FROZEN));
    }
    for xid in &lost {
        assert_eq!(status(&ctx, *xid), XidStatus::Aborted);
    }
    let next = ctx.assign_xid().unwrap();
    assert!(committed.iter().chain(&lost).all(|xid| *xid < next), "no id is given out twice");
    drop(ctx);
    shared.log.abandon();
}

#[test]
fn a_checkpoint_makes_earlier_commit_records_unnecessary() {
    let fixture = Fixture::with(8, 64, 1);
    let (ctx, running) = (fixture.ctx(), fixture.ctx());
    let open = running.assign_xid().unwrap();
    let early: Vec<Xid> = (0..1_500)
        .map(|_| {
            let xid = ctx.assign_xid().unwrap();
            commit(&ctx);
            xid
        })
        .collect();
    let redo = ctx.log().begin_checkpoint(ctx.log().maintenance_stripe(), &[]).unwrap().start;
    ctx.txns().checkpoint(&ctx).unwrap();
    ctx.pool().write_dirty(ctx.buffers(), |_| {}).unwrap();
    let late = ctx.assign_xid().unwrap();
    commit(&ctx);
    let page = ctx.buffers().read(
        &ctx.pool().relation(clog::CLOG).unwrap(),
        BlockNumber(0),
        Wait::Allowed,
        |page| millpond_buffer::PageRead::u16(page, 12),
    );
    assert_eq!(page.unwrap(), clog::CLOG_PAGE_KIND);
    drop((ctx, running));
    let (shared, _) = restart(&fixture, redo);
    let ctx = Ctx::new(&shared, "test").unwrap();
    for xid in &early {
        assert_eq!(status(&ctx, *xid), XidStatus::Committed(Csn::FROZEN), "{xid}");
    }
    assert_eq!(status(&ctx, late), XidStatus::Committed(Csn::FROZEN));
    assert_eq!(status(&ctx, open), XidStatus::Aborted);
    assert!(ctx.assign_xid().unwrap() > late);
    drop(ctx);
    shared.log.abandon();
}

#[test]
fn a_start_that_would_give_ids_out_again_is_refused() {
    let fixture = Fixture::with(8, 64, 1);
    {
        let ctx = fixture.ctx();
        for _ in 0..3_000 {
            ctx.assign_xid().unwrap();
            commit(&ctx);
        }
        ctx.txns().checkpoint(&ctx).unwrap();
        ctx.log().flush(ctx.log().insert_position()).unwrap();
        ctx.pool().write_dirty(ctx.buffers(), |_| {}).unwrap();
    }
    let next = fixture.shared.txns.next_xid();
    fixture.shared.log.abandon();
    let end = fixture.shared.log.flushed();
    for (known, is_right) in [(Xid::FIRST, false), (Xid(next.0 - 1_500), false), (next, true)] {
        let path = fixture.directory.path();
        let shared = Fixture::assemble(8, 64, 1, &fixture.store, path, end, 2);
        shared.txns.restore_next(known);
        let ctx = Ctx::new(&shared, "startup").unwrap();
        let result = shared.txns.finish_recovery(&ctx);
        assert_eq!(result.is_ok(), is_right, "{known}: {result:?}");
        drop(ctx);
        shared.log.abandon();
    }
}

#[test]
fn malformed_transaction_records_are_errors() {
    let fixture = Fixture::new();
    let shared = Fixture::assemble(
        2,
        64,
        1,
        &fixture.store,
        tempfile::tempdir().unwrap().path(),
        LOG_START,
        1,
    );
    let txns = &shared.txns;
    assert!(txns.redo(Xid(5), 9, &[]).is_err());
    assert!(txns.redo(Xid(5), record::INFO_COMMIT, &[1, 2, 3]).is_err());
    assert!(txns.redo(Xid::NONE, record::INFO_NEXT_XID, &[0; 7]).is_err());
    assert!(fixture.shared.txns.redo(Xid(5), record::INFO_COMMIT, &[0; 12]).is_err(), "too late");
    shared.log.abandon();
}
