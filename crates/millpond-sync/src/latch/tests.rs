use super::*;
use std::sync::atomic::AtomicU64;

#[test]
fn the_state_table() {
    let latch = Latch::new();
    assert!(latch.try_shared() && latch.try_shared() && !latch.try_exclusive());
    latch.unlock_shared();
    assert!(!latch.try_exclusive() && latch.is_held() && !latch.is_exclusive());
    latch.unlock_shared();
    assert!(latch.try_exclusive() && !latch.try_shared() && !latch.try_exclusive());
    latch.downgrade();
    assert!(latch.try_shared() && !latch.try_exclusive());
    latch.unlock_shared();
    latch.unlock_shared();
    assert!(!latch.is_held());
}

#[test]
fn whose_turn_it_is() {
    let run = |tokens: &[usize]| {
        let mut turn = Turn::default();
        for &token in tokens {
            turn = turn.consider(token, true).0;
        }
        (turn.grant, turn.readers, turn.writer)
    };
    const X: usize = WANTS_EXCLUSIVE;
    const S: usize = 0;
    assert_eq!(run(&[]), (COMPETE, 0, false));
    assert_eq!(run(&[S, S, X, S, X]), (COMPETE, 2, true));
    assert_eq!(run(&[X | IMPATIENT, S]), (GRANTED_EXCLUSIVE, 0, true));
    assert_eq!(run(&[S | IMPATIENT, S, X]), (GRANTED_SHARED, 2, true));
    assert_eq!(run(&[S, X | IMPATIENT]), (COMPETE, 1, true));
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
    assert_eq!(latch.0.load(Ordering::Relaxed), 0);
}

/// Readers that overlap without a gap can't keep a writer out.
#[test]
fn readers_do_not_starve_a_writer() {
    let latch = Latch::new();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    latch.shared();
                    std::thread::yield_now();
                    latch.unlock_shared();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..100 {
                latch.exclusive();
                latch.unlock_exclusive();
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(latch.0.load(Ordering::Relaxed), 0);
}
