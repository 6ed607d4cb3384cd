//! Reads and writes in the background: begun by sessions, done and finished by threads of the store's own, or by whoever waits.
//!
//! Whoever begins one hands it over and goes on; nobody else has to do anything for it to end (buffer rule
//! 10). With [`IoMethod::IoUring`] there are two kinds of rings:
//!
//! - Reads of few pages that somebody will wait for go to rings that belong to all (`common.rs`). Who waits for a page takes from
//!   such a ring what the kernel has completed, and finishes it; a thread of the store's own does so when nobody else
//!   does (`tending.rs`). So a stream of random pages runs on one thread, as long as it has to wait.
//! - All else goes to rings with a thread each (`lane.rs`): it takes jobs from its queue, hands them to the kernel,
//!   and finishes those that the kernel has done: writes, which nobody should have to look after; long reads, whose
//!   many pages are checked and published while the session looks at those before them; and reads
//!   by who must not wait. A read goes to the first whose queue is short, so that the others sleep unless one thread
//!   can't keep up, and a write to the last, where fewest reads wait behind it.
//!
//! With [`IoMethod::Worker`] several threads take jobs from one queue and do each with
//! `preadv` or `pwritev`. Where the kernel has no io_uring, or a filter forbids it, the first becomes the second.
//!
//! Threads are started by the first job. When the store is dropped they finish what is queued, and end.
//!
//! **Waking a ring's thread.** It sleeps in the kernel, for a completion. `asleep`, under the queue's lock, says that
//! it has looked at an empty queue and is about to; who then adds a job clears the mark and writes to an eventfd
//! that the ring reads. So a busy thread costs no system call.
//!
//! **Durability.** The files of a write are noted as unsynced after the kernel has ended it and before it is finished, so
//! a sync that begins after that covers it.
//!
//! **Failure.** A job whose callback panics ends only itself. When the last thread has ended the
//! queue is closed: a read that is in it or comes later is finished with an error, and left to those who need the
//! pages; a write is done at once by who comes with it. What the kernel had been handed if the ring itself fails is
//! finished with an error, too, and its memory never used again: all of it is left to the kernel before anybody is told, so that
//! nobody's panic gives any back. (That it has no memory, as for a thread that comes to a ring for the first time, is no
//! failure: it is asked again.) If that was a write the store has stopped: it might
//! yet reach the file, after a newer one.

#[cfg(all(feature = "io-uring", target_os = "linux"))]
mod common;
mod job;
#[cfg(all(feature = "io-uring", target_os = "linux"))]
mod lane;
#[cfg(all(feature = "io-uring", target_os = "linux"))]
mod ring;
#[cfg(all(feature = "io-uring", target_os = "linux"))]
mod tending;
#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests;
mod worker;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
#[cfg(all(feature = "io-uring", target_os = "linux"))]
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
#[cfg(all(feature = "io-uring", target_os = "linux"))]
use std::thread;

use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::spawn_named;

pub(super) use self::job::{Job, Piece, Pieces};
use crate::store::Way;

/// How reads ahead of their use, and writes behind them, are done (`io_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IoMethod {
    /// By io_uring; where the kernel doesn't let us, or without the feature `io-uring`, by workers.
    #[default]
    IoUring,
    /// By threads that read with `preadv` and write with `pwritev`.
    Worker,
    /// By whoever wants the pages, or wants them written.
    Sync,
}

impl IoMethod {
    /// PostgreSQL's word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Worker => "worker",
            Self::Sync => "sync",
        }
    }
}

/// Threads with a ring each, at most.
#[cfg(all(feature = "io-uring", target_os = "linux"))]
const MAX_RINGS: usize = 4;
/// While fewer reads than this wait in a ring's queue, the next rings sleep.
const SHORT_QUEUE: usize = 4;
/// Reads of so many pages are worth a thread's waking up, which looks at them while who wants them looks at others.
#[cfg(all(feature = "io-uring", target_os = "linux"))]
const MANY_PAGES: usize = 4;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The ring's thread is about to sleep, or sleeps, with nothing to do.
    asleep: bool,
    /// Finish what there is and end.
    stop: bool,
    /// Threads that serve it.
    threads: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    /// For workers.
    work: Condvar,
    /// For the ring's thread.
    wake: Option<OwnedFd>,
}

impl Shared {
    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // It fails only when its counter is full: then it is awake.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }
}

/// One thread's share in serving the queue, which is closed when none is left.
struct Serving(Arc<Shared>);

impl Serving {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.queue.lock().threads += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let left = {
            let mut queue = self.0.queue.lock();
            queue.threads -= 1;
            if queue.threads == 0 { std::mem::take(&mut queue.jobs) } else { VecDeque::new() }
        };
        left.into_iter().for_each(Job::without_thread);
    }
}

/// The threads of a store, once there are any.
pub(super) struct Background {
    method: IoMethod,
    workers: usize,
    running: OnceLock<Running>,
    /// Held by the session that starts the threads. A simulation's scheduler sees threads that wait
    /// for this lock; it would not see one that waits for `running`.
    starting: Mutex<()>,
}

struct Running {
    /// One for all workers, or one for each ring.
    lanes: Vec<Arc<Shared>>,
    /// For reads of few pages that somebody will wait for.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    commons: Option<common::Commons>,
    method: IoMethod,
}

impl Background {
    pub(super) fn new(method: IoMethod, workers: usize) -> Self {
        let workers = workers.max(1);
        Self { method, workers, running: OnceLock::new(), starting: Mutex::default() }
    }

