//! Compares the latch with `parking_lot::RwLock` and `std::sync::RwLock`, from fewer threads than
//! processors to hundreds.
//!
//! `cargo bench -p millpond-sync --bench latch -- [SECONDS] [THREADS,..] [RUNS]
//! [PERCENT,..] [NS,..]`
//!
//! - SECONDS (0.3): how long each figure is measured.
//! - THREADS (1,2,4,8,27,107,200,400): the numbers of threads.
//! - RUNS (1): how often each figure is taken. The locks take turns; the median is shown.
//! - PERCENT (0,1,50): the shares of exclusive sections.
//! - NS (20,2000): the lengths of the sections in nanoseconds.
//!
//! Each thread repeats: take the lock, work in the critical section, release the lock, work as long
//! outside. Throughput is in thousands of critical sections a second. Fairness is the slowest
//! thread's count divided by the fastest thread's (1: equal; 0: one thread got nothing). With many
//! threads and short runs, fairness also shows the system's scheduler.
//!
//! The first thread that sees that the time is over tells all others. A thread that only looked at
//! the clock would wait long for a processor among hundreds of runnable threads.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use millpond_sync::CachePadded;
use millpond_sync::latch::Latch;

trait Lock: Sync {
    fn shared(&self, work: impl FnOnce());
    fn exclusive(&self, work: impl FnOnce());
}

impl Lock for Latch {
    fn shared(&self, work: impl FnOnce()) {
        Latch::shared(self);
        work();
        self.unlock_shared();
    }

    fn exclusive(&self, work: impl FnOnce()) {
        Latch::exclusive(self);
        work();
        self.unlock_exclusive();
    }
}

impl Lock for parking_lot::RwLock<()> {
    fn shared(&self, work: impl FnOnce()) {
        let _guard = self.read();
        work();
    }

    fn exclusive(&self, work: impl FnOnce()) {
        let _guard = self.write();
        work();
    }
}

impl Lock for std::sync::RwLock<()> {
    fn shared(&self, work: impl FnOnce()) {
        let _guard = self.read();
        work();
    }

    fn exclusive(&self, work: impl FnOnce()) {
        let _guard = self.write();
        work();
    }
}

/// The end of a measurement.
struct End {
    duration: Duration,
    begun: OnceLock<Instant>,
    took: OnceLock<Duration>,
    over: AtomicBool,
}

impl End {
    fn after(duration: Duration) -> Self {
        let (begun, took, over) = Default::default();
        Self { duration, begun, took, over }
    }

    /// Starts the clock, if no thread has started it yet.
    fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn look_at_the_clock(&self) -> bool {
        let took = self.begun.get().map_or(Duration::ZERO, Instant::elapsed);
        if took >= self.duration {
            self.took.get_or_init(|| took);
            self.over.store(true, Ordering::Relaxed);
        }
        self.is_over()
    }
}

/// Work that touches no memory.
fn spend(rounds: u32) {
    let mut x = 1u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17));
    }
}

/// The number of rounds of [`spend`] in `nanoseconds`, by the fastest of several measurements.
fn rounds_of(nanoseconds: u32) -> u32 {
    const MANY: u32 = 1_000_000;
    let took = (0..9).map(|_| {
        let begun = Instant::now();
        spend(MANY);
        begun.elapsed()
    });
    let per_round = took.min().unwrap_or_default().as_nanos() as f64 / f64::from(MANY);
    (f64::from(nanoseconds) / per_round).round().max(1.0) as u32
}

#[derive(Clone, Copy)]
struct Case {
    threads: usize,
    percent_exclusive: u64,
    rounds: u32,
}

/// Critical sections between looks at the clock: at least some microseconds' worth.
const SECTIONS: u32 = 64;
/// Rounds of a section beside which a look at the clock costs nothing.
const LONG_ROUNDS: u32 = 500;

