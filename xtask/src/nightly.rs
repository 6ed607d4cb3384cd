//! Checks that need a nightly compiler: Miri and ThreadSanitizer, on the crates with unsafe code.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::run::{Cmd, Failed, cargo, command};

/// Pinned, so that a later nightly never breaks the checks of an earlier commit.
pub const NIGHTLY: &str = "nightly-2026-04-16";

const PACKAGES: [&str; 2] = ["millpond-sync", "millpond-buffer"];

/// Installs the compiler and the components that the checks need.
pub fn install() -> Result<(), Failed> {
    let options = ["--profile", "minimal", "--component", "miri", "--component", "rust-src"];
    command("rustup", &["toolchain", "install", NIGHTLY, "--no-self-update"])
        .args(&options.map(str::to_owned))
        .run()
}

/// The number of tests in a run of Miri: small, so that no processor has much left at the end.
const BATCH: usize = 8;

/// Checks for undefined behaviour, under tree borrows. Without arguments all tests are shared among
/// the processors, because Miri itself uses only one.
pub fn miri(args: &[String]) -> Result<(), Failed> {
    if !args.is_empty() {
        return under_miri(&PACKAGES).args(args).run();
    }
    let mut batches = Vec::new();
    for package in PACKAGES {
        let listed = under_miri(&[package]).args(&words(&["--", "--list", "--format", "terse"]));
        let listed = listed.output()?;
        let tests: Vec<&str> =
            listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        if tests.is_empty() {
            return Err(Failed(format!("no tests of {package} under Miri")));
        }
        batches.extend(tests.chunks(BATCH).map(|batch| (package, words(batch))));
    }
    // Taken from the end: the tests of the whole pool take longest.
    let batches = Mutex::new(batches);
    let next = || batches.lock().ok().and_then(|mut left| left.pop());
    let work = || {
        while let Some((package, batch)) = next() {
            let start = Instant::now();
            let exactly = [words(&["--", "--exact"]), batch.clone()].concat();
            if let Err(failed) = under_miri(&[package]).args(&exactly).quiet() {
                if let Ok(mut left) = batches.lock() {
                    left.clear();
                }
                return Err(failed);
            }
            println!("{:4} s  {package}: {}", start.elapsed().as_secs(), batch.join(" "));
        }
        Ok(())
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let panicked = || Err(Failed("a thread that runs Miri has panicked".to_owned()));
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| panicked()))
    })
}

/// Miri on the unit tests of some packages.
///
/// Interior mutability is tracked by allocation instead of by byte. Otherwise the pool's arrays of
/// atomics would take Miri ten times as long.
fn under_miri(packages: &[&str]) -> Cmd {
    const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-tree-borrows-no-precise-interior-mut \
                         -Zmiri-disable-isolation -Zmiri-backtrace=0";
    let packages: Vec<_> = packages.iter().flat_map(|package| ["-p", package]).collect();
    cargo(&[&format!("+{NIGHTLY}"), "miri", "test", "--lib"])
        .args(&words(&packages))
        .env("MIRIFLAGS", FLAGS)
        // The backtraces of expected panics are not read, and Miri is slow to make them.
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_TARGET_DIR", "target/miri")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Checks for data races, with an instrumented standard library, whose synchronization is then
/// seen.
///
/// Pages are copied into frames, because ThreadSanitizer does not see the kernel's stores. Memory
/// is mapped through libc, where ThreadSanitizer sees it. Otherwise it would report races between
/// the threads of two pools that are mapped at the same address one after the other.
pub fn tsan(args: &[String]) -> Result<(), Failed> {
    let packages = PACKAGES.iter().flat_map(|package| ["-p", package]);
    cargo(&[&format!("+{NIGHTLY}"), "test", "--lib"])
        .args(&words(&packages.collect::<Vec<_>>()))
        .args(&["-Zbuild-std".to_owned(), "--target".to_owned(), host()?])
        .env("RUSTFLAGS", "-Zsanitizer=thread --cfg copying --cfg tsan --cfg rustix_use_libc")
        .env("CARGO_TARGET_DIR", "target/tsan")
        .args(args)
        .run()
}

/// The target triple of this machine.
pub fn host() -> Result<String, Failed> {
    let version = command("rustc", &["-vV"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failed("rustc does not say what it runs on".to_owned()))
}
