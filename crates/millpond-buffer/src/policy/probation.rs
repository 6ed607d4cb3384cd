//! The clock sweep with probation: a page stays only if it is used again soon.
//!
//! Pages that arrive are on probation. A queue has the frames that were emptied for them, oldest
//! first. Once the queue is longer than its share of the pool, its oldest frames are examined
//! before the hand moves. A page that was not used since it was loaded leaves. A page that was used
//! is admitted: from then on its usage is counted, and the hand examines it as in the plain sweep.
//!
//! A page that comes back within as many evictions as the pool has frames is admitted at once. Like
//! any admitted page, it must be used again before the hand reaches it. So a page that is wanted
//! once passes through the queue's share and displaces no page in steady use, and the hand moves
//! much less.
//!
//! **The share** is a tenth of the pool, if new pages are wanted again soon: that time then shows
//! which ones. If they are as likely to be wanted at any other time, a shorter probation tells as
//! much. Then pages that pass through few frames stay in the processor's caches. Beside a fixed
//! tenth, that takes 7% off the processor time of a miss and adds 0 to 0.3 points of hits (ADR 11).
//!
//! So the policy counts the pages that are wanted again: used on probation, or back within as many
//! evictions as the pool has frames. It also counts those of them that were wanted within a tenth
//! of that number. Of pages wanted at random, these are a tenth. If they are at most twice that,
//! the share shrinks by a quarter each time, down to 2 MB. If they are more, the share is a tenth
//! of the pool again. It is so, too, when the pool is resized: the counts were about another pool.
//!
//! This is S3-FIFO (J. Yang and others, FIFO Queues are All You Need for Cache Eviction, SOSP 2023)
//! on an array of frames. The small queue is [`Probation`] and the main queue is the clock. The
//! ghost queue costs no memory: the translation entry of a page that left says when it left.
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
//! **A hint.** The queue says where to look; the usage is the truth. The queue may miss a frame
//! that was emptied while another session had the queue locked. It may also miss one that was free
//! from the beginning, or whose page was dropped. The hand finds these frames, passes them once,
//! then takes those that are still not used and admits the others. So no frame is lost. No miss
//! waits for the queue: a session that finds it locked goes on without it.

use super::{AHEAD, FRESH, FRESH_USED, PASSED, PASSED_USED, SweepFrames, Swept, Take};
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_sync::sync::Mutex;
use std::collections::VecDeque;

/// At most one frame of this many is for pages on probation.
const FRAMES_PER_NEWCOMER: usize = 10;

/// At least this many frames are for pages on probation, unless that is more than a tenth of the
/// pool. They take 2 MB, the size of a processor's own cache.
const LEAST_SHARE: usize = 256;

/// The number of pages wanted again after which the share is computed anew.
const ENOUGH: u64 = 256;

/// If more than one of this many pages was wanted again soon, new pages need their time.
const WANTED_PER_SOON: u64 = 5;

/// How many frames are judged together, at most.
pub const MAX_NEWCOMERS: usize = 32;

/// The usage of a page that has just been admitted.
const ADMITTED: u8 = 0;

/// The usage of an unwanted page: a victim for the hand, and for the queue if it is the oldest.
pub(crate) const UNWANTED: u8 = PASSED;

/// The usage of a page that comes back soon after it left: zero, as for any admitted page. With
/// a higher count, pages that come back by chance would displace pages in steady use.
const RETURNED: u8 = 0;

/// The usage of a page that has just been loaded. `away`: how many pages have left since it left.
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
        // No usage stands for "returned, not used yet": the first use counts.
        returned => returned,
    }
}

/// The frames that were emptied for new pages, oldest first.
#[derive(Debug, Default)]
pub struct Probation {
    queue: Mutex<VecDeque<u32>>,
    share: CachePadded<Share>,
}

/// The newcomers' share of the frames, and the counts that adapt it. All relaxed: nothing
/// else depends on them.
#[derive(Debug, Default)]
struct Share {
    /// How many frames are missing to a tenth of the pool. Written under the queue's lock.
    shrunk: AtomicUsize,
    /// Pages that were used on probation or came back; in the upper half, how many did so soon.
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

    /// Whether many of the pages that were wanted again were wanted soon. `None` until there are
    /// enough to tell. Each answer resets the counts.
    fn are_many_soon(&self) -> Option<bool> {
        if self.wanted_again.load(Ordering::Relaxed) % SOON < ENOUGH {
            return None;
        }
        let counted = self.wanted_again.swap(0, Ordering::Relaxed);
        Some(counted / SOON * WANTED_PER_SOON > counted % SOON)
    }

