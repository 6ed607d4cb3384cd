//! Everything at once, under random schedules.

use super::{coverage, far};
use crate::latch::{Latch, MAX_LOSSES, recording};
use crate::parking::expire;
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
    let upgraded = |how: fn(&Latch) -> bool| {
        latch.shared();
        let seen = guarded.look();
        if how(latch) {
            assert_eq!(guarded.look(), seen, "somebody got in between");
            exclusive(true);
        } else {
            shared(true);
        }
    };
    let bounded = |losses: Option<u32>| {
        assert!(losses.is_some_and(|losses| losses <= MAX_LOSSES), "{losses:?}");
        true
    };
    match what {
        0 => shared(bounded(latch.wait_shared(0, None))),
        1 => exclusive(bounded(latch.wait_exclusive(0, None))),
        2 => shared(latch.try_shared()),
        3 => exclusive(latch.try_exclusive()),
        4 => shared(latch.try_shared_until(far())),
        5 => exclusive(latch.try_exclusive_until(far())),
        6 => upgraded(Latch::upgrade),
        7 => upgraded(Latch::try_upgrade),
        8 => upgraded(|latch| latch.try_upgrade_until(far())),
        9 => {
            latch.exclusive();
            guarded.add();
            latch.downgrade();
            shared(true);
        }
        _ => expire(),
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
                    // Plain waits are the most frequent; deadlines pass rarely.
                    let what = shuttle::rand::thread_rng().gen_range(0..14);
                    act(&guarded, if what > 10 { what - 11 } else { what });
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
