//! The threads that queries run on, and waiting for them on any other thread.
//!
//! The thread that waits may be one of an asynchronous runtime of the embedder's, on which tokio refuses to block and to
//! end a runtime. So it parks itself ([`wait`]), and the runtime ends on a thread of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::JoinHandle;

use crate::error::{Result, SqlError};

/// How long the end waits for operators that don't look whether they should stop.
const LONGEST_END: Duration = Duration::from_secs(5);

/// The threads that a database's queries run on. They end with it.
#[derive(Debug)]
pub struct QueryThreads {
    /// There until dropped.
    runtime: Option<Runtime>,
}

impl QueryThreads {
    /// So many threads; `on_start` runs first on each.
    pub fn new(threads: usize, on_start: impl Fn() + Send + Sync + 'static) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("millpond-query")
            .on_thread_start(on_start)
            .enable_time()
            .build()
            .map_err(|error| {
                SqlError::internal(format!("could not start query threads: {error}"))
            })?;
        Ok(Self { runtime: Some(runtime) })
    }

    fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| SqlError::internal("the query threads have ended"))
    }

    /// What is spawned under the guard runs on these threads.
    pub fn enter(&self) -> Result<EnterGuard<'_>> {
        Ok(self.runtime()?.enter())
    }

    /// Runs a task on these threads.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<JoinHandle<()>> {
        Ok(self.runtime()?.spawn(task))
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let kept = Arc::new(Mutex::new(Some(runtime)));
        let ending = Arc::clone(&kept);
        let end = move || {
            if let Some(runtime) = ending.lock().take() {
                runtime.shutdown_timeout(LONGEST_END);
            }
        };
        match thread::Builder::new().name("millpond-query-end".to_owned()).spawn(end) {
            Ok(thread) => {
                // A panic there has been reported.
                let _ = thread.join();
            }
            // Without a thread to wait on, they end when they can.
            Err(_) => {
                if let Some(runtime) = kept.lock().take() {
                    runtime.shutdown_background();
                }
            }
        }
    }
}

/// Wakes a thread that parks in [`wait_for`].
struct Parked {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future to its end on this thread, whatever else runs on it.
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Some(output) = wait_for(future.as_mut(), Duration::from_secs(3600)) {
            return output;
        }
    }
}

/// The same, but for so long at most.
pub fn wait_for<F: Future>(future: F, longest: Duration) -> Option<F::Output> {
    // Where this runs inside of a task, tokio would end the task's turn after some messages, by never being ready again.
    let mut future = pin!(tokio::task::unconstrained(future));
    let parked = Arc::new(Parked { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&parked));
    let deadline = Instant::now() + longest;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        while !parked.woken.swap(false, Ordering::Acquire) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            thread::park_timeout(left);
        }
    }
}
