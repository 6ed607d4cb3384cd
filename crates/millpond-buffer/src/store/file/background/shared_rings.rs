//! Rings that all threads share, for short reads that a session will wait for.
//!
//! A thread that waits for a page may *tend* a ring. It takes what the kernel has completed, and
//! finishes it: it checks and publishes the pages. One thread at a time tends a ring: the *tender*.
//! The *reaper*, a thread of the store, tends rings that no waiter tends ([`super::reaper`]).
//!
//! Each thread has one of the rings, for its reads and for tending. So threads that wait for
//! different pages mostly use different rings. If the ring has no room, the read goes to a thread
//! that owns a ring (`reaper.rs`), not to another shared ring. A thread that begins a read
//! hands it to the kernel at once.
//!
//! When a tender takes completed reads, it ends their turns, so the next reads of their streams
//! begin. It hands over the first of these at once, the others two at a time. Only then does it
//! finish the completed reads, which takes microseconds each.
//!
//! **The kernel** completes a request in the thread that submitted it, when that thread returns
//! from any system call or interrupt (`IORING_SETUP_COOP_TASKRUN`). Other sessions may wait for the
//! request. How long its completion is delayed depends on what the submitting thread does:
//!
//! - It sleeps in an interruptible call, as an idle session's thread does: the kernel wakes it, so
//!   there is no delay.
//! - It has ended: a thread of the kernel completes the request, so there is no delay.
//! - It computes: until the next tick of its processor's clock (1 to 10 ms). Without ticks
//!   (`nohz_full`): as long as it computes. (Before Linux 5.19, the kernel interrupts it at once.)
//! - It waits uninterruptibly, as for a device: until that wait ends.
//! - It could run, but has lost its processor: until it runs again.
//!
//! **Locks.** A lock guards a ring's queues and jobs. No thread holds it while it calls the kernel,
//! ends a job's turn, or finishes a job. Completed jobs that the tender has taken from the ring
//! belong to the tender alone.
//!
//! **Failure.** If the kernel has no memory, requests stay prepared. The next thread that calls the
//! kernel for this ring hands them over, at the latest the reaper. If the kernel reports another
//! error of the ring, the jobs in the ring are finished with an error. The memory and files of
//! these jobs are never used again, because the kernel may still use them. Later reads go to the
//! threads that own rings.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{io, thread};

use io_uring::{IoUring, types};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::Job;
use super::reaper::{LEISURE, Next, Reaper, Tended, Tending, Waiter, tend};
use super::uring::{Ended, Uring, enter, file_of};
use crate::threads::catch_panic;

/// The number of requests that one call hands over where several begin. (From three on, the kernel
/// tells the device only after it has prepared all, and the device is idle meanwhile.)
const TOGETHER: usize = 2;

thread_local! {
    /// The number of this thread, which chooses the ring of its reads.
    static NUMBER: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
    /// The address of the ring for which this thread collects reads, to hand them over together.
    static COLLECTS_FOR: Cell<usize> = const { Cell::new(0) };
}

/// One of the shared rings.
struct SharedRing {
    tending: Tending,
    kernel: Arc<IoUring>,
    ring: Mutex<Uring>,
    /// What the tender has reaped. (Kept for its memory; empty while no thread tends the ring.)
    ended: Mutex<VecDeque<Ended>>,
    has_failed: AtomicBool,
    wake: Arc<Wake>,
}

/// Wakes the reaper.
struct Wake {
    file: OwnedFd,
    /// The reaper has been called and has not looked yet.
    called: AtomicBool,
    stop: AtomicBool,
}

impl Wake {
    fn call(&self) {
        if !self.called.swap(true, Ordering::AcqRel) {
            // It fails only when its counter is full; then the reaper is awake.
            let _ = rustix::io::write(&self.file, &1u64.to_ne_bytes());
        }
    }
}

impl SharedRing {
    fn new(wake: &Arc<Wake>) -> io::Result<Self> {
        let ring = Uring::for_all()?;
        Ok(Self {
            tending: Tending::default(),
            kernel: ring.kernel(),
            ring: Mutex::new(ring),
            ended: Mutex::default(),
            has_failed: AtomicBool::new(false),
            wake: Arc::clone(wake),
        })
    }

