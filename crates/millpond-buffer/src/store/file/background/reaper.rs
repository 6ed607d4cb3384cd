//! The threads that reap what the kernel has completed in a ring, and finish it.
//!
//! **A ring with a thread** ([`run`]). The thread takes jobs from a queue, hands them to the
//! kernel, and finishes those that the kernel has completed. Finishing a job (checking and
//! publishing its pages) takes microseconds. So it first hands over the next jobs, to keep the
//! device busy.
//!
//! **Tending a shared ring** (polling its completion queue). A thread that waits for a page has
//! nothing better to do, and the first page that it finishes is mostly its own. So no other thread
//! has to be woken to begin the next read or to announce the end of this one. The thread takes the
//! *role* (a try-lock on the ring), sleeps in the kernel until something has been completed, and
//! finishes that. It leaves when its own page has come and it has finished all that it had reaped
//! by then. So it does not become the server of reads that others begin. Other threads that wait
//! sleep until their pages are published.
//!
//! **The reaper.** A waiter may leave, be suspended or end while others wait for reads that it has
//! begun. Or no thread waits at all. Then a thread of the store, the [`Reaper`], finishes what has
//! been completed. It is woken when a ring is *left alone*: reads are under way, some thread waits
//! without tending, and none has the role. The reaper never has the role while it sleeps, so a
//! thread that comes to wait gets it. Reads that no thread waits for, the reaper finishes at
//! leisure.
//!
//! **State.** One word for each ring. It says whether a thread has the role, how many wait without
//! it, and how many reads are under way. It also says whether the reaper sleeps until the next
//! read.
//!
//! **Invariants.** The thread whose change makes the word say that the ring is left alone wakes the
//! reaper. Such a thread begins the first read, is the first waiter, or leaves. A thread that
//! leaves has finished all that it has reaped. The reaper looks at a ring that is left alone before
//! it sleeps. While it sleeps, a completion or a call wakes it. It sleeps without a limit only
//! after it has marked every ring as idle, which the next read undoes.
//!
//! **Memory ordering.** All changes are read-modify-writes of one word, so they have one order. Of
//! a waiter that comes and a tender that leaves, the later sees the earlier. They are AcqRel, so
//! that the next tender sees what the one before has done. What is reaped is under the kernel's
//! lock, and pages are published by their entries.
//!
//! **Failure.** The role is given back when its holder unwinds.

use std::time::Duration;

use millpond_sync::atomic::{AtomicU64, Ordering};

use super::uring::{Ended, SLOTS, Uring};
use super::{Job, Shared};

const HELD: u64 = 1;
/// The reaper wants to be told when a read begins.
const IDLE: u64 = 1 << 1;
const WAITER: u64 = 1 << 2;
const WAITERS: u64 = ((1 << 30) - 1) << 2;
const READ: u64 = 1 << 32;

/// How long the reaper lets reads be that no thread waits for.
pub(super) const LEISURE: Duration = Duration::from_millis(10);

/// The state of one ring.
#[derive(Debug, Default)]
pub(super) struct Tending(AtomicU64);

/// A ring as its tenders see it.
pub(super) trait Tended {
    fn tending(&self) -> &Tending;
    /// Finishes what has been completed, if anything; does not wait. Also finishes what is
    /// completed meanwhile, unless the caller `has_enough`. Calls [`Tending::ended`] for each read
    /// before finishing it. The caller has the role.
    fn finish_completed(&self, has_enough: &dyn Fn() -> bool) -> bool;
    /// Waits until something has been completed, or for less. The caller has the role. `false`:
    /// there is nothing to wait for any more.
    fn wait_for_completion(&self) -> bool;
    fn wake_spare(&self);
}

const fn is_left_alone(word: u64) -> bool {
    word & HELD == 0 && word & WAITERS != 0 && word >= READ
}

impl Tending {
    /// Counts a read that begins. `true`: the caller has to wake the reaper.
    #[must_use]
    pub(super) fn began(&self) -> bool {
        let now = self.0.fetch_add(READ, Ordering::AcqRel) + READ;
        if now & IDLE != 0 {
            self.0.fetch_and(!IDLE, Ordering::AcqRel);
        }
        now & IDLE != 0 || is_left_alone(now)
    }

