//! Fuzz targets: for everything that reads bytes from outside, a function that reads any bytes.
//!
//! A target panics where a decoder breaks one of its promises: it ends in a value or in an error, takes memory in proportion to its
//! input, and reads what it has written as the same. docs/testing.md says how to run them.
//!
//! * [`targets`]: the functions, and inputs to begin with
//! * [`mutate`]: other inputs, made from those
//! * [`bytes`]: how an input's bytes become pages, choices and texts
//!
//! Two programs run them: `fuzz`, on any compiler, and `guided`, which libFuzzer leads by the branches that are taken.

pub mod bytes;
pub mod corpus;
pub mod mutate;
pub mod targets;

pub use targets::{TARGETS, Target};

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What any input may take beside what its length allows.
const MEMORY_BYTES: usize = 1 << 20;

/// Runs a target on an input, and holds it to a bound on memory. Nothing else may run in the process.
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
