//! `millpond replay`: simulates replacement policies on page traces.
//!
//! ```text
//!  file ─▶ decompress ─▶ format ─▶ Trace: page numbers ─▶ one simulation per policy and size
//!                                                                        │
//!                                          table on stdout, SVG  ◀── hit ratios
//! ```
//!
//! * [`mod@format`][]: reads traces, plain or compressed, in several formats
//! * [`trace`][]: a trace in memory
//! * [`policies`][]: the pool's own policy code, those of the literature, and the optimum
//! * [`run`][]: runs the simulations, in parallel
//! * [`report`][], [`chart`][]: shows the results
//!
//! The simulator asks a cache for one page after another. The cache holds a fixed number of pages;
//! no page is pinned or dirty. The pool's own policies are not copies: the simulator passes a
//! simulated array of frames to [`millpond_buffer::policy`], the code that the pool runs.

pub mod chart;
mod command;
pub mod format;
pub mod policies;
pub mod report;
pub mod run;
pub mod size;
pub mod trace;

pub use command::{MakeBar, replay};
pub use format::{Format, ReadError, read};
pub use policies::{Policies, PolicyKind};
pub use run::{Outcome, Plan};
pub use trace::{AccessKind, Trace, TraceBuilder};