    pub(super) fn ended(&self, reads: usize) {
        self.0.fetch_sub(READ * reads as u64, Ordering::AcqRel);
    }

    /// Whether no thread has the role or waits.
    #[cfg(all(test, shuttle))]
    pub(super) fn is_at_rest(&self) -> bool {
        self.0.load(Ordering::Acquire) & (HELD | WAITERS) == 0
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.load(Ordering::Acquire) >= READ
    }

    fn is_left_alone(&self) -> bool {
        is_left_alone(self.0.load(Ordering::Acquire))
    }

    /// Whether no thread has the role and reads are under way.
    fn is_open(&self) -> bool {
        let now = self.0.load(Ordering::Acquire);
        now & HELD == 0 && now >= READ
    }

    /// Has the next read wake the reaper; `false` if a read is under way.
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
    /// Whether it is the reaper's role. The reaper looks again before it sleeps.
    is_spare: bool,
}

impl<'a, T: Tended> Role<'a, T> {
    fn take(ring: &'a T, is_spare: bool) -> Option<Self> {
        // Made only if the flag was taken: dropping a role gives it back.
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

/// Tends the ring until `is_done`. Returns earlier if another thread tends it, or if no read is
/// under way.
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

/// A thread that waits for a read that may be in the ring, and does not tend it.
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

/// The reaper's next step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Sleep until called, until something has been completed in one of these rings, or until that
    /// time has passed.
    Sleep(Vec<usize>, Option<Duration>),
    Look,
}

/// The thread that tends rings that no waiter tends.
#[derive(Debug, Default)]
pub(super) struct Reaper {
    /// Nothing was under way at its last look.
    was_idle: bool,
}

impl Reaper {
    pub(super) fn look(&mut self, rings: &[impl Tended]) -> Next {
        for ring in rings {
            if ring.tending().is_open()
                && let Some(_role) = Role::take(ring, true)
            {
                // Other threads may need the reaper more than one that begins one read after the
                // other here.
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

/// Serves the queue until told to stop.
pub(super) fn run(mut ring: Uring, shared: &Shared) {
    let (mut taken, mut ended) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS));
    while let Some(to_do) = look(&mut ring, shared, &mut taken, &mut ended) {
        let handed_over = match to_do {
            // The thread finishes completed jobs while the device works on what it has been given.
            ToDo::Finish => ring.submit(),
            ToDo::Wait => ring.wait(),
        };
        if let Err(error) = &handed_over {
            tracing::error!(%error, "io_uring failed");
        }
        match to_do {
            ToDo::Finish => ended.drain(..).for_each(|(job, result)| job.finish(result)),
            ToDo::Wait => {
                shared.queue.lock().asleep = false;
                ring.reap(|job| ended.push(job));
                // The next of their kind may begin; they are in the queue after this.
                ended.iter_mut().for_each(|(job, _)| job.end_turn());
            }
        }
        if handed_over.is_err() {
            return ended.drain(..).for_each(|(job, result)| job.finish(result));
        }
    }
}

/// The next step of the ring's thread, apart from handing over what has been prepared.
#[derive(Clone, Copy)]
enum ToDo {
    /// Finish the jobs that have ended.
    Finish,
    /// Wait for the kernel.
    Wait,
}

/// Takes jobs from the queue, by way of `taken`, which is empty. `None`: the thread was told to
/// stop, and all jobs have ended.
fn look(
    ring: &mut Uring,
    shared: &Shared,
    taken: &mut Vec<Job>,
    ended: &mut Vec<Ended>,
) -> Option<ToDo> {
    let mut queue = shared.queue.lock();
    loop {
        let count = queue.jobs.len().min(ring.room());
        if count == 0 {
            break;
        }
        taken.extend(queue.jobs.drain(..count));
        drop(queue);
        ended.extend(taken.drain(..).filter_map(|job| ring.add(job)));
        queue = shared.queue.lock();
    }
    if !ended.is_empty() {
        return Some(ToDo::Finish);
    }
    if queue.stop && queue.jobs.is_empty() && ring.is_idle() {
        return None;
    }
    // Jobs are left over only when there is no room. Then a completion wakes this thread; a session
    // that adds another job does not.
    queue.asleep = queue.jobs.is_empty();
    drop(queue);
    ring.arm();
    Some(ToDo::Wait)
}