    /// Begins a read; gives it back if there is no room.
    #[expect(clippy::result_large_err, reason = "the job itself, to go elsewhere")]
    fn submit(&self, job: Job) -> Result<(), Job> {
        let (wakes, refused) = {
            let mut ring = self.ring.lock();
            if ring.room() == 0 {
                return Err(job);
            }
            // Counted before the kernel, or a failure, can end it.
            (self.tending.began(), ring.add(job))
        };
        if wakes {
            self.wake.call();
        }
        if let Some((job, _)) = refused {
            self.tending.ended(1);
            return Err(job);
        }
        if COLLECTS_FOR.get() != self.address() {
            self.enter(0);
        }
        Ok(())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Hands over what has been prepared, and waits for `completions` completions. `false`: the
    /// ring has failed.
    fn enter(&self, completions: usize) -> bool {
        if self.has_failed.load(Ordering::Acquire) {
            return false;
        }
        let Err(error) = enter(&self.kernel, completions) else { return true };
        self.has_failed.store(true, Ordering::Release);
        let jobs = self.ring.lock().abandon();
        self.tending.ended(jobs.len());
        jobs.into_iter().for_each(Job::abandon);
        catch_panic("the failure of a ring", || tracing::error!(%error, "io_uring failed"));
        false
    }

    /// Ends the turns of jobs, so that the next reads begin, and hands these over. It hands over
    /// the first at once, to start the device, and the others [`TOGETHER`].
    fn end_turns<'a>(&self, ended: impl Iterator<Item = &'a mut Ended>) {
        let before = COLLECTS_FOR.replace(self.address());
        for (at, (job, _)) in ended.enumerate() {
            job.end_turn();
            if at.is_multiple_of(TOGETHER) {
                self.hand_over();
            }
        }
        COLLECTS_FOR.set(before);
        self.hand_over();
    }

    /// Hands over what has been prepared, if anything.
    fn hand_over(&self) {
        if self.ring.lock().is_prepared() {
            self.enter(0);
        }
    }
}

impl Tended for SharedRing {
    fn tending(&self) -> &Tending {
        &self.tending
    }

    fn finish_completed(&self, has_enough: &dyn Fn() -> bool) -> bool {
        let mut ended = std::mem::take(&mut *self.ended.lock());
        let (mut has_finished, mut reaps) = (false, true);
        loop {
            let before = ended.len();
            if reaps {
                // Also after each job that is finished: the device must not wait for the others.
                self.ring.lock().reap(|job| ended.push_back(job));
            }
            if ended.len() > before {
                self.tending.ended(ended.len() - before);
                self.end_turns(ended.range_mut(before..));
            }
            let Some((job, result)) = ended.pop_front() else { break };
            job.finish(result);
            has_finished = true;
            reaps = reaps && !has_enough();
        }
        *self.ended.lock() = ended;
        has_finished
    }

    /// Waits at most [`LEISURE`], if the kernel has timeouts. The read that the caller waits for
    /// may be in another ring and may have ended there, which no event of this ring would show.
    fn wait_for_completion(&self) -> bool {
        if self.has_failed.load(Ordering::Acquire) {
            return false;
        }
        // Kernels before 5.11 wait without a limit.
        if !self.kernel.params().is_feature_ext_arg() {
            return self.enter(1);
        }
        let limit = types::Timespec::from(LEISURE);
        let args = types::SubmitArgs::new().timespec(&limit);
        match self.kernel.submitter().submit_with_args(1, &args) {
            Ok(_) => true,
            Err(error) if error.raw_os_error() == Some(Errno::TIME.raw_os_error()) => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(_) => self.enter(1),
        }
    }

    fn wake_spare(&self) {
        self.wake.call();
    }
}

/// The rings, and the thread that tends those that no waiter tends.
pub(super) struct SharedRings {
    rings: Arc<[SharedRing]>,
    wake: Arc<Wake>,
}

