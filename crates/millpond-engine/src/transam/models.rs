//! Loom models of the small protocols: every interleaving, and every value that a load may return.
//!
//! `cargo xtask loom` runs them. Each test names the rule of README.md that it checks.
//!
//! To find the interleavings worth trying, loom uses the last access to each atomic before a
//! conflicting one. A thread that loads a word and then stores it hides other threads' earlier
//! loads of it. So such threads run first here, on the test's own thread, and readers are spawned.

use std::sync::Arc;

use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::thread;

use super::chunk::CHUNK;
use super::clock::CommitClock;
use super::overflow::Found;
use super::ring::StatusRing;
use super::snapshot::XidStatus;
use crate::ids::{Csn, Xid};
use crate::proc::ProcArray;

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

fn commit(ring: &StatusRing, clock: &CommitClock, xid: Xid) -> Csn {
    let word = ring.mark_committing(xid).expect("running");
    let csn = clock.draw();
    word.set_committed(csn);
    csn
}

/// Rule 4: a snapshot sees a transaction as committed exactly if its number is part of the
/// snapshot, for every interleaving of reader and committer. No thread waits for ever.
#[test]
fn loom_commit_and_snapshot_agree() {
    model(|| {
        let shared = Arc::new((StatusRing::new(1, Xid::FIRST), CommitClock::new()));
        let xid = shared.0.draw();
        let committer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || commit(&shared.0, &shared.1, xid))
        };
        let snapshot = shared.1.load();
        let found = shared.0.find(xid);
        let csn = committer.join().unwrap();
        match found {
            Found::Status(XidStatus::InProgress) => assert!(snapshot < csn, "a commit is missed"),
            Found::Status(XidStatus::Committed(seen)) => assert_eq!(seen, csn),
            other => panic!("{other:?}"),
        }
    });
}

/// Rule 4 again: two commits are seen in the order of their numbers.
#[test]
fn loom_commits_are_seen_in_order() {
    model(|| {
        let shared = Arc::new((StatusRing::new(1, Xid::FIRST), CommitClock::new()));
        let (first, second) = (shared.0.draw(), shared.0.draw());
        let spawn = |xid| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || commit(&shared.0, &shared.1, xid))
        };
        let (a, b) = (spawn(first), spawn(second));
        let snapshot = shared.1.load();
        let sees = |xid| match shared.0.find(xid) {
            Found::Status(XidStatus::Committed(csn)) => csn <= snapshot,
            _ => false,
        };
        let (sees_first, sees_second) = (sees(first), sees(second));
        let (a, b) = (a.join().unwrap(), b.join().unwrap());
        assert_eq!(sees_first, a <= snapshot);
        assert_eq!(sees_second, b <= snapshot);
    });
}

/// Rule 5: no horizon passes a snapshot that is held.
#[test]
fn loom_horizon_never_passes_a_snapshot() {
    model(|| {
        let procs = ProcArray::new(2);
        let clock = Arc::new(CommitClock::new());
        let committer = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || clock.draw())
        };
        let vacuum = {
            let (procs, clock) = (Arc::clone(&procs), Arc::clone(&clock));
            thread::spawn(move || procs.oldest_snapshot(clock.load()))
        };
        let proc = procs.register("model").unwrap();
        let snapshot = proc.publish_snapshot(|| clock.load());
        committer.join().unwrap();
        assert!(vacuum.join().unwrap() <= snapshot);
    });
}

/// Rule 6: no transaction below the oldest running id is running.
#[test]
fn loom_oldest_running_id_never_passes_a_transaction() {
    model(|| {
        let procs = ProcArray::new(2);
        let ring = Arc::new(StatusRing::new(1, Xid::FIRST));
        let vacuum = {
            let (procs, ring) = (Arc::clone(&procs), Arc::clone(&ring));
            thread::spawn(move || procs.oldest_xid(ring.next()))
        };
        let proc = procs.register("model").unwrap();
        proc.announce_xid(ring.next());
        let xid = ring.draw();
        proc.publish_xid(Some(xid));
        assert!(vacuum.join().unwrap() <= xid);
    });
}

