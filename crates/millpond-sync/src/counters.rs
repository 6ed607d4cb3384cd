//! Striped event counters: every session counts, and few threads read the sums.
//!
//! Each session counts in its own stripe, on its own cache lines, with a plain load and store. So
//! counting is no atomic read-modify-write and touches no shared line (rule 6). In return, a stripe
//! has one writer at a time, and a sum is only approximate.

use crate::CachePadded;
use crate::atomic::{AtomicU64, Ordering};
use crate::audit;
use crate::prefetch::prefetch;

/// `N` counters in a number of stripes.
#[derive(Debug)]
pub struct StripedCounters<const N: usize> {
    stripes: Box<[CachePadded<[AtomicU64; N]>]>,
}

impl<const N: usize> StripedCounters<N> {
    /// Counters at zero, in `stripes` stripes (at least one).
    #[must_use]
    pub fn new(stripes: usize) -> Self {
        let stripes = || (0..stripes.max(1)).map(|_| CachePadded::new(zeros())).collect();
        Self { stripes: audit::session_owned("striped counters", stripes) }
    }

    /// Adds to a counter. Two threads must not add to the same stripe at the same time: a count
    /// would be lost, but nothing worse happens. Out-of-range stripes and counters are ignored.
    #[inline]
    pub fn add(&self, stripe: usize, counter: usize, n: u64) {
        if let Some(count) = self.stripes.get(stripe).and_then(|stripe| stripe.get(counter)) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    /// Prefetches a counter that the caller will soon add to.
    #[inline]
    pub fn prefetch(&self, stripe: usize, counter: usize) {
        if let Some(count) = self.stripes.get(stripe).and_then(|stripe| stripe.get(counter)) {
            prefetch(count);
        }
    }

    /// The value of a counter in one stripe.
    #[must_use]
    pub fn get(&self, stripe: usize, counter: usize) -> u64 {
        let count = self.stripes.get(stripe).and_then(|stripe| stripe.get(counter));
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Adds all counters of one stripe to those of another, and leaves zeros. The caller must be
    /// the only writer of both stripes. A sum taken meanwhile may count the moved values twice.
    pub fn move_to(&self, from: usize, to: usize) {
        let Some(stripe) = self.stripes.get(from).filter(|_| from != to) else { return };
        for (counter, count) in stripe.iter().enumerate() {
            let n = count.load(Ordering::Relaxed);
            if n != 0 {
                self.add(to, counter, n);
                count.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The sum of a counter over all stripes.
    #[must_use]
    pub fn sum(&self, counter: usize) -> u64 {
        let mut sum = 0u64;
        for stripe in &self.stripes {
            if let Some(count) = stripe.get(counter) {
                sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        sum
    }

    /// The sums of all counters. Each stripe is read once, so this costs about as much as the sum
    /// of one counter.
    #[must_use]
    pub fn sums(&self) -> [u64; N] {
        let mut sums = [0u64; N];
        for stripe in &self.stripes {
            for (sum, count) in sums.iter_mut().zip(stripe.iter()) {
                *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

/// A constant, because Miri would take seconds to make hundreds of counters one by one.
#[cfg(not(loom))]
const fn zeros<const N: usize>() -> [AtomicU64; N] {
    [const { AtomicU64::new(0) }; N]
}

#[cfg(loom)]
fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn stripes_add_up() {
        let counters = StripedCounters::<2>::new(4);
        std::thread::scope(|scope| {
            for stripe in 0..4 {
                let counters = &counters;
                scope.spawn(move || {
                    for _ in 0..100 {
                        counters.add(stripe, 1, 3);
                    }
                });
            }
        });
        counters.add(9, 1, 1);
        counters.add(0, 9, 1);
        assert_eq!((counters.sum(0), counters.sum(1), counters.sum(9)), (0, 1200, 0));
        assert_eq!(counters.sums(), [0, 1].map(|counter| counters.sum(counter)));
    }

    #[test]
    fn moved_counts_are_counted_once() {
        let counters = StripedCounters::<2>::new(3);
        counters.add(0, 1, 5);
        counters.add(2, 1, 7);
        counters.move_to(0, 2);
        assert_eq!((counters.get(0, 1), counters.get(2, 1), counters.sum(1)), (0, 12, 12));
        counters.move_to(2, 2);
        counters.move_to(9, 2);
        assert_eq!((counters.get(2, 1), counters.get(9, 1), counters.get(2, 9)), (12, 0, 0));
    }
}
