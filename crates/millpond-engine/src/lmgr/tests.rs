//! Conflicts, owners, waits, deadlocks, races. Schedules of one thread are in `schedules.rs`.

mod reporting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::access::heap::visibility::Fates;
use crate::proc::{Interrupt, ProcArray, ProcHandle};
use crate::testing::Hearer;
use crate::transam::{Durability, Xid};

fn setup(sessions: u16) -> (Arc<LockManager>, Vec<ProcHandle>) {
    let procs = ProcArray::new(sessions);
    let manager = LockManager::new(procs.clone());
    let handles = (0..sessions).map(|_| procs.register("test").unwrap()).collect();
    (manager, handles)
}

const TABLE: LockTag = LockTag::Relation(16384);
const KEY: LockTag = LockTag::Advisory { high: 0, low: 7, two_keys: false };

#[test]
fn nowait_requests_fail_exactly_on_conflicts() {
    let (manager, procs) = setup(2);
    for held in LockMode::ALL {
        for wanted in LockMode::ALL {
            for tag in [TABLE, KEY] {
                manager.acquire(&procs[0], tag, held, LockWait::Never).unwrap();
                let got = manager.acquire(&procs[1], tag, wanted, LockWait::Never);
                assert_eq!(got.is_err(), held.conflicts_with(wanted), "{held}, {wanted}");
                manager.release_all(&procs[0]);
                manager.release_all(&procs[1]);
                assert!(manager.list().is_empty());
            }
        }
    }
}

#[test]
fn locks_are_counted_and_have_owners() {
    let (manager, procs) = setup(2);
    let (me, other) = (&procs[0], &procs[1]);
    let exclusive = LockMode::Exclusive;
    let acquire = |owner| manager.acquire_for(me, owner, KEY, exclusive, LockWait::Never).unwrap();
    assert_eq!(acquire(LockOwner::Session), Acquired::New);
    assert_eq!(acquire(LockOwner::Transaction), Acquired::AlreadyHeld);
    assert_eq!(acquire(LockOwner::Session), Acquired::AlreadyHeld);
    manager.release_transaction(me);
    assert!(!manager.release(me, LockOwner::Transaction, KEY, exclusive));
    assert!(manager.release(me, LockOwner::Session, KEY, exclusive));
    assert!(manager.holds(me, KEY, exclusive));
    assert!(manager.acquire(other, KEY, exclusive, LockWait::Never).is_err());
    assert!(manager.release(me, LockOwner::Session, KEY, exclusive));
    assert!(manager.acquire(other, KEY, exclusive, LockWait::Never).is_ok());
}

#[test]
fn more_weak_locks_than_slots_spill_into_the_table() {
    let (manager, procs) = setup(2);
    for relation in 0..40 {
        let tag = LockTag::Relation(relation);
        manager.acquire(&procs[0], tag, LockMode::AccessShare, LockWait::Never).unwrap();
    }
    let fast = manager.list().iter().filter(|lock| lock.fast_path).count();
    assert_eq!((fast, manager.list().len()), (super::fast::SLOTS, 40));
    for relation in 0..40 {
        let tag = LockTag::Relation(relation);
        let strong = manager.acquire(&procs[1], tag, LockMode::AccessExclusive, LockWait::Never);
        assert!(matches!(strong, Err(LockError::WouldBlock { .. })));
    }
    manager.release_transaction(&procs[0]);
    assert!(manager.list().is_empty());
    // Slots are free again, and no counter was left raised.
    manager.acquire(&procs[0], LockTag::Relation(3), LockMode::RowShare, LockWait::Never).unwrap();
    assert!(manager.list()[0].fast_path);
}

/// Waits until a session is in a queue.
fn until_waiting(manager: &LockManager, proc_no: crate::transam::SessionNo) {
    while !manager.list().iter().any(|l| !l.granted && l.session == proc_no) {
        std::thread::yield_now();
    }
}

