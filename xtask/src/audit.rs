//! Writes to memory that sessions share, which the feature `audit` finds.

use crate::run::{Failed, cargo};

/// Hot reads write nothing shared: the tests that have memory mapped read-only, then those that
/// count writes. Each command names `millpond`, so that what the packages stand on has the same
/// features and is built once. Only the first one names the engine, whose unit tests are many.
pub fn run() -> Result<(), Failed> {
    let all = ["millpond-buffer", "millpond-engine", "millpond", "millpond-lab"];
    audited("test", &all, &["--test", "read_only"])?;
    let counts = ["--lib", "--", "shared_writes", "bench::tests"];
    audited("test", &["millpond-buffer", "millpond", "millpond-lab"], &counts)
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
