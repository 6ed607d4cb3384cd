//! Runs the simulations, one per policy and size, on all processors.

use super::policies::{Access, PolicyKind};
use super::size::Size;
use super::trace::{AccessKind, Trace};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of accesses between two progress reports.
const REPORT_EVERY: usize = 1 << 16;

/// The simulations to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The policies.
    pub policies: Vec<PolicyKind>,
    /// The sizes of the caches.
    pub sizes: Vec<Size>,
}

/// The result of one simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The policy.
    pub policy: PolicyKind,
    /// The size.
    pub size: Size,
    /// The number of accesses that found their page in memory.
    pub hits: u64,
    /// The number of accesses.
    pub accesses: u64,
}

impl Outcome {
    /// Hits as a fraction of all accesses, 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        if self.accesses == 0 { 0.0 } else { self.hits as f64 / self.accesses as f64 }
    }
}

impl Plan {
    /// The number of accesses in all simulations of a trace together.
    #[must_use]
    pub fn work(&self, trace: &Trace) -> u64 {
        (self.policies.len() * self.sizes.len()) as u64 * trace.len() as u64
    }

    /// Runs all simulations. Threads call `progress` with the number of accesses they have just
    /// done.
    #[must_use]
    pub fn run(&self, trace: &Trace, progress: &(dyn Fn(u64) + Sync)) -> Vec<Outcome> {
        let jobs: Vec<_> = self
            .policies
            .iter()
            .flat_map(|policy| self.sizes.iter().map(move |size| (*policy, *size)))
            .collect();
        let next = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::with_capacity(jobs.len()));
        let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(&(policy, size)) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let outcome = simulate(trace, policy, size, progress);
                        outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                    }
                });
            }
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let place =
            |outcome: &Outcome| jobs.iter().position(|job| *job == (outcome.policy, outcome.size));
        outcomes.sort_by_key(place);
        outcomes
    }
}

/// Simulates one policy with one size.
fn simulate(trace: &Trace, policy: PolicyKind, size: Size, progress: &dyn Fn(u64)) -> Outcome {
    let mut cache = policy.cache(size.pages, trace);
    let mut hits = 0;
    for (part, pages) in trace.pages.chunks(REPORT_EVERY).enumerate() {
        let kinds = trace.kinds.get(part * REPORT_EVERY..).unwrap_or_default();
        let kinds = kinds.iter().copied().chain(std::iter::repeat(AccessKind::Normal));
        for (&page, kind) in pages.iter().zip(kinds) {
            hits += u64::from(cache.access(Access { page, kind }));
        }
        progress(pages.len() as u64);
    }
    Outcome { policy, size, hits, accesses: trace.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_simulation_is_run_once_and_in_order() {
        let pages: Vec<u64> = (0..200_000).map(|at| at % 10).collect();
        let trace = Trace::of("t", &pages);
        let plan = Plan {
            policies: vec![PolicyKind::Lru, PolicyKind::Opt],
            sizes: vec![Size::pages(5), Size::pages(10)],
        };
        let done = AtomicU64::new(0);
        let outcomes = plan.run(&trace, &|more| {
            done.fetch_add(more, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), plan.work(&trace));
        let seen: Vec<_> = outcomes
            .iter()
            .map(|outcome| (outcome.policy, outcome.size.pages, outcome.hits))
            .collect();
        // A loop that is larger than the cache: LRU never hits, the optimum does in 4 of 9.
        assert_eq!(seen[..2], [(PolicyKind::Lru, 5, 0), (PolicyKind::Lru, 10, 199_990)]);
        assert_eq!(seen[3], (PolicyKind::Opt, 10, 199_990));
        let optimum = outcomes[2].hit_ratio();
        assert!((optimum - 4.0 / 9.0).abs() < 0.001, "{optimum}");
    }
}
