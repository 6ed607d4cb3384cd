//! `cargo xtask`: one command for each routine task of a developer.

#![forbid(unsafe_code)]

mod audit;
mod bench;
mod comments;
mod fuzz;
mod layers;
mod mutants;
mod nightly;
mod run;
mod scoreboard;
mod systems;

use clap::{Parser, Subcommand};

use run::{Failed, cargo};

/// One command for each routine task of a developer.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    habit: Habit,
}

#[derive(Subcommand)]
enum Habit {
    /// Formatting, lints and the dependency rules: the fastest checks.
    Check,
    /// The tests; extra arguments go to `cargo test`.
    Test { args: Vec<String> },
    /// Installs the pinned nightly compiler that `miri` and `tsan` need, through rustup.
    Nightly,
    /// Miri (tree borrows) over the crates that hold unsafe code; extra arguments go to `cargo miri
    /// test`.
    Miri { args: Vec<String> },
    /// ThreadSanitizer over the same crates; extra arguments go to `cargo test`.
    Tsan { args: Vec<String> },
    /// The loom models: small protocols, every interleaving within the preemption bound.
    Loom,
    /// The shuttle models: large protocols, random schedules. `SHUTTLE_SCHEDULES` sets how
    /// many the pool's long ones have of each kind (3000).
    Shuttle,
    /// New seeds of the simulated engine, on all processors, until one fails or the time is over.
    Soak {
        /// The duration.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The first seed, to repeat a soak.
        #[arg(long)]
        first: Option<u64>,
        /// Only `busy` or only `slow` clients. Without it, both shapes take turns.
        #[arg(long)]
        clients: Option<String>,
    },
    /// Mutants: each must be killed by its test, and the test must pass without it.
    Mutants {
        /// Only the mutants whose names begin with one of these.
        prefixes: Vec<String>,
        /// Only lists the mutants.
        #[arg(long)]
        list: bool,
        /// Shows what the killed tests printed.
        #[arg(long)]
        verbose: bool,
    },
    /// Writes to memory that sessions share (feature `audit`): proofs that hot reads make none,
    /// counts.
    Audit,
    /// The fuzz targets, on kept inputs and on others made from them (`--help` lists the options).
    /// `guided TARGET` runs one target under libFuzzer, whose options may follow.
    Fuzz {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// What the buffer pool's operations cost (extra arguments go to `cargo bench`), or the
    /// benchmarks beside PostgreSQL.
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        #[command(subcommand)]
        bench: Option<Box<bench::Bench>>,
        args: Vec<String>,
    },
    /// The tests below SQL on the paths that need nothing of Linux, as macOS runs them (names of
    /// crates select).
    Portable {
        packages: Vec<String>,
        /// Only lints them.
        #[arg(long)]
        check: bool,
    },
    /// Checks the code for macOS and for Linux on aarch64.
    Targets {
        /// Only installs what this command and `musl` need.
        #[arg(long)]
        install: bool,
        /// The SQL crate and the server, too.
        #[arg(long)]
        server: bool,
    },
    /// Builds a static server with musl: quickly and without DataFusion, or in full.
    Musl {
        /// A release build with DataFusion.
        #[arg(long)]
        full: bool,
    },
    /// What changes seldom break, before a release: all of the three above, the buffer pool with
    /// the smallest and the largest pages, the program that compares caches, lints of what only the
    /// feature `audit` has, and all schedules of the shuttle models.
    Elsewhere,
    /// Many random queries, compiled to be fast: their rewritings, and the queries and calls beside
    /// PostgreSQL 15 where it is installed. `rewritings`, `queries` and `calls` select.
    Random {
        tests: Vec<String>,
        /// How many queries each test runs.
        #[arg(long, default_value_t = 100_000)]
        queries: u64,
        /// The first seed, to repeat a run.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// PostgreSQL's regression statements beside a private PostgreSQL 15: the share with the same
    /// result.
    Scoreboard(scoreboard::Options),
    /// SQLite's corpus of queries beside a private PostgreSQL 15: the share with the same result.
    Sqllogictest(scoreboard::logic::Options),
    /// The direction of dependency between crates, and circles of modules within them.
    Layers,
    /// The width and the words of comments.
    Comments,
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
            comments::check()?;
            layers::check()
        }
        Habit::Test { args } => cargo(&["test", "--workspace"]).args(&args).run(),
        Habit::Nightly => nightly::install(),
        Habit::Miri { args } => nightly::miri(&args),
        Habit::Tsan { args } => nightly::tsan(&args),
        Habit::Fuzz { args } => fuzz::run(&args),
        Habit::Loom => {
            models("loom", &["models"], &["millpond-sync", "millpond-buffer", "millpond-engine"])
        }
        Habit::Shuttle => shuttle(),
        Habit::Mutants { prefixes, list, verbose } => mutants::run(&prefixes, list, verbose),
        Habit::Audit => audit::run(),
        Habit::Soak { minutes, first, clients } => {
            let mut args = vec![minutes.to_string()];
            let first = first.map(|seed| seed.to_string());
            for (name, value) in [("--first", first), ("--clients", clients)] {
                args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
            }
            cargo(&["run", "--profile", "soak", "-p", "millpond-sim", "--bin", "soak", "--"])
                .args(&args)
                .run()
        }
        Habit::Bench { bench, args } => bench::run(bench, &args),
        Habit::Portable { check: true, .. } => systems::check_portable(),
        Habit::Portable { packages, check: false } => systems::portable(&packages),
        Habit::Targets { install: true, .. } => systems::install_targets(),
        Habit::Targets { server, install: false } => systems::targets(server),
        Habit::Musl { full } => systems::musl(full),
        Habit::Elsewhere => systems::elsewhere(),
        Habit::Random { tests, queries, seed } => {
            let build = ["test", "--profile", "soak", "-p", "millpond", "--no-default-features"];
            let mut run = cargo(&[&build[..], &["--test", "random", "--", "--nocapture"]].concat())
                .args(&tests)
                .env("MILLPOND_RANDOM_QUERIES", &queries.to_string());
            if let Some(seed) = seed {
                run = run.env("MILLPOND_RANDOM_SEED", &seed.to_string());
            }
            run.run()
        }
        Habit::Scoreboard(options) => scoreboard::run(&options),
        Habit::Sqllogictest(options) => scoreboard::logic::run(&options),
        Habit::Layers => layers::check(),
        Habit::Comments => comments::check(),
    }
}

fn shuttle() -> Result<(), Failed> {
    let packages = ["millpond-sync", "millpond-buffer", "millpond-engine", "millpond-query"];
    models("shuttle", &["shuttle", "write_ahead"], &packages)
}

/// Runs the tests whose paths contain one of `named`, built with the checker's cfg. They have their
/// own target directory, so that the ordinary build's artifacts stay valid. One command for all
/// packages: their dependencies have the same features, and are built once.
fn models(checker: &str, named: &[&str], packages: &[&str]) -> Result<(), Failed> {
    let packages: Vec<&str> = packages.iter().flat_map(|package| ["-p", package]).collect();
    cargo(&[&["test", "--profile", "models", "--lib"], &packages[..], &["--"], named].concat())
        .env("RUSTFLAGS", &format!("--cfg {checker}"))
        .env("CARGO_TARGET_DIR", &format!("target/{checker}"))
        .run()
}
