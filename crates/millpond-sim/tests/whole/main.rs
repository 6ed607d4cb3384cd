//! The whole engine in a simulated machine: a seed is a run.
//!
//! `SIM_SEED=n` runs one seed, `SIM_SECONDS=n` runs fresh seeds for that long.
#![allow(clippy::unwrap_used)]

mod each_call;
mod left_out_syncs;
mod seeds;
