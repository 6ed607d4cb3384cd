//! Waits with a deadline, and upgrades, step by step on one thread. The deadline is in the past, so that who
//! would have to wait gives up at once; what happens amid other threads is in the models.

use super::super::word::PARKED;
use super::*;

fn past() -> Instant {
    Instant::now()
}

#[test]
fn a_deadline_does_not_matter_to_who_need_not_wait() {
    let latch = Latch::new();
    assert!(latch.try_shared_until(past()) && latch.try_shared_until(past()));
    latch.unlock_shared();
    assert!(latch.try_upgrade_until(past()));
    latch.unlock_exclusive();
    assert!(latch.try_exclusive_until(past()));
    latch.unlock_exclusive();
    assert_eq!(latch.word(), 0);
}

#[test]
fn who_gives_up_leaves_no_trace() {
    let latch = Latch::new();
    latch.exclusive();
    let held = latch.word();
    assert!(!latch.try_shared_until(past()));
    assert_eq!(latch.word(), held);
    assert!(!latch.try_exclusive_until(past()));
    assert_eq!(latch.word(), held);
    latch.downgrade();
    let held = latch.word();
    assert!(!latch.try_exclusive_until(past()), "a claim is given up");
    assert_eq!(latch.word(), held);
    assert!(latch.try_shared());
    assert!(!latch.try_upgrade_until(past()), "an upgrade is given up, but not the hold");
    assert_eq!(latch.word(), held + 1);
    latch.unlock_shared();
    latch.unlock_shared();
    assert_eq!(latch.word(), 0);
}

#[test]
fn the_last_to_give_up_takes_the_flag_along() {
    let latch = Latch::new();
    latch.exclusive();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            latch.shared();
            latch.unlock_shared();
        });
        while latch.word() & PARKED == 0 {
            std::thread::yield_now();
        }
        // The other thread may have set the flag and not queued up yet: then it looks again.
        assert!(!latch.try_exclusive_until(past()));
        latch.unlock_exclusive();
    });
    assert_eq!(latch.word(), 0);
}

#[test]
fn an_upgrade_needs_the_others_to_leave_and_no_claim() {
    let latch = Latch::new();
    latch.shared();
    latch.shared();
    assert!(!latch.try_upgrade());
    // Another thread's claim, by an upgrade: it waits for the other reader.
    assert!(latch.claim_for_upgrade());
    assert!(!latch.upgrade() && !latch.try_upgrade() && !latch.try_upgrade_until(past()));
    latch.unlock_shared();
    assert!(latch.drain(1, None));
    latch.downgrade();
    assert!(latch.try_upgrade());
    latch.unlock_exclusive();
    assert_eq!(latch.word(), 0);
}
