//! Upgrades.

use super::{Guarded, Shared, check_latch, spawn};

/// Adds one by an upgrade; what it saw under the shared hold still holds. If the upgrade fails, it
/// releases the hold and adds in the ordinary way.
fn add_by_upgrade(guarded: &Guarded) -> bool {
    guarded.latch.shared();
    let seen = guarded.get_held();
    let upgraded = guarded.latch.upgrade();
    if upgraded {
        assert_eq!(guarded.add_held(), seen + 1, "somebody got in between");
        guarded.latch.unlock_exclusive();
    } else {
        assert_eq!(guarded.get_held(), seen);
        guarded.latch.unlock_shared();
        guarded.add();
    }
    upgraded
}

#[test]
fn two_upgraders_do_not_deadlock() {
    check_latch("two_upgraders_do_not_deadlock", 3, || {
        let guarded = Shared::default();
        let other = spawn(&guarded, add_by_upgrade);
        add_by_upgrade(&guarded);
        other.join().unwrap();
        guarded.assert_value(2);
    });
}

/// Two threads hold the latch shared before either upgrades: exactly one upgrade succeeds.
#[test]
fn of_two_upgraders_one_succeeds() {
    check_latch("of_two_upgraders_one_succeeds", 3, || {
        let guarded = Shared::default();
        guarded.latch.shared();
        guarded.latch.shared();
        let upgrade = |guarded: &Guarded| {
            if guarded.latch.upgrade() {
                guarded.add_held();
                guarded.latch.unlock_exclusive();
            } else {
                guarded.latch.unlock_shared();
            }
        };
        let other = spawn(&guarded, upgrade);
        upgrade(&guarded);
        other.join().unwrap();
        guarded.assert_value(1);
    });
}

#[test]
fn an_upgrader_a_writer_and_a_reader() {
    check_latch("an_upgrader_a_writer_and_a_reader", 2, || {
        let guarded = Shared::default();
        let writer = spawn(&guarded, Guarded::add);
        let reader = spawn(&guarded, Guarded::get);
        add_by_upgrade(&guarded);
        writer.join().unwrap();
        reader.join().unwrap();
        guarded.assert_value(2);
    });
}

#[test]
fn an_upgrade_that_does_not_wait() {
    check_latch("an_upgrade_that_does_not_wait", 3, || {
        let guarded = Shared::default();
        let reader = spawn(&guarded, Guarded::get);
        guarded.latch.shared();
        let seen = guarded.get_held();
        let upgraded = guarded.latch.try_upgrade();
        if upgraded {
            assert_eq!(guarded.add_held(), seen + 1);
            guarded.latch.unlock_exclusive();
        } else {
            guarded.latch.unlock_shared();
        }
        reader.join().unwrap();
        guarded.assert_value(u64::from(upgraded));
    });
}
