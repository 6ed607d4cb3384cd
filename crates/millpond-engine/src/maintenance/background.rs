//! The engine's background threads (reclaimer, transaction upkeep, autovacuum), and how they end.
//!
//! A thread holds no strong reference to the engine while it sleeps. So an engine that is no longer
//! used is dropped, and its threads end.

use std::sync::Arc;
use std::time::Duration;

use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::{NamedThread, spawn_named};

use crate::error::{EngineError, EngineResult};

/// The threads of one engine.
#[derive(Default)]
pub(crate) struct Background {
    signal: Arc<Signal>,
    threads: Mutex<Vec<NamedThread<()>>>,
}

/// The signal for the threads to end.
#[derive(Default)]
pub(crate) struct Signal {
    ending: Mutex<bool>,
    changed: Condvar,
    /// Functions that wake threads that sleep elsewhere.
    at_end: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl Signal {
    /// Registers `wake`, to be called when the threads are told to end. If that has happened
    /// already, it is not called, so the caller must check afterwards.
    pub(crate) fn at_end(&self, wake: impl Fn() + Send + 'static) {
        self.at_end.lock().push(Box::new(wake));
    }

    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.lock()
    }

    fn end(&self) {
        *self.ending.lock() = true;
        self.changed.notify_all();
        self.at_end.lock().iter().for_each(|wake| wake());
    }

    /// Sleeps. Returns true if the thread is to continue afterwards.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let mut ending = self.ending.lock();
        if !*ending {
            ending = self.changed.wait_for(ending, time);
        }
        !*ending
    }
}

impl Background {
    /// Wakes the threads before their time.
    pub(crate) fn wake(&self) {
        self.signal.changed.notify_all();
    }

    /// Starts a thread, which ends soon after the signal says so.
    pub(crate) fn spawn(
        &self,
        name: &str,
        work: impl FnOnce(Arc<Signal>) + Send + 'static,
    ) -> EngineResult<()> {
        let signal = Arc::clone(&self.signal);
        let handle = spawn_named(name, move || work(signal)).map_err(|error| {
            tracing::error!(name, %error, "could not start a thread");
            EngineError::Internal {
                what: "could not start a background thread; the server log says why",
            }
        })?;
        self.threads.lock().push(handle);
        Ok(())
    }

    /// Ends the threads and waits for them.
    pub(crate) fn stop(&self) {
        self.signal.end();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // This thread may be one of them, if it drops the last reference to the engine.
            if !thread.is_current() && thread.join().is_err() {
                tracing::error!("a background thread has panicked");
            }
        }
    }
}
