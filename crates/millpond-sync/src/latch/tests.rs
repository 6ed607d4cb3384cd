use super::turn::Turn;
use super::*;
use std::sync::atomic::AtomicU64;

mod escaped;

#[test]
fn the_state_table() {
    let latch = Latch::new();
    assert!(latch.try_shared() && latch.try_shared() && !latch.try_exclusive());
    latch.unlock_shared();
    assert!(!latch.try_exclusive() && latch.is_held());
    latch.unlock_shared();
    assert!(latch.try_exclusive() && !latch.try_shared() && !latch.try_exclusive());
    latch.downgrade();
    assert!(latch.try_shared() && !latch.try_exclusive());
    latch.unlock_shared();
    latch.unlock_shared();
    assert!(!latch.is_held());
}

/// A latch full of forgotten guards refuses the next reader before the count reaches the flags.
#[test]
fn a_latch_that_is_full_takes_no_reader() {
    let latch = Latch::new();
    latch.forget_shared(MAX_READERS - 1);
    latch.shared();
    assert!(!latch.try_shared() && !latch.try_exclusive());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| latch.shared()));
    let said = panicked.unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.contains("guards have been forgotten"), "{said}");
    assert_eq!(latch.word(), MAX_READERS, "nothing is left behind");
    latch.unlock_shared();
    assert!(latch.try_shared() && !latch.try_shared());
}

/// For every queue of up to six waiters (three under Miri), a release keeps the waiters' rules.
#[test]
fn every_turn_keeps_the_rules() {
    for len in 0..=if cfg!(miri) { 3 } else { 6u32 } {
        for case in 0..4usize.pow(len) {
            let queue: Vec<usize> = (0..len).map(|at| case >> (2 * at) & 3).collect();
            let (mut turn, mut woken) = (Turn::default(), 0);
            for &token in &queue {
                let (next, verdict) = turn.consider(token);
                turn = next;
                match verdict {
                    parking::Filter::Unpark => woken += 1,
                    _ => break,
                }
            }
            let (woken, left) = queue.split_at(woken);
            let writers = woken.iter().filter(|token| **token & WANTS_EXCLUSIVE != 0).count();
            assert_eq!(woken.is_empty(), queue.is_empty(), "the head is woken: {queue:?}");
            assert!(writers <= 1 && turn.writer == (writers == 1), "{queue:?}");
            assert_eq!(turn.readers as usize, woken.len() - writers, "{queue:?}");
            // Rule 2: if threads stay behind, the writer woken before them wakes them.
            assert!(left.is_empty() || turn.writer, "left behind: {queue:?}");
            // Rule 3: an impatient waiter is woken only to be given the latch.
            let impatient = woken.iter().any(|token| *token & IMPATIENT != 0);
            assert_eq!(turn.grant, impatient, "{queue:?}");
        }
    }
}

/// Writers keep two counters equal; readers must never see them differ.
#[test]
fn readers_and_writers_exclude_each_other() {
    let rounds = if cfg!(miri) { 50 } else { 20_000 };
    let latch = Latch::new();
    let (a, b) = (AtomicU64::new(0), AtomicU64::new(0));
    let bump = |counter: &AtomicU64| {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    latch.exclusive();
                    bump(&a);
                    bump(&b);
                    latch.unlock_exclusive();
                }
            });
            scope.spawn(|| {
                for _ in 0..rounds {
                    latch.shared();
                    assert_eq!(a.load(Ordering::Relaxed), b.load(Ordering::Relaxed));
                    latch.unlock_shared();
                }
            });
        }
    });
    assert_eq!((a.load(Ordering::Relaxed), b.load(Ordering::Relaxed)), (3 * rounds, 3 * rounds));
    assert_eq!(latch.word(), 0);
}

/// Two threads that hold the latch one way without a gap can't starve one that wants the other way.
fn assert_not_starved(crowd: fn(&Latch), one: fn(&Latch)) {
    let latch = Latch::new();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    crowd(&latch);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..100 {
                one(&latch);
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(latch.word(), 0);
}

fn hold_shared(latch: &Latch) {
    latch.shared();
    std::thread::yield_now();
    latch.unlock_shared();
}

fn hold_exclusive(latch: &Latch) {
    latch.exclusive();
    std::thread::yield_now();
    latch.unlock_exclusive();
}

#[test]
fn writers_do_not_starve_a_reader() {
    assert_not_starved(hold_exclusive, hold_shared);
}

#[test]
fn readers_do_not_starve_a_writer() {
    assert_not_starved(hold_shared, hold_exclusive);
}
