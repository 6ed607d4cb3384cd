//! The whole engine on a simulated machine: a seed determines a run.
//!
//! `SIM_SEED=n` runs one seed, with `SIM_CLIENTS=slow` beside slow clients. `SIM_SECONDS=n` runs
//! fresh seeds for that long.
#![allow(clippy::unwrap_used)]

mod each_call;
mod failed_syncs;
mod left_out_syncs;
mod quarantine;
mod seeds;
