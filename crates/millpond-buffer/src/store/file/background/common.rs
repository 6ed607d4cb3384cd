//! Rings that belong to all: whoever waits for a page tends them ([`super::tending`]).
//!
//! Every thread has a ring that its reads go to, as long as there is room, so that several threads that wait for pages of their
//! own mostly don't meet. Whoever begins a read hands it to the kernel at once. Only those that are begun because others have
//! ended are handed over a few together, before those others are looked at (checked, published: microseconds each).
//!
//! **The kernel** completes a request in the thread that submitted it, on its way back from a call or an interrupt of whatever
//! kind (`IORING_SETUP_COOP_TASKRUN`), and it wakes that thread for this from a call that may be interrupted; if the thread has ended, in
//! one of its own. So a thread that is suspended, or idle, keeps nobody waiting. One that computes does, until the next tick of its
//! processor's clock (1 to 10 ms; for as long as it computes where there are none, `nohz_full`); one that waits for a device, until that
//! has answered; and one that could run but has lost the processor, until it runs again.
//!
//! **Locks.** A ring's queues and jobs are under a lock that is held for neither a call of the kernel, nor the end of a job. What has been
//! reaped is the tender's own.
//!
//! **Failure.** A kernel without memory is asked again, by the tender or the spare. If the kernel refuses to serve a ring, what it had is finished with an error, its memory and files are
//! never used again, and what comes later goes to the threads that own rings.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use io_uring::{IoUring, types};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::Job;
use super::ring::{Ended, Ring, enter, file_of};
use super::tending::{LEISURE, Next, Spare, Tended, Tending, Waiter, tend};
use crate::contained::contained;

/// So many requests are handed over by one call where several begin. (Of three and more the kernel tells the device only after
/// it has prepared all, which leaves the device idle meanwhile.)
const TOGETHER: usize = 2;

thread_local! {
    /// Which ring, counted by threads, this one's reads go to.
    static NUMBER: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
    /// The address of the ring for which this thread collects reads, to hand them over together.
    static COLLECTS_FOR: Cell<usize> = const { Cell::new(0) };
}

/// One of the rings.
struct Common {
    tending: Tending,
    kernel: Arc<IoUring>,
    ring: Mutex<Ring>,
    /// What the tender has reaped. (Memory for it; empty while nobody tends.)
    ended: Mutex<VecDeque<Ended>>,
    has_failed: AtomicBool,
    wake: Arc<Wake>,
}

/// What wakes the spare.
struct Wake {
    file: OwnedFd,
    /// It has been called and has not looked yet.
    called: AtomicBool,
    stop: AtomicBool,
}

impl Wake {
    fn call(&self) {
        if !self.called.swap(true, Ordering::AcqRel) {
            // It fails only when its counter is full: then it is awake.
            let _ = rustix::io::write(&self.file, &1u64.to_ne_bytes());
        }
    }
}

