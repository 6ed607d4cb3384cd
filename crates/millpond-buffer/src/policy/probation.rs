//! The clock sweep with probation: a page must be used again soon to stay.
//!
//! Pages that arrive are on probation. A queue has the frames that were emptied for them, oldest first; once it is
//! longer than a tenth of the pool, its oldest frames are examined before the hand moves. A page that has
//! not been used since it was loaded leaves. One that has is admitted: from then on its usage is counted and the
//! hand examines it, as in the plain sweep. A page that comes back soon after it left, within as many
//! evictions as the pool has frames, is admitted at once, and like any that is admitted must be used again before
//! the hand comes. So a page that is wanted once passes through a tenth of the pool instead of displacing one that
//! is in steady use, and the hand moves much less.
//!
//! This is S3-FIFO (J. Yang and others, FIFO Queues are All You Need for Cache Eviction, SOSP 2023) on an array of
//! frames: the small queue is [`Probation`], the main queue is the clock, and the ghost queue costs no memory:
//! the translation entry of a page that left says when.
//!
//! **State of a frame's usage**, four bits:
//!
//! ```text
//!   0 to 5    admitted: the usage count
//!   8, 9      on probation: not used since it was loaded, used
//!   6, 7      the same, and the hand has passed
//!   10        on probation, read ahead: its first use makes it 8
//! ```
//!
//! **A hint.** The queue says where to look, the usage says what is true. Frames that the queue does not know (it was
//! locked by another session when they were emptied, they were free from the beginning, their page was dropped)
//! are met by the hand, which passes them once, and then takes those that are still not used and admits the
//! others. So nothing is lost, and the queue never makes anybody wait: who finds it locked goes on without.
//!
//! **Cost.** A hit writes at most once while a page is on probation. A miss costs nothing beyond the plain sweep; a
//! batch of up to 32 frames costs two takings of the queue's lock.

use super::clock::{AHEAD, FRESH, FRESH_USED, PASSED, PASSED_USED, SweepFrames, Swept, Take};
use millpond_sync::sync::Mutex;
use std::collections::VecDeque;

/// Of so many frames, one is for pages on probation.
const FRAMES_PER_NEWCOMER: usize = 10;

/// Frames that are examined together.
pub const MAX_NEWCOMERS: usize = 32;

/// The usage of a page that is admitted, without having been used since.
const ADMITTED: u8 = 0;

/// The usage of a page that nobody wants: if it is the oldest on probation, the next to need room gets its frame.
pub(crate) const UNWANTED: u8 = PASSED;

/// The usage with which a page comes back soon after it left. None: it has to be used again before the hand comes,
/// like one that is admitted, or pages that come back by chance displace those in steady use.
const RETURNED: u8 = 0;

/// The usage of a page that has just been loaded. `away`: how many pages have left since it left itself.
#[must_use]
pub fn usage_on_probation(away: Option<u64>, frames: usize) -> u8 {
    match away {
        Some(away) if away <= frames as u64 => RETURNED,
        _ => FRESH,
    }
}

/// The usage of a page that has just been read ahead.
#[must_use]
pub fn usage_ahead_on_probation(away: Option<u64>, frames: usize) -> u8 {
    match usage_on_probation(away, frames) {
        FRESH => AHEAD,
        // There is nothing below it for a use that is yet to come: this one counts.
        returned => returned,
    }
}

/// The frames that were emptied for new pages, oldest first.
#[derive(Debug, Default)]
pub struct Probation {
    queue: Mutex<VecDeque<u32>>,
}

/// Frames whose pages are to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Newcomers {
    frames: [u32; MAX_NEWCOMERS],
    len: usize,
}

impl Newcomers {
    /// The frames, oldest first.
    #[must_use]
    pub fn frames(&self) -> &[u32] {
        &self.frames[..self.len]
    }
}

impl Probation {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes frames, out of a pool of `pool` frames, that have been emptied and will get new pages.
    pub fn push(&self, frames: &[u32], pool: usize) {
        let Some(mut queue) = self.queue.try_lock() else { return };
        // Longer than that only if nobody could pop for long.
        if queue.len() < pool {
            queue.extend(frames);
        }
    }

    /// Notes a frame whose page nobody wants: as the oldest.
    pub fn push_oldest(&self, frame: u32, pool: usize) {
        let Some(mut queue) = self.queue.try_lock() else { return };
        if queue.len() < pool {
            queue.push_front(frame);
        }
    }

    /// Takes the oldest frames, at most `wanted`, as far as there are more than their share of `pool`.
    #[must_use]
    pub fn pop(&self, pool: usize, wanted: usize) -> Option<Newcomers> {
        let mut queue = self.queue.try_lock()?;
        let share = (pool / FRAMES_PER_NEWCOMER).max(1);
        let surplus = queue.len().saturating_sub(share);
        let mut newcomers = Newcomers { frames: [0; MAX_NEWCOMERS], len: 0 };
        for frame in queue.drain(..surplus.min(wanted).min(MAX_NEWCOMERS)) {
            // The pool may have become smaller.
            if (frame as usize) < pool {
                newcomers.frames[newcomers.len] = frame;
                newcomers.len += 1;
            }
        }
        (newcomers.len > 0).then_some(newcomers)
    }
}

