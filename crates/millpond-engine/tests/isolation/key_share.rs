//! FOR KEY SHARE is compatible with changes that leave the unique keys alone, and also locks a
//! row's newer versions.

use std::sync::mpsc;

use millpond_engine::lmgr::LockTag;
use millpond_engine::table::{LockStrength, RowOutcome};

use super::common::*;
use super::{Bank, start};

/// The version that the statement sees could be locked, but its successor could not.
#[test]
fn refused_key_share_lock_without_wait_holds_nothing() {
    let bank = Bank::new(2);
    let [mut first, mut second, mut third] = [(); 3].map(|()| bank.session());
    start(&mut first, RC);
    assert!(add(&first, &bank.accounts, 1, 1).unwrap());
    super::next(&mut first);
    let mut newer = find(&first, &bank.accounts, 1).unwrap();
    assert!(matches!(first.delete(&bank.accounts, &mut newer).unwrap(), RowOutcome::Done(_)));

    start(&mut second, RC);
    let mut seen = find(&second, &bank.accounts, 1).unwrap();
    let locked = second.try_lock_row(&bank.accounts, &mut seen, LockStrength::KeyShare).unwrap();
    assert!(locked.is_none(), "{locked:?}");
    first.abort();

    start(&mut third, RC);
    let mut row = find(&third, &bank.accounts, 1).unwrap();
    let locked = third.try_lock_row(&bank.accounts, &mut row, LockStrength::Update).unwrap();
    assert!(matches!(locked, Some(RowOutcome::Done(_))), "{locked:?}");
    third.abort();
    second.abort();
}

/// The other change leaves the keys alone, so the lock succeeds at once, on both versions.
#[test]
fn key_share_lock_without_wait_locks_the_successor_too() {
    let bank = Bank::new(2);
    let [mut first, mut second, mut third] = [(); 3].map(|()| bank.session());
    start(&mut first, RC);
    assert!(add(&first, &bank.accounts, 1, 1).unwrap());
    start(&mut second, RC);
    let mut seen = find(&second, &bank.accounts, 1).unwrap();
    let locked = second.try_lock_row(&bank.accounts, &mut seen, LockStrength::KeyShare).unwrap();
    assert!(matches!(locked, Some(RowOutcome::Done(_))), "{locked:?}");
    first.commit().unwrap();
    start(&mut third, RC);
    for (strength, is_free) in [(LockStrength::NoKeyUpdate, true), (LockStrength::Update, false)] {
        let mut row = find(&third, &bank.accounts, 1).unwrap();
        let locked = third.try_lock_row(&bank.accounts, &mut row, strength).unwrap();
        assert_eq!(locked.is_some(), is_free, "{strength:?} {locked:?}");
    }
    third.abort();
    second.abort();
}

/// The session waited for its turn at a successor of the version that the statement wanted. It
/// keeps that turn until it has one at the newest version.
#[test]
fn waiter_keeps_its_turn_until_it_has_the_next() {
    let bank = Bank::new(2);
    let (looked, has_looked) = mpsc::channel::<()>();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let [mut first, mut second, mut third] = [(); 3].map(|()| bank.session());
    let (mut waiter, accounts) = (bank.session(), bank.accounts.clone());
    start(&mut waiter, RC);
    let mut seen = find(&waiter, &bank.accounts, 1).unwrap();
    run(&mut first, |s| add(s, &bank.accounts, 1, 1)).unwrap();
    start(&mut second, RC);
    let mut newer = find(&second, &bank.accounts, 1).unwrap();
    let moved = second.update(&bank.accounts, &mut newer, &row(10, "owner", 1)).unwrap();
    assert!(matches!(moved, RowOutcome::Done(_)), "{moved:?}");
    let thread = std::thread::spawn(move || {
        let mut lock = || waiter.lock_row(&accounts, &mut seen, LockStrength::KeyShare).unwrap();
        assert_eq!(lock(), RowOutcome::Changed);
        looked.send(()).unwrap();
        may_go_on.recv().unwrap();
        assert!(matches!(lock(), RowOutcome::Done(_)));
        waiter.end_statement();
        waiter.commit().unwrap();
    });
    while bank.waiting().is_empty() {
        std::thread::yield_now();
    }
    second.commit().unwrap();
    has_looked.recv().unwrap();
    start(&mut third, RC);
    let mut newest = find(&third, &bank.accounts, 10).unwrap();
    let locked = third.lock_row(&bank.accounts, &mut newest, LockStrength::Update).unwrap();
    assert!(matches!(locked, RowOutcome::Done(_)), "{locked:?}");
    go_on.send(()).unwrap();
    while bank.waiting().is_empty() {
        std::thread::yield_now();
    }
    let locks = bank.engine.locks().list();
    let turns = locks.iter().filter(|lock| matches!(lock.tag, LockTag::Tuple { .. })).count();
    assert_eq!(turns, 2, "{locks:?}");
    third.commit().unwrap();
    thread.join().unwrap();
}
