//! Work in the background.

pub mod checkpointer;