impl SharedRings {
    /// Makes `wanted` rings, or fewer if the kernel does not allow them, but at least one.
    pub(super) fn start(wanted: usize) -> io::Result<Self> {
        let wake = Arc::new(Wake {
            file: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            called: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let mut rings = vec![SharedRing::new(&wake)?];
        rings.extend((1..wanted).map_while(|_| SharedRing::new(&wake).ok()));
        let shared = Self { rings: rings.into(), wake };
        let (rings, wake) = (Arc::clone(&shared.rings), Arc::clone(&shared.wake));
        thread::Builder::new()
            .name("io_uring reaper".to_owned())
            .spawn(move || run(&rings, &wake))?;
        Ok(shared)
    }

    #[cfg(all(test, not(any(loom, shuttle, miri))))]
    pub(super) fn are_idle(&self) -> bool {
        !self.rings.iter().any(|ring| ring.tending.is_under_way())
    }

    fn own(&self) -> &SharedRing {
        let collects_for = COLLECTS_FOR.get();
        let collects = self.rings.iter().find(|ring| ring.address() == collects_for);
        collects.unwrap_or_else(|| &self.rings[NUMBER.with(|number| *number) % self.rings.len()])
    }

    /// Begins a read in the calling thread's ring; gives it back if that has no room.
    #[expect(clippy::result_large_err, reason = "the job itself, to go elsewhere")]
    pub(super) fn submit(&self, job: Job) -> Result<(), Job> {
        self.own().submit(job)
    }

    /// Tends the calling thread's ring until `is_done`, or until the ring has had nothing for a
    /// while. If that does not help, it calls `sleep`: then others tend the rings.
    pub(super) fn wait(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        tend(self.own(), is_done);
        if !is_done() {
            let _waiters: smallvec::SmallVec<[_; super::MAX_RINGS]> =
                self.rings.iter().map(Waiter::new).collect();
            sleep();
        }
    }
}

impl Drop for SharedRings {
    /// Does not wait: the reaper finishes what is under way.
    fn drop(&mut self) {
        self.wake.stop.store(true, Ordering::Release);
        self.wake.call();
    }
}

/// The loop of the reaper's thread. A panic ends one turn, not the thread, because waiting sessions
/// depend on it.
fn run(rings: &[SharedRing], wake: &Wake) {
    let mut reaper = Reaper::default();
    loop {
        let mut goes_on = None;
        catch_panic("a pass of the reaper", || goes_on = Some(turn(&mut reaper, rings, wake)));
        match goes_on {
            Some(true) => {}
            Some(false) => return,
            None => thread::sleep(LEISURE),
        }
    }
}

/// Does what there is to do, then sleeps until there is more. `false` at the end.
fn turn(reaper: &mut Reaper, rings: &[SharedRing], wake: &Wake) -> bool {
    // In this order: a caller that finds the flag still set does not write, but this turn sees its
    // work.
    let _ = rustix::io::read(&wake.file, &mut [0u8; 8]);
    wake.called.swap(false, Ordering::AcqRel);
    let mut next = reaper.look(rings);
    let is_under_way = |ring: &SharedRing| ring.tending.is_under_way();
    if wake.stop.load(Ordering::Acquire) {
        if !rings.iter().any(is_under_way) {
            return false;
        }
        next = Next::Sleep((0..rings.len()).collect(), Some(LEISURE));
    }
    let Next::Sleep(watched, limit) = next else { return true };
    // Hands over again what was prepared while the kernel had no memory for it.
    rings.iter().for_each(SharedRing::hand_over);
    let files = watched.iter().map(|&at| file_of(&rings[at].kernel));
    let mut files: Vec<PollFd<'_>> = files
        .chain([wake.file.as_fd()])
        .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
        .collect();
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    // It returns early after a signal, or without memory; then the reaper just looks again.
    let _ = poll(&mut files, limit.as_ref());
    true
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;

    /// A read in the caller's ring does not end. The caller waits for a read in another ring. It
    /// learns of that one's end only where it sleeps, so it must get there.
    #[test]
    fn ring_without_completions_does_not_hold_its_tender() {
        let Ok(shared) = SharedRings::start(2) else {
            println!("skipped: no io_uring here");
            return;
        };
        assert!(shared.own().tending.began() || shared.own().tending.is_under_way());
        let mut has_slept = false;
        shared.wait(&|| false, &mut || has_slept = true);
        shared.own().tending.ended(1);
        assert!(has_slept);
    }
}
