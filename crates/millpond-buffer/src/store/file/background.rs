//! Background I/O of the file store: sessions begin reads and writes, and threads of the store or
//! waiting sessions finish them.
//!
//! The session that begins a transfer hands it over and goes on. Nothing else has to happen for it
//! to end (buffer rule 10). With [`IoMethod::IoUring`] there are two kinds of rings:
//!
//! - Shared rings (`shared_rings.rs`) serve reads of few pages that some session will wait for. A
//!   session that waits for a page takes from such a ring what the kernel has completed, and
//!   finishes it. When no session does so, a thread of the store does (`reaper.rs`). So a stream of
//!   random pages runs on one thread, as long as it has to wait.
//! - Rings with a thread each (`reaper.rs`) serve all else. The thread takes jobs from its
//!   queue, hands them to the kernel, and finishes those that the kernel has completed. These are
//!   writes, which no session should have to look after, and reads by a thread that must not wait.
//!   They are also long reads, whose many pages the ring's thread checks and publishes while the
//!   session looks at the earlier ones. A read goes to the first ring with a short queue, so that
//!   the others sleep unless one thread can't keep up. A write goes to the last ring, where it
//!   delays the fewest reads.
//!
//! With [`IoMethod::Worker`] several threads take jobs from one queue and do each with `preadv` or
//! `pwritev`. Where the kernel has no io_uring, or a filter forbids it, the first method becomes
//! the second.
//!
//! The first job starts the threads. When the store is dropped they finish what is queued, and end.
//!
//! **Waking a ring's thread.** It sleeps in the kernel, for a completion. The flag `asleep`, under
//! the queue's lock, says that the thread has seen an empty queue and is about to sleep. A session
//! that then adds a job clears the flag and writes to an eventfd that the ring reads. So waking
//! costs no system call while the thread is busy.
//!
//! **Durability.** The files of a write are noted as unsynced after the kernel has ended it and
//! before it is finished. So a sync that begins after that covers it.
//!
//! **Failure.** A job whose callback panics ends only itself. When the last thread has ended, the
//! queue is closed. A read that is in it or comes later is then finished with an error, and the
//! sessions that need the pages read them. A thread that submits a write does it at once. If the
//! ring itself fails, what the kernel had been handed is finished with an error, and its memory is
//! never used again. All of that memory is left to the kernel before any requester is told, so no
//! panic of a requester frees it. If such a job was a write, the store has stopped: the write might
//! yet reach the file after a newer one. The kernel may lack memory, as when a thread enters a ring
//! for the first time. That is no failure: the thread asks again.

#[cfg(all(test, shuttle, feature = "io-uring", target_os = "linux", not(millpond_portable)))]
mod models;
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
mod reaper;
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
mod shared_rings;
#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests;
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
mod uring;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
use std::thread;

use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::spawn_named;

#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
use self::shared_rings::SharedRings;
use super::layout::IoMethod;
use super::transfers::Job;
use crate::store::Way;

/// The most threads with a ring each.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
const MAX_RINGS: usize = 4;
/// The next rings sleep while fewer reads than this wait in a ring's queue.
const SHORT_QUEUE: usize = 4;
/// From this many pages on, a read is worth waking a ring's thread. It checks the pages while the
/// session looks at others.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
const MANY_PAGES: usize = 4;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The ring's thread has nothing to do and is about to sleep, or sleeps.
    asleep: bool,
    /// Threads finish what there is and end.
    stop: bool,
    /// The number of threads that serve the queue.
    threads: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    wake: Option<OwnedFd>,
}

impl Shared {
    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // It fails only when its counter is full; then the thread is awake.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }
}

/// One thread's share in serving the queue. The queue is closed when no thread is left.
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
    queues: Vec<Arc<Shared>>,
    /// For reads of few pages that a session will wait for.
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    shared_rings: Option<SharedRings>,
    method: IoMethod,
}

