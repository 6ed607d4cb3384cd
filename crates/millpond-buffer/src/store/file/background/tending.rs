//! Who tends a ring: takes from it what the kernel has completed, and finishes it.
//!
//! A thread that waits for a page has nothing better to do than that, and what it tends to first is mostly its own page: so
//! no other thread has to be woken, neither to begin the next read nor to say that this one has ended. It takes the *role*,
//! sleeps in the kernel until something has been completed, finishes that, and leaves when its page has come, having finished what it
//! had reaped by then and nothing besides: however many reads others begin, it does not become their server. The others
//! who wait meanwhile sleep as they always would, until their pages are published.
//!
//! **The spare.** A waiter may leave, and be suspended or gone, while others wait for reads that he has begun; or nobody
//! waits at all. Then a thread of the store's own, the [`Spare`], finishes what has been completed. It is woken when a
//! ring is *left alone*: reads are under way, somebody waits who does not tend, nobody has the role. It never has
//! the role while it sleeps, so whoever comes to wait gets it. Reads that nobody waits for it looks after at leisure.
//!
//! **State.** One word for each ring: whether somebody has the role, how many wait without it, how many reads are under way,
//! and whether the spare sleeps until told of the next.
//!
//! **Invariants.** Whoever makes the word say that the ring is left alone wakes the spare: by the first read, by the first
//! who waits, or by leaving. Who leaves has finished all that he has reaped. A ring that is left alone is looked at by the spare before it sleeps, and while it sleeps, a completion or
//! a call wakes it. It sleeps without a limit only after it has marked every ring as idle, which the next read undoes.
//!
//! **Memory ordering.** All changes are read-modify-writes of one word, which have one order: of a waiter who comes and a tender
//! who leaves the later sees the earlier. AcqRel, so that what a tender has done is seen by the next. What is reaped is
//! under the kernel's lock, and pages are published by their entries.
//!
//! **Failure.** The role is given back when its holder unwinds.

#[cfg(all(test, shuttle))]
mod models;

use millpond_sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HELD: u64 = 1;
/// The spare wants to be told when a read begins.
const IDLE: u64 = 1 << 1;
const WAITER: u64 = 1 << 2;
const WAITERS: u64 = ((1 << 30) - 1) << 2;
const READ: u64 = 1 << 32;

/// How long the spare lets reads be that nobody waits for.
pub(super) const LEISURE: Duration = Duration::from_millis(10);

/// The state of one ring.
#[derive(Debug, Default)]
pub(super) struct Tending(AtomicU64);

/// What a ring is to those who tend it.
pub(super) trait Tended {
    fn tending(&self) -> &Tending;
    /// Finishes what has been completed, if anything, also what is completed meanwhile, unless the caller `has_enough`; does not wait.
    /// It says [`Tending::ended`] for each read first. Called with the role.
    fn finish_completed(&self, has_enough: &dyn Fn() -> bool) -> bool;
    /// Waits until something has been completed, or for less. Called with the role. `false`: there is nothing to wait for any more.
    fn wait_for_completion(&self) -> bool;
    /// Wakes the spare.
    fn wake_spare(&self);
}

const fn is_left_alone(word: u64) -> bool {
    word & HELD == 0 && word & WAITERS != 0 && word >= READ
}

impl Tending {
    /// A read begins. `true`: the spare has to be woken.
    #[must_use]
    pub(super) fn began(&self) -> bool {
        let now = self.0.fetch_add(READ, Ordering::AcqRel) + READ;
        if now & IDLE != 0 {
            self.0.fetch_and(!IDLE, Ordering::AcqRel);
        }
        now & IDLE != 0 || is_left_alone(now)
    }

    /// So many reads have ended.
    pub(super) fn ended(&self, reads: usize) {
        self.0.fetch_sub(READ * reads as u64, Ordering::AcqRel);
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.load(Ordering::Acquire) >= READ
    }

