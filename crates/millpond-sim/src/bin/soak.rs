//! Runs fresh seeds on all processors for a number of minutes:
//! `soak MINUTES [--first SEED] [--clients busy|slow]`.
//!
//! Without `--clients`, busy and slow clients take turns. Stops at the first seed that fails, and
//! prints how to repeat it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use millpond_sim::whole::{self, ClientKind, Report, Timers};

/// What to run.
struct Orders {
    minutes: u64,
    first: u64,
    only: Option<ClientKind>,
}

impl Orders {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_micros() as u64;
        let minutes = words.next()?.parse().ok()?;
        let mut orders = Self { minutes, first: now, only: None };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--first" => orders.first = words.next()?.parse().ok()?,
                "--clients" => orders.only = Some(words.next()?.parse().ok()?),
                _ => return None,
            }
        }
        Some(orders)
    }

    fn shape(&self, seed: u64) -> ClientKind {
        self.only.unwrap_or_else(|| ClientKind::in_turn(seed - self.first))
    }
}

/// Totals of the runs of one shape.
#[derive(Default)]
struct Sum {
    seeds: u64,
    calls: u64,
    commits: u64,
    time: Duration,
    timers: Timers,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.calls += report.calls;
        self.commits += report.commits;
        self.time += report.time;
        self.timers += report.timers;
    }

    fn print(&self, shape: ClientKind) {
        let Self { seeds, calls, commits, timers, .. } = self;
        let hours = self.time.as_secs_f64() / 3600.0;
        println!("{shape} clients:");
        println!("  {seeds} seeds, {calls} calls, {commits} commits");
        println!("  {hours:.1} hours of virtual time");
        println!("  {} timed checkpoints", timers.checkpoints);
        println!("  {} autovacuums", timers.autovacuums);
        println!("  {} lock timeouts", timers.lock_timeouts);
        println!("  {} deadlocks", timers.deadlocks);
        println!("  {} statement timeouts", timers.statement_timeouts);
        println!("  {} sessions ended idle in transaction", timers.idle_in_transaction);
        println!("  {} pages of statuses spilled to disk", timers.spilled_pages);
    }
}

#[derive(Default)]
struct Outcome {
    busy: Sum,
    slow: Sum,
    failed: Option<String>,
}

fn main() -> ExitCode {
    let Some(orders) = Orders::parse(std::env::args().skip(1)) else {
        eprintln!("usage: soak MINUTES [--first SEED] [--clients busy|slow]");
        return ExitCode::FAILURE;
    };
    println!("seeds from {} on, for {} minutes", orders.first, orders.minutes);
    let outcome = soak(&orders);
    for (shape, sum) in [(ClientKind::Busy, &outcome.busy), (ClientKind::Slow, &outcome.slow)] {
        if orders.only.is_none_or(|only| only == shape) {
            sum.print(shape);
        }
    }
    match outcome.failed {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn soak(orders: &Orders) -> Outcome {
    let (next, outcome) = (AtomicU64::new(orders.first), Mutex::new(Outcome::default()));
    let end = Instant::now() + Duration::from_secs(60 * orders.minutes);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let locked = || outcome.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while Instant::now() < end && locked().failed.is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let shape = orders.shape(seed);
                    let result = whole::run(seed, shape);
                    let outcome = &mut *locked();
                    match (result, shape) {
                        (Ok(report), ClientKind::Busy) => outcome.busy.add(&report),
                        (Ok(report), ClientKind::Slow) => outcome.slow.add(&report),
                        (Err(failure), _) => outcome.failed = Some(repeated(seed, shape, &failure)),
                    }
                }
            });
        }
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn repeated(seed: u64, shape: ClientKind, failure: &dyn std::error::Error) -> String {
    format!(
        "{failure}\nrepeat: SIM_SEED={seed} SIM_CLIENTS={shape} \
         cargo test -p millpond-sim --test whole one_seed\n\
         then add it to crates/millpond-sim/tests/whole/corpus.txt",
    )
}
