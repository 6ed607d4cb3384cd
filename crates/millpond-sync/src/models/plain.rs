//! Taking, waiting, releasing, and downgrades.

use super::{Guarded, Shared, check_latch, spawn};

#[test]
fn two_writers() {
    check_latch("two_writers", 3, || {
        let guarded = Shared::default();
        let other = spawn(&guarded, Guarded::add);
        guarded.add();
        other.join().unwrap();
        guarded.assert_value(2);
    });
}

#[test]
fn three_writers() {
    check_latch("three_writers", 2, || {
        let guarded = Shared::default();
        let others = [(); 2].map(|()| spawn(&guarded, Guarded::add));
        guarded.add();
        for other in others {
            other.join().unwrap();
        }
        guarded.assert_value(3);
    });
}

#[test]
fn a_writer_and_two_readers() {
    check_latch("a_writer_and_two_readers", 2, || {
        let guarded = Shared::default();
        let others = [(); 2].map(|()| spawn(&guarded, |guarded| assert!(guarded.get() <= 1)));
        guarded.add();
        for other in others {
            other.join().unwrap();
        }
        guarded.assert_value(1);
    });
}

#[test]
fn two_writers_and_a_reader() {
    check_latch("two_writers_and_a_reader", 2, || {
        let guarded = Shared::default();
        let writer = spawn(&guarded, Guarded::add);
        let reader = spawn(&guarded, |guarded| assert!(guarded.get() <= 2));
        guarded.add();
        writer.join().unwrap();
        reader.join().unwrap();
        guarded.assert_value(2);
    });
}

/// Two readers hold the latch. A writer claims it, and another queues behind the claim.
#[test]
fn readers_leave_a_claimed_latch() {
    check_latch("readers_leave_a_claimed_latch", 2, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        guarded.latch.shared();
        let writers = [(); 2].map(|()| spawn(&guarded, Guarded::add));
        guarded.latch.unlock_shared();
        guarded.latch.unlock_shared();
        for writer in writers {
            writer.join().unwrap();
        }
        guarded.assert_value(2);
    });
}

#[test]
fn a_downgrade_lets_no_writer_in() {
    check_latch("a_downgrade_lets_no_writer_in", 2, || {
        let guarded = Shared::default();
        let writer = spawn(&guarded, Guarded::add);
        guarded.latch.exclusive();
        let written = guarded.add_held();
        guarded.latch.downgrade();
        assert_eq!(guarded.get_held(), written);
        guarded.latch.unlock_shared();
        writer.join().unwrap();
        guarded.assert_value(2);
    });
}

/// A reader and a writer wait; the writer claims the latch while the downgraded hold lasts.
#[test]
fn a_downgrade_wakes_readers() {
    check_latch("a_downgrade_wakes_readers", 2, || {
        let guarded = Shared::default();
        guarded.latch.exclusive();
        let reader = spawn(&guarded, |guarded| assert!(guarded.get() <= 2));
        let writer = spawn(&guarded, Guarded::add);
        let written = guarded.add_held();
        guarded.latch.downgrade();
        assert_eq!(guarded.get_held(), written);
        guarded.latch.unlock_shared();
        reader.join().unwrap();
        writer.join().unwrap();
        guarded.assert_value(2);
    });
}
