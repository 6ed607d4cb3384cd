//! Which page leaves: the replacement policy, free of locks, pages and I/O, so that the pool and a
//! simulator run the same code.

mod clock;

pub use clock::{Clock, MAX_USAGE, Piece, SweepFrames, Swept, Take, lowered, raised, sweep};
