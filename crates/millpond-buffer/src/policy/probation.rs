//! The clock sweep with probation: a page must be used again soon to stay.
//!
//! Pages that arrive are on probation. A queue has the frames that were emptied for them, oldest first; once it is
//! longer than its share of the pool, its oldest frames are examined before the hand moves. A page that has
//! not been used since it was loaded leaves. One that has is admitted: from then on its usage is counted and the
//! hand examines it, as in the plain sweep. A page that comes back soon after it left, within as many
//! evictions as the pool has frames, is admitted at once, and like any that is admitted must be used again before
//! the hand comes. So a page that is wanted once passes through that share instead of displacing one that
//! is in steady use, and the hand moves much less.
//!
//! **The share** is a tenth of the pool, if new pages are wanted again soon: then that time shows which. If they are wanted
//! again at any time as likely as at any other, a shorter probation tells as much, and pages that pass through
//! few frames pass through the processor's caches instead of through memory. So of the pages that are used on probation, or
//! come back within as many evictions as the pool has frames, those are counted that did so within a tenth of that; of pages
//! that are wanted at random these are a tenth. Up to twice as many, and the share shrinks, by a quarter at a time, down to 2 MB; more,
//! and it is a tenth of the pool again. So it is when the pool gets another size: what was counted then tells about another pool.
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
//! **Cost.** A hit writes at most once while a page is on probation. A miss costs nothing beyond the plain sweep, or one
//! write if the page comes back; a batch of up to 32 frames costs two takings of the queue's lock.

use super::clock::{AHEAD, FRESH, FRESH_USED, PASSED, PASSED_USED, SweepFrames, Swept, Take};
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_sync::sync::Mutex;
use std::collections::VecDeque;

/// Of so many frames, one is for pages on probation, at most.
const FRAMES_PER_NEWCOMER: usize = 10;

/// So many frames are for pages on probation at least, if that is not more than a tenth of the pool: 2 MB, which is what a
/// processor has as cache of its own.
const LEAST_SHARE: usize = 256;

/// After so many pages that were wanted again the share is thought over.
const ENOUGH: u64 = 256;

/// If of so many pages that were wanted again more than one was so soon, new pages need their time.
const WANTED_PER_SOON: u64 = 5;

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
    share: CachePadded<Share>,
}

/// How many frames the newcomers have, and what tells whether that is right. Relaxed: nothing else depends on it.
#[derive(Debug, Default)]
struct Share {
    /// By how many frames it is less than a tenth of the pool. Written under the queue's lock.
    shrunk: AtomicUsize,
    /// Pages that were used on probation or came back; in the upper half, how many were wanted again so soon.
    wanted_again: AtomicU64,
}

const SOON: u64 = 1 << 32;

impl Share {
    fn note(&self, pages: u64, soon: bool) {
        if pages > 0 {
            let pages = pages * if soon { 1 + SOON } else { 1 };
            self.wanted_again.fetch_add(pages, Ordering::Relaxed);
        }
    }

    /// Whether many of the pages that were wanted again were so soon, once there are enough to tell. Then it begins again.
    fn are_many_soon(&self) -> Option<bool> {
        if self.wanted_again.load(Ordering::Relaxed) % SOON < ENOUGH {
            return None;
        }
        let counted = self.wanted_again.swap(0, Ordering::Relaxed);
        Some(counted / SOON * WANTED_PER_SOON > counted % SOON)
    }

    /// The least and the most frames that it is of a pool.
    fn bounds(pool: usize) -> (usize, usize) {
        let most = (pool / FRAMES_PER_NEWCOMER).max(1);
        (LEAST_SHARE.min(most), most)
    }

    /// By how many frames it is less than it may be. Whoever thought it over last may have had a larger pool.
    fn shrunk(&self, pool: usize) -> usize {
        let (least, most) = Self::bounds(pool);
        self.shrunk.load(Ordering::Relaxed).min(most - least)
    }

