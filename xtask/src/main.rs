//! `cargo xtask`: the developer's habits, each one command.

#![forbid(unsafe_code)]

mod bench;
mod fuzz;
mod layers;
mod mutants;
mod nightly;
mod run;

use clap::{Parser, Subcommand};

use run::{Failed, cargo};

/// The developer's habits, each one command.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    habit: Habit,
}

#[derive(Subcommand)]
enum Habit {
    /// Formatting, lints and the dependency rules: what fails fastest.
    Check,
    /// The tests; extra arguments go to `cargo test`.
    Test { args: Vec<String> },
    /// Installs the pinned nightly compiler that `miri` and `tsan` need, through rustup.
    Nightly,
    /// Miri (tree borrows) over the crates that hold unsafe code; extra arguments go to `cargo miri test`.
    Miri { args: Vec<String> },
    /// ThreadSanitizer over the same crates; extra arguments go to `cargo test`.
    Tsan { args: Vec<String> },
    /// The loom models: small protocols, every interleaving within the preemption bound.
    Loom,
    /// The shuttle models: large protocols, random schedules.
    Shuttle,
    /// Fresh seeds of the simulated engine, on all processors, until one fails or the time is over.
    Soak {
        /// For how long.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The first seed, to repeat a soak.
        #[arg(long)]
        first: Option<u64>,
    },
    /// Mutants: each must be killed by its test, which passes without it.
    Mutants {
        /// Only those whose names begin with one of these.
        prefixes: Vec<String>,
        /// Only lists them.
        #[arg(long)]
        list: bool,
        /// Shows what the killed tests printed.
        #[arg(long)]
        verbose: bool,
    },
    /// What is written to memory that sessions share, with the feature `audit`: proofs that hot reads write none, and counts.
    Audit,
    /// The fuzz targets: kept inputs, and others made from them (`--help` has the options). `guided TARGET`: one target under
    /// libFuzzer, whose options may follow.
    Fuzz {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// The criterion benchmarks below SQL (extra arguments go to `cargo bench`), or those beside PostgreSQL.
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        #[command(subcommand)]
        bench: Option<Box<bench::Bench>>,
        args: Vec<String>,
    },
    /// The direction of dependency between the crates.
    Layers,
}

fn main() {
    if let Err(failed) = habit(Args::parse().habit) {
        eprintln!("xtask: {failed}");
        std::process::exit(1);
    }
}

fn habit(habit: Habit) -> Result<(), Failed> {
    match habit {
        Habit::Check => {
            cargo(&["fmt", "--all", "--check"]).run()?;
            cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
            layers::check()
        }
        Habit::Test { args } => cargo(&["test", "--workspace"]).args(&args).run(),
        Habit::Nightly => nightly::install(),
        Habit::Miri { args } => nightly::miri(&args),
        Habit::Tsan { args } => nightly::tsan(&args),
        Habit::Fuzz { args } => fuzz::run(&args),
        Habit::Loom => {
            models("loom", "models", &["millpond-sync", "millpond-buffer", "millpond-engine"])
        }
        Habit::Shuttle => {
            models("shuttle", "shuttle", &["millpond-sync", "millpond-buffer", "millpond-engine"])
        }
        Habit::Mutants { prefixes, list, verbose } => mutants::run(&prefixes, list, verbose),
        Habit::Audit => {
            const SERVER: &[&str] =
                &["-p", "millpond-server", "--no-default-features", "--features", "audit"];
            let audited =
                |command: &'static str, packages: &[&'static str], rest: &[&'static str]| {
                    cargo(&[&[command][..], packages, rest].concat()).run()
                };
            let engine = &["-p", "millpond-engine", "--features", "audit"];
            let sql = &["-p", "millpond", "--no-default-features", "--features", "audit"];
            let buffer = &["-p", "millpond-buffer", "--features", "audit"];
            audited("clippy", engine, &["--all-targets", "--", "-D", "warnings"])?;
            audited("clippy", SERVER, &["--lib", "--bins", "--", "-D", "warnings"])?;
            audited("test", engine, &["--test", "read_only"])?;
            audited("test", buffer, &["--lib", "shared_writes"])?;
            audited("test", sql, &["--test", "read_only"])?;
            audited("test", SERVER, &["--lib", "bench::tests"])
        }
        Habit::Soak { minutes, first } => {
            let numbers = [Some(minutes), first].into_iter().flatten();
            cargo(&["run", "--profile", "soak", "-p", "millpond-sim", "--bin", "soak", "--"])
                .args(&numbers.map(|number| number.to_string()).collect::<Vec<_>>())
                .run()
        }
        Habit::Bench { bench, args } => bench::run(bench, &args),
        Habit::Layers => layers::check(),
    }
}

/// Runs the tests whose paths contain `named`, built with the checker's cfg in a target directory of its
/// own, so that the ordinary build's artifacts stay valid.
fn models(checker: &str, named: &str, packages: &[&str]) -> Result<(), Failed> {
    for package in packages {
        cargo(&["test", "--release", "--lib", "-p", package, named])
            .env("RUSTFLAGS", &format!("--cfg {checker}"))
            .env("CARGO_TARGET_DIR", &format!("target/{checker}"))
            .run()?;
    }
    Ok(())
}