/// A ring that is full until one retirement, and the first id in it.
fn full_ring() -> (StatusRing, Xid) {
    let ring = StatusRing::new(1, Xid::FIRST);
    let first = ring.draw();
    for _ in 1..ring.size() {
        ring.draw();
    }
    (ring, first)
}

/// Rule 3: a reader never takes the word of the slot's next transaction for its own.
#[test]
fn loom_ring_retirement_against_a_reader() {
    model(|| {
        let (ring, xid) = full_ring();
        let clock = CommitClock::new();
        for id in xid.0..xid.0 + CHUNK {
            commit(&ring, &clock, Xid(id));
        }
        let horizon = clock.load();
        let ring = Arc::new(ring);
        let reader = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.find(xid))
        };
        let chunk = ring.oldest_chunk().expect("all were drawn");
        let bits = ring.committed_in(chunk);
        ring.retire(chunk, &bits, horizon);
        assert!(ring.room() > 0);
        assert_eq!(ring.draw().0, xid.0 + ring.size());
        match reader.join().unwrap() {
            Found::Clog | Found::Status(XidStatus::Committed(_)) => {}
            other => panic!("a committed transaction was {other:?}"),
        }
    });
}

/// Rule 3: a transaction leaves the ring while it commits. Each snapshot with its number sees it.
#[test]
fn loom_ring_retirement_against_a_committer() {
    model(|| {
        let (ring, xid) = full_ring();
        let clock = CommitClock::new();
        for id in xid.0 + 1..xid.0 + CHUNK {
            assert!(ring.set_aborted(Xid(id)));
        }
        let shared = Arc::new((ring, clock));
        let committer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || commit(&shared.0, &shared.1, xid))
        };
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || (shared.1.load(), shared.0.find(xid)))
        };
        let chunk = shared.0.oldest_chunk().expect("all were drawn");
        let bits = shared.0.committed_in(chunk);
        shared.0.retire(chunk, &bits, Csn::FROZEN);
        shared.0.draw();
        let csn = committer.join().unwrap();
        let (snapshot, found) = reader.join().unwrap();
        match found {
            Found::Status(XidStatus::InProgress) => assert!(snapshot < csn, "a commit is missed"),
            Found::Status(XidStatus::Committed(seen)) => assert_eq!(seen, csn),
            other => panic!("{other:?}"),
        }
        assert_eq!(shared.0.find(xid), Found::Status(XidStatus::Committed(csn)));
    });
}

/// Rule 8: a checkpoint that has begun behind a commit record finds the transaction's status.
#[test]
fn loom_checkpoint_waits_for_commits_before_its_redo_point() {
    model(|| {
        let procs = ProcArray::new(1);
        let proc = procs.register("model").unwrap();
        let log = Arc::new(AtomicU64::new(0));
        let status = Arc::new(AtomicU64::new(0));
        let checkpoint = {
            let (procs, log, status) = (Arc::clone(&procs), Arc::clone(&log), Arc::clone(&status));
            thread::spawn(move || {
                let redo = log.fetch_add(1, Ordering::Relaxed);
                procs.wait_for_commits();
                (redo, status.load(Ordering::Relaxed))
            })
        };
        proc.enter_commit();
        let record = log.fetch_add(1, Ordering::Relaxed);
        status.store(1, Ordering::Relaxed);
        proc.leave_commit();
        let (redo, seen) = checkpoint.join().unwrap();
        assert!(record > redo || seen == 1, "a commit before the redo point is lost");
    });
}

/// lmgr rule 6: a thread that materialises the lock on an id sees the end of the transaction, or
/// the ending transaction sees the lock.
#[test]
fn loom_end_of_transaction_against_a_waiter() {
    model(|| {
        let procs = ProcArray::new(1);
        let runner = procs.register("model").unwrap();
        let no = runner.no();
        let ended = Arc::new(AtomicU64::new(0));
        let waiter = {
            let (procs, ended) = (Arc::clone(&procs), Arc::clone(&ended));
            thread::spawn(move || {
                procs.set_xid_awaited(no);
                ended.load(Ordering::Acquire) == 1
            })
        };
        ended.store(1, Ordering::Release);
        let is_awaited = runner.take_xid_awaited();
        assert!(waiter.join().unwrap() || is_awaited, "the waiter would sleep for ever");
    });
}
