//! Three kinds of bugs that got into PostgreSQL 19 when it moved the lock of a page's contents, the pin count
//! and the flags into one word that is changed by single atomic operations. Here each is led through its
//! steps on one thread; the models let every thread take every step at any time.
//!
//! Who would sleep for ever if the bug were there has a deadline in the past, and would say so.

use super::super::turn::Turn;
use super::super::word::{DRAINING, PARKED, READERS, WOKEN, WRITER};
use super::*;
use crate::parking::ParkResult;

/// What a waiter does when it goes to sleep, with a deadline in the past.
fn sleep(latch: &Latch) -> ParkResult {
    latch.park_marked(0, Some(Instant::now()))
}

/// **A wake-up lost because a release became legal under the header lock.** PostgreSQL's cleanup lock looked at
/// the pin count and set its waiting flag while it held the buffer's header lock, which used to keep
/// others from unpinning. When unpinning became one atomic subtraction that asks for no lock, it could happen between the
/// look and the flag: the last holder saw no flag and woke nobody.
///
/// Here a reader's release is such a subtraction. So the writer that waits for it looks once more after its
/// flag is set, under the queue's lock.
#[test]
fn a_release_between_the_look_and_the_flag() {
    let latch = Latch::new();
    latch.shared();
    // A writer claims, and looks: a reader is in, so it will wait.
    latch.0.store(WRITER | 1);
    assert!(latch.word() & READERS != 0);
    // The reader leaves. It sees no flag and wakes nobody.
    latch.unlock_shared();
    // The writer sets its flag and goes to sleep.
    assert_eq!(latch.park_drainer(Some(Instant::now())), ParkResult::Invalid);
    assert_eq!(latch.word(), WRITER | DRAINING);
    assert!(latch.drain(0, Some(Instant::now())));
    assert_eq!(latch.word(), WRITER);
}

/// The same between the flag and the sleep: the reader wakes whom it finds, which is nobody.
#[test]
fn a_release_between_the_flag_and_the_sleep() {
    let latch = Latch::new();
    latch.0.store(WRITER | DRAINING | 1);
    latch.unlock_shared();
    assert_eq!(latch.park_drainer(Some(Instant::now())), ParkResult::Invalid);

    let latch = Latch::new();
    latch.0.store(WRITER | PARKED);
    latch.unlock_exclusive();
    assert_eq!(sleep(&latch), ParkResult::Invalid);
    assert_eq!(latch.word(), 0);
}

/// **A flag both set and cleared losing the set.** PostgreSQL's end of a buffer's I/O asked one function to set
/// the error flag and, among what an end of I/O always clears, to clear it. The function set first and cleared
/// then, so no buffer ever had the flag.
///
/// Here a release clears WRITER and, if it grants the latch to a waiting writer, sets it. The set must win, in
/// every state and for every turn; nothing else may change but what the table says.
#[test]
fn a_flag_that_is_set_and_cleared_is_set() {
    for (state, stay) in [(WRITER, 0), (WRITER, 1), (WRITER | 3, 0), (WRITER | DRAINING | 3, 1)] {
        for case in 0..32 {
            let flag = |bit: u32| case >> bit & 1 != 0;
            let turn = Turn { readers: u32::from(flag(0)) * 5, writer: flag(1), grant: flag(2) };
            let (more, parked) = (flag(3), flag(4));
            if more && !turn.writer {
                // Nobody stays behind if no writer goes before.
                continue;
            }
            let state = if parked || more { state | PARKED } else { state };
            let word = turn.released(state, stay, more);
            assert_eq!(word & WRITER != 0, turn.grant && turn.writer, "{word:x}");
            assert_eq!(word & PARKED != 0, more, "{word:x}");
            assert_eq!(word & DRAINING, 0, "{word:x}");
            assert_eq!(word & WOKEN != 0, more && !turn.grant, "{word:x}");
            let granted = if turn.grant { turn.readers } else { 0 };
            assert_eq!(word & READERS, (state & READERS) + stay + granted, "{word:x}");
        }
    }
}

/// While a woken writer has not looked, releases leave the queue to it, whatever else they change.
#[test]
fn a_release_leaves_the_queue_to_who_has_been_woken() {
    let latch = Latch::new();
    latch.0.store(WRITER | PARKED | WOKEN);
    latch.unlock_exclusive();
    assert_eq!(latch.word(), PARKED | WOKEN);
    assert!(latch.try_exclusive());
    latch.downgrade();
    assert_eq!(latch.word(), PARKED | WOKEN | 1);
    latch.shared();
    assert!(!latch.try_exclusive_until(Instant::now()), "a claim is given up");
    assert_eq!(latch.word(), PARKED | WOKEN | 2);
}

/// The same by two threads: one sets PARKED while another, who finds the queue empty, clears it. The set is
/// lost, so who set it must not sleep on it, although there is a writer to wait for (a third thread).
#[test]
fn a_flag_that_another_has_cleared() {
    let latch = Latch::new();
    latch.exclusive();
    latch.0.set(PARKED);
    latch.unlock_exclusive();
    assert!(latch.try_exclusive());
    assert_eq!(sleep(&latch), ParkResult::Invalid);
    // Set again, it holds; and who gives up as the last one takes it away.
    latch.0.set(PARKED);
    assert_eq!(sleep(&latch), ParkResult::TimedOut);
    assert_eq!(latch.word(), WRITER);
}

/// **A validity check gone stale while waiting.** PostgreSQL's pinning checked that the buffer was valid, then
/// waited for the header lock, and then took the pin by a compare-and-swap from the new state, in which the
/// buffer need not be valid any more.
///
/// Here each attempt begins with the state as it is after the wait, and every condition is part of what is
/// swapped from. A condition of the caller's own ("the page is not damaged") that it has checked before it
/// waited must be checked again by the caller: only an upgrade keeps it true.
#[test]
fn a_check_from_before_the_wait() {
    let latch = Latch::new();
    latch.shared();
    let seen = latch.word();
    // Seen free of writers; meanwhile one comes. The swap from what was seen fails.
    latch.unlock_shared();
    latch.exclusive();
    assert!(latch.0.take(seen, seen + 1).is_err());
    assert!(!latch.try_shared());
    // Seen held, so the caller is about to wait; meanwhile it is free, then held anew without the flag.
    latch.0.set(PARKED);
    latch.unlock_exclusive();
    latch.exclusive();
    assert_eq!(sleep(&latch), ParkResult::Invalid);
    latch.unlock_exclusive();
    // An upgrade that waits for a reader keeps what was checked: nobody else gets in.
    latch.shared();
    latch.shared();
    assert!(latch.claim_for_upgrade());
    assert!(!latch.try_shared() && !latch.try_exclusive() && !latch.claim_for_upgrade());
    latch.unlock_shared();
    assert!(latch.drain(1, None));
    latch.unlock_exclusive();
    assert_eq!(latch.word(), 0);
}
