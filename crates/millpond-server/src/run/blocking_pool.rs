//! The blocking pool: threads that may block, each of which runs one job at a time
//! ([`BlockingPool`]).
//!
//! An event loop sends a connection here when its statement would block. The pool starts a thread
//! when none is idle, up to a bound; at the bound, jobs wait in a queue. The bound must be at least
//! the number of connections, so that every connection can have a thread. A connection that waits
//! for another one's row lock thus never takes the thread that the other one needs. A thread that
//! is idle for a while ends. If no thread can be started and there is none, the caller gets its job
//! back.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a thread stays idle before it ends.
const IDLE: Duration = Duration::from_secs(10);
/// This is address space, not memory: the kernel adds pages as plans recurse.
const STACK_BYTES: usize = 8 << 20;

/// The pool. `T` is a job.
pub struct BlockingPool<T: Send + 'static> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    work: Box<dyn Fn(T) + Send + Sync>,
    max_threads: usize,
}

struct State<T> {
    queue: VecDeque<T>,
    threads: usize,
    idle: usize,
}

impl<T: Send + 'static> BlockingPool<T> {
    /// A pool that has no threads yet.
    pub fn new(max_threads: usize, work: impl Fn(T) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { queue: VecDeque::new(), threads: 0, idle: 0 }),
            arrived: Condvar::new(),
            work: Box::new(work),
            max_threads: max_threads.max(1),
        })
    }

    /// Gives a job to an idle thread or a new one. Returns it if there is no thread at all.
    pub fn submit(self: &Arc<Self>, job: T) -> Result<(), T> {
        let mut state = self.state.lock();
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            self.arrived.notify_one();
            return Ok(());
        }
        if state.threads >= self.max_threads {
            return Ok(());
        }
        state.threads += 1;
        // The lock is held while the thread starts, so that the last job in the queue is still this
        // one if that fails. The pool rarely starts threads.
        let pool = Arc::clone(self);
        let spawned = thread::Builder::new()
            .name("blocking pool".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || pool.run());
        let Err(error) = spawned else { return Ok(()) };
        tracing::warn!(%error, "could not start a thread");
        state.threads -= 1;
        // If there are other threads, one of them will run the job.
        if state.threads > 0 { Ok(()) } else { state.queue.pop_back().map_or(Ok(()), Err) }
    }

    fn run(&self) {
        loop {
            let mut state = self.state.lock();
            let job = loop {
                if let Some(job) = state.queue.pop_front() {
                    break job;
                }
                state.idle += 1;
                let expired = self.arrived.wait_for(&mut state, IDLE).timed_out();
                state.idle -= 1;
                if expired && state.queue.is_empty() {
                    state.threads -= 1;
                    return;
                }
            };
            drop(state);
            (self.work)(job);
        }
    }

    /// The number of threads.
    #[cfg(test)]
    pub fn threads(&self) -> usize {
        self.state.lock().threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::mpsc;

    #[test]
    fn jobs_that_wait_for_each_other_all_run() {
        let all = Arc::new(Barrier::new(9));
        let inside = Arc::clone(&all);
        let pool = BlockingPool::new(8, move |(): ()| {
            inside.wait();
        });
        for _ in 0..8 {
            pool.submit(()).expect("submitted");
        }
        all.wait();
        assert_eq!(pool.threads(), 8);
    }

    #[test]
    fn idle_threads_are_used_again_and_the_bound_holds() {
        let (done, finished) = mpsc::channel();
        let pool = BlockingPool::new(2, move |job: u32| done.send(job).expect("sent"));
        for job in 0..1000 {
            pool.submit(job).expect("submitted");
        }
        let mut got: Vec<u32> = finished.iter().take(1000).collect();
        got.sort_unstable();
        assert!(got.into_iter().eq(0..1000));
        assert!(pool.threads() <= 2);
    }
}
