//! Runs statements on this machine with a given number of threads, to compare with the model.

use super::workload::{Statement, World};
use millpond_engine::EngineResult;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Statements per second of `threads` threads, each with its own session, measured for `time`.
/// Commits don't wait for the log.
pub fn statements(
    world: &World,
    statement: Statement,
    threads: u64,
    time: Duration,
) -> EngineResult<f64> {
    let drivers: Vec<_> = (0..threads).map(|no| world.driver(no)).collect::<Result<_, _>>()?;
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let done: Vec<EngineResult<u64>> = std::thread::scope(|scope| {
        let run = |mut driver: super::workload::Driver| {
            let stop = &stop;
            scope.spawn(move || {
                let mut done = 0;
                while !stop.load(Ordering::Relaxed) {
                    driver.run(statement, false)?;
                    done += 1;
                }
                Ok(done)
            })
        };
        let threads: Vec<_> = drivers.into_iter().map(run).collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let elapsed = begun.elapsed().as_secs_f64();
    let done: u64 = done.into_iter().sum::<EngineResult<u64>>()?;
    Ok(done as f64 / elapsed)
}

/// How many times as much two threads do as one, each on its own memory. It is less than 2 if the
/// cores are not full cores or not free.
#[must_use]
pub fn two_cores(time: Duration) -> f64 {
    let work = |threads: usize| -> u64 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let spin = || {
                let mut memory = vec![0u64; 1 << 12];
                let (mut rounds, mut at) = (0, 1usize);
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..100 {
                        at = at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7);
                        let len = memory.len();
                        memory[at % len] += at as u64;
                    }
                    rounds += 1;
                }
                black_box(memory);
                rounds
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
        })
    };
    work(2).max(1) as f64 / work(1).max(1) as f64
}

/// How long a cache line takes from one core to another: half of the round-trip time. It is the
/// best of several tries, because other work disturbs some of them.
#[must_use]
pub fn transfer_ns() -> f64 {
    const ROUNDS: u64 = 5_000;
    let once = || {
        let word = AtomicU64::new(0);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for parity in 0..2 {
                let word = &word;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mine = round * 2 + parity;
                        let order = (Ordering::AcqRel, Ordering::Relaxed);
                        let mut tries = 0u32;
                        while word.compare_exchange(mine, mine + 1, order.0, order.1).is_err() {
                            tries += 1;
                            if tries.is_multiple_of(10_000) {
                                // The other thread has lost its processor.
                                std::thread::yield_now();
                            }
                        }
                    }
                });
            }
        });
        begun.elapsed().as_nanos() as f64 / (2 * ROUNDS) as f64
    };
    (0..40).map(|_| once()).fold(f64::MAX, f64::min)
}
