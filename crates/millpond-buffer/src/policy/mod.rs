//! The replacement policy: which page leaves memory. It knows no pages and no I/O, so that the pool
//! and a simulator run the same code.
//!
//! Both policies have a hand that goes round the frames ([`sweep`]): the clock sweep with usage
//! counts, as in PostgreSQL. [`ReplacementPolicy::Probation`] first examines the pages that arrived
//! lately ([`Probation`], [`judge`]).
//!
//! A page's usage count rises by one when the page is used, up to [`MAX_USAGE`]. The hand lowers
//! the count of every unpinned frame that it passes, and takes the first frame whose count is
//! already zero. It passes over pinned frames. The pool finds sessions' pins only when it takes a
//! frame. A pinned one then gets back the count that it had when the hand first met it since its
//! last use, but at least one.
//!
//! Sessions share the hand. A session advances it by a batch of frames and examines that piece
//! alone, so the hand is written once per batch (rule 8). The session takes what the piece offers,
//! up to the number that it was asked for. If the session does other things first, the piece's
//! frames are merely examined a little late.

use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(crate) use probation::UNWANTED;
pub use probation::{
    MAX_NEWCOMERS, Newcomers, Probation, judge, usage_ahead_on_probation, usage_on_probation,
};
use std::ops::AddAssign;

mod probation;

/// The usage of a page that has just been loaded under [`ReplacementPolicy::ClockSweep`], or in a
/// ring.
pub(crate) const FIRST_USAGE: u8 = 1;

/// The usage of a page that the hand takes.
pub(crate) const SPENT: u8 = 0;

/// The policies that a pool can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum ReplacementPolicy {
    /// The clock sweep with usage counts, as in PostgreSQL.
    ClockSweep,
    /// The clock sweep, with probation for pages that arrive.
    #[default]
    Probation,
}

impl ReplacementPolicy {
    /// The usage of a page that has just been loaded. If the page was in memory before, `away` says
    /// how many pages have left memory since it left, where that is known.
    #[inline]
    #[must_use]
    pub fn first_usage(self, away: Option<u64>, frames: usize) -> u8 {
        match self {
            Self::ClockSweep => FIRST_USAGE,
            Self::Probation => usage_on_probation(away, frames),
        }
    }

    /// The usage of a page that has been read ahead of its first use.
    #[must_use]
    pub fn first_usage_ahead(self, away: Option<u64>, frames: usize) -> u8 {
        match self {
            Self::ClockSweep => FIRST_USAGE,
            Self::Probation => usage_ahead_on_probation(away, frames),
        }
    }

    /// The queue that the policy needs.
    #[must_use]
    pub fn probation(self) -> Option<Probation> {
        (self == Self::Probation).then(Probation::new)
    }
}

/// After a find, a search ends when it has examined this many frames for each that is wanted.
const EXAMINED_PER_FRAME: usize = 4;

/// Judges newcomers, or sweeps a piece if there are none, for up to `wanted` frames. `limit`: how
/// many newcomers may still be judged.
///
/// The search ends at once if its first part takes nothing. Otherwise it goes on, because taking
/// more is cheap and settling is not. The barrier interrupts every processor that the process runs
/// on, and newcomers come in small numbers. It ends when it has enough frames, when a part takes
/// none, or when it has examined many.
pub fn search<F: SweepFrames>(
    clock: &Clock,
    piece: &mut Piece,
    probation: Option<&Probation>,
    frames: &F,
    wanted: usize,
    limit: &mut usize,
) -> Swept {
    let mut swept = Swept::default();
    loop {
        let missing = wanted.saturating_sub(swept.taken);
        let queue = probation.filter(|_| *limit > 0);
        let part = match queue.and_then(|queue| queue.pop(clock.frames(), missing)) {
            Some(newcomers) => {
                *limit = limit.saturating_sub(newcomers.frames().len());
                if let Some(queue) = queue {
                    queue.note_used(&newcomers, frames);
                }
                judge(&newcomers, frames)
            }
            None => sweep(clock, piece, frames, missing),
        };
        swept += part;
        let is_long = swept.examined >= EXAMINED_PER_FRAME * wanted;
        if part.taken == 0 || swept.taken >= wanted || is_long {
            return swept;
        }
    }
}

