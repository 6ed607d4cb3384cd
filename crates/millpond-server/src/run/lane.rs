//! The lane that may block: a cached pool of threads, each of which carries one job at a time.
//!
//! A connection whose statement would block on its event loop is sent here, whole. The pool grows
//! whenever nobody is idle, up to a bound that must be at least the number of connections: then every
//! connection can have its thread, and one that waits for another's row lock never keeps that other
//! from running. Threads that have been idle for a while end.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a thread stays around with nothing to do.
const IDLE: Duration = Duration::from_secs(10);
/// Address space, not memory: pages are touched as plans recurse.
const STACK_BYTES: usize = 8 << 20;

/// The pool; `T` is a job.
pub struct Lanes<T: Send + 'static> {
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

impl<T: Send + 'static> Lanes<T> {
    /// A pool without threads as yet.
    pub fn new(max_threads: usize, work: impl Fn(T) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { queue: VecDeque::new(), threads: 0, idle: 0 }),
            arrived: Condvar::new(),
            work: Box::new(work),
            max_threads: max_threads.max(1),
        })
    }

    /// Hands a job to an idle thread or a new one. Gives it back if there is neither.
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
        // Locked, so that the last job is this one if no thread can be had. Threads are made seldom.
        let pool = Arc::clone(self);
        let spawned = thread::Builder::new()
            .name("lane".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || pool.run());
        let Err(error) = spawned else { return Ok(()) };
        tracing::warn!(%error, "could not start a thread");
        state.threads -= 1;
        // With other threads alive the job will be taken in its turn.
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

    /// How many threads there are now.
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
        let pool = Lanes::new(8, move |(): ()| {
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
        let pool = Lanes::new(2, move |job: u32| done.send(job).expect("sent"));
        for job in 0..1000 {
            pool.submit(job).expect("submitted");
        }
        let mut got: Vec<u32> = finished.iter().take(1000).collect();
        got.sort_unstable();
        assert!(got.into_iter().eq(0..1000));
        assert!(pool.threads() <= 2);
    }
}
