//! Waits with a deadline. A model has no time. Instead, a thread calls `parking::expire` at any
//! moment, and from then on every wait with a deadline ends.

use super::{Guarded, Shared, check_latch, far, spawn};
use crate::latch::MAX_LOSSES;
use crate::parking::expire;

/// Adds one if it gets the latch in time. Returns how much it has added.
fn add_in_time(guarded: &Guarded) -> u64 {
    let taken = guarded.latch.try_exclusive_until(far());
    if taken {
        guarded.add_held();
        guarded.latch.unlock_exclusive();
    }
    u64::from(taken)
}

#[test]
fn a_timed_reader_behind_a_writer() {
    check_latch("a_timed_reader_behind_a_writer", 3, || {
        let guarded = Shared::default();
        let reader = spawn(&guarded, |guarded| {
            if guarded.latch.try_shared_until(far()) {
                guarded.get_held();
                guarded.latch.unlock_shared();
            }
        });
        guarded.latch.exclusive();
        guarded.add_held();
        expire();
        guarded.latch.unlock_exclusive();
        reader.join().unwrap();
        guarded.assert_value(1);
    });
}

/// A timed writer claims the latch and gives up. Readers that waited for its claim go on, while the
/// reader that the writer waited for still holds the latch.
#[test]
fn a_claim_given_up_wakes_readers() {
    check_latch("a_claim_given_up_wakes_readers", 3, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        let writer = spawn(&guarded, |guarded| assert_eq!(add_in_time(guarded), 0));
        let reader = spawn(&guarded, |guarded| assert_eq!(guarded.get(), 0));
        expire();
        reader.join().unwrap();
        writer.join().unwrap();
        guarded.latch.unlock_shared();
        guarded.assert_value(0);
    });
}

/// The same with a writer behind the claim, and a reader that leaves at any time.
#[test]
fn a_claim_given_up_wakes_a_writer() {
    check_latch("a_claim_given_up_wakes_a_writer", 2, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        let timed = spawn(&guarded, add_in_time);
        let writer = spawn(&guarded, Guarded::add);
        expire();
        guarded.latch.unlock_shared();
        let added = timed.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(added + 1);
    });
}

/// A timed and an untimed writer wait for a third. The untimed one gets in, even if the release
/// wakes the timed one just when its time is up.
#[test]
fn timed_out_writer_consumes_no_wake_up() {
    check_latch("timed_out_writer_consumes_no_wake_up", 2, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let timed = spawn(&guarded, add_in_time);
        let writer = spawn(&guarded, Guarded::add);
        expire();
        guarded.latch.unlock_exclusive();
        let added = timed.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(added + 1);
    });
}

/// The same, with a thread that takes the latch again before the woken threads can.
#[test]
fn overtaken_timed_writer_consumes_no_wake_up() {
    check_latch("overtaken_timed_writer_consumes_no_wake_up", 2, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let timed = spawn(&guarded, add_in_time);
        let reader = spawn(&guarded, Guarded::get);
        guarded.latch.unlock_exclusive();
        guarded.latch.exclusive();
        expire();
        guarded.latch.unlock_exclusive();
        let added = timed.join().unwrap();
        reader.join().unwrap();
        guarded.assert_value(added);
    });
}

/// A timed upgrade that gives up has held the latch shared throughout.
#[test]
fn abandoned_upgrade_keeps_the_shared_hold() {
    check_latch("abandoned_upgrade_keeps_the_shared_hold", 3, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        let upgrader = spawn(&guarded, |guarded| {
            guarded.latch.shared();
            let seen = guarded.get_held();
            let upgraded = guarded.latch.try_upgrade_until(far());
            if upgraded {
                assert_eq!(guarded.add_held(), seen + 1);
                guarded.latch.unlock_exclusive();
            } else {
                assert_eq!(guarded.get_held(), seen);
                guarded.latch.unlock_shared();
            }
            u64::from(upgraded)
        });
        let writer = spawn(&guarded, Guarded::add);
        expire();
        guarded.latch.unlock_shared();
        let added = upgrader.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(added + 1);
    });
}

/// A claim is given up while an impatient writer waits: the claim passes to that writer. Two
/// readers leave at any time.
#[test]
fn a_claim_given_up_is_handed_on() {
    check_latch("a_claim_given_up_is_handed_on", 2, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        guarded.latch.shared();
        let timed = spawn(&guarded, add_in_time);
        let writer = spawn(&guarded, |guarded| {
            assert_eq!(guarded.latch.wait_exclusive(MAX_LOSSES, None), Some(MAX_LOSSES));
            guarded.add_held();
            guarded.latch.unlock_exclusive();
        });
        guarded.latch.unlock_shared();
        expire();
        guarded.latch.unlock_shared();
        let added = timed.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(added + 1);
    });
}
