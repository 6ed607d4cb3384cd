//! The kinds of bugs of PostgreSQL 19 (see `latch/tests/escaped.rs`), in small. Each protocol
//! appears as the latch has it, where loom finds nothing, and with the bug, which loom finds. The
//! latch's models take the same steps, so they would find the bug there, as a deadlock. Here a wait
//! has a deadline instead, which comes after everything that could end the wait.

use super::{check, far};
use crate::atomic::{AtomicU32, Ordering};
use crate::parking;
use crate::sync::Arc;
use loom::thread;

const WRITER: u32 = 1 << 31;
const PARKED: u32 = 1 << 30;

fn key(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word) as usize
}

fn sleep(word: &AtomicU32, still: impl FnOnce() -> bool) {
    let result = parking::park(key(word), still, Some(far()));
    assert!(result != parking::ParkResult::TimedOut, "a lost wake-up");
}

/// A waiter looks, sets its flag and sleeps until the count is zero; a release is one subtraction.
/// With the bug, the waiter relies on its first look, as if its lock kept releases out.
fn wait_for_zero(looks_again: bool) {
    let word = Arc::new(AtomicU32::new(1));
    let holder = {
        let word = word.clone();
        thread::spawn(move || {
            if word.fetch_sub(1, Ordering::Release) & PARKED != 0 {
                parking::unpark_all(key(&word));
            }
            parking::expire();
        })
    };
    while word.load(Ordering::Acquire) & !PARKED != 0 {
        word.fetch_or(PARKED, Ordering::Relaxed);
        let still = || !looks_again || word.load(Ordering::Relaxed) & !PARKED != 0;
        sleep(&word, still);
    }
    holder.join().unwrap();
}

#[test]
fn a_release_that_needs_no_lock_is_seen() {
    check(3, || wait_for_zero(true));
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn a_release_that_needs_no_lock_is_missed() {
    check(3, || wait_for_zero(false));
}

/// A waiter sets the flag and sleeps while there is a writer. A writer that leaves wakes the
/// threads that it finds and clears the flag. With the bug, the waiter does not notice that its
/// flag was cleared before it slept.
fn set_and_cleared(looks_at_flag: bool) {
    let word = Arc::new(AtomicU32::new(WRITER));
    let leave = |word: &AtomicU32| {
        if word.compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            let callback = |_| {
                word.store(0, Ordering::Release);
                0
            };
            parking::unpark_filter(key(word), |_| parking::Filter::Unpark, callback);
        }
    };
    let writer = {
        let word = word.clone();
        thread::spawn(move || {
            leave(&word);
            if word.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                leave(&word);
            }
            parking::expire();
        })
    };
    while word.load(Ordering::Acquire) & WRITER != 0 {
        let (from, to) = (WRITER, WRITER | PARKED);
        let _ = word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        let needed = if looks_at_flag { to } else { WRITER };
        let still = || word.load(Ordering::Relaxed) & needed == needed;
        sleep(&word, still);
    }
    writer.join().unwrap();
}

#[test]
fn a_flag_that_was_cleared_is_not_slept_on() {
    check(3, || set_and_cleared(true));
}

#[test]
#[should_panic(expected = "a lost wake-up")]
fn a_flag_that_was_cleared_is_slept_on() {
    check(3, || set_and_cleared(false));
}

/// A caller checks a condition under the latch, and relies on it after it waited for the latch.
fn check_then_wait(how: fn(&crate::latch::Latch, &AtomicU32) -> bool) {
    let shared = Arc::new((crate::latch::Latch::new(), AtomicU32::new(1)));
    let spoiler = {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.0.exclusive();
            shared.1.store(0, Ordering::Relaxed);
            shared.0.unlock_exclusive();
        })
    };
    let (latch, valid) = &*shared;
    if how(latch, valid) {
        assert_eq!(valid.load(Ordering::Relaxed), 1, "used though not valid");
        latch.unlock_exclusive();
    }
    spoiler.join().unwrap();
}

#[test]
#[should_panic(expected = "used though not valid")]
fn a_check_before_the_wait_is_stale() {
    check(3, || {
        check_then_wait(|latch, valid| {
            let is_valid = valid.load(Ordering::Acquire) == 1;
            if is_valid {
                latch.exclusive();
            }
            is_valid
        });
    });
}

#[test]
fn a_check_after_the_wait_holds() {
    check(3, || {
        check_then_wait(|latch, valid| {
            latch.exclusive();
            let is_valid = valid.load(Ordering::Relaxed) == 1;
            if !is_valid {
                latch.unlock_exclusive();
            }
            is_valid
        });
    });
}

#[test]
fn a_check_before_an_upgrade_holds() {
    check(3, || {
        check_then_wait(|latch, valid| {
            latch.shared();
            if valid.load(Ordering::Relaxed) == 1 && latch.upgrade() {
                return true;
            }
            latch.unlock_shared();
            false
        });
    });
}
