//! Asymmetric barriers: an ordering between stores and later loads that costs the many nothing and
//! the few a system call.
//!
//! Two threads that each announce something and then look for the other's announcement need a full
//! barrier between the store and the load, or both may look too early (rule 8):
//!
//! | the many (often) | the few (seldom) |
//! |---|---|
//! | announce: store A | announce: store B |
//! | [`Barriers::light`] | [`Barriers::heavy`] |
//! | look: load B | look: load A |
//!
//! **Promise.** At least one of the two sees the other's announcement, or a later value.
//!
//! **How.** Where Linux has it, the heavy side calls `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`,
//! which makes every thread of this process that is running execute a full barrier before it returns
//! (a thread that is not running has executed one when it was switched out). The light side need
//! only keep the compiler from exchanging the store and the load. So the barrier of each of the many
//! falls on some point of its program: if before its store, then its load comes after everything that
//! the heavy side did before the call, and sees B; if after its store, then the heavy side's load sees A. Those are
//! exactly the outcomes of two sequentially consistent fences, one a side, of which one comes first.
//!
//! Elsewhere, and under model checkers, Miri and in pools that ask for it, both sides are such fences:
//! about 6 nanoseconds at each use by the many. What is right with fences is right with `membarrier`, since the
//! latter allows no further outcome, so models check the fences.
//!
//! ThreadSanitizer knows neither fences nor `membarrier`, and need not: what is announced and looked at are atomics, whose
//! order is no race, and nothing that is not atomic is made known through a barrier alone.
//!
//! **Failure.** The kernel may be out of memory, or a filter may refuse the call later: then
//! [`Barriers::heavy`] says so, and its caller has to assume that it sees nothing.

use crate::atomic::{Ordering, fence};

/// Which barriers the two sides use. Both sides must use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barriers {
    asymmetric: bool,
}

impl Barriers {
    /// The cheapest for the light side that this system has.
    #[must_use]
    pub fn best() -> Self {
        Self { asymmetric: system::prepare() }
    }

    /// A fence on both sides.
    #[must_use]
    pub const fn fences() -> Self {
        Self { asymmetric: false }
    }

    /// Orders the caller's earlier stores before its later loads, as far as a heavy side can tell.
    #[inline]
    pub fn light(self) {
        if self.asymmetric {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The other side. `false`: the system refused, and nothing is ordered.
    #[must_use]
    pub fn heavy(self) -> bool {
        if self.asymmetric {
            return system::barrier();
        }
        fence(Ordering::SeqCst);
        true
    }
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
mod system {
    use rustix::thread::{MembarrierCommand, membarrier};
    use std::sync::OnceLock;

    /// Registers the process, once. Everyone learns the same answer.
    pub(super) fn prepare() -> bool {
        static PREPARED: OnceLock<bool> = OnceLock::new();
        *PREPARED.get_or_init(|| {
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited);
            registered.is_ok() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
        })
    }

    pub(super) fn barrier() -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
mod system {
    pub(super) fn prepare() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        false
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, AtomicUsize};

    /// The promise on the real machine: of two that announce and look, one sees the other. (Without
    /// the barriers it fails on x86 when both cores are free.)
    #[test]
    fn one_sees_the_other() {
        const ROUNDS: u64 = if cfg!(miri) { 30 } else { 5_000 };
        for barriers in [Barriers::best(), Barriers::fences()] {
            let (many, few) = (AtomicU64::new(0), AtomicU64::new(0));
            let (saw_many, saw_few) = (AtomicU64::new(0), AtomicU64::new(0));
            let arrived = AtomicUsize::new(0);
            let meet = |round: u64, half: usize| {
                arrived.fetch_add(1, Ordering::AcqRel);
                let mut backoff = crate::hint::Backoff::new();
                while arrived.load(Ordering::Acquire) < (round as usize * 2 + half) * 2 {
                    backoff.snooze();
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        meet(round, 1);
                        many.store(round + 1, Ordering::Release);
                        barriers.light();
                        saw_few.store(few.load(Ordering::Acquire), Ordering::Relaxed);
                        meet(round, 2);
                    }
                });
                for round in 0..ROUNDS {
                    meet(round, 1);
                    few.store(round + 1, Ordering::Release);
                    assert!(barriers.heavy());
                    saw_many.store(many.load(Ordering::Acquire), Ordering::Relaxed);
                    meet(round, 2);
                    let seen = [&saw_many, &saw_few].map(|saw| saw.load(Ordering::Relaxed));
                    assert!(seen.contains(&(round + 1)), "both looked too early: {seen:?}");
                }
            });
        }
    }
}
