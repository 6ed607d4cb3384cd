//! Builds and runs the tests of the mutants.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Binary, Build};
use crate::run::{Failed, cargo};

/// The variable that `millpond_sync::mutant` reads.
const VARIABLE: &str = "MILLPOND_MUTANT";
/// The same random schedules in each run, so that a mutant killed once is always killed.
const SEED: (&str, &str) = ("SHUTTLE_RANDOM_SEED", "16");
/// A test's time limit: `TIMES_LONGER` times its time without a mutant, at least `LEAST_LIMIT`.
const LEAST_LIMIT: Duration = Duration::from_secs(120);
const TIMES_LONGER: u32 = 10;

/// An executable with tests.
pub(super) struct Built {
    executable: PathBuf,
    /// The directory where `cargo test` would run it.
    folder: PathBuf,
}

/// How a test ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// It failed, with this output.
    Failed(String),
    /// It exceeded its time limit and was killed.
    Hung,
}

/// The root of the workspace.
pub(super) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Builds tests with all mutants.
pub(super) fn build(binary: Binary) -> Result<Built, Failed> {
    let Binary { package, target, build } = binary;
    let (profile, flags, folder) = match build {
        Build::Plain => (None, "--cfg mutants", "target/mutants"),
        Build::Loom => {
            (Some("--profile=models"), "--cfg mutants --cfg loom", "target/mutants-loom")
        }
        Build::Shuttle => {
            (Some("--profile=models"), "--cfg mutants --cfg shuttle", "target/mutants-shuttle")
        }
    };
    let mut args = vec!["test", "--no-run", "--message-format=json", "-p", package];
    args.extend(profile);
    match target {
        Some(target) => args.extend(["--test", target]),
        None => args.push("--lib"),
    }
    let messages = cargo(&args)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", &root().join(folder).to_string_lossy())
        .output_of_success()?;
    let executable = messages.lines().rev().find_map(test_executable);
    let executable = executable.ok_or_else(|| Failed(format!("cargo built no {binary:?}")))?;
    Ok(Built { executable, folder: root().join("crates").join(package) })
}

/// The test executable that a message of cargo reports, if any.
fn test_executable(message: &str) -> Option<PathBuf> {
    let (_, profile) = message.split_once(r#""profile":{"#)?;
    let (profile, rest) = profile.split_once('}')?;
    let (_, executable) = rest.split_once(r#""executable":""#)?;
    let (executable, _) = executable.split_once('"')?;
    profile.contains(r#""test":true"#).then(|| executable.into())
}

impl Built {
    /// Runs one test, with or without a mutant. `passed_in` is its duration without a mutant.
    pub(super) fn run(
        &self,
        test: &str,
        mutant: Option<&str>,
        passed_in: Option<Duration>,
    ) -> Result<(Outcome, Duration), Failed> {
        let (path, output) = self.output()?;
        let failed = |error| Failed(format!("could not run {test}: {error}"));
        let mut command = Command::new(&self.executable);
        command.args(["--exact", "--nocapture", test]).current_dir(&self.folder);
        command.env_remove(VARIABLE).env(SEED.0, SEED.1).env("RUST_BACKTRACE", "0");
        if let Some(mutant) = mutant {
            command.env(VARIABLE, mutant);
        }
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(failed)?).stderr(output);
        let start = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let limit = passed_in.map_or(Duration::MAX, |took| LEAST_LIMIT.max(took * TIMES_LONGER));
        let status = wait(&mut child, limit).map_err(failed)?;
        let took = start.elapsed();
        let said = fs::read(&path).map_err(failed)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        fs::remove_file(&path).map_err(failed)?;
        let outcome = match status {
            None => Outcome::Hung,
            Some(status) if status.success() => {
                if !said.contains("test result: ok. 1 passed") {
                    return Err(Failed(format!("there is no test {test} in {self:?}")));
                }
                Outcome::Passed
            }
            Some(_) => Outcome::Failed(said),
        };
        Ok((outcome, took))
    }

    /// A file for a test's output, which may be larger than a pipe's buffer.
    fn output(&self) -> Result<(PathBuf, File), Failed> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("said-{}-{number}", std::process::id());
        let path = self.executable.with_file_name(name);
        let file = File::create(&path);
        let file = file.map_err(|error| Failed(format!("could not create {path:?}: {error}")))?;
        Ok((path, file))
    }
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.executable.fmt(f)
    }
}

/// Waits for a test. `None`: it exceeded the limit and was killed.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}
