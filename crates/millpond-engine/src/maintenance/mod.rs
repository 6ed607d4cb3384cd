//! Work in the background.

pub(crate) mod autovacuum;
pub(crate) mod background;
pub mod checkpointer;
mod reclaimer;
mod schedule;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