#[test]
fn a_deadlock_of_three_names_every_party() {
    let (manager, procs) = setup(3);
    manager.set_deadlock_timeout(Duration::from_millis(20));
    let keys: Vec<LockTag> =
        (0..3).map(|low| LockTag::Advisory { high: 0, low, two_keys: true }).collect();
    for (proc, key) in procs.iter().zip(&keys) {
        manager.acquire(proc, *key, LockMode::Exclusive, LockWait::Never).unwrap();
    }
    let victims = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (index, proc) in procs.into_iter().enumerate() {
            let (manager, keys, victims) = (&manager, &keys, &victims);
            scope.spawn(move || {
                let key = keys[(index + 1) % 3];
                match manager.acquire(&proc, key, LockMode::Exclusive, LockWait::Forever) {
                    Ok(_) => {}
                    Err(LockError::Deadlock { detail }) => {
                        victims.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(detail.lines().count(), 3, "{detail}");
                        for process in 1..=3 {
                            assert!(detail.contains(&format!("Process {process} waits for")));
                            assert!(detail.contains(&format!("blocked by process {process}.")));
                        }
                        assert!(detail.contains("ExclusiveLock on advisory lock [5,0,"));
                    }
                    Err(error) => panic!("{error}"),
                }
                manager.release_all(&proc);
            });
        }
    });
    assert_eq!(victims.load(Ordering::Relaxed), 1);
    assert!(manager.list().is_empty());
}

#[test]
fn a_cycle_through_the_queue_is_dissolved_by_overtaking() {
    // A holds Share on K1. B waits for Exclusive on K1. C, which holds K2, wants Share on K1 and
    // queues behind B. A wants K2. C may overtake B, so no session has to fail.
    let (manager, procs) = setup(3);
    manager.set_deadlock_timeout(Duration::from_millis(20));
    let key = |low| LockTag::Advisory { high: 0, low, two_keys: true };
    let [a, b, c]: [ProcHandle; 3] = procs.try_into().unwrap_or_else(|_| unreachable!());
    manager.acquire(&a, key(1), LockMode::Share, LockWait::Never).unwrap();
    manager.acquire(&c, key(2), LockMode::Exclusive, LockWait::Never).unwrap();
    std::thread::scope(|scope| {
        let m = &manager;
        let b_no = b.no();
        scope.spawn(move || {
            m.acquire(&b, key(1), LockMode::Exclusive, LockWait::Forever).unwrap();
            m.release_all(&b);
        });
        until_waiting(m, b_no);
        let a_no = a.no();
        scope.spawn(move || {
            m.acquire(&a, key(2), LockMode::Share, LockWait::Forever).unwrap();
            m.release_all(&a);
        });
        until_waiting(m, a_no);
        scope.spawn(move || {
            m.acquire(&c, key(1), LockMode::Share, LockWait::Forever).unwrap();
            m.release_all(&c);
        });
    });
    assert!(manager.list().is_empty());
}

#[test]
fn waits_end_by_timeout_and_by_cancel() {
    let (manager, procs) = setup(3);
    manager.acquire(&procs[0], TABLE, LockMode::AccessExclusive, LockWait::Never).unwrap();
    let soon = LockWait::Until(Instant::now() + Duration::from_millis(10));
    let late = manager.acquire(&procs[1], TABLE, LockMode::AccessShare, soon);
    assert_eq!(late, Err(LockError::Timeout));
    let handle = procs[1].interrupt_handle();
    std::thread::scope(|scope| {
        let (manager, no) = (&manager, procs[1].no());
        let waiter = scope.spawn(move || {
            until_waiting(manager, no);
            handle.interrupt(Interrupt::Cancel);
        });
        let cancelled = manager.acquire(&procs[1], TABLE, LockMode::AccessShare, LockWait::Forever);
        assert_eq!(cancelled, Err(LockError::Cancelled));
        waiter.join().unwrap();
    });
    manager.release_all(&procs[0]);
    assert!(manager.list().is_empty());
    manager.acquire(&procs[2], TABLE, LockMode::AccessShare, LockWait::Never).unwrap();
    assert!(manager.list()[0].fast_path, "the counter of strong lockers is down again");
}

/// (lmgr rule 5)
#[test]
fn a_lock_that_is_granted_at_the_last_moment_is_held() {
    let (manager, procs) = setup(2);
    manager.acquire(&procs[0], KEY, LockMode::Exclusive, LockWait::Never).unwrap();
    let owner = LockOwner::Transaction;
    let begun = manager.begin(&procs[1], owner, KEY, LockMode::Exclusive, true).unwrap();
    assert_eq!(begun, super::request::Begun::Queued);
    manager.release_all(&procs[0]);
    // The waiter's time is up before the waiter notices the grant.
    assert_eq!(manager.give_up(&procs[1], KEY, LockError::Timeout), Ok(()));
    manager.note_held(&procs[1], owner, KEY, LockMode::Exclusive, crate::lock::Place::Table);
    manager.release_all(&procs[1]);
    assert!(manager.list().is_empty());
}

