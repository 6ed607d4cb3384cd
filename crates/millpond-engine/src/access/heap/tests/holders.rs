//! The holders of a row, step by step: what its header says of them, and what memory says.

use millpond_buffer::{BlockNumber, Fork, PageId, RelFork, RelationId, Wait};

use super::world::{Tx, World};
use crate::access::heap::{
    ChangeOutcome, KeyChange, NewRow, WantedLock, delete, lock_row, root_of, update, vacuum,
};
use crate::error::EngineError;
use crate::transam::{LockStrength, Locker, RowVersion, Xid};

const ROW: NewRow<'_> = NewRow { payload: b"some row", natts: 2 };

/// Transactions that share a row: one is in its header, the others are in the table in memory.
#[test]
fn holders_of_a_row_are_in_its_header_and_in_memory() {
    let world = World::new(16, 100);
    let (a, b, c) = (world.ctx(), world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let done = ChangeOutcome::Done { tid, hot: false };
    let lock = |tx: &Tx<'_>, strength| {
        lock_row(tx.ctx, &world.heap, tid, WantedLock::hold(strength), tx.changer()).unwrap()
    };
    let (first, second, third) = (Tx::begin(&a), Tx::begin(&b), Tx::begin(&c));
    assert_eq!(lock(&first, LockStrength::Share), done);
    assert_eq!(world.shared.txns.shared_rows(), 0, "one holder needs no memory");
    assert_eq!(lock(&second, LockStrength::Share), done);
    let log = world.shared.log.insert_position();
    assert_eq!(lock(&third, LockStrength::KeyShare), done);
    assert_eq!(world.shared.log.insert_position(), log, "further ones need no log");
    assert_eq!(world.shared.txns.shared_rows(), 1);
    // An upgrade waits for the other holders, before transactions that hold nothing yet.
    let waits = |xid: Xid, holds| ChangeOutcome::InProgress { xid, holds };
    assert_eq!(lock(&second, LockStrength::NoKeyUpdate), waits(first.xid, true));
    first.finish(false);
    // The header still names the first. Now only the second conflicts with the third.
    assert_eq!(lock(&third, LockStrength::NoKeyUpdate), waits(second.xid, true));
    assert_eq!(lock(&second, LockStrength::NoKeyUpdate), done);
    // FOR KEY SHARE is compatible with a change that keeps the key, even one that is rolled back.
    let update = |tx: &Tx<'_>, keys| {
        let row = NewRow { payload: b"a new row", natts: 2 };
        update(tx.ctx, &world.heap, tid, row, keys, tx.changer()).unwrap()
    };
    assert_eq!(update(&second, KeyChange::Unique), waits(third.xid, true));
    assert!(matches!(update(&second, KeyChange::None), ChangeOutcome::Done { hot: true, .. }));
    second.finish(false);
    vacuum(&a, &world.heap, None, None).unwrap();
    let fourth = Tx::begin(&a);
    assert_eq!(lock(&fourth, LockStrength::Update), waits(third.xid, false));
    third.finish(true);
    assert_eq!(lock(&fourth, LockStrength::Update), done);
    assert_eq!(world.shared.txns.shared_rows(), 0);
    fourth.finish(true);
}

