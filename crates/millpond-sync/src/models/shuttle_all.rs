//! Everything at once, under random schedules.

use super::coverage;
use crate::latch::{Latch, MAX_LOSSES, recording};
use crate::sync::Arc;
use crate::thread;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::sync::atomic::Ordering::Relaxed;

/// A value in two halves, which are equal unless a thread is changing it.
#[derive(Default)]
struct Guarded {
    latch: Latch,
    halves: [std::sync::atomic::AtomicU64; 2],
}

impl Guarded {
    fn look(&self) -> u64 {
        let first = self.halves[0].load(Relaxed);
        thread::yield_now();
        assert_eq!(first, self.halves[1].load(Relaxed), "a writer is inside");
        first
    }

    fn add(&self) {
        let value = self.look() + 1;
        self.halves[0].store(value, Relaxed);
        thread::yield_now();
        self.halves[1].store(value, Relaxed);
    }
}

/// Does one of the operations on a latch.
fn act(guarded: &Guarded, what: usize) {
    let latch = &guarded.latch;
    let shared = |taken: bool| {
        if taken {
            guarded.look();
            latch.unlock_shared();
        }
    };
    let exclusive = |taken: bool| {
        if taken {
            guarded.add();
            latch.unlock_exclusive();
        }
    };
    let bounded = |losses: u32| {
        assert!(losses <= MAX_LOSSES, "{losses}");
        true
    };
    match what {
        0 => shared(bounded(latch.wait_shared(0))),
        1 => exclusive(bounded(latch.wait_exclusive(0))),
        2 => shared(latch.try_shared()),
        3 => exclusive(latch.try_exclusive()),
        _ => {
            latch.exclusive();
            guarded.add();
            latch.downgrade();
            shared(true);
        }
    }
}

fn all(threads: usize, each: usize) {
    use shuttle::rand::Rng;
    let guarded = Arc::new(Guarded::default());
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let guarded = Arc::clone(&guarded);
            thread::spawn(move || {
                for _ in 0..each {
                    // Waits are the most frequent.
                    act(&guarded, shuttle::rand::thread_rng().gen_range(0..8) % 5);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(guarded.latch.word(), 0, "something is left in the word");
}

/// The seed of the schedules. It is fixed, so that the model always sees the same transitions.
const SEED: u64 = 20_261_122;

#[test]
fn shuttle_all() {
    println!("seed {SEED}");
    recording::take();
    let random = RandomScheduler::new_from_seed(SEED, 30_000);
    Runner::new(random, Config::default()).run(|| all(5, 4));
    let few_changes = PctScheduler::new_from_seed(SEED, 4, 10_000);
    Runner::new(few_changes, Config::default()).run(|| all(4, 4));
    coverage::verify("shuttle_all", &recording::take());
}
