//! Models of the latch and of the optimistic read. Loom explores every interleaving of a few steps;
//! shuttle runs more threads under random schedules.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p millpond-sync --release --lib models
//! RUSTFLAGS="--cfg shuttle" cargo test -p millpond-sync --release --lib shuttle
//! ```
//!
//! Every change of a latch's word is recorded as it happens. A model fails if it sees a change that
//! the table of transitions (`coverage.rs`) lacks. It also fails if it does not see a change that
//! the table lists for it. The table lists each transition for some model.

mod coverage;
#[cfg(loom)]
mod overtaking;
#[cfg(loom)]
mod plain;
#[cfg(all(shuttle, not(loom)))]
mod shuttle_all;
#[cfg(loom)]
mod version;
#[cfg(loom)]
mod with_loom;

#[cfg(loom)]
use with_loom::{Guarded, Shared, check, check_latch, spawn};