/// (lmgr rule 9)
#[test]
fn locks_are_held_until_the_transaction_has_its_status() {
    let fixture = crate::testing::Fixture::new();
    let (holder, other) = (fixture.ctx(), fixture.ctx());
    let xid = holder.assign_xid().unwrap();
    holder.lock(KEY, LockMode::Exclusive).unwrap();
    let ticket = holder.txns().commit_start(&holder, &[], Durability::Flush).unwrap();
    assert!(other.lock_nowait(KEY, LockMode::Exclusive).is_err());
    holder.txns().commit_finish(&holder, ticket).unwrap();
    assert!(other.status(xid).unwrap().is_committed());
    assert!(other.lock_nowait(KEY, LockMode::Exclusive).is_ok());
}

#[test]
fn waiter_for_a_transaction_wakes_at_its_end() {
    let (manager, procs) = setup(4);
    let xid = Xid(77);
    let running = AtomicBool::new(true);
    procs[0].publish_xid(Some(xid));
    let is_running = || running.load(Ordering::SeqCst);
    let wait = |proc, how| manager.wait_for_transaction(proc, xid, how, is_running);
    assert!(matches!(wait(&procs[1], LockWait::Never), Err(LockError::WouldBlock { .. })));
    assert!(manager.list().is_empty(), "nothing is materialised for a session that doesn't wait");
    let soon = LockWait::Until(Instant::now() + Duration::from_millis(5));
    assert_eq!(wait(&procs[1], soon), Err(LockError::Timeout));
    let mut procs = procs.into_iter();
    let runner = procs.next().unwrap();
    let numbers: Vec<_> = procs.as_slice().iter().map(ProcHandle::no).collect();
    std::thread::scope(|scope| {
        for proc in procs {
            let manager = &manager;
            scope.spawn(move || {
                manager.wait_for_transaction(&proc, xid, LockWait::Forever, is_running).unwrap();
                assert!(!is_running());
            });
        }
        for no in &numbers {
            until_waiting(&manager, *no);
            assert_eq!(manager.blockers(*no), [runner.no()]);
        }
        running.store(false, Ordering::SeqCst);
        runner.publish_xid(None);
        assert!(runner.take_xid_awaited());
        manager.transaction_ended(runner.no(), xid);
    });
    assert!(manager.list().is_empty());
    assert!(!runner.take_xid_awaited());
}

/// Threads lock two relations in all modes. A counter per relation and mode checks exclusion.
#[test]
fn races_of_weak_and_strong_lockers_exclude_each_other() {
    const THREADS: u16 = 6;
    let (manager, procs) = setup(THREADS);
    manager.set_deadlock_timeout(Duration::from_millis(5));
    let holders: Vec<[AtomicU64; 9]> =
        (0..2).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
    std::thread::scope(|scope| {
        for (index, proc) in procs.into_iter().enumerate() {
            let (manager, holders) = (&manager, &holders);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(index as u64);
                for _ in 0..3_000 {
                    let relation = rng.random_range(0..2u32);
                    let mode = LockMode::ALL[match rng.random_range(0..4) {
                        0 => rng.random_range(0..8),
                        _ => rng.random_range(0..3),
                    }];
                    let tag = LockTag::Relation(relation);
                    manager.acquire(&proc, tag, mode, LockWait::Forever).unwrap();
                    let counters = &holders[relation as usize];
                    counters[mode as usize].fetch_add(1, Ordering::SeqCst);
                    for other in LockMode::ALL {
                        let own = u64::from(other == mode);
                        let count = counters[other as usize].load(Ordering::SeqCst);
                        assert!(
                            count == own || !mode.conflicts_with(other),
                            "{mode} beside {other}"
                        );
                    }
                    counters[mode as usize].fetch_sub(1, Ordering::SeqCst);
                    manager.release_transaction(&proc);
                }
            });
        }
    });
    assert!(manager.list().is_empty());
}