    /// What was asked for.
    pub(super) fn wanted(&self) -> IoMethod {
        self.method
    }

    /// How it is in fact done. Starts the threads.
    pub(super) fn method(&self) -> IoMethod {
        match self.method {
            IoMethod::Sync => IoMethod::Sync,
            _ => self.running().method,
        }
    }

    fn running(&self) -> &Running {
        if let Some(running) = self.running.get() {
            return running;
        }
        let _alone = self.starting.lock();
        self.running.get_or_init(|| start(self.method, self.workers))
    }

    /// Waits for a read that may be one of these, until `is_done` or for less. The calling thread may have to do some work for it;
    /// if there is none it `sleep`s.
    pub(super) fn wait(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        #[cfg(all(feature = "io-uring", target_os = "linux"))]
        if let Some(commons) = self.running.get().and_then(|running| running.commons.as_ref()) {
            return commons.wait(is_done, sleep);
        }
        if !is_done() {
            sleep();
        }
    }

    /// Begins a job.
    pub(super) fn submit(&self, job: Job) {
        let running = self.running();
        #[cfg(all(feature = "io-uring", target_os = "linux"))]
        let job = match &running.commons {
            Some(commons)
                if job.transfer.is_awaited() && (1..MANY_PAGES).contains(&job.transfer.count()) =>
            {
                match commons.submit(job) {
                    Ok(()) => return,
                    Err(job) => job,
                }
            }
            _ => job,
        };
        Self::queue(&running.lanes, job);
    }

    /// Queues a job for a thread of the store's own.
    fn queue(lanes: &[Arc<Shared>], job: Job) {
        let Some((last, others)) = lanes.split_last() else { return job.without_thread() };
        let others = if job.transfer.way() == Way::ToStore { &[] } else { others };
        let is_short = |lane: &&Arc<Shared>| {
            let queue = lane.queue.lock();
            queue.threads > 0 && queue.jobs.len() < SHORT_QUEUE
        };
        let shared = others.iter().find(is_short).unwrap_or(last);
        let wake = {
            let mut queue = shared.queue.lock();
            if queue.threads == 0 {
                drop(queue);
                return job.without_thread();
            }
            queue.jobs.push_back(job);
            std::mem::take(&mut queue.asleep)
        };
        if wake {
            shared.wake();
        }
        shared.work.notify_one();
    }
}

impl Drop for Background {
    /// Does not wait: the last reference to the store may be that of a read which a thread is just finishing.
    fn drop(&mut self) {
        if let Some(running) = self.running.get() {
            for shared in &running.lanes {
                shared.queue.lock().stop = true;
                shared.wake();
                shared.work.notify_all();
            }
        }
    }
}

fn start(method: IoMethod, workers: usize) -> Running {
    if method == IoMethod::IoUring {
        match start_rings() {
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Ok(lanes) => {
                let commons = common::Commons::start(lanes.len())
                    .inspect_err(|error| tracing::warn!(%error, "no io_uring for all"));
                return Running { lanes, commons: commons.ok(), method };
            }
            #[cfg(not(all(feature = "io-uring", target_os = "linux")))]
            Ok(lanes) => return Running { lanes, method },
            Err(error) => {
                tracing::warn!(%error, "no io_uring here: worker threads read and write instead");
            }
        }
    }
    let shared = Arc::new(Shared { queue: Mutex::default(), work: Condvar::new(), wake: None });
    for number in 0..workers {
        let serving = Serving::new(&shared);
        let name = format!("io worker {number}");
        let run = move || worker::run(&serving.0);
        if let Err(error) = spawn_named(&name, run) {
            tracing::warn!(%error, "could not start a thread that reads and writes");
        }
    }
    Running {
        lanes: vec![shared],
        #[cfg(all(feature = "io-uring", target_os = "linux"))]
        commons: None,
        method: IoMethod::Worker,
    }
}

#[cfg(not(all(feature = "io-uring", target_os = "linux")))]
fn start_rings() -> std::io::Result<Vec<Arc<Shared>>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Starts as many rings as there are processors to serve them, at least one.
#[cfg(all(feature = "io-uring", target_os = "linux"))]
fn start_rings() -> std::io::Result<Vec<Arc<Shared>>> {
    let wanted = thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_RINGS);
    let mut lanes = vec![start_ring()?];
    // One is enough, if the system doesn't give us more.
    lanes.extend((1..wanted).map_while(|_| start_ring().ok()));
    Ok(lanes)
}

/// Starts a ring's thread, which makes the ring: only who makes it may submit to it.
#[cfg(all(feature = "io-uring", target_os = "linux"))]
fn start_ring() -> std::io::Result<Arc<Shared>> {
    use rustix::event::{EventfdFlags, eventfd};
    let wake = eventfd(0, EventfdFlags::CLOEXEC)?;
    let shared =
        Arc::new(Shared { queue: Mutex::default(), work: Condvar::new(), wake: Some(wake) });
    let serving = Serving::new(&shared);
    let (told, hear) = mpsc::sync_channel(1);
    thread::Builder::new().name("io_uring".to_owned()).spawn(move || {
        let shared = &serving.0;
        let made = match &shared.wake {
            Some(wake) => ring::Ring::for_one(wake),
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        match made {
            Ok(ring) => {
                let _ = told.send(Ok(()));
                lane::run(ring, shared);
            }
            Err(error) => drop(told.send(Err(error))),
        }
    })?;
    match hear.recv() {
        Ok(made) => made.map(|()| shared),
        Err(_) => Err(std::io::Error::other("the thread of the ring ended")),
    }
}
