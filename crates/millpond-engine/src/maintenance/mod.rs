//! Work in the background.

mod autovacuum;
pub(crate) mod background;
pub mod checkpointer;
mod reclaimer;
