//! All sessions that wait for a row are in one queue, however they found the row.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use millpond_engine::Session;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::{LockMode, LockTag};
use millpond_engine::table::{LockStrength, RowBuf, RowOutcome};
use millpond_engine::types::Datum;

use super::common::*;
use super::{Bank, start};

impl Bank {
    fn until_waiting(&self, count: usize) {
        while self.waiting().len() != count {
            std::thread::yield_now();
        }
    }
}

/// Sessions queue for the row's root, whether they use an index or not.
#[test]
fn every_path_to_a_row_uses_one_wait_queue() {
    let bank = Bank::new(2);
    let mut first = bank.session();
    // The current version is not the one that index entries point to.
    run(&mut first, |s| add(s, &bank.accounts, 1, 1)).unwrap();
    start(&mut first, RC);
    add(&first, &bank.accounts, 1, 1).unwrap();
    // The first waits for the transaction, the others for their turn.
    let waiters = [(1, false), (2, true), (3, false)].map(|(count, by_key)| {
        let thread = bank.in_thread(RC, move |session, accounts| {
            session.lock_table(accounts, LockMode::RowShare).unwrap();
            let mut found = RowBuf::new();
            if by_key {
                let key = accounts.primary_key().unwrap();
                session.lookup(accounts, key, &[Datum::Int4(1)], &mut found).unwrap();
            } else {
                let mut scan = session.heap_scan(accounts).unwrap();
                while scan
                    .next_page(session, &mut |tid, bytes| {
                        let mut row = RowBuf::new();
                        row.set(tid, bytes);
                        if row.column(accounts, 0).unwrap().as_i64() == Some(1) {
                            found = row;
                        }
                        Ok(())
                    })
                    .unwrap()
                {}
            }
            let mut outcome = RowOutcome::Changed;
            while outcome == RowOutcome::Changed {
                outcome = session.lock_row(accounts, &mut found, LockStrength::Update).unwrap();
            }
            assert!(matches!(outcome, RowOutcome::Done(_)));
            session.commit().unwrap();
        });
        bank.until_waiting(count);
        thread
    });
    let queue = bank.queue();
    assert_eq!(queue.len(), 2, "{queue:?}");
    assert_eq!(queue[0].0, queue[1].0);
    first.commit().unwrap();
    for thread in waiters {
        thread.join().unwrap();
    }
}

/// A session waited for a version, and a version with another root has replaced it. The session
/// then joins the queue of the new root, where newcomers are.
#[test]
fn a_row_whose_root_has_changed_has_one_queue() {
    let mut bank = Bank::new(2);
    let mut first = bank.session();
    run(&mut first, |s| s.ddl().create_index(index(bank.accounts.oid, &[2]))).unwrap();
    bank.accounts = run(&mut first, |s| Ok(table(s, "accounts"))).unwrap();
    start(&mut first, RC);
    add(&first, &bank.accounts, 1, 1).unwrap();
    let (changed, changes) = mpsc::channel();
    let spawn = |delta: i64| {
        let changed = changed.clone();
        let (go_on, may_commit) = mpsc::channel::<()>();
        let thread = bank.in_thread(RC, move |session, accounts| {
            assert!(add(session, accounts, 1, delta).unwrap());
            changed.send(()).unwrap();
            may_commit.recv().unwrap();
            session.commit().unwrap();
        });
        (go_on, thread)
    };
    let early = spawn(10);
    bank.until_waiting(1);
    let second = spawn(100);
    bank.until_waiting(2);
    first.commit().unwrap();
    changes.recv().unwrap();
    // The second has found another version. The early session has replaced it, and has not
    // committed.
    bank.until_waiting(1);
    let newcomer = spawn(1000);
    bank.until_waiting(2);
    assert_eq!(bank.queue().len(), 1, "{:?}", bank.waiting());
    for (go_on, thread) in [early, second, newcomer] {
        go_on.send(()).unwrap();
        thread.join().unwrap();
    }
    bank.assert_balance(1, 100 + 1111);
    let locks = bank.engine.locks().list();
    assert!(locks.iter().all(|lock| !matches!(lock.tag, LockTag::Tuple { .. })), "{locks:?}");
}

/// A session that holds a row and wants a stronger lock on it does not queue. Sessions in the queue
/// may be waiting for its own transaction (lmgr rule 8).
#[test]
fn a_holder_that_wants_a_stronger_lock_does_not_queue() {
    let bank = Bank::new(2);
    // The search for deadlocks ends no wait here.
    bank.engine.locks().set_deadlock_timeout(Duration::from_secs(3600));
    let lock = |session: &Session, accounts: &Arc<TableDef>, strength| {
        let (mut found, key) = (RowBuf::new(), accounts.primary_key().unwrap());
        session.lock_table(accounts, LockMode::RowShare).unwrap();
        assert!(session.lookup(accounts, key, &[Datum::Int4(1)], &mut found).unwrap());
        let outcome = session.lock_row(accounts, &mut found, strength).unwrap();
        assert!(matches!(outcome, RowOutcome::Done(_)), "{outcome:?}");
    };
    let [mut first, mut second] = [(); 2].map(|()| bank.session());
    for session in [&mut first, &mut second] {
        start(session, RC);
        lock(session, &bank.accounts, LockStrength::Share);
    }
    // The newcomer has the turn, and waits for one of the two holders.
    let newcomer = bank.in_thread(RC, move |session, accounts| {
        lock(session, accounts, LockStrength::Update);
        session.commit().unwrap();
    });
    bank.until_waiting(1);
    let (accounts, (done, is_done)) = (bank.accounts.clone(), mpsc::channel());
    let holder = std::thread::spawn(move || {
        lock(&first, &accounts, LockStrength::Update);
        done.send(()).unwrap();
        first.commit().unwrap();
    });
    bank.until_waiting(2);
    assert_eq!(bank.queue(), [], "both wait for transactions");
    second.commit().unwrap();
    is_done.recv().unwrap();
    holder.join().unwrap();
    newcomer.join().unwrap();
}
