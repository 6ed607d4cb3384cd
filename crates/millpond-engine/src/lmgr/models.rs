//! Models of the lock manager: the fast path under loom, the whole manager under shuttle.

#[cfg(loom)]
mod fast_path {
    use std::sync::Arc;

    use millpond_sync::atomic::{AtomicU64, Ordering};
    use millpond_sync::thread;

    use super::super::fast::{FastPath, Noted};
    use crate::ids::SessionNo;
    use crate::lock::LockMode;

    const ME: SessionNo = SessionNo(0);
    const TABLE: u32 = 7;

    fn model(body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(body);
    }

    /// Rule 3: every strong locker collects a weak lock that is granted in a slot. A weak lock that
    /// is refused leaves nothing behind.
    #[test]
    fn loom_weak_and_strong_lockers_see_each_other() {
        model(|| {
            let fast = Arc::new(FastPath::new(1));
            let strong = {
                let fast = Arc::clone(&fast);
                thread::spawn(move || {
                    let mut taken = 0;
                    fast.raise(TABLE);
                    fast.collect(TABLE, |_, _| taken += 1);
                    taken
                })
            };
            let noted = fast.note(ME, 0, TABLE, LockMode::AccessShare);
            let taken = strong.join().unwrap();
            match noted {
                Noted::Slot(_) | Noted::Transferred => assert_eq!(taken, 1),
                Noted::No | Noted::Full => assert_eq!(taken, 0),
            }
            let mut left = 0;
            fast.collect(TABLE, |_, _| left += 1);
            assert_eq!(left, 0);
        });
    }

    /// Rule 3: a release and a transfer agree on which of them got the lock.
    #[test]
    fn loom_release_against_transfer() {
        model(|| {
            let fast = Arc::new(FastPath::new(1));
            let noted = fast.note(ME, 0, TABLE, LockMode::AccessShare);
            assert_eq!(noted, Noted::Slot(0));
            let strong = {
                let fast = Arc::clone(&fast);
                thread::spawn(move || {
                    let mut taken = 0;
                    fast.raise(TABLE);
                    fast.collect(TABLE, |_, _| taken += 1);
                    taken
                })
            };
            let left = fast.leave(ME, 0, TABLE, LockMode::AccessShare);
            assert_eq!(strong.join().unwrap() == 0, left);
        });
    }

    /// Rule 3: the next weak holder sees all that a strong holder wrote, and the reverse.
    #[test]
    fn loom_fast_path_orders_what_it_protects() {
        model(|| {
            let fast = Arc::new(FastPath::new(1));
            let table = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let strong = {
                let (fast, table) = (Arc::clone(&fast), Arc::clone(&table));
                thread::spawn(move || {
                    let mut taken = 0;
                    fast.raise(TABLE);
                    fast.collect(TABLE, |_, _| taken += 1);
                    if taken == 0 {
                        // No weak holder: the strong lock is granted.
                        table[0].store(1, Ordering::Relaxed);
                        table[1].store(1, Ordering::Relaxed);
                    }
                    fast.lower(TABLE);
                })
            };
            if let Noted::Slot(slot) = fast.note(ME, 0, TABLE, LockMode::AccessShare) {
                let first = table[0].load(Ordering::Relaxed);
                let second = table[1].load(Ordering::Relaxed);
                assert_eq!(first, second, "a weak holder saw half of a strong holder's change");
                fast.leave(ME, slot, TABLE, LockMode::AccessShare);
            }
            strong.join().unwrap();
        });
    }
}

#[cfg(all(shuttle, not(loom)))]
mod whole {
    use std::sync::Arc;

    use millpond_sync::atomic::{AtomicU64, Ordering};
    use millpond_sync::thread;

    use super::super::deadlock::Search;
    use super::super::{LockManager, LockMode, LockTag, LockWait};
    use crate::ids::Xid;
    use crate::proc::ProcArray;

    const ITERATIONS: usize = 2_000;

    fn setup(sessions: usize) -> (Arc<ProcArray>, Arc<LockManager>) {
        let procs = ProcArray::new(sessions as u16);
        let manager = LockManager::new(procs.clone());
        (procs, manager)
    }

    /// Checks that every thread ends and that no lock is left.
    fn all_end(threads: Vec<thread::JoinHandle<()>>, manager: &LockManager) {
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(manager.list().is_empty());
    }

