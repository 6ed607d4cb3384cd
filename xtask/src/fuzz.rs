//! Fuzzing, with the package in `fuzz/`.

use crate::nightly::{NIGHTLY, host};
use crate::run::{Cmd, Failed, cargo};

/// Compiler options that instrument branches and comparisons for libFuzzer.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                        -Cllvm-args=-sanitizer-coverage-pc-table \
                        -Cllvm-args=-sanitizer-coverage-trace-compares \
                        -Ccodegen-units=1";

/// Runs the targets on their corpora and on inputs made from them. If the first argument is
/// `guided`, runs one target under libFuzzer.
pub fn run(args: &[String]) -> Result<(), Failed> {
    match args {
        [first, target, rest @ ..] if first == "guided" => guided(target, rest),
        [first] if first == "guided" => Err(Failed("cargo xtask fuzz guided TARGET".to_owned())),
        _ => {
            let mut all = vec!["--bin".to_owned(), "fuzz".to_owned(), "--".to_owned()];
            all.extend_from_slice(args);
            package(&["run", "--quiet"]).args(&all).run()
        }
    }
}

/// Runs one target under libFuzzer, which follows the branches that inputs take. The inputs that
/// libFuzzer keeps stay in `target/fuzz/corpus/TARGET`.
fn guided(target: &str, args: &[String]) -> Result<(), Failed> {
    let folder = format!("target/fuzz/corpus/{target}");
    run(&["--target", target, "--write-seeds", &folder].map(str::to_owned))?;
    let features = ["--features", "guided", "--bin", "guided", "--target"].map(str::to_owned);
    package(&[&format!("+{NIGHTLY}"), "run", "--quiet"])
        .args(&features)
        .args(&[host()?, "--".to_owned(), folder, "-max_len=4096".to_owned()])
        .args(args)
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_TARGET_DIR", "target/fuzz/guided")
        .env("MILLPOND_FUZZ_TARGET", target)
        .run()
}

fn package(args: &[&str]) -> Cmd {
    cargo(args).args(&["--locked", "--profile=soak", "-p", "millpond-fuzz"].map(str::to_owned))
}
