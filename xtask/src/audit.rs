//! Writes to memory that sessions share, which the feature `audit` finds.

use crate::run::{Failed, cargo};

/// Hot reads write nothing shared: the tests that have memory mapped read-only, then those that
/// count writes. The second command names fewer packages, whose unit tests alone are then built;
/// what they stand on has the same features.
pub fn run() -> Result<(), Failed> {
    let all = ["millpond-buffer", "millpond-engine", "millpond", "millpond-lab"];
    audited("test", &all, &["--test", "read_only"])?;
    let counts = ["--lib", "--", "shared_writes", "bench::tests"];
    audited("test", &["millpond-buffer", "millpond-lab"], &counts)
}

/// Lints what only this feature has.
pub fn lint() -> Result<(), Failed> {
    let all = ["millpond-buffer", "millpond-engine", "millpond", "millpond-lab", "millpond-server"];
    audited("clippy", &all, &["--all-targets", "--", "-D", "warnings"])
}

fn audited(command: &str, packages: &[&str], rest: &[&str]) -> Result<(), Failed> {
    let packages: Vec<&str> = packages.iter().flat_map(|package| ["-p", package]).collect();
    let features = ["--no-default-features", "--features", "audit"];
    cargo(&[&[command], &packages[..], &features, rest].concat()).run()
}
