//! Who holds a row, step by step: what its header says of it, and what memory.

use millpond_buffer::Wait;

use super::world::{Tx, World};
use crate::access::heap::{ChangeOutcome, KeyChange, NewRow, delete, lock_row, update, vacuum};
use crate::error::EngineError;
use crate::transam::{LockStrength, Xid};

const ROW: NewRow<'_> = NewRow { payload: b"some row", natts: 2 };

/// Two transactions that share a row, each with a header and table entry to show for it.
#[test]
fn holders_of_a_row_are_in_its_header_and_in_memory() {
    let world = World::new(16, 100);
    let (a, b, c) = (world.ctx(), world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let done = ChangeOutcome::Done { tid, hot: false };
    let lock =
        |tx: &Tx<'_>, strength| lock_row(tx.ctx, &world.heap, tid, strength, tx.changer()).unwrap();
    let (first, second, third) = (Tx::begin(&a), Tx::begin(&b), Tx::begin(&c));
    assert_eq!(lock(&first, LockStrength::Share), done);
    assert_eq!(world.shared.txns.shared_rows(), 0, "one holder needs no memory");
    assert_eq!(lock(&second, LockStrength::Share), done);
    let log = world.shared.log.insert_position();
    assert_eq!(lock(&third, LockStrength::KeyShare), done);
    assert_eq!(world.shared.log.insert_position(), log, "further ones need no log");
    assert_eq!(world.shared.txns.shared_rows(), 1);
    // An upgrade waits for the others, ahead of those who only want to.
    let waits = |xid: Xid, holds| ChangeOutcome::InProgress { xid, holds };
    assert_eq!(lock(&second, LockStrength::NoKeyUpdate), waits(first.xid, true));
    first.finish(false);
    // The header still names the first; the second is now the only one in the way of the third.
    assert_eq!(lock(&third, LockStrength::NoKeyUpdate), waits(second.xid, true));
    assert_eq!(lock(&second, LockStrength::NoKeyUpdate), done);
    // A reader of the key goes with a change that leaves it alone, even one that is rolled back.
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

/// What takes more than one record is not begun where it might have to stop after the first.
#[test]
fn a_row_that_others_hold_is_replaced_where_one_may_wait() {
    let world = World::new(16, 100);
    let (a, b, c) = (world.ctx(), world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let (updater, first, second) = (Tx::begin(&a), Tx::begin(&b), Tx::begin(&c));
    for tx in [&first, &updater] {
        lock_row(tx.ctx, &world.heap, tid, LockStrength::KeyShare, tx.changer()).unwrap();
    }
    let log = world.shared.log.insert_position();
    a.set_wait(Wait::Never);
    let refused = update(&a, &world.heap, tid, ROW, KeyChange::None, updater.changer());
    assert!(matches!(refused, Err(EngineError::WouldBlock)), "{refused:?}");
    assert_eq!(world.shared.log.insert_position(), log, "nothing has happened");
    // What is noted of the changer has not been taken back either.
    first.finish(false);
    let delete = delete(&c, &world.heap, tid, second.changer()).unwrap();
    assert_eq!(delete, ChangeOutcome::InProgress { xid: updater.xid, holds: false });
    a.set_wait(Wait::Allowed);
    let done = update(&a, &world.heap, tid, ROW, KeyChange::None, updater.changer()).unwrap();
    assert!(matches!(done, ChangeOutcome::Done { hot: true, .. }), "{done:?}");
    updater.finish(true);
    second.finish(true);
}

/// Recovery gives no id out again that stands on a page: it has met each in a record's head.
#[test]
fn an_id_that_comes_to_a_page_by_anothers_change_is_in_the_log() {
    let world = World::new(16, 100);
    let (a, b, c) = (world.ctx(), world.ctx(), world.ctx());
    let tid = world.committed_row(&a, ROW);
    let (updater, first, second) = (Tx::begin(&a), Tx::begin(&b), Tx::begin(&c));
    for tx in [&first, &second] {
        lock_row(tx.ctx, &world.heap, tid, LockStrength::KeyShare, tx.changer()).unwrap();
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
