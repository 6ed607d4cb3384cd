//! Waits with a deadline, and upgrades, step by step on one thread. The deadline is in the past, so
//! a thread that would have to wait gives up at once. The models cover races with other threads.

use super::super::word::PARKED;
use super::*;

fn past() -> Instant {
    Instant::now()
}

#[test]
fn acquire_without_wait_ignores_a_past_deadline() {
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
fn timed_out_waiter_leaves_the_word_unchanged() {
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
fn last_timed_out_waiter_clears_the_parked_flag() {
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
        // The other thread may have set the flag without having queued up yet; then it looks again.
        assert!(!latch.try_exclusive_until(past()));
        latch.unlock_exclusive();
    });
    assert_eq!(latch.word(), 0);
}

#[test]
fn upgrade_needs_a_sole_hold_and_no_other_claim() {
    let latch = Latch::new();
    latch.shared();
    latch.shared();
    assert!(!latch.try_upgrade());
    // Another thread claims the latch by an upgrade and waits for the other reader.
    assert!(latch.claim_for_upgrade());
    assert!(!latch.upgrade() && !latch.try_upgrade() && !latch.try_upgrade_until(past()));
    latch.unlock_shared();
    assert!(latch.drain(1, None));
    latch.downgrade();
    assert!(latch.try_upgrade());
    latch.unlock_exclusive();
    assert_eq!(latch.word(), 0);
}