    fn is_left_alone(&self) -> bool {
        is_left_alone(self.0.load(Ordering::Acquire))
    }

    /// Nobody has the role, and reads are under way.
    fn is_open(&self) -> bool {
        let now = self.0.load(Ordering::Acquire);
        now & HELD == 0 && now >= READ
    }

    /// Has the next read wake the spare; `false` if one is under way.
    fn mark_idle(&self) -> bool {
        let mark = |now: u64| (now < READ).then_some(now | IDLE);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, mark).is_ok()
    }

    fn take(&self) -> bool {
        let now = self.0.load(Ordering::Relaxed);
        now & HELD == 0 && self.0.fetch_or(HELD, Ordering::AcqRel) & HELD == 0
    }
}

/// The role, given back when dropped.
struct Role<'a, T: Tended> {
    ring: &'a T,
    /// Whether it is the spare's, who looks again before it sleeps.
    is_spare: bool,
}

impl<'a, T: Tended> Role<'a, T> {
    fn take(ring: &'a T, is_spare: bool) -> Option<Self> {
        // Made only if it was had: dropping one gives it back.
        ring.tending().take().then(|| Self { ring, is_spare })
    }
}

impl<T: Tended> Drop for Role<'_, T> {
    fn drop(&mut self) {
        let before = self.ring.tending().0.fetch_and(!HELD, Ordering::AcqRel);
        if !self.is_spare && is_left_alone(before & !HELD) {
            self.ring.wake_spare();
        }
    }
}

/// Tends the ring until `is_done`; less, if somebody else does, or if no read is under way.
pub(super) fn tend(ring: &impl Tended, is_done: &dyn Fn() -> bool) {
    if !ring.tending().is_open() {
        return;
    }
    let Some(_role) = Role::take(ring, false) else { return };
    while !is_done() {
        if ring.finish_completed(is_done) {
            continue;
        }
        if !ring.tending().is_under_way() || !ring.wait_for_completion() {
            return;
        }
    }
}

/// Somebody waits for a read that may be in the ring, and does not tend it.
pub(super) struct Waiter<'a, T: Tended>(&'a T);

impl<'a, T: Tended> Waiter<'a, T> {
    pub(super) fn new(ring: &'a T) -> Self {
        let before = ring.tending().0.fetch_add(WAITER, Ordering::AcqRel);
        let waiter = Self(ring);
        if is_left_alone(before + WAITER) {
            ring.wake_spare();
        }
        waiter
    }
}

impl<T: Tended> Drop for Waiter<'_, T> {
    fn drop(&mut self) {
        self.0.tending().0.fetch_sub(WAITER, Ordering::AcqRel);
    }
}

/// What the spare does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Sleep until it is woken, something has been completed in one of these rings, or that time has passed.
    Sleep(Vec<usize>, Option<Duration>),
    /// Look again.
    Look,
}

/// The thread that tends rings which nobody tends.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Nothing was under way when it last looked.
    was_idle: bool,
}

impl Spare {
    /// Looks at all rings.
    pub(super) fn look(&mut self, rings: &[impl Tended]) -> Next {
        for ring in rings {
            if ring.tending().is_open()
                && let Some(_role) = Role::take(ring, true)
            {
                // Others may need it more than whoever begins one read after the other here.
                let has_enough = || rings.iter().any(|other| other.tending().is_left_alone());
                while ring.finish_completed(&has_enough) && !has_enough() {}
            }
        }
        let alone: Vec<usize> =
            (0..rings.len()).filter(|&at| rings[at].tending().is_left_alone()).collect();
        let is_idle = !rings.iter().any(|ring| ring.tending().is_under_way());
        if !std::mem::replace(&mut self.was_idle, is_idle) || !is_idle {
            return Next::Sleep(alone, Some(LEISURE));
        }
        self.was_idle = false;
        match rings.iter().all(|ring| ring.tending().mark_idle()) {
            true => Next::Sleep(Vec::new(), None),
            false => Next::Look,
        }
    }
}
