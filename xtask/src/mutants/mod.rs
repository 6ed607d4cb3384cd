//! `cargo xtask mutants`: checks that tests notice deliberate faults. Each fault that is built in
//! under `--cfg mutants` must fail the test that the table names for it.
//!
//! The tests of a crate are built once for each checker ([`Build`]), with all of the mutants. A
//! mutant's test first runs without the mutant, and must pass. Then it runs with the mutant, and
//! must fail. If it passes, no test would notice the loss of the step that the mutant leaves out.
//!
//! The table has a file for each crate. It and the sources must name the same mutants
//! ([`sources`]).

mod buffer;
mod engine;
mod engine_access;
mod engine_locks;
mod engine_log;
mod engine_transactions;
mod query;
mod runner;
mod sources;
mod sync;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::run::Failed;
use runner::{Built, Outcome};

/// How a test is built, in addition to `--cfg mutants`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Build {
    /// As by `cargo test`.
    Plain,
    /// In the profile `models`, with `--cfg loom`.
    Loom,
    /// In the profile `models`, with `--cfg shuttle`.
    Shuttle,
}

/// A fault, and the test that it must fail.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// The name in the source and in the environment variable.
    name: &'static str,
    /// The numbered rule that the fault breaks.
    rule: &'static str,
    test: Test,
}

/// A test, with its full path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Test {
    binary: Binary,
    name: &'static str,
}

/// An executable with tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Binary {
    package: &'static str,
    /// A file of the package's `tests`; `None` for the tests within the library.
    target: Option<&'static str>,
    build: Build,
}

/// A mutant that is killed by a test within the library of `package`.
const fn mutant(
    name: &'static str,
    rule: &'static str,
    (package, build): (&'static str, Build),
    test: &'static str,
) -> Mutant {
    let binary = Binary { package, target: None, build };
    Mutant { name, rule, test: Test { binary, name: test } }
}

impl Mutant {
    /// Moves the mutant's test to a file of the package's `tests`.
    const fn in_target(mut self, target: &'static str) -> Self {
        self.test.binary.target = Some(target);
        self
    }
}

/// The whole table.
fn table() -> Vec<Mutant> {
    [sync::MUTANTS, buffer::MUTANTS, &engine::mutants(), query::MUTANTS].concat()
}

/// Runs the mutants whose names begin with one of `prefixes`, or all of them.
pub fn run(prefixes: &[String], list: bool, verbose: bool) -> Result<(), Failed> {
    let table = table();
    sources::compare(&table)?;
    let is_chosen = |mutant: &Mutant| {
        prefixes.is_empty() || prefixes.iter().any(|prefix| mutant.name.starts_with(prefix))
    };
    let chosen: Vec<Mutant> = table.into_iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(Failed(format!("no mutant's name begins with {}", prefixes.join(" or "))));
    }
    if list {
        chosen.iter().for_each(|mutant| println!("{}", row(mutant)));
        return Ok(());
    }
    let mut built = HashMap::new();
    for binary in chosen.iter().map(|mutant| mutant.test.binary) {
        if let Entry::Vacant(vacant) = built.entry(binary) {
            vacant.insert(runner::build(binary)?);
        }
    }
    let passes = without_mutants(&chosen, &built)?;
    let survivors = with_mutants(&chosen, &built, &passes, verbose)?;
    let killed = chosen.len() - survivors.len();
    println!("{killed} of {} mutants were killed", chosen.len());
    if survivors.is_empty() {
        return Ok(());
    }
    Err(Failed(format!("these survive: {}", survivors.join(", "))))
}

/// Runs each test without a mutant. Returns the duration of each.
fn without_mutants(
    chosen: &[Mutant],
    built: &HashMap<Binary, Built>,
) -> Result<HashMap<Test, Duration>, Failed> {
    let mut tests: Vec<Test> = Vec::new();
    for mutant in chosen {
        if !tests.contains(&mutant.test) {
            tests.push(mutant.test);
        }
    }
    let passes = Mutex::new(HashMap::new());
    shared_out(&tests, |test| {
        let (outcome, took) = built[&test.binary].run(test.name, None, None)?;
        if outcome != Outcome::Passed {
            let name = test.name;
            return Err(Failed(format!("without a mutant, {name} is to pass: {outcome:?}")));
        }
        if let Ok(mut passes) = passes.lock() {
            passes.insert(*test, took);
        }
        Ok(())
    })?;
    passes.into_inner().map_err(|_| Failed("a worker has panicked".to_owned()))
}

/// Runs each mutant's test with the mutant. Returns the mutants that survive.
fn with_mutants(
    chosen: &[Mutant],
    built: &HashMap<Binary, Built>,
    passes: &HashMap<Test, Duration>,
    verbose: bool,
) -> Result<Vec<&'static str>, Failed> {
    let survivors = Mutex::new(Vec::new());
    shared_out(chosen, |mutant| {
        let passed_in = passes.get(&mutant.test).copied();
        let built = &built[&mutant.test.binary];
        let (outcome, took) = built.run(mutant.test.name, Some(mutant.name), passed_in)?;
        let verdict = match &outcome {
            Outcome::Passed => "SURVIVES",
            Outcome::Failed(_) => "killed",
            Outcome::Hung => "hangs",
        };
        println!("{verdict:8} {:6.1} s  {}", took.as_secs_f64(), row(mutant));
        match outcome {
            Outcome::Failed(said) if verbose => println!("{said}"),
            Outcome::Passed => {
                if let Ok(mut survivors) = survivors.lock() {
                    survivors.push(mutant.name);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    survivors.into_inner().map_err(|_| Failed("a worker has panicked".to_owned()))
}

/// A row of the table in Markdown.
fn row(mutant: &Mutant) -> String {
    let Mutant { name, rule, test: Test { binary, name: test } } = mutant;
    let Binary { package, build, target } = binary;
    let target = target.map(|target| format!(" --test {target}")).unwrap_or_default();
    let build = match build {
        Build::Plain => "",
        Build::Loom => " (loom)",
        Build::Shuttle => " (shuttle)",
    };
    format!("| {name} | {rule} | {package}{target}{build} | {test} |")
}

/// Shares the work among the processors, and stops at the first failure.
fn shared_out<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    let left = Mutex::new(items.iter());
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let worker = || {
        while let Some(item) = next() {
            if let Err(failed) = work(item) {
                if let Ok(mut left) = left.lock() {
                    *left = [].iter();
                }
                return Err(failed);
            }
        }
        Ok(())
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(worker)).collect();
        let panicked = || Err(Failed("a worker has panicked".to_owned()));
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| panicked()))
    })
}
