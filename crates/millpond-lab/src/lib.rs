//! The commands of `millpond` for engineers who study page replacement and contention.
//!
//! * [`replay`][]: simulates replacement policies on page traces
//! * [`mod@bench`][]: counts what statements write to shared memory, and predicts how that scales
//! * [`chart`][]: line charts, for both
//! * [`cli`][]: the options of the commands
#![forbid(unsafe_code)]

pub mod bench;
pub mod chart;
pub mod cli;
pub mod replay;
