//! Overtaking is bounded (rule 3): a waiter is woken in vain at most `MAX_LOSSES` times (one under loom), and
//! then given the latch. That the latch itself never lets an impatient waiter compete is asserted where it
//! wakes; here the waiters count.

use super::{Guarded, Shared, check_latch, spawn};
use crate::latch::MAX_LOSSES;

/// Adds; `losses` is how often it has been woken in vain before.
fn add_counting(guarded: &Guarded, losses: u32) {
    let losses = guarded.latch.wait_exclusive(losses, None);
    assert!(losses.is_some_and(|losses| losses <= MAX_LOSSES), "{losses:?}");
    guarded.add_held();
    guarded.latch.unlock_exclusive();
}

fn get_counting(guarded: &Guarded, losses: u32) {
    let losses = guarded.latch.wait_shared(losses, None);
    assert!(losses.is_some_and(|losses| losses <= MAX_LOSSES), "{losses:?}");
    guarded.get_held();
    guarded.latch.unlock_shared();
}

/// A writer that takes the latch over and over, and one that waits.
#[test]
fn a_writer_is_not_starved_by_a_writer() {
    check_latch("a_writer_is_not_starved_by_a_writer", 4, || {
        let guarded = Shared::default();
        let waiter = spawn(&guarded, |guarded| add_counting(guarded, 0));
        for _ in 0..4 {
            guarded.add();
        }
        waiter.join().unwrap();
        guarded.assert_value(5);
    });
}

/// A writer that takes the latch over and over, and a reader that waits.
#[test]
fn a_reader_is_not_starved_by_a_writer() {
    check_latch("a_reader_is_not_starved_by_a_writer", 4, || {
        let guarded = Shared::default();
        let waiter = spawn(&guarded, |guarded| get_counting(guarded, 0));
        for _ in 0..4 {
            guarded.add();
        }
        waiter.join().unwrap();
        guarded.assert_value(4);
    });
}

/// Both wait and are impatient, so that the latch is handed to both: the writer gets a claim.
#[test]
fn readers_and_writers_are_granted_together() {
    check_latch("readers_and_writers_are_granted_together", 3, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let reader = spawn(&guarded, |guarded| get_counting(guarded, MAX_LOSSES));
        let writer = spawn(&guarded, |guarded| add_counting(guarded, MAX_LOSSES));
        guarded.latch.unlock_exclusive();
        reader.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(1);
    });
}

/// The same at a downgrade: the downgraded hold lasts.
#[test]
fn a_downgrade_grants_as_well() {
    check_latch("a_downgrade_grants_as_well", 3, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let reader = spawn(&guarded, |guarded| get_counting(guarded, MAX_LOSSES));
        let writer = spawn(&guarded, |guarded| add_counting(guarded, MAX_LOSSES));
        guarded.latch.downgrade();
        assert_eq!(guarded.get_held(), 0);
        guarded.latch.unlock_shared();
        reader.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(1);
    });
}

/// Readers overlap without a gap; the writer claims, and they don't get past it.
#[test]
fn a_writer_is_not_starved_by_readers() {
    check_latch("a_writer_is_not_starved_by_readers", 3, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        let writer = spawn(&guarded, |guarded| {
            let losses = guarded.latch.wait_exclusive(0, None);
            assert_eq!(losses, Some(0), "readers overtook a claim");
            guarded.add_held();
            guarded.latch.unlock_exclusive();
        });
        for _ in 0..2 {
            // The next hold begins before the last one ends, unless the claim is there.
            let next = guarded.latch.try_shared();
            guarded.latch.unlock_shared();
            if !next {
                guarded.latch.shared();
            }
        }
        guarded.latch.unlock_shared();
        writer.join().unwrap();
        guarded.assert_value(1);
    });
}

/// A release wakes one writer and leaves another parked; who takes the latch before the woken one does owes
/// them both a release that looks at the queue.
#[test]
fn who_overtakes_leaves_nobody_behind() {
    check_latch("who_overtakes_leaves_nobody_behind", 2, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let writers = [(); 2].map(|()| spawn(&guarded, Guarded::add));
        guarded.latch.unlock_exclusive();
        if guarded.latch.try_shared() {
            if guarded.latch.try_shared() {
                guarded.latch.unlock_shared();
            }
            if guarded.latch.try_upgrade() {
                guarded.latch.unlock_exclusive();
            } else {
                guarded.latch.unlock_shared();
            }
        }
        for writer in writers {
            writer.join().unwrap();
        }
        guarded.assert_value(2);
    });
}
