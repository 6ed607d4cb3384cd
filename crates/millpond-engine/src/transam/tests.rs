//! Transactions over a real pool and log.

mod commits;
mod failing_disk;
mod old_snapshots;
mod recovery;
mod status_pages;
mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millpond_buffer::{BlockNumber, BufferError, Lsn, PageStore, RelationId, Wait};
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
fn ended_session_rolls_back_and_releases_everything() {
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

/// Thousands of ids in the smallest ring, while a transaction and a snapshot stay open.
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
    assert!(txns.ring.overflow.chunks().len() > 4);
    txns.maintain(&worker).unwrap();
    assert!(txns.ring.overflow.chunks().len() > 4, "the snapshot still needs them");
    txns.release_snapshot(&reader, held);
    txns.maintain(&worker).unwrap();
    assert_eq!(txns.ring.overflow.chunks(), []);
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
    assert_eq!(worker.txns().ring.overflow.chunks(), []);
    assert_eq!(status(&worker, xid), XidStatus::Aborted);
}

#[test]
fn full_status_ring_never_blocks_where_waiting_is_forbidden() {
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

/// Under one snapshot, a transaction is seen always or never. A snapshot sees earlier acknowledged
/// commits.
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
                        // Ask twice: the answer must not change under a snapshot.
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
