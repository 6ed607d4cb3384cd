//! Asymmetric barriers order stores before later loads. Only the heavy side pays, a system call.
//!
//! Two threads each announce something, then look for the other's announcement. Each needs a full
//! barrier between its store and its load. Otherwise both may look too early (rule 8):
//!
//! | the light side (often) | the heavy side (seldom) |
//! |---|---|
//! | announce: store A | announce: store B |
//! | [`Barriers::light`] | [`Barriers::heavy`] |
//! | look: load B | look: load A |
//!
//! **Promise.** At least one of the two sees the other's announcement, or a later value.
//!
//! **How.** On Linux the heavy side calls `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`, if the
//! kernel has it. Before the call returns, every running thread of this process executes a full
//! barrier. (A thread that is not running executed one when it was switched out.) The light side
//! only has to keep the compiler from exchanging the store and the load.
//!
//! So the call places a barrier at some point of each light thread's program. If that is before its
//! store, its load comes after everything that the heavy side did before the call, and sees B. If
//! it is after its store, the heavy side's load sees A. Two sequentially consistent fences, one on
//! each side, have exactly these outcomes, because one of the fences comes first.
//!
//! In other cases both sides use such fences: on other systems, under model checkers and Miri, and
//! in pools that ask for fences. A fence costs the light side about 6 nanoseconds at each use.
//! `membarrier` allows no outcome that fences do not allow. So code that is right with fences is
//! right with `membarrier`, and models check the fences.
//!
//! ThreadSanitizer knows neither fences nor `membarrier`, and does not need to. Both sides announce
//! and look at atomics, on which a race is impossible. A barrier alone publishes no non-atomic
//! data.
//!
//! **Failure.** The kernel may be out of memory, or a filter may refuse the call later. Then
//! [`Barriers::heavy`] returns `false`, and its caller must assume that it sees nothing.

use crate::atomic::{Ordering, fence};

/// The kind of barriers that the two sides use. Both sides must use the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barriers {
    asymmetric: bool,
}

impl Barriers {
    /// The barriers that are cheapest for the light side on this system.
    #[must_use]
    pub fn best() -> Self {
        Self { asymmetric: system::prepare() }
    }

    /// A fence on both sides.
    #[must_use]
    pub const fn fences() -> Self {
        Self { asymmetric: false }
    }

    /// The light side: as a heavy side sees it, the caller's earlier stores precede its later
    /// loads.
    #[inline]
    pub fn light(self) {
        if self.asymmetric {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The heavy side. `false`: the system refused the call, and nothing is ordered.
    #[must_use]
    pub fn heavy(self) -> bool {
        if self.asymmetric {
            return system::barrier();
        }
        fence(Ordering::SeqCst);
        true
    }
}

#[cfg(all(target_os = "linux", not(any(millpond_portable, loom, shuttle, miri))))]
mod system {
    use rustix::thread::{MembarrierCommand, membarrier};
    use std::sync::OnceLock;

    /// Registers the process once. All callers get the same answer.
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

#[cfg(not(all(target_os = "linux", not(any(millpond_portable, loom, shuttle, miri)))))]
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

    /// The promise on the real machine. (x86 breaks it without barriers, if both cores are free.)
    #[test]
    fn at_least_one_side_sees_the_other() {
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