    /// The least and the most frames of a pool that the share can have.
    fn bounds(pool: usize) -> (usize, usize) {
        let most = (pool / FRAMES_PER_NEWCOMER).max(1);
        (LEAST_SHARE.min(most), most)
    }

    /// How many frames are missing to the maximum. The stored number may come from a larger pool.
    fn shrunk(&self, pool: usize) -> usize {
        let (least, most) = Self::bounds(pool);
        self.shrunk.load(Ordering::Relaxed).min(most - least)
    }

    /// The share of the pool, in frames. The caller holds the queue's lock.
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

    /// Adds frames that have been emptied and will get new pages. The pool has `pool` frames.
    pub fn push(&self, frames: &[u32], pool: usize) {
        let Some(mut queue) = self.queue.try_lock() else { return };
        // The queue gets longer than that only if no session could pop for long.
        if queue.len() < pool {
            queue.extend(frames);
        }
    }

    /// Adds a frame whose page no session wants, as the oldest.
    pub fn push_oldest(&self, frame: u32, pool: usize) {
        let Some(mut queue) = self.queue.try_lock() else { return };
        if queue.len() < pool {
            queue.push_front(frame);
        }
    }

    /// Takes the oldest frames, at most `wanted`. The newcomers' share of `pool` stays.
    #[must_use]
    pub fn pop(&self, pool: usize, wanted: usize) -> Option<Newcomers> {
        let mut queue = self.queue.try_lock()?;
        let share = self.share.of(pool);
        let surplus = queue.len().saturating_sub(share);
        let mut newcomers = Newcomers { frames: [0; MAX_NEWCOMERS], len: 0 };
        for frame in queue.drain(..surplus.min(wanted).min(MAX_NEWCOMERS)) {
            // The pool may have shrunk.
            if (frame as usize) < pool {
                newcomers.frames[newcomers.len] = frame;
                newcomers.len += 1;
            }
        }
        (newcomers.len > 0).then_some(newcomers)
    }

    /// Notes that a page comes back to a pool of `pool` frames. `away` pages have left since.
    pub fn note_return(&self, away: u64, pool: usize) {
        if away <= pool as u64 {
            // The page was on probation for as many evictions as the share has frames.
            self.share.note(1, away < self.share.shrunk(pool) as u64);
        }
    }

    /// Resets the share after the pool got another size.
    pub fn resized(&self) {
        let _queue = self.queue.lock();
        self.share.shrunk.store(0, Ordering::Relaxed);
        self.share.wanted_again.store(0, Ordering::Relaxed);
    }

    /// Notes which of the newcomers were used on probation. The caller is about to judge them.
    pub(super) fn note_used<F: SweepFrames>(&self, newcomers: &Newcomers, frames: &F) {
        let is_used =
            |frame: &&u32| matches!(frames.usage(**frame as usize), FRESH_USED | PASSED_USED);
        let used = newcomers.frames().iter().filter(is_used).count();
        self.share.note(used as u64, true);
    }
}