impl Common {
    fn new(wake: &Arc<Wake>) -> io::Result<Self> {
        let ring = Ring::for_all()?;
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
            // Before the kernel, or a failure, can end it.
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

    /// Hands over what has been prepared, and waits for so many completions. `false`: the ring has failed.
    fn enter(&self, completions: usize) -> bool {
        if self.has_failed.load(Ordering::Acquire) {
            return false;
        }
        let Err(error) = enter(&self.kernel, completions) else { return true };
        self.has_failed.store(true, Ordering::Release);
        let jobs = self.ring.lock().abandon();
        self.tending.ended(jobs.len());
        jobs.into_iter().for_each(Job::abandon);
        contained("the failure of a ring", || tracing::error!(%error, "io_uring failed"));
        false
    }

    /// Lets the next of their kind begin, and hands them over: the first at once, for the device to begin with, the others
    /// [`TOGETHER`].
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

impl Tended for Common {
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

    /// For as long as the spare lets reads be. What the caller waits for may be in another ring,
    /// and it may have come there: nothing that happens to this ring would tell.
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

/// The rings, and the thread that tends those that nobody tends.
pub(super) struct Commons {
    rings: Arc<[Common]>,
    wake: Arc<Wake>,
}

impl Commons {
    /// So many rings, if the kernel lets us have them, but at least one.
    pub(super) fn start(wanted: usize) -> io::Result<Self> {
        let wake = Arc::new(Wake {
            file: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            called: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let mut rings = vec![Common::new(&wake)?];
        rings.extend((1..wanted).map_while(|_| Common::new(&wake).ok()));
        let commons = Self { rings: rings.into(), wake };
        let (rings, wake) = (Arc::clone(&commons.rings), Arc::clone(&commons.wake));
        thread::Builder::new()
            .name("io_uring spare".to_owned())
            .spawn(move || run(&rings, &wake))?;
        Ok(commons)
    }

    #[cfg(all(test, not(any(loom, shuttle, miri))))]
    pub(super) fn are_idle(&self) -> bool {
        !self.rings.iter().any(|ring| ring.tending.is_under_way())
    }

    fn own(&self) -> &Common {
        let collects_for = COLLECTS_FOR.get();
        let collects = self.rings.iter().find(|ring| ring.address() == collects_for);
        collects.unwrap_or_else(|| &self.rings[NUMBER.with(|number| *number) % self.rings.len()])
    }

    /// Begins a read in the calling thread's ring; gives it back if that has no room.
    #[expect(clippy::result_large_err, reason = "the job itself, to go elsewhere")]
    pub(super) fn submit(&self, job: Job) -> Result<(), Job> {
        self.own().submit(job)
    }

    /// Tends the calling thread's ring until `is_done`, or until that has had nothing for a while.
    /// If that is of no use, `sleep`s: then others tend the rings.
    pub(super) fn wait(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        tend(self.own(), is_done);
        if !is_done() {
            let _waiters: smallvec::SmallVec<[_; super::MAX_RINGS]> =
                self.rings.iter().map(Waiter::new).collect();
            sleep();
        }
    }
}

impl Drop for Commons {
    /// Does not wait: the spare finishes what is under way.
    fn drop(&mut self) {
        self.wake.stop.store(true, Ordering::Release);
        self.wake.call();
    }
}

/// The spare's thread. A panic on its way ends a turn, not the thread: those who wait count on it.
fn run(rings: &[Common], wake: &Wake) {
    let mut spare = Spare::default();
    loop {
        let mut goes_on = None;
        contained("a turn of the spare", || goes_on = Some(turn(&mut spare, rings, wake)));
        match goes_on {
            Some(true) => {}
            Some(false) => return,
            None => thread::sleep(LEISURE),
        }
    }
}

/// Does what there is to do, then sleeps until there is more. `false` at the end.
fn turn(spare: &mut Spare, rings: &[Common], wake: &Wake) -> bool {
    // In this order: a call that finds another not answered yet does not write, but is seen here.
    let _ = rustix::io::read(&wake.file, &mut [0u8; 8]);
    wake.called.swap(false, Ordering::AcqRel);
    let mut next = spare.look(rings);
    let is_under_way = |ring: &Common| ring.tending.is_under_way();
    if wake.stop.load(Ordering::Acquire) {
        if !rings.iter().any(is_under_way) {
            return false;
        }
        next = Next::Sleep((0..rings.len()).collect(), Some(LEISURE));
    }
    let Next::Sleep(watched, limit) = next else { return true };
    // What was prepared when the kernel had no memory for it is handed over again.
    rings.iter().for_each(Common::hand_over);
    let files = watched.iter().map(|&at| file_of(&rings[at].kernel));
    let mut files: Vec<PollFd<'_>> = files
        .chain([wake.file.as_fd()])
        .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
        .collect();
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    // A signal, or no memory: then it just looks again.
    let _ = poll(&mut files, limit.as_ref());
    true
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;

    /// A read in the caller's ring does not end. What the caller waits for is in another ring: it
    /// is told of that where it sleeps, and gets there.
    #[test]
    fn a_ring_without_completions_holds_nobody() {
        let Ok(commons) = Commons::start(2) else {
            println!("skipped: no io_uring here");
            return;
        };
        assert!(commons.own().tending.began() || commons.own().tending.is_under_way());
        let mut has_slept = false;
        commons.wait(&|| false, &mut || has_slept = true);
        commons.own().tending.ended(1);
        assert!(has_slept);
    }
}
