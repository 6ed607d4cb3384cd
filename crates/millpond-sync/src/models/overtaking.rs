//! Overtaking is bounded (rule 3). A waiter is woken at most `MAX_LOSSES` times (once under loom)
//! without getting the latch; then the latch is handed to it. The latch itself asserts, where a
//! thread wakes, that no impatient waiter has to compete. Here the waiters count their losses.

use super::{Guarded, Shared, check_latch, spawn};
use crate::latch::MAX_LOSSES;

/// Adds one; `losses` is how often the caller has been woken before without getting the latch.
fn add_counting(guarded: &Guarded, losses: u32) {
    let losses = guarded.latch.wait_exclusive(losses);
    assert!(losses <= MAX_LOSSES, "{losses}");
    guarded.add_held();
    guarded.latch.unlock_exclusive();
}

fn get_counting(guarded: &Guarded, losses: u32) {
    let losses = guarded.latch.wait_shared(losses);
    assert!(losses <= MAX_LOSSES, "{losses}");
    guarded.get_held();
    guarded.latch.unlock_shared();
}

/// One writer takes the latch again and again while another waits.
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

/// A writer takes the latch again and again while a reader waits.
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

/// The latch is handed to a reader and a writer that are both impatient: the writer gets a claim.
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

/// Readers hold the latch without a gap. The writer claims it, and they don't get past the claim.
#[test]
fn a_writer_is_not_starved_by_readers() {
    check_latch("a_writer_is_not_starved_by_readers", 3, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        let writer = spawn(&guarded, |guarded| {
            assert_eq!(guarded.latch.wait_exclusive(0), 0, "readers overtook a claim");
            guarded.add_held();
            guarded.latch.unlock_exclusive();
        });
        for _ in 0..2 {
            // The next hold begins before the last one ends, unless the latch is claimed.
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

/// A release wakes one writer and leaves another parked. A thread that takes the latch before the
/// woken writer must make a release that looks at the queue, for both writers.
#[test]
fn overtaking_leaves_no_waiter_behind() {
    check_latch("overtaking_leaves_no_waiter_behind", 2, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let writers = [(); 2].map(|()| spawn(&guarded, Guarded::add));
        guarded.latch.unlock_exclusive();
        if guarded.latch.try_shared() {
            if guarded.latch.try_shared() {
                guarded.latch.unlock_shared();
            }
            guarded.latch.unlock_shared();
        }
        for writer in writers {
            writer.join().unwrap();
        }
        guarded.assert_value(2);
    });
}