/// Judges newcomers: takes those that were not used, admits the others.
pub fn judge<F: SweepFrames>(newcomers: &Newcomers, frames: &F) -> Swept {
    let mut swept = Swept::default();
    for &frame in newcomers.frames() {
        let frame = frame as usize;
        match frames.usage(frame) {
            FRESH | PASSED | AHEAD if !frames.is_pinned(frame) => match frames.take(frame) {
                Take::Taken => swept.taken += 1,
                // In use, or to be written first: then the hand will find it.
                Take::Pinned | Take::Busy => {
                    frames.set_usage(frame, ADMITTED);
                    swept.hope = true;
                }
            },
            FRESH | PASSED | AHEAD | FRESH_USED | PASSED_USED => {
                frames.set_usage(frame, ADMITTED);
                swept.hope = true;
            }
            // Admitted when it was loaded, or by the hand; or another page's by now. Not counted: the sweep
            // gives up after having examined so many frames in vain, but these it has yet to meet.
            _ => continue,
        }
        swept.examined += 1;
    }
    swept
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::policy::{Clock, Piece, lowered, raised, search, sweep, usage_count};
    use std::cell::RefCell;

    /// Frames with a usage; 3 is pinned, 4 is busy.
    struct Toy(RefCell<Vec<u8>>);

    impl SweepFrames for Toy {
        fn is_pinned(&self, frame: usize) -> bool {
            frame == 3
        }
        fn usage(&self, frame: usize) -> u8 {
            self.0.borrow()[frame]
        }
        fn set_usage(&self, frame: usize, usage: u8) {
            self.0.borrow_mut()[frame] = usage;
        }
        fn take(&self, frame: usize) -> Take {
            if frame == 4 { Take::Busy } else { Take::Taken }
        }
    }

    #[test]
    fn the_unused_leave_and_the_used_are_admitted() {
        let toy = Toy(vec![FRESH, FRESH_USED, 5, FRESH, PASSED, PASSED_USED, PASSED].into());
        let probation = Probation::new();
        probation.push(&[0, 1, 2, 3, 4, 5, 6, 99], 7);
        let newcomers = probation.pop(7, 32).expect("seven more than one");
        assert_eq!(newcomers.frames(), [0, 1, 2, 3, 4, 5, 6]);
        assert!(probation.pop(7, 32).is_none(), "what is left is their share");
        let swept = judge(&newcomers, &toy);
        assert_eq!(swept, Swept { taken: 2, examined: 6, hope: true });
        assert_eq!(*toy.0.borrow(), [FRESH, 0, 5, 0, 0, 0, PASSED]);
    }

    #[test]
    fn the_oldest_come_first_and_their_share_stays() {
        let probation = Probation::new();
        probation.push(&[7, 8, 9], 20);
        probation.push(&[10], 20);
        assert_eq!(probation.pop(20, 1).expect("two more than two").frames(), [7]);
        assert_eq!(probation.pop(20, 32).expect("one more than two").frames(), [8]);
        assert!(probation.pop(20, 32).is_none());
    }

    #[test]
    fn the_hand_judges_who_was_forgotten() {
        let toy = Toy(vec![FRESH, FRESH_USED].into());
        let (clock, mut piece) = (Clock::new(2, 2), Piece::default());
        assert_eq!(sweep(&clock, &mut piece, &toy, 2).taken, 0);
        assert_eq!(*toy.0.borrow(), [PASSED, PASSED_USED]);
        assert_eq!(sweep(&clock, &mut piece, &toy, 2).taken, 1);
        assert_eq!(*toy.0.borrow(), [PASSED, 1]);
    }

    /// What was found is settled by one barrier, so that a handful is not enough; but nothing is searched for in vain.
    #[test]
    fn a_search_fills_its_batch() {
        let toy = Toy(vec![FRESH, FRESH, 5, 0, 0, 0, 0, 0].into());
        let (clock, mut piece) = (Clock::new(8, 4), Piece::default());
        let probation = Probation::new();
        probation.push(&[0, 1], 8);
        // A newcomer beyond the queue's share; then the hand: 0 is met for the first time, as is 1; 3 is pinned.
        let mut limit = MAX_NEWCOMERS;
        let swept = search(&clock, &mut piece, Some(&probation), &toy, 3, &mut limit);
        assert_eq!(
            (swept, limit),
            (Swept { taken: 1, examined: 5, hope: true }, MAX_NEWCOMERS - 1)
        );
        // Three of the next piece, in which 4 is busy.
        let swept = search(&clock, &mut piece, Some(&probation), &toy, 3, &mut limit);
        assert_eq!(swept, Swept { taken: 3, examined: 4, hope: true });
    }

    #[test]
    fn who_returns_soon_is_admitted_at_once() {
        assert_eq!(usage_on_probation(None, 100), FRESH);
        assert_eq!(usage_on_probation(Some(101), 100), FRESH);
        assert_eq!(usage_on_probation(Some(100), 100), RETURNED);
        for away in [None, Some(1000)] {
            let ahead = usage_ahead_on_probation(away, 100);
            assert_eq!(raised(ahead), Some(usage_on_probation(away, 100)));
        }
        assert_eq!(usage_ahead_on_probation(Some(5), 100), RETURNED);
    }

    #[test]
    fn one_use_is_noted_once() {
        assert_eq!((raised(FRESH), raised(FRESH_USED)), (Some(FRESH_USED), None));
        assert_eq!((raised(PASSED), raised(PASSED_USED)), (Some(PASSED_USED), None));
        assert!((0..5).all(|usage| raised(usage) == Some(usage + 1)) && raised(5).is_none());
        assert_eq!((lowered(FRESH), lowered(FRESH_USED)), (Some(PASSED), Some(PASSED_USED)));
        let all: Vec<_> = (0..=AHEAD).map(usage_count).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 0, 1, 0, 1, 0]);
    }
}