    /// Sessions take and release locks on one relation. Counters check that conflicting modes
    /// exclude each other; shuttle checks that every wait ends.
    fn sessions_exclude_each_other(modes: &'static [LockMode]) {
        shuttle::check_random(
            move || {
                let (procs, manager) = setup(modes.len());
                let held: Arc<[AtomicU64; 9]> =
                    Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
                let threads: Vec<_> = modes
                    .iter()
                    .map(|mode| {
                        let proc = procs.register("model").unwrap();
                        let (manager, held) = (manager.clone(), held.clone());
                        thread::spawn(move || {
                            for _ in 0..2 {
                                let tag = LockTag::Relation(7);
                                manager.acquire(&proc, tag, *mode, LockWait::Forever).unwrap();
                                held[*mode as usize].fetch_add(1, Ordering::SeqCst);
                                for other in LockMode::ALL {
                                    let own = u64::from(other == *mode);
                                    let count = held[other as usize].load(Ordering::SeqCst);
                                    assert!(
                                        count == own || !mode.conflicts_with(other),
                                        "{mode} beside {other}"
                                    );
                                }
                                held[*mode as usize].fetch_sub(1, Ordering::SeqCst);
                                manager.release_transaction(&proc);
                            }
                        })
                    })
                    .collect();
                all_end(threads, &manager);
            },
            ITERATIONS,
        );
    }

    #[test]
    fn shuttle_weak_beside_strong() {
        use LockMode::*;
        sessions_exclude_each_other(&[AccessShare, AccessShare, AccessExclusive]);
    }

    #[test]
    fn shuttle_a_mixture_of_modes() {
        use LockMode::*;
        sessions_exclude_each_other(&[RowExclusive, Share, ShareUpdateExclusive, Exclusive]);
    }

    /// Rule 7: a session that a new order of the queue serves wakes, whatever else happens
    /// meanwhile. C has K2 and wants to share K1 with A, which wants K2. If B, which wants K1
    /// exclusively, came before C, then C must overtake B.
    #[test]
    fn shuttle_reordering_wakes_served_waiters() {
        use LockMode::{Exclusive, Share};
        let key = |low| LockTag::Advisory { high: 0, low, two_keys: true };
        shuttle::check_random(
            move || {
                let (procs, manager) = setup(3);
                let left = Arc::new(AtomicU64::new(3));
                let parties = [
                    (Some((1, Share)), (2, Share)),
                    (None, (1, Exclusive)),
                    (Some((2, Exclusive)), (1, Share)),
                ];
                let parties = parties.map(|(first, then)| {
                    let proc = procs.register("model").unwrap();
                    if let Some((low, mode)) = first {
                        manager.acquire(&proc, key(low), mode, LockWait::Never).unwrap();
                    }
                    (proc, then)
                });
                let numbers = parties.each_ref().map(|(proc, _)| proc.no());
                let mut threads = Vec::new();
                for (proc, (low, mode)) in parties {
                    let (manager, left) = (manager.clone(), left.clone());
                    threads.push(thread::spawn(move || {
                        manager.acquire(&proc, key(low), mode, LockWait::Forever).unwrap();
                        manager.release_all(&proc);
                        left.fetch_sub(1, Ordering::SeqCst);
                    }));
                }
                // Time does not pass here, so this thread makes the searches for the waiters.
                while left.load(Ordering::SeqCst) > 0 {
                    for no in &numbers {
                        let found = manager.find_deadlock(*no);
                        assert!(matches!(found, Search::Wait | Search::Reordered), "{found:?}");
                    }
                    thread::yield_now();
                }
                all_end(threads, &manager);
            },
            ITERATIONS,
        );
    }

    /// Rule 6: a session that waits for a transaction wakes at its end, however late it came.
    #[test]
    fn shuttle_waiters_of_a_transaction_wake() {
        shuttle::check_random(
            || {
                let (procs, manager) = setup(3);
                let runner = procs.register("model").unwrap();
                let xid = Xid(9);
                runner.publish_xid(Some(xid));
                let running = Arc::new(AtomicU64::new(1));
                let waiters: Vec<_> = (0..2)
                    .map(|_| {
                        let proc = procs.register("model").unwrap();
                        let (manager, running) = (manager.clone(), running.clone());
                        thread::spawn(move || {
                            let is_running = || running.load(Ordering::SeqCst) == 1;
                            manager
                                .wait_for_transaction(&proc, xid, LockWait::Forever, is_running)
                                .unwrap();
                            assert!(!is_running());
                        })
                    })
                    .collect();
                running.store(0, Ordering::SeqCst);
                runner.publish_xid(None);
                if runner.take_xid_awaited() {
                    manager.transaction_ended(runner.no(), xid);
                }
                all_end(waiters, &manager);
            },
            ITERATIONS,
        );
    }
}