/// Judges newcomers: takes those that were not used and admits the others.
pub fn judge<F: SweepFrames>(newcomers: &Newcomers, frames: &F) -> Swept {
    let mut swept = Swept::default();
    for &frame in newcomers.frames() {
        let frame = frame as usize;
        match frames.usage(frame) {
            FRESH | PASSED | AHEAD if !frames.is_pinned(frame) => match frames.take(frame) {
                Take::Taken => swept.taken += 1,
                // It is in use, or must be written first. The hand will find it.
                Take::Pinned | Take::Busy => {
                    frames.set_usage(frame, ADMITTED);
                    swept.hope = true;
                }
            },
            FRESH | PASSED | AHEAD | FRESH_USED | PASSED_USED => {
                frames.set_usage(frame, ADMITTED);
                swept.hope = true;
            }
            // The page was admitted when it was loaded or by the hand, or is another page by now.
            // It is not counted as examined: the sweep gives up after a number of useless
            // examinations, and it has not met this frame yet.
            _ => continue,
        }
        swept.examined += 1;
    }
    swept
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::policy::tests::Toy;
    use crate::policy::{Clock, Piece, lowered, raised, search, sweep, usage_count};

    /// Frames with a usage; 3 is pinned, 4 is busy.
    fn toy(usage: Vec<u8>) -> Toy {
        Toy { usage: usage.into(), pinned: &[3], busy: &[4] }
    }

    #[test]
    fn the_unused_leave_and_the_used_are_admitted() {
        let toy = toy(vec![FRESH, FRESH_USED, 5, FRESH, PASSED, PASSED_USED, PASSED]);
        let probation = Probation::new();
        probation.push(&[0, 1, 2, 3, 4, 5, 6, 99], 7);
        let newcomers = probation.pop(7, 32).expect("seven more than one");
        assert_eq!(newcomers.frames(), [0, 1, 2, 3, 4, 5, 6]);
        assert!(probation.pop(7, 32).is_none(), "what is left is their share");
        let swept = judge(&newcomers, &toy);
        assert_eq!(swept, Swept { taken: 2, examined: 6, hope: true });
        assert_eq!(*toy.usage.borrow(), [FRESH, 0, 5, 0, 0, 0, PASSED]);
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

    /// A long probation is needed only if some pages come back soon.
    #[test]
    fn the_share_follows_how_soon_pages_are_wanted_again() {
        let (probation, pool) = (Probation::new(), 10_000);
        let share_after = |soon: u64, late: u64| {
            (0..soon).for_each(|away| probation.note_return(away % 100, pool));
            (0..late).for_each(|away| probation.note_return(2000 + away, pool));
            // These were away for so long that they count as new.
            (0..late).for_each(|away| probation.note_return(10_001 + away, pool));
            probation.share.of(pool)
        };
        assert_eq!(share_after(0, ENOUGH - 1), 1000, "not enough to tell");
        assert_eq!((share_after(0, 1), share_after(0, 0)), (750, 750));
        // These are a fifth of those that came back.
        assert_eq!(share_after(ENOUGH / 4, ENOUGH), 563);
        for _ in 0..10 {
            share_after(0, ENOUGH);
        }
        assert_eq!(share_after(0, ENOUGH), LEAST_SHARE);
        assert_eq!(share_after(ENOUGH / 3, ENOUGH), 1000);
        // No page can be away for less than no time, but pages were used on probation.
        let toy = toy(vec![FRESH_USED; 100]);
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
        // Before `resized`, pages of a smaller pool are judged by that pool's own share.
        (0..ENOUGH).for_each(|_| probation.note_return(1000, 5000));
        assert_eq!(probation.share.wanted_again.load(Ordering::Relaxed), ENOUGH, "none was soon");
        probation.resized();
        assert_eq!([5000, 100_000].map(|pool| probation.share.of(pool)), [500, 10_000]);
        assert_eq!(shrink(5000), 375, "and is thought over from there");
    }

    #[test]
    fn hand_judges_pages_missing_from_queue() {
        let toy = toy(vec![FRESH, FRESH_USED]);
        let (clock, mut piece) = (Clock::new(2, 2), Piece::default());
        assert_eq!(sweep(&clock, &mut piece, &toy, 2).taken, 0);
        assert_eq!(*toy.usage.borrow(), [PASSED, PASSED_USED]);
        assert_eq!(sweep(&clock, &mut piece, &toy, 2).taken, 1);
        assert_eq!(*toy.usage.borrow(), [PASSED, 1]);
    }

    /// One barrier settles all finds, so a search goes on after a few, but not after none.
    #[test]
    fn a_search_fills_its_batch() {
        let toy = toy(vec![FRESH, FRESH, 5, 0, 0, 0, 0, 0]);
        let (clock, mut piece) = (Clock::new(8, 4), Piece::default());
        let probation = Probation::new();
        probation.push(&[0, 1], 8);
        // A newcomer beyond the queue's share. Then the hand first meets 0 and 1; 3 is pinned.
        let mut limit = MAX_NEWCOMERS;
        let swept = search(&clock, &mut piece, Some(&probation), &toy, 3, &mut limit);
        assert_eq!(
            (swept, limit),
            (Swept { taken: 1, examined: 5, hope: true }, MAX_NEWCOMERS - 1)
        );
        // Three frames of the next piece, in which 4 is busy.
        let swept = search(&clock, &mut piece, Some(&probation), &toy, 3, &mut limit);
        assert_eq!(swept, Swept { taken: 3, examined: 4, hope: true });
    }

    #[test]
    fn page_that_returns_soon_is_admitted_at_once() {
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