/// A change of more than one record does not begin if it might have to stop after the first.
#[test]
fn update_of_a_shared_row_needs_permission_to_wait() {
    let world = World::new(16, 100);
    let (a, b, c) = (world.ctx(), world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let (updater, first, second) = (Tx::begin(&a), Tx::begin(&b), Tx::begin(&c));
    for tx in [&first, &updater] {
        lock_row(tx.ctx, &world.heap, tid, WantedLock::hold(LockStrength::KeyShare), tx.changer())
            .unwrap();
    }
    let log = world.shared.log.insert_position();
    a.set_wait(Wait::Never);
    let refused = update(&a, &world.heap, tid, ROW, KeyChange::None, updater.changer());
    assert!(matches!(refused, Err(EngineError::WouldBlock)), "{refused:?}");
    assert_eq!(world.shared.log.insert_position(), log, "nothing has happened");
    // The note of the changer's lock has not been removed either.
    first.finish(false);
    let delete = delete(&c, &world.heap, tid, second.changer()).unwrap();
    assert_eq!(delete, ChangeOutcome::InProgress { xid: updater.xid, holds: false });
    a.set_wait(Wait::Allowed);
    let done = update(&a, &world.heap, tid, ROW, KeyChange::None, updater.changer()).unwrap();
    assert!(matches!(done, ChangeOutcome::Done { hot: true, .. }), "{done:?}");
    updater.finish(true);
    second.finish(true);
}

/// If there is no room to note the holders of a new version, the holders of the old one, including
/// the changer, keep their locks.
#[test]
fn update_without_room_for_holders_keeps_all_locks() {
    const ROOM: usize = 16;
    let world = World::with_shared_rows(16, 100, ROOM);
    let ctxs = [(); 4].map(|()| world.ctx());
    let tid = world.committed_row(&ctxs[0], ROW);
    let [first, second, changer, other] = [0, 1, 2, 3].map(|n| Tx::begin(&ctxs[n]));
    for tx in [&first, &second, &changer] {
        lock_row(tx.ctx, &world.heap, tid, WantedLock::hold(LockStrength::KeyShare), tx.changer())
            .unwrap();
    }
    // Rows of another table fill what is left.
    let page = |block| {
        let fork = RelFork { relation: RelationId::constant(101), fork: Fork::Main };
        PageId::new(fork, BlockNumber(block))
    };
    let holder = Locker { xid: other.xid, strength: LockStrength::KeyShare };
    let mut block = 0;
    while world.shared.txns.shared_rows() < ROOM {
        let version = RowVersion { page: page(block), offset: 1, xmin: Xid::FIRST };
        let _ = world.shared.txns.set_lockers(version, std::iter::once(holder).collect());
        block += 1;
    }
    let refused = update(&ctxs[2], &world.heap, tid, ROW, KeyChange::None, changer.changer());
    assert!(matches!(refused, Err(EngineError::LimitExceeded { .. })), "{refused:?}");
    assert_eq!(world.shared.txns.shared_rows(), ROOM);
    first.finish(true);
    second.finish(true);
    let in_the_way = delete(&ctxs[3], &world.heap, tid, other.changer()).unwrap();
    assert_eq!(in_the_way, ChangeOutcome::InProgress { xid: changer.xid, holds: false });
    changer.finish(false);
    assert!(matches!(
        delete(&ctxs[3], &world.heap, tid, other.changer()).unwrap(),
        ChangeOutcome::Done { .. }
    ));
    other.finish(true);
}

/// The session may have to wait for the successor. If it must not, it gets no part of the lock.
#[test]
fn key_share_lock_without_wait_is_all_or_nothing() {
    let world = World::new(16, 100);
    let (a, b) = (world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let (changer, reader) = (Tx::begin(&a), Tx::begin(&b));
    update(&a, &world.heap, tid, ROW, KeyChange::None, changer.changer()).unwrap();
    let lock = || {
        lock_row(&b, &world.heap, tid, WantedLock::hold(LockStrength::KeyShare), reader.changer())
    };
    b.set_wait(Wait::Never);
    let refused = lock();
    assert!(matches!(refused, Err(EngineError::WouldBlock)), "{refused:?}");
    assert_eq!(world.shared.txns.shared_rows(), 0);
    b.set_wait(Wait::Allowed);
    assert!(matches!(lock().unwrap(), ChangeOutcome::Follow { .. }));
    assert_eq!(world.shared.txns.shared_rows(), 1);
    changer.finish(false);
    reader.finish(false);
}

/// From a version reached without an index, the root that index entries name can be found.
#[test]
fn the_root_of_a_version_is_found_from_anywhere_in_its_chain() {
    let world = World::new(16, 100);
    let ctx = world.ctx();
    let [root, neighbour] = [(); 2].map(|()| world.committed_row(&ctx, ROW));
    let change = |tid, keys| {
        let tx = Tx::begin(&ctx);
        let done = update(&ctx, &world.heap, tid, ROW, keys, tx.changer()).unwrap();
        tx.finish(true);
        let ChangeOutcome::Done { tid, .. } = done else { panic!("{done:?}") };
        tid
    };
    let find = |tid| root_of(&ctx, &world.heap, tid).unwrap();
    let second = change(root, KeyChange::None);
    let third = change(second, KeyChange::None);
    assert_ne!(third, second);
    assert_eq!([root, second, third, neighbour].map(find), [root, root, root, neighbour]);
    // After pruning, the root is a redirect.
    vacuum(&ctx, &world.heap, None, None).unwrap();
    assert_eq!(find(third), root);
    // With another key the version has another root, in the same page or not.
    let other_key = change(third, KeyChange::Plain);
    assert_eq!(other_key.block, root.block);
    assert_eq!(find(other_key), other_key);
    assert_eq!(find(change(other_key, KeyChange::None)), other_key);
}

/// Recovery assigns no id again that is on a page: it has met each such id in a record's header.
#[test]
fn every_transaction_id_on_a_page_is_logged() {
    let world = World::new(16, 100);
    let (a, b, c) = (world.ctx(), world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let (updater, first, second) = (Tx::begin(&a), Tx::begin(&b), Tx::begin(&c));
    for tx in [&first, &second] {
        lock_row(tx.ctx, &world.heap, tid, WantedLock::hold(LockStrength::KeyShare), tx.changer())
            .unwrap();
    }
    first.finish(false);
    let done = update(&a, &world.heap, tid, ROW, KeyChange::None, updater.changer()).unwrap();
    assert!(matches!(done, ChangeOutcome::Done { .. }), "{done:?}");
    let mut largest = Xid::INVALID;
    world.replay(|record| largest = largest.max(record.xid));
    assert!(second.xid > updater.xid && largest >= second.xid, "{largest}");
    updater.finish(true);
    second.finish(true);
}
