//! Sessions that wait for a row: what they find afterwards, and which of them is woken.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use millpond_engine::lmgr::{LockInfo, LockTag};
use millpond_engine::table::{LockStrength, RowOutcome};
use millpond_engine::transam::SessionNo;

use super::common::*;
use super::{Bank, start};

impl Bank {
    /// Lock requests that wait.
    pub(super) fn waiting(&self) -> Vec<LockInfo> {
        self.engine.locks().list().into_iter().filter(|lock| !lock.granted).collect()
    }

    fn until_a_session_waits(&self) {
        while self.waiting().is_empty() {
            std::thread::yield_now();
        }
    }

    /// Sessions that wait for their turn at a row, and since when.
    pub(super) fn queue(&self) -> Vec<(LockTag, SessionNo, Instant)> {
        let waits = self.waiting().into_iter().filter_map(|lock| {
            let since = lock.waiting_since?;
            matches!(lock.tag, LockTag::Tuple { .. }).then_some((lock.tag, lock.session, since))
        });
        waits.collect()
    }

    pub(super) fn assert_balance(&self, id: i32, expected: i64) {
        let found = run(&mut self.session(), |s| balance(s, &self.accounts, id)).unwrap();
        assert_eq!(found, Some(expected));
    }
}

#[test]
fn row_change_wakes_one_of_its_waiters() {
    const WAITERS: usize = 4;
    let bank = Bank::new(2);
    let mut first = bank.session();
    start(&mut first, RC);
    add(&first, &bank.accounts, 1, 1).unwrap();
    let (changed, changes) = mpsc::channel();
    let waiters = Vec::from_iter((0..WAITERS).map(|number| {
        let changed = changed.clone();
        let (go_on, may_commit) = mpsc::channel::<()>();
        let thread = bank.in_thread(RC, move |session, accounts| {
            assert!(add(session, accounts, 1, 1).unwrap());
            changed.send(number).unwrap();
            may_commit.recv().unwrap();
            session.commit().unwrap();
        });
        (go_on, thread)
    }));
    // One session has the turn and waits for the transaction, the others wait for the turn.
    let mut waiting = bank.queue();
    while waiting.len() < WAITERS - 1 {
        std::thread::yield_now();
        waiting = bank.queue();
    }
    first.commit().unwrap();
    for left in (0..WAITERS).rev() {
        let number = changes.recv().unwrap();
        // One of the sessions that waited has the turn now; no other session has woken.
        let mut still = bank.queue();
        while still.len() > left.saturating_sub(1) {
            std::thread::yield_now();
            still = bank.queue();
        }
        assert!(still.iter().all(|one| waiting.contains(one)), "{still:?} of {waiting:?}");
        assert_eq!(still.len(), left.saturating_sub(1));
        waiting = still;
        waiters[number].0.send(()).unwrap();
    }
    for (_, thread) in waiters {
        thread.join().unwrap();
    }
    bank.assert_balance(1, 100 + 1 + WAITERS as i64);
}

/// A statement that finds a row changed and skips it delays no other session while it continues.
#[test]
fn statement_that_skips_a_row_gives_up_its_turn() {
    let bank = Bank::new(2);
    let mut first = bank.session();
    start(&mut first, RC);
    add(&first, &bank.accounts, 1, 1).unwrap();
    let (looked, has_looked) = mpsc::channel::<()>();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let second = bank.in_thread(RC, move |session, accounts| {
        let mut found = find(session, accounts, 1).unwrap();
        let outcome = session.delete(accounts, &mut found).unwrap();
        assert!(matches!(outcome, RowOutcome::Changed), "{outcome:?}");
        session.end_turn();
        looked.send(()).unwrap();
        may_go_on.recv().unwrap();
        session.commit().unwrap();
    });
    // The second has the turn and waits for the transaction, the third for the turn.
    bank.until_a_session_waits();
    let (changed, has_changed) = mpsc::channel::<()>();
    let third = bank.in_thread(RC, move |session, accounts| {
        assert!(add(session, accounts, 1, 1).unwrap());
        session.commit().unwrap();
        changed.send(()).unwrap();
    });
    while bank.queue().is_empty() {
        std::thread::yield_now();
    }
    first.commit().unwrap();
    has_looked.recv().unwrap();
    // The second session's statement is still running.
    has_changed.recv_timeout(Duration::from_secs(60)).expect("the third has had its turn");
    go_on.send(()).unwrap();
    second.join().unwrap();
    third.join().unwrap();
}

#[test]
fn a_deleted_row_is_left_out_and_a_locked_one_waited_for() {
    let bank = Bank::new(3);
    let (mut first, accounts) = (bank.session(), &bank.accounts);
    start(&mut first, RC);
    let mut found = find(&first, accounts, 1).unwrap();
    assert!(matches!(first.delete(accounts, &mut found).unwrap(), RowOutcome::Done(_)));
    let mut found = find(&first, accounts, 2).unwrap();
    let locked = first.lock_row(accounts, &mut found, LockStrength::Update).unwrap();
    assert!(matches!(locked, RowOutcome::Done(_)));
    let waiters = [(1, RC), (2, RC), (1, RR)].map(|(id, options)| {
        bank.in_thread(options, move |session, accounts| {
            let result = add(session, accounts, id, 1);
            session.end_statement();
            if result.is_ok() {
                session.commit().unwrap();
            } else {
                session.abort();
            }
            result
        })
    });
    while bank.waiting().len() < waiters.len() {
        std::thread::yield_now();
    }
    first.commit().unwrap();
    let [deleted, locked, strict] = waiters.map(|waiter| waiter.join().unwrap());
    assert!(!deleted.unwrap());
    assert!(locked.unwrap());
    assert!(is_serialization_failure(&strict.unwrap_err()));
}

/// Versions on one page, then on many. A statement that knows an old version gets the newest one,
/// not those in between.
#[test]
fn conflict_on_a_long_chain_returns_the_newest_version() {
    const CHANGES: i64 = 40;
    let bank = Bank::new(0);
    let [mut first, mut second] = [bank.session(), bank.session()];
    let accounts = &bank.accounts;
    for (id, wide) in [(1, 1), (2, 3000)] {
        let owner = "o".repeat(wide);
        run(&mut first, |s| s.insert(accounts, &row(id, &owner, 100))).unwrap();
        start(&mut second, RC);
        let mut found = find(&second, accounts, id).unwrap();
        for _ in 0..CHANGES {
            assert!(run(&mut first, |s| add(s, accounts, id, 1)).unwrap());
        }
        let new = row(id, &owner, 1000);
        assert_eq!(second.update(accounts, &mut found, &new).unwrap(), RowOutcome::Changed);
        assert_eq!(found.column(accounts, 2).unwrap().as_i64(), Some(100 + CHANGES));
        let outcome = second.update(accounts, &mut found, &new).unwrap();
        assert!(matches!(outcome, RowOutcome::Done(_)), "{outcome:?}");
        second.end_statement();
        second.commit().unwrap();
        bank.assert_balance(id, 1000);

        // The last of the changes has deleted the row.
        start(&mut second, RC);
        let mut found = find(&second, accounts, id).unwrap();
        for _ in 0..CHANGES {
            assert!(run(&mut first, |s| add(s, accounts, id, 1)).unwrap());
        }
        run(&mut first, |s| s.delete(accounts, &mut find(s, accounts, id)?)).unwrap();
        assert_eq!(second.delete(accounts, &mut found).unwrap(), RowOutcome::Gone);
        second.end_statement();
        second.commit().unwrap();
    }
    assert_whole(&bank.engine);
}