impl Background {
    pub(super) fn new(method: IoMethod, workers: usize) -> Self {
        let workers = workers.max(1);
        Self { method, workers, running: OnceLock::new(), starting: Mutex::default() }
    }

    /// The method that was asked for.
    pub(super) fn wanted(&self) -> IoMethod {
        self.method
    }

    /// The method that is used. Starts the threads.
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

    /// Waits for a read that may be in one of the rings, until `is_done` or for less. The calling
    /// thread may have to do some work for it; if there is none, it calls `sleep`.
    pub(super) fn wait(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
        if let Some(rings) = self.running.get().and_then(|running| running.shared_rings.as_ref()) {
            return rings.wait(is_done, sleep);
        }
        if !is_done() {
            sleep();
        }
    }

    pub(super) fn submit(&self, job: Job) {
        let running = self.running();
        #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
        let job = match &running.shared_rings {
            Some(rings)
                if job.transfer.is_awaited() && (1..MANY_PAGES).contains(&job.transfer.count()) =>
            {
                match rings.submit(job) {
                    Ok(()) => return,
                    Err(job) => job,
                }
            }
            _ => job,
        };
        Self::queue(&running.queues, job);
    }

    fn queue(queues: &[Arc<Shared>], job: Job) {
        let Some((last, others)) = queues.split_last() else { return job.without_thread() };
        let others = if job.transfer.way() == Way::ToStore { &[] } else { others };
        let is_short = |shared: &&Arc<Shared>| {
            let queue = shared.queue.lock();
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
    /// Does not wait: the last reference to the store may belong to a read that a thread is just
    /// finishing.
    fn drop(&mut self) {
        if let Some(running) = self.running.get() {
            for shared in &running.queues {
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
            #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
            Ok(queues) => {
                let shared_rings = SharedRings::start(queues.len())
                    .inspect_err(|error| tracing::warn!(%error, "no io_uring for all"));
                return Running { queues, shared_rings: shared_rings.ok(), method };
            }
            #[cfg(not(all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
            Ok(queues) => return Running { queues, method },
            Err(error) => {
                tracing::warn!(%error, "no io_uring here: worker threads read and write instead");
            }
        }
    }
    let shared = Arc::new(Shared { queue: Mutex::default(), work: Condvar::new(), wake: None });
    for number in 0..workers {
        let serving = Serving::new(&shared);
        let name = format!("io worker {number}");
        let run = move || work(&serving.0);
        if let Err(error) = spawn_named(&name, run) {
            tracing::warn!(%error, "could not start a thread that reads and writes");
        }
    }
    Running {
        queues: vec![shared],
        #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
        shared_rings: None,
        method: IoMethod::Worker,
    }
}

#[cfg(not(all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
fn start_rings() -> std::io::Result<Vec<Arc<Shared>>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Starts one ring for each processor, at most [`MAX_RINGS`] and at least one.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
fn start_rings() -> std::io::Result<Vec<Arc<Shared>>> {
    let wanted = thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_RINGS);
    let mut queues = vec![start_ring()?];
    // One is enough if the system allows no more.
    queues.extend((1..wanted).map_while(|_| start_ring().ok()));
    Ok(queues)
}

/// Starts a ring's thread, which makes the ring: only the thread that makes a ring may submit to
/// it.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
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
            Some(wake) => uring::Uring::for_one(wake),
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        match made {
            Ok(ring) => {
                let _ = told.send(Ok(()));
                reaper::run(ring, shared);
            }
            Err(error) => drop(told.send(Err(error))),
        }
    })?;
    match hear.recv() {
        Ok(made) => made.map(|()| shared),
        Err(_) => Err(std::io::Error::other("the thread of the ring ended")),
    }
}

/// Takes one job after the other from a queue that several threads share, until told to stop.
fn work(shared: &Shared) {
    while let Some(job) = next(shared) {
        job.carry_out();
    }
}

fn next(shared: &Shared) -> Option<Job> {
    let mut queue = shared.queue.lock();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if queue.stop {
            return None;
        }
        queue = shared.work.wait(queue);
    }
}
