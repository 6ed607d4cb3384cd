//! Checks that need a nightly compiler: Miri and ThreadSanitizer, over the crates with unsafe code.

use crate::run::{Failed, cargo, command};

/// Pinned, so that a later nightly never breaks the checks of an earlier commit.
const NIGHTLY: &str = "nightly-2026-04-16";

const PACKAGES: [&str; 2] = ["millpond-sync", "millpond-buffer"];

/// Installs the compiler with what the checks need.
pub fn install() -> Result<(), Failed> {
    let options = ["--profile", "minimal", "--component", "miri", "--component", "rust-src"];
    command("rustup", &["toolchain", "install", NIGHTLY, "--no-self-update"])
        .args(&options.map(str::to_owned))
        .run()
}

/// Undefined behaviour, under tree borrows.
pub fn miri(args: &[String]) -> Result<(), Failed> {
    for package in PACKAGES {
        cargo(&[&format!("+{NIGHTLY}"), "miri", "test", "--lib", "-p", package])
            .env("MIRIFLAGS", "-Zmiri-tree-borrows -Zmiri-disable-isolation -Zmiri-backtrace=0")
            .env("CARGO_TARGET_DIR", "target/miri")
            .args(args)
            .run()?;
    }
    Ok(())
}

/// Data races, with the standard library built so that its synchronization is seen, too.
pub fn tsan(args: &[String]) -> Result<(), Failed> {
    let version = command("rustc", &["-vV"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Failed("rustc does not say what it runs on".to_owned()))?;
    for package in PACKAGES {
        cargo(&[&format!("+{NIGHTLY}"), "test", "--lib", "-p", package])
            .args(&["-Zbuild-std".to_owned(), "--target".to_owned(), host.to_owned()])
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("CARGO_TARGET_DIR", "target/tsan")
            .args(args)
            .run()?;
    }
    Ok(())
}
