//! The replacement policy: which page leaves memory. It knows no pages and no I/O, so that the pool
//! and a simulator run the same code.
//!
//! Both policies have a hand that goes round the frames ([`sweep`]).
//! [`ReplacementPolicy::Probation`] first examines the pages that arrived lately ([`Probation`],
//! [`judge`]).

mod clock;
mod probation;

pub use clock::{
    Clock, MAX_USAGE, Piece, SweepFrames, Swept, Take, is_spent, lowered, raised, sweep,
    usage_count,
};
pub(crate) use probation::UNWANTED;
pub use probation::{
    MAX_NEWCOMERS, Newcomers, Probation, judge, usage_ahead_on_probation, usage_on_probation,
};

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
/// more is cheap and settling is not: the barrier interrupts every processor that the process runs
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