/// Transactions lock several keys in random order: every deadlock ends, and no session hangs.
#[test]
fn racing_deadlocks_all_end() {
    const THREADS: u16 = 4;
    let (manager, procs) = setup(THREADS);
    manager.set_deadlock_timeout(Duration::from_millis(1));
    let victims = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (index, proc) in procs.into_iter().enumerate() {
            let (manager, victims) = (&manager, &victims);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(100 + index as u64);
                for _ in 0..150 {
                    for _ in 0..3 {
                        let low = rng.random_range(0..4);
                        let tag = LockTag::Advisory { high: 0, low, two_keys: false };
                        let mode = LockMode::ALL[rng.random_range(4..8)];
                        match manager.acquire(&proc, tag, mode, LockWait::Forever) {
                            Ok(_) => std::thread::yield_now(),
                            Err(LockError::Deadlock { detail }) => {
                                assert!(detail.lines().count() >= 2, "{detail}");
                                victims.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    manager.release_transaction(&proc);
                }
            });
        }
    });
    assert!(manager.list().is_empty());
}

#[test]
fn a_long_wait_is_logged_if_the_session_wants_it() {
    let (manager, mut procs) = setup(2);
    let (waiter, holder) = (procs.remove(1), procs.remove(0));
    manager.set_deadlock_timeout(Duration::from_millis(1));
    manager.acquire(&holder, KEY, LockMode::Exclusive, LockWait::Never).unwrap();
    let hearer = Hearer::default();
    let heard = || hearer.heard();
    let wait = |waiter: &ProcHandle, how| {
        tracing::subscriber::with_default(hearer.clone(), || {
            manager.acquire(waiter, KEY, LockMode::Share, how)
        })
    };
    // Nothing is logged while the setting is off.
    let soon = LockWait::Until(Instant::now() + Duration::from_millis(20));
    assert_eq!(wait(&waiter, soon), Err(LockError::Timeout));
    assert!(heard().is_empty());
    waiter.local_locks().borrow_mut().logs_waits = true;
    let (first, second) = (holder.no(), waiter.no());
    let [first, second] = [first, second].map(|no| manager.procs.process_id(no));
    std::thread::scope(|scope| {
        let (manager, wait) = (&manager, &wait);
        let granted = scope.spawn(move || {
            let granted = wait(&waiter, LockWait::Forever);
            manager.release_all(&waiter);
            granted
        });
        while heard().len() < 2 {
            std::thread::yield_now();
        }
        manager.release_all(&holder);
        assert_eq!(granted.join().unwrap(), Ok(Acquired::New));
    });
    let mut told = heard();
    told.sort();
    let after = [
        format!("process {second} acquired ShareLock on {KEY} after "),
        format!("process {second} still waiting for ShareLock on {KEY} after "),
    ];
    let detail = format!("Process holding the lock: {first}. Wait queue: {second}.");
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], detail);
    assert!(told[1..].iter().zip(&after).all(|(told, after)| told.starts_with(after)), "{told:?}");
}

#[test]
fn long_wait_cancels_a_blocking_autovacuum() {
    let procs = ProcArray::new(3);
    let manager = LockManager::new(procs.clone());
    let [vacuum, client] =
        ["autovacuum worker", "client backend"].map(|kind| procs.register(kind).unwrap());
    let other = procs.register("client backend").unwrap();
    manager.set_deadlock_timeout(Duration::from_millis(1));
    let mode = LockMode::ShareUpdateExclusive;
    // A client that holds the lock is left alone.
    manager.acquire(&client, TABLE, mode, LockWait::Never).unwrap();
    let soon = LockWait::Until(Instant::now() + Duration::from_millis(20));
    assert_eq!(manager.acquire(&other, TABLE, LockMode::Share, soon), Err(LockError::Timeout));
    assert!(!client.is_interrupted());
    manager.release_all(&client);

    manager.acquire(&vacuum, TABLE, mode, LockWait::Never).unwrap();
    std::thread::scope(|scope| {
        let manager = &manager;
        let wait = scope.spawn(move || {
            let acquired = manager.acquire(&other, TABLE, LockMode::Share, LockWait::Forever);
            manager.release_all(&other);
            acquired
        });
        while !vacuum.is_interrupted() {
            std::thread::yield_now();
        }
        assert_eq!(vacuum.interrupt(), Some(Interrupt::Cancel));
        manager.release_all(&vacuum);
        assert_eq!(wait.join().unwrap(), Ok(Acquired::New));
    });
}