    /// How many frames of the pool. The caller has the queue.
    fn of(&self, pool: usize) -> usize {
        let (least, most) = Self::bounds(pool);
        let share = most - self.shrunk(pool);
        let Some(many) = self.are_many_soon() else { return share };
        let share = if many { most } else { (share - share / 4).max(least) };
        self.shrunk.store(most - share, Ordering::Relaxed);
        share
    }
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
        let share = self.share.of(pool);
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

    /// Notes that a page comes back to a pool of `pool` frames: so many pages have left since it did.
    pub fn note_return(&self, away: u64, pool: usize) {
        if away <= pool as u64 {
            // On probation it was for as many evictions as the share has frames.
            self.share.note(1, away < self.share.shrunk(pool) as u64);
        }
    }

    /// The pool has another size: its share begins anew.
    pub fn resized(&self) {
        let _queue = self.queue.lock();
        self.share.shrunk.store(0, Ordering::Relaxed);
        self.share.wanted_again.store(0, Ordering::Relaxed);
    }

    /// Notes which of the newcomers, which are about to be judged, were used on probation.
    pub(super) fn note_used<F: SweepFrames>(&self, newcomers: &Newcomers, frames: &F) {
        let is_used =
            |frame: &&u32| matches!(frames.usage(**frame as usize), FRESH_USED | PASSED_USED);
        let used = newcomers.frames().iter().filter(is_used).count();
        self.share.note(used as u64, true);
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

    /// Pages that come back at any time alike need no long probation; some that come back soon do.
    #[test]
    fn the_share_follows_how_soon_pages_are_wanted_again() {
        let (probation, pool) = (Probation::new(), 10_000);
        let share_after = |soon: u64, late: u64| {
            (0..soon).for_each(|away| probation.note_return(away % 100, pool));
            (0..late).for_each(|away| probation.note_return(2000 + away, pool));
            // As good as never there.
            (0..late).for_each(|away| probation.note_return(10_001 + away, pool));
            probation.share.of(pool)
        };
        assert_eq!(share_after(0, ENOUGH - 1), 1000, "not enough to tell");
        assert_eq!((share_after(0, 1), share_after(0, 0)), (750, 750));
        // A fifth of those that came back.
        assert_eq!(share_after(ENOUGH / 4, ENOUGH), 563);
        for _ in 0..10 {
            share_after(0, ENOUGH);
        }
        assert_eq!(share_after(0, ENOUGH), LEAST_SHARE);
        assert_eq!(share_after(ENOUGH / 3, ENOUGH), 1000);
        // Nothing has been away for less than no time, but pages were used on probation.
        let toy = Toy(vec![FRESH_USED; 100].into());
        probation.push(&(0..10).collect::<Vec<_>>(), 10_000);
        let newcomers = probation.pop(20, 8).expect("more than two");
        assert_eq!(share_after(0, ENOUGH), 750);
        (0..ENOUGH / 8).for_each(|_| probation.note_used(&newcomers, &toy));
        assert_eq!(share_after(0, 0), 1000);
        assert_eq!(probation.share.of(100), 10, "a small pool has a tenth whatever happens");
    }

    #[test]
    fn a_pool_of_another_size_begins_with_the_whole_share() {
        let probation = Probation::new();
        let shrink = |pool: usize| {
            (0..ENOUGH).for_each(|_| probation.note_return(pool as u64, pool));
            probation.share.of(pool)
        };
        while shrink(100_000) > LEAST_SHARE {}
        // Before anybody has been told, pages of a smaller pool are judged by its own share.
        (0..ENOUGH).for_each(|_| probation.note_return(1000, 5000));
        assert_eq!(probation.share.wanted_again.load(Ordering::Relaxed), ENOUGH, "none was soon");
        probation.resized();
        assert_eq!([5000, 100_000].map(|pool| probation.share.of(pool)), [500, 10_000]);
        assert_eq!(shrink(5000), 375, "and is thought over from there");
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
