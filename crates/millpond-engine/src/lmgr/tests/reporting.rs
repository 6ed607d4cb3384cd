//! What the lock manager reports: log messages of deadlocks, and counts of slow lock events.

use super::*;

/// (lmgr rule 7)
#[test]
fn deadlock_is_logged_with_all_parties() {
    let (manager, procs) = setup(2);
    let key = |low| LockTag::Advisory { high: 0, low, two_keys: true };
    for (low, proc) in procs.iter().enumerate() {
        manager.acquire(proc, key(low as u32), LockMode::Exclusive, LockWait::Never).unwrap();
    }
    for (low, proc) in procs.iter().enumerate() {
        let (owner, other) = (LockOwner::Transaction, key(1 - low as u32));
        manager.begin(proc, owner, other, LockMode::Exclusive, true).unwrap();
    }
    let hearer = Hearer::default();
    tracing::subscriber::with_default(hearer.clone(), || manager.find_deadlock(procs[1].no()));
    let told = hearer.heard().join("\n");
    assert_eq!(told.matches("deadlock detected").count(), 1, "{told}");
    for process in 1..=2 {
        assert!(told.contains(&format!("Process {process} waits for")), "{told}");
        assert!(told.contains(&format!("\nProcess {process}: ")), "{told}");
    }
}

/// (lmgr rule 10)
#[test]
fn only_slow_lock_events_are_counted() {
    let (manager, mut procs) = setup(2);
    let counts = |tag: LockTag| manager.stats().0[tag.kind_no()];
    let (waiter, holder) = (procs.remove(1), procs.remove(0));
    let wait = |waiter: ProcHandle| {
        let no = waiter.no();
        manager.acquire(&holder, KEY, LockMode::Exclusive, LockWait::Never).unwrap();
        std::thread::scope(|scope| {
            let manager = &manager;
            let thread = scope.spawn(move || {
                manager.acquire(&waiter, KEY, LockMode::Exclusive, LockWait::Forever).unwrap();
                manager.release_all(&waiter);
                waiter
            });
            until_waiting(manager, no);
            manager.release_all(&holder);
            thread.join().unwrap()
        })
    };
    // One lock is granted at once, one after a wait shorter than `deadlock_timeout`.
    manager.set_deadlock_timeout(Duration::from_secs(3600));
    let waiter = wait(waiter);
    assert_eq!(counts(KEY), LockCounts::default());
    manager.set_deadlock_timeout(Duration::ZERO);
    wait(waiter);
    assert_eq!(counts(KEY).waits, 1);
    for relation in 0..super::super::fast::SLOTS as u32 + 1 {
        let tag = LockTag::Relation(relation);
        assert_eq!(counts(TABLE).fast_path_exceeded, 0);
        manager.acquire(&holder, tag, LockMode::AccessShare, LockWait::Never).unwrap();
    }
    assert_eq!(counts(TABLE), LockCounts { fast_path_exceeded: 1, ..LockCounts::default() });
}