/// The highest usage count.
pub const MAX_USAGE: u8 = 5;

/// On probation, not used since it was loaded. (`probation.rs` explains these five values.)
const FRESH: u8 = 8;
/// On probation, used.
const FRESH_USED: u8 = 9;
/// On probation, not used since it was loaded, and the hand has passed.
const PASSED: u8 = 6;
/// On probation, used, and the hand has passed.
const PASSED_USED: u8 = 7;

/// On probation, read ahead of its first use.
const AHEAD: u8 = 10;

/// The usages that a use raises, as bits: counts below the highest, and unused ones on probation.
const RAISABLE: u16 = ((1 << MAX_USAGE) - 1) | 1 << FRESH | 1 << PASSED | 1 << AHEAD;

/// The usage after one more use, if that differs.
#[inline]
#[must_use]
pub fn raised(usage: u8) -> Option<u8> {
    if RAISABLE >> (usage & 0xf) & 1 == 0 {
        return None;
    }
    // The use that a page was read ahead for counts as its load, not as a further use.
    Some(if usage == AHEAD { FRESH } else { usage + 1 })
}

/// The usage after the hand has passed, if that differs.
#[inline]
#[must_use]
pub fn lowered(usage: u8) -> Option<u8> {
    match usage {
        0 | PASSED => None,
        FRESH | AHEAD => Some(PASSED),
        FRESH_USED => Some(PASSED_USED),
        PASSED_USED => Some(1),
        count => Some(count - 1),
    }
}

/// Whether the hand takes a frame with this usage.
#[inline]
#[must_use]
pub fn is_spent(usage: u8) -> bool {
    lowered(usage).is_none()
}

/// How often the page was used, as far as the policy counts: 0 to [`MAX_USAGE`].
#[inline]
#[must_use]
pub fn usage_count(usage: u8) -> u8 {
    match usage {
        FRESH | PASSED | AHEAD => 0,
        FRESH_USED | PASSED_USED => 1,
        count => count,
    }
}

/// The result of taking a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Take {
    /// The frame is the caller's.
    Taken,
    /// The frame is pinned.
    Pinned,
    /// The frame can't be taken now, but later: another session is loading, writing or taking it,
    /// or its page must be written first.
    Busy,
}

/// The frames that the hand goes round.
pub trait SweepFrames {
    /// Whether the frame is pinned (or in no state to be examined).
    fn is_pinned(&self, frame: usize) -> bool;
    /// Its usage count.
    fn usage(&self, frame: usize) -> u8;
    /// Sets its usage count.
    fn set_usage(&self, frame: usize, usage: u8);
    /// Takes the frame, if no other session uses it.
    fn take(&self, frame: usize) -> Take;
}

/// The hand.
#[derive(Debug)]
pub struct Clock {
    hand: AtomicU64,
    taken: AtomicU64,
    frames: AtomicUsize,
    batch: usize,
}

/// The part of the circle that one session still has to examine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Piece {
    next: u64,
    end: u64,
}

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// How many frames it took.
    pub taken: usize,
    /// How many frames it examined.
    pub examined: usize,
    /// Whether a frame was only busy or had its usage lowered: another try may succeed.
    pub hope: bool,
}

impl AddAssign for Swept {
    fn add_assign(&mut self, other: Self) {
        self.taken += other.taken;
        self.examined += other.examined;
        self.hope |= other.hope;
    }
}

impl Clock {
    /// A hand over `frames` frames, advanced by at most `batch` at a time.
    #[must_use]
    pub fn new(frames: usize, batch: usize) -> Self {
        Self {
            hand: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            frames: AtomicUsize::new(frames.max(1)),
            batch: batch.max(1),
        }
    }

    /// Sets the number of frames that the hand goes round. The store is Release and the loads are
    /// Acquire, so a session that examines a new frame sees how the caller prepared it.
    pub fn resize(&self, frames: usize) {
        self.frames.store(frames.max(1), Ordering::Release);
    }

    fn frames(&self) -> usize {
        self.frames.load(Ordering::Acquire)
    }

