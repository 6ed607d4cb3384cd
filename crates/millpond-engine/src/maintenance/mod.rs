//! Background work: checkpoints, clean frames, upkeep of transactions. Autovacuum, which opens
//! sessions, stands above ([`crate::autovacuum`]).

pub(crate) mod background;
mod checkpoint_stats;
pub mod checkpointer;
pub(crate) mod current_vacuum;
pub(crate) mod reclaimer;
mod schedule;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
