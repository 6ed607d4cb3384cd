//! The latch beside `parking_lot::RwLock`, `std::sync::RwLock` and a spinlock, from fewer threads than
//! processors to hundreds.
//!
//! `cargo run --release -p millpond-sync --example latch_bench -- [SECONDS] [THREADS,..] [RUNS]`
//!
//! SECONDS (240) is about how long all of it takes, THREADS the series (1,2,4,8,16,50,100,200,400), RUNS how
//! often each figure is taken (3), the locks taking turns; shown is the median. Each thread takes the lock, works in
//! the critical section, gives it back, works as long outside, and so on. Throughput is in thousands of
//! critical sections a second; fairness is what the slowest thread did by what the fastest did (1: all
//! the same; 0: one got nothing at all). With many threads and short runs fairness shows the system's scheduler, too.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use millpond_sync::CachePadded;
use millpond_sync::latch::Latch;

trait Lock: Sync {
    /// The measurement is over: who waits need not get the lock any more.
    fn give_up(&self) {}
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

/// The top bit: a writer; else the number of readers. Waiters spin. (Until it is over: hundreds of threads would
/// take minutes to end one after the other.)
#[derive(Default)]
struct Spinlock(AtomicU32, CachePadded<AtomicBool>);

const WRITER: u32 = 1 << 31;

impl Spinlock {
    fn take(&self, blocked_by: u32, next: impl Fn(u32) -> u32) {
        loop {
            let state = self.0.load(Ordering::Relaxed);
            let swap =
                |to| self.0.compare_exchange_weak(state, to, Ordering::Acquire, Ordering::Relaxed);
            if state & blocked_by == 0 && swap(next(state)).is_ok() {
                return;
            }
            if self.1.load(Ordering::Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

impl Lock for Spinlock {
    fn give_up(&self) {
        self.1.store(true, Ordering::Relaxed);
    }

    fn shared(&self, work: impl FnOnce()) {
        self.take(WRITER, |state| state + 1);
        work();
        self.0.fetch_sub(1, Ordering::Release);
    }

    fn exclusive(&self, work: impl FnOnce()) {
        self.take(u32::MAX, |_| WRITER);
        work();
        self.0.store(0, Ordering::Release);
    }
}

/// Work that touches no memory.
fn spend(rounds: u32) {
    let mut x = 1u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17));
    }
}

/// How many rounds of [`spend`] take so long: the least of several measurements.
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

/// Critical sections a second, in thousands, and the fairness.
fn measure(lock: &impl Lock, case: Case, duration: Duration, seed: u64) -> (f64, f64) {
    let counts: Vec<CachePadded<AtomicU32>> =
        (0..case.threads).map(|_| CachePadded::default()).collect();
    let stop = CachePadded::new(AtomicBool::new(false));
    let start = Barrier::new(case.threads + 1);
    let begun = OnceLock::new();
    let (elapsed, done) = std::thread::scope(|scope| {
        for (index, count) in counts.iter().enumerate() {
            let (stop, start, begun) = (&stop, &start, &begun);
            scope.spawn(move || {
                let mut random = (seed + index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                start.wait();
                begun.get_or_init(Instant::now);
                let mut done = 0;
                while !stop.load(Ordering::Relaxed) {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    if random % 100 < case.percent_exclusive {
                        lock.exclusive(|| spend(case.rounds));
                    } else {
                        lock.shared(|| spend(case.rounds));
                    }
                    done += 1;
                    count.store(done, Ordering::Relaxed);
                    spend(case.rounds);
                }
            });
        }
        start.wait();
        let begun = *begun.get_or_init(Instant::now);
        std::thread::sleep(duration);
        let elapsed = begun.elapsed();
        let done: Vec<u32> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        stop.store(true, Ordering::Relaxed);
        lock.give_up();
        (elapsed, done)
    });
    let sum: u64 = done.iter().map(|&count| u64::from(count)).sum();
    let least = done.iter().min().copied().unwrap_or(0);
    let most = done.iter().max().copied().unwrap_or(0).max(1);
    (sum as f64 / elapsed.as_secs_f64() / 1000.0, f64::from(least) / f64::from(most))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

const LOCKS: usize = 4;

/// All locks in turn, several times: medians of throughput and fairness.
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
            measure(&*CachePadded::new(Spinlock::default()), case, duration, seed),
        ];
        for ((speeds, fairs), (speed, fair)) in taken.iter_mut().zip(figures) {
            speeds.push(speed);
            fairs.push(fair);
        }
    }
    taken.map(|(mut speeds, mut fairs)| (median(&mut speeds), median(&mut fairs)))
}

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(240.0);
    let series = args.next().unwrap_or_else(|| "1,2,4,8,16,50,100,200,400".into());
    let threads: Vec<usize> = series.split(',').filter_map(|n| n.parse().ok()).collect();
    let runs: usize = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(3);
    let seed = 20_261_122;
    let sections = [20, 2000];
    let mixes = [0, 1, 50];
    let cells = threads.len() * sections.len() * mixes.len() * runs * LOCKS;
    let duration = Duration::from_secs_f64(seconds / cells.max(1) as f64);
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{processors} processors, {duration:.0?} a run, medians of {runs}, seed {seed}\n");
    println!(
        "| section | exclusive | threads | latch k/s | parking_lot | std | spinlock | latch fairness | parking_lot | std | spinlock |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for nanoseconds in sections {
        let rounds = rounds_of(nanoseconds);
        for percent_exclusive in mixes {
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
