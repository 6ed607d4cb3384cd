//! Tests against three kinds of bugs of PostgreSQL 19. They arose when it moved the lock of a
//! page's contents, the pin count and the flags into one word that single atomic operations change.
//! Each test goes through a bug's steps on one thread; in the models every thread takes every step
//! at any time.

use super::super::turn::Turn;
use super::super::word::{DRAINING, PARKED, READERS, WOKEN, WRITER};
use super::*;
use crate::parking::ParkResult;

/// **A wake-up lost because a release became legal under the header lock.** PostgreSQL's cleanup
/// lock checked the pin count and set its waiting flag under the buffer's header lock. That lock
/// used to keep others from unpinning. Then unpinning became one atomic subtraction that needs no
/// lock. It could happen between the check and the flag: the last holder saw no flag and woke no
/// thread.
///
/// Here a reader's release is such a subtraction. So the writer that waits for it checks again
/// under the queue's lock, after its flag is set.
#[test]
fn a_release_between_the_look_and_the_flag() {
    let latch = Latch::new();
    latch.shared();
    // A writer claims the latch and looks: a reader is in, so the writer will wait.
    latch.0.store(WRITER | 1);
    assert!(latch.word() & READERS != 0);
    // The reader leaves. It sees no flag and wakes no thread.
    latch.unlock_shared();
    // The writer sets its flag and goes to sleep.
    assert_eq!(latch.park_drainer(), ParkResult::Invalid);
    assert_eq!(latch.word(), WRITER | DRAINING);
    latch.drain();
    assert_eq!(latch.word(), WRITER);
}

/// The same between the flag and the sleep: the reader finds no parked thread to wake.
#[test]
fn a_release_between_the_flag_and_the_sleep() {
    let latch = Latch::new();
    latch.0.store(WRITER | DRAINING | 1);
    latch.unlock_shared();
    assert_eq!(latch.park_drainer(), ParkResult::Invalid);

    let latch = Latch::new();
    latch.0.store(WRITER | PARKED);
    latch.unlock_exclusive();
    assert!(!latch.is_marked());
    assert_eq!(latch.word(), 0);
}

/// **A flag both set and cleared, which loses the set.** PostgreSQL's end of a buffer's I/O called
/// one function to set the error flag. The flags that every end of I/O clears included this flag.
/// The function set flags first and cleared afterwards, so no buffer ever had the flag.
///
/// Here a release clears WRITER, and sets it if it grants the latch to a waiting writer. The set
/// must win, in every state and for every turn. No other bit may change, except as the table says.
#[test]
fn a_flag_that_is_set_and_cleared_is_set() {
    for (state, stay) in [(WRITER, 0), (WRITER, 1), (WRITER | 3, 0), (WRITER | DRAINING | 3, 1)] {
        for case in 0..32 {
            let flag = |bit: u32| case >> bit & 1 != 0;
            let turn = Turn { readers: u32::from(flag(0)) * 5, writer: flag(1), grant: flag(2) };
            let (more, parked) = (flag(3), flag(4));
            if more && !turn.writer {
                // No thread stays behind unless a writer is woken before it.
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

/// Until a woken writer has looked, releases leave the queue to it, whatever else they change.
#[test]
fn release_leaves_the_queue_to_the_woken_writer() {
    let latch = Latch::new();
    latch.0.store(WRITER | PARKED | WOKEN);
    latch.unlock_exclusive();
    assert_eq!(latch.word(), PARKED | WOKEN);
    assert!(latch.try_exclusive());
    latch.downgrade();
    assert_eq!(latch.word(), PARKED | WOKEN | 1);
}

/// The same by two threads: one sets PARKED, and another, which finds the queue empty, clears it.
/// So the first must not sleep on the flag, though a third thread holds the latch as a writer.
#[test]
fn waiter_does_not_sleep_on_a_cleared_flag() {
    let latch = Latch::new();
    latch.exclusive();
    latch.0.set(PARKED);
    latch.unlock_exclusive();
    assert!(latch.try_exclusive());
    assert!(!latch.is_marked());
    latch.0.set(PARKED);
    assert!(latch.is_marked());
}

/// **A validity check that is stale after a wait.** PostgreSQL's pinning checked that the buffer
/// was valid, then waited for the header lock. Then it took the pin by a compare-and-swap from the
/// new state, in which the buffer might not be valid any more.
///
/// Here each attempt begins with the state after the wait, and every condition is part of the value
/// that the swap expects. A caller's own condition ("the page is not damaged") that it checked
/// before it waited must be checked again by the caller.
#[test]
fn state_seen_before_a_wait_is_not_reused() {
    let latch = Latch::new();
    latch.shared();
    let seen = latch.word();
    // The caller saw no writer; then one comes. The swap from the seen state fails.
    latch.unlock_shared();
    latch.exclusive();
    assert!(latch.0.take(seen, seen + 1).is_err());
    assert!(!latch.try_shared());
    // The caller saw the latch held and is about to wait. Meanwhile the latch is released, then
    // taken again without the flag.
    latch.0.set(PARKED);
    latch.unlock_exclusive();
    latch.exclusive();
    assert!(!latch.is_marked());
    latch.unlock_exclusive();
    assert_eq!(latch.word(), 0);
}