    /// How many frames the hand has passed since the beginning.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.hand.load(Ordering::Relaxed)
    }

    /// How many frames have been taken from their pages: the clock that pages' ages are counted by.
    #[inline]
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Counts frames that have been taken, a batch at a time.
    pub fn count_taken(&self, frames: usize) {
        self.taken.fetch_add(frames as u64, Ordering::Relaxed);
    }

    /// Advances the hand, if the piece is used up.
    #[inline]
    fn refill(&self, piece: &mut Piece) {
        if piece.next == piece.end {
            let batch = self.batch.min(self.frames()) as u64;
            piece.next = self.hand.fetch_add(batch, Ordering::Relaxed);
            piece.end = piece.next.wrapping_add(batch);
        }
    }

    /// The next frame of the piece to examine.
    #[inline]
    fn step(&self, piece: &mut Piece) -> Option<usize> {
        if piece.next == piece.end {
            return None;
        }
        let frame = (piece.next % self.frames() as u64) as usize;
        piece.next = piece.next.wrapping_add(1);
        Some(frame)
    }
}

/// Examines the rest of a piece, or a new one, until it has taken `wanted` frames (at least one) or
/// the piece is used up.
pub fn sweep<F: SweepFrames>(clock: &Clock, piece: &mut Piece, frames: &F, wanted: usize) -> Swept {
    let mut swept = Swept::default();
    clock.refill(piece);
    while let Some(frame) = clock.step(piece) {
        swept.examined += 1;
        if frames.is_pinned(frame) {
            continue;
        }
        if let Some(lower) = lowered(frames.usage(frame)) {
            frames.set_usage(frame, lower);
            swept.hope = true;
            continue;
        }
        match frames.take(frame) {
            Take::Taken => swept.taken += 1,
            Take::Pinned => {}
            Take::Busy => swept.hope = true,
        }
        if swept.taken >= wanted.max(1) {
            break;
        }
    }
    swept
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Frames with a usage each, some of which are pinned or busy.
    pub(super) struct Toy {
        pub(super) usage: RefCell<Vec<u8>>,
        pub(super) pinned: &'static [usize],
        pub(super) busy: &'static [usize],
    }

    impl Toy {
        fn new<const N: usize>(usage: [u8; N], pinned: &'static [usize]) -> Self {
            Self { usage: RefCell::new(usage.into()), pinned, busy: &[] }
        }
    }

    impl SweepFrames for Toy {
        fn is_pinned(&self, frame: usize) -> bool {
            self.pinned.contains(&frame)
        }
        fn usage(&self, frame: usize) -> u8 {
            self.usage.borrow()[frame]
        }
        fn set_usage(&self, frame: usize, usage: u8) {
            self.usage.borrow_mut()[frame] = usage;
        }
        fn take(&self, frame: usize) -> Take {
            if self.busy.contains(&frame) { Take::Busy } else { Take::Taken }
        }
    }

    fn swept(taken: usize, examined: usize, hope: bool) -> Swept {
        Swept { taken, examined, hope }
    }

    #[test]
    fn sweep_takes_frames_with_spent_count() {
        let toy = Toy::new([1, 0, 2, 0, 0], &[1]);
        let (clock, mut piece) = (Clock::new(5, 32), Piece::default());
        assert_eq!(sweep(&clock, &mut piece, &toy, 1), swept(1, 4, true));
        assert_eq!(*toy.usage.borrow(), [0, 0, 1, 0, 0]);
        // The rest of the piece only, although more is wanted.
        assert_eq!(sweep(&clock, &mut piece, &toy, 9), swept(1, 1, false));
        // The whole circle, because a piece is not larger.
        assert_eq!(sweep(&clock, &mut piece, &toy, 9), swept(3, 5, true));
        assert_eq!(clock.passed(), 10);
    }

    #[test]
    fn passes_over_what_is_pinned() {
        let toy = Toy::new([0, 5], &[0, 1]);
        let (clock, mut piece) = (Clock::new(2, 2), Piece::default());
        assert_eq!(sweep(&clock, &mut piece, &toy, 1), swept(0, 2, false));
        assert_eq!(toy.usage.borrow()[1], 5);
    }

    #[test]
    fn counts_saturate() {
        assert_eq!((raised(0), raised(4), raised(5)), (Some(1), Some(5), None));
        assert_eq!((lowered(0), lowered(5)), (None, Some(4)));
    }
}
