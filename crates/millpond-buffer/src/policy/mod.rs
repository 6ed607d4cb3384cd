//! Which page leaves: the replacement policy, free of pages and I/O, so that the pool and a simulator run the
//! same code.
//!
//! Both policies have a hand that goes round the frames ([`sweep`]). [`ReplacementPolicy::Probation`] looks first at
//! pages that have arrived lately ([`Probation`], [`judge`]).

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

/// The usage of a page that has just been loaded under [`ReplacementPolicy::ClockSweep`], or in a ring.
pub(crate) const FIRST_USAGE: u8 = 1;

/// The usage of a page that the hand takes.
pub(crate) const SPENT: u8 = 0;

/// The policies that a pool can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum ReplacementPolicy {
    /// The clock sweep with usage counts, as in PostgreSQL.
    ClockSweep,
    /// The clock sweep, and pages that arrive are on probation.
    #[default]
    Probation,
}

impl ReplacementPolicy {
    /// The usage of a page that has just been loaded. `away`: how many pages have left memory since it did,
    /// if it was there before and that is known.
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

/// A search that has found something goes on until it has examined so many frames for each that is wanted.
const EXAMINED_PER_FRAME: usize = 4;

/// Judges newcomers, or if there are none sweeps a piece, for up to `wanted` frames. `limit`: how many newcomers may yet be
/// judged.
///
/// It comes back at once if nothing was taken. But once something was, taking more is cheap and settling what was taken is
/// not (a barrier, which interrupts every processor that the process runs on), and newcomers come in handfuls:
/// so it goes on until there are as many as are wanted, a part brings none, or the search becomes long.
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
