//! Fuzz targets: a function for each reader of outside data, which accepts arbitrary bytes.
//!
//! A target panics if a decoder breaks a promise. A decoder ends in a value or an error, and takes
//! memory in proportion to its input. It reads back what it wrote as the same value.
//! docs/testing.md says how to run the targets.
//!
//! * [`targets`]: the targets, and their seeds
//! * [`mutate`]: makes inputs from others
//! * [`bytes`]: turns an input's bytes into pages, choices and texts
//!
//! Two programs run the targets: `fuzz` on any compiler, and `guided` under libFuzzer, which
//! follows the branches that inputs take.

pub mod bytes;
pub mod corpus;
pub mod mutate;
pub mod targets;

pub use targets::{TARGETS, Target};

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The memory that any input may take in addition to what its length allows.
const MEMORY_BYTES: usize = 1 << 20;

/// Runs a target on an input and checks the bound on memory. Nothing else may run in the process.
pub fn check(target: &Target, input: &[u8]) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    (target.run)(input);
    let took = MEMORY.peak_usage().saturating_sub(before);
    let most = MEMORY_BYTES + target.memory + target.memory_per_byte * input.len();
    let bytes = input.len();
    assert!(
        took <= most,
        "an input of {bytes} bytes took {took} bytes of memory, more than {most}"
    );
}
