//! Compares every policy with its model, with the others, and with examples worked out by hand.

use super::*;
use proptest::prelude::*;

fn play(kind: PolicyKind, capacity: usize, pages: &[u32]) -> Vec<bool> {
    let keys: Vec<u64> = pages.iter().map(|page| u64::from(*page)).collect();
    let trace = Trace::of("test", &keys);
    let mut cache = kind.cache(capacity, &trace);
    let access = |page: &u32| cache.access(Access { page: *page, kind: AccessKind::Normal });
    trace.pages.iter().map(access).collect()
}

fn misses(kind: PolicyKind, capacity: usize, pages: &[u32]) -> usize {
    play(kind, capacity, pages).iter().filter(|hit| !**hit).count()
}

fn hits(kind: PolicyKind, capacity: usize, pages: &[u32]) -> usize {
    pages.len() - misses(kind, capacity, pages)
}

/// Traces that mix frequently used pages, loops and scans.
fn any_trace() -> impl Strategy<Value = Vec<u32>> {
    let piece = prop_oneof![
        prop::collection::vec(0u32..8, 1..40),
        prop::collection::vec(0u32..60, 1..40),
        (0u32..30, 1u32..25, 1usize..4)
            .prop_map(|(first, len, times)| (first..first + len).collect::<Vec<_>>().repeat(times)),
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn policies_match_their_models(trace in any_trace(), c in prop_oneof![1usize..6, 1usize..40]) {
        use models::hits;
        let cases: [(PolicyKind, Vec<bool>); 9] = [
            (PolicyKind::Lru, hits(&mut models::lru(c), &trace)),
            (PolicyKind::Fifo, hits(&mut models::fifo(c), &trace)),
            (PolicyKind::Clock, hits(&mut models::clock(c), &trace)),
            (PolicyKind::TwoQ, hits(&mut models::two_q(c), &trace)),
            (PolicyKind::Arc, hits(&mut models::arc(c), &trace)),
            (PolicyKind::Lirs, hits(&mut models::lirs(c), &trace)),
            (PolicyKind::Sieve, hits(&mut models::sieve(c), &trace)),
            (PolicyKind::S3Fifo, hits(&mut models::s3_fifo(c), &trace)),
            (PolicyKind::Opt, hits(&mut models::opt(c, &trace), &trace)),
        ];
        for (kind, expected) in cases {
            prop_assert_eq!(play(kind, c, &trace), expected, "{}", kind);
        }
    }

    #[test]
    fn nothing_beats_the_optimum(trace in any_trace(), c in 1usize..40) {
        let best = hits(PolicyKind::Opt, c, &trace);
        for kind in PolicyKind::ALL {
            let found = hits(kind, c, &trace);
            prop_assert!(found <= best, "{} has {}, the optimum {}", kind, found, best);
        }
    }

    /// A larger cache also holds what a smaller one holds.
    #[test]
    fn lru_and_the_optimum_include(trace in any_trace(), c in 1usize..40) {
        for kind in [PolicyKind::Lru, PolicyKind::Opt] {
            let (small, large) = (play(kind, c, &trace), play(kind, c + 1, &trace));
            prop_assert!(small.iter().zip(&large).all(|(small, large)| !small || *large), "{}", kind);
        }
    }

    /// With room for all pages, only first accesses miss.
    #[test]
    fn cache_of_all_pages_misses_only_first_accesses(trace in any_trace()) {
        let distinct = Trace::of("t", &trace.iter().map(|p| u64::from(*p)).collect::<Vec<_>>()).distinct;
        for kind in PolicyKind::ALL.into_iter().filter(|kind| *kind != PolicyKind::Lirs) {
            prop_assert_eq!(misses(kind, distinct, &trace), distinct, "{}", kind);
        }
    }
}

/// L. A. Belady, R. A. Nelson, G. S. Shedler, An Anomaly in Space-Time Characteristics of Certain
/// Programs Running in a Paging Machine, CACM 1969: FIFO can miss more with more pages.
#[test]
fn beladys_anomaly() {
    let trace = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
    let misses = |kind| [3, 4].map(|capacity| misses(kind, capacity, &trace));
    assert_eq!(misses(PolicyKind::Fifo), [9, 10]);
    assert_eq!(misses(PolicyKind::Lru), [10, 8]);
    assert_eq!(misses(PolicyKind::Opt), [7, 6]);
}

/// The example of A. Silberschatz and others, Operating System Concepts, chapter on page
/// replacement.
#[test]
fn a_textbooks_reference_string() {
    let trace = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
    let kinds = [PolicyKind::Fifo, PolicyKind::Lru, PolicyKind::Opt];
    assert_eq!(kinds.map(|kind| misses(kind, 3, &trace)), [15, 12, 9]);
}

/// The LIRS paper's example against LRU: a loop over slightly more pages than fit.
#[test]
fn loops() {
    let trace: Vec<u32> = (0..100).collect::<Vec<_>>().repeat(10);
    assert_eq!(hits(PolicyKind::Lru, 90, &trace), 0);
    // From the second round on the 89 low pages hit. The others share the queue's one page.
    assert_eq!(hits(PolicyKind::Lirs, 90, &trace), 89 * 9);
    // Each miss evicts the page with the latest next use.
    assert_eq!(hits(PolicyKind::Opt, 90, &trace), misses_less(&trace, 90));
    fn misses_less(trace: &[u32], capacity: usize) -> usize {
        let mut model = models::opt(capacity, trace);
        models::hits(&mut model, trace).into_iter().filter(|hit| *hit).count()
    }
}

/// The 2Q paper's purpose: a scan must not evict pages in steady use.
#[test]
fn scans() {
    let hot: Vec<u32> = (0..20).collect();
    // Used, evicted from the first queue, and used again: from then on the pages count as hot.
    let mut trace = [hot.clone(), (100..140).collect(), hot.clone(), hot.clone()].concat();
    trace.extend(1000..2000);
    let before = trace.len();
    trace.extend(&hot);
    let again = |kind| play(kind, 40, &trace)[before..].iter().filter(|hit| **hit).count();
    assert_eq!(again(PolicyKind::Lru), 0);
    assert_eq!(again(PolicyKind::TwoQ), 20);
    assert_eq!(again(PolicyKind::Arc), 20);
}

/// SIEVE by hand, with 3 pages: A is used again and stays in its position.
#[test]
fn sieve_by_hand() {
    // A B C loaded; A used; D: hand spares A, takes B; E: takes C; A is still there; F: takes D.
    let trace = [1, 2, 3, 1, 4, 5, 1, 6, 4, 1];
    let expected = [false, false, false, true, false, false, true, false, false, true];
    assert_eq!(play(PolicyKind::Sieve, 3, &trace), expected);
}

/// The clock sweep by hand: a page is loaded with a count of 1, so the first round evicts none.
#[test]
fn the_clock_sweep_by_hand() {
    // 1 2 3 loaded, 1 used: counts 2 1 1. For 4 the hand lowers them to 1 0 0, then 0 0 0; evicts
    // 2.
    let trace = [1, 2, 3, 1, 4, 1, 3, 2];
    let expected = [false, false, false, true, false, true, true, false];
    assert_eq!(play(PolicyKind::ClockSweep, 3, &trace), expected);
}

/// Probation by hand: of 20 frames, two are for new pages once the pool is full.
#[test]
fn probation_by_hand() {
    // 20 pages fill the pool, and the first ten are used again. The queue does not know these
    // pages; the hand goes round until it has admitted all. Then a scan passes through, and the
    // used pages stay.
    let mut trace: Vec<u32> = (0..20).chain(0..10).collect();
    trace.extend(100..200);
    let before = trace.len();
    trace.extend(0..10);
    let again = &play(PolicyKind::Probation, 20, &trace)[before..];
    assert!(again.iter().filter(|hit| **hit).count() >= 5, "{again:?}");
    let again = &play(PolicyKind::ClockSweep, 20, &trace)[before..];
    assert_eq!(again, [false; 10]);
}

#[test]
fn names_are_found_again() {
    for kind in PolicyKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert_eq!("Belady".parse(), Ok(PolicyKind::Opt));
    assert_eq!("S3FIFO".parse(), Ok(PolicyKind::S3Fifo));
    assert_eq!("all".parse(), Ok(Policies::All));
    assert_eq!("lru".parse(), Ok(Policies::One(PolicyKind::Lru)));
    assert!(
        "lur".parse::<PolicyKind>().unwrap_err().contains("there are probation, clock-sweep, lru,")
    );
}
