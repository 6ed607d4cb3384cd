//! `millpond replay`: page traces against replacement policies.
//!
//! ```text
//!  file ─▶ decompress ─▶ format ─▶ Trace: page numbers, in order ─▶ one simulation per policy and size
//!                                                                        │
//!                                          table on stdout, SVG  ◀── hit ratios
//! ```
//!
//! * [`mod@format`][]: reading traces, plain or compressed, in several formats
//! * [`trace`][]: a trace in memory
//! * [`policies`][]: the pool's own policy code, those of the literature, and the optimum
//! * [`run`][]: simulating, in parallel
//! * [`report`][], [`chart`][]: what comes out
//!
//! A simulated cache is asked for one page after another. It holds so many pages, nothing is pinned, and
//! nothing is dirty. The pool's own policies are not imitated: the simulator hands a simulated array of frames to
//! [`millpond_buffer::policy`], whose code the pool runs.

pub mod chart;
pub mod format;
pub mod policies;
pub mod report;
pub mod run;
pub mod size;
pub mod trace;

pub use format::{Format, ReadError, read};
pub use policies::{Policies, PolicyKind};
pub use run::{Outcome, Plan};
pub use trace::{AccessKind, Trace, TraceBuilder};