/// Returns critical sections a second, in thousands, and the fairness.
fn measure(lock: &impl Lock, case: Case, duration: Duration, seed: u64) -> (f64, f64) {
    let end = End::after(duration);
    let start = Barrier::new(case.threads);
    let done: Vec<u32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..case.threads as u64)
            .map(|index| {
                let (end, start) = (&end, &start);
                scope.spawn(move || {
                    start.wait();
                    end.begin();
                    run(lock, case, end, seed + index)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).collect()
    });
    let took = end.took.get().copied().unwrap_or(duration);
    let sum: u64 = done.iter().map(|&count| u64::from(count)).sum();
    let least = done.iter().min().copied().unwrap_or(0);
    let most = done.iter().max().copied().unwrap_or(0).max(1);
    (sum as f64 / took.as_secs_f64() / 1000.0, f64::from(least) / f64::from(most))
}

/// Runs one thread. Returns how many critical sections it finished in time.
fn run(lock: &impl Lock, case: Case, end: &End, seed: u64) -> u32 {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut done = 0;
    for turn in 1u32.. {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random % 100 < case.percent_exclusive {
            lock.exclusive(|| spend(case.rounds));
        } else {
            lock.shared(|| spend(case.rounds));
        }
        // Long sections can afford a look at the clock each time.
        let is_over = match case.rounds > LONG_ROUNDS || turn % SECTIONS == 0 {
            true => end.look_at_the_clock(),
            false => end.is_over(),
        };
        if is_over {
            break;
        }
        done += 1;
        spend(case.rounds);
    }
    done
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

const LOCKS: usize = 3;

/// Measures all locks in turn, several times. Returns medians of throughput and fairness.
fn compare(case: Case, duration: Duration, runs: usize, seed: u64) -> [(f64, f64); LOCKS] {
    let latch = CachePadded::new(Latch::new());
    let parking_lot = CachePadded::new(parking_lot::RwLock::new(()));
    let std = CachePadded::new(std::sync::RwLock::new(()));
    let mut taken: [(Vec<f64>, Vec<f64>); LOCKS] = Default::default();
    for _ in 0..runs {
        let figures = [
            measure(&*latch, case, duration, seed),
            measure(&*parking_lot, case, duration, seed),
            measure(&*std, case, duration, seed),
        ];
        for ((speeds, fairs), (speed, fair)) in taken.iter_mut().zip(figures) {
            speeds.push(speed);
            fairs.push(fair);
        }
    }
    taken.map(|(mut speeds, mut fairs)| (median(&mut speeds), median(&mut fairs)))
}

fn numbers<T: std::str::FromStr>(arg: Option<String>, default: &str) -> Vec<T> {
    let series = arg.as_deref().unwrap_or(default);
    series.split(',').filter_map(|n| n.parse().ok()).collect()
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let seconds: f64 = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(0.3);
    let threads: Vec<usize> = numbers(args.next(), "1,2,4,8,27,107,200,400");
    let runs: usize = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(1);
    let mixes: Vec<u64> = numbers(args.next(), "0,1,50");
    let sections: Vec<u32> = numbers(args.next(), "20,2000");
    let seed = 20_261_122;
    let duration = Duration::from_secs_f64(seconds);
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{processors} processors, {duration:.0?} a figure, medians of {runs}, seed {seed}\n");
    println!(
        "| section | exclusive | threads | latch k/s | parking_lot | std | latch fairness | parking_lot | std |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for nanoseconds in sections {
        let rounds = rounds_of(nanoseconds);
        for &percent_exclusive in &mixes {
            for &threads in &threads {
                let case = Case { threads, percent_exclusive, rounds };
                let figures = compare(case, duration, runs, seed);
                print!("| {nanoseconds} ns | {percent_exclusive}% | {threads} |");
                figures.iter().for_each(|(speed, _)| print!(" {speed:.0} |"));
                figures.iter().for_each(|(_, fair)| print!(" {fair:.2} |"));
                println!();
            }
        }
    }
}
