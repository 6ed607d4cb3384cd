//! Runs fresh seeds on all processors for some minutes: `soak MINUTES [FIRST_SEED]`.
//!
//! Stops at the first seed that fails, and says how to repeat it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use millpond_sim::whole;

/// What the runs amounted to.
#[derive(Default)]
struct Sum {
    seeds: u64,
    calls: u64,
    commits: u64,
    time: Duration,
    failed: Option<String>,
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(minutes)), first) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: soak MINUTES [FIRST_SEED]");
        return ExitCode::FAILURE;
    };
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_micros() as u64;
    let first = first.and_then(Result::ok).unwrap_or(now);
    println!("seeds from {first} on, for {minutes} minutes");
    let sum = soak(Duration::from_secs(60 * minutes), first);
    let hours = sum.time.as_secs_f64() / 3600.0;
    println!(
        "{} seeds, {} calls, {} commits, {hours:.1} hours of virtual time",
        sum.seeds, sum.calls, sum.commits,
    );
    match sum.failed {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn soak(time: Duration, first: u64) -> Sum {
    let (next, sum) = (AtomicU64::new(first), Mutex::new(Sum::default()));
    let end = Instant::now() + time;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let locked = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while Instant::now() < end && locked().failed.is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let result = whole::run(seed);
                    let sum = &mut *locked();
                    sum.seeds += 1;
                    match result {
                        Ok(report) => {
                            sum.calls += report.calls;
                            sum.commits += report.commits;
                            sum.time += report.time;
                        }
                        Err(failure) => {
                            sum.failed = Some(format!(
                                "{failure}\nrepeat: SIM_SEED={seed} \
                             cargo test -p millpond-sim --test whole one_seed\n\
                             then add it to crates/millpond-sim/tests/whole/corpus.txt",
                            ))
                        }
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}
