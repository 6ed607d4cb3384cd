//! Threads that work behind the sessions' backs, and how they end.
//!
//! A thread holds no strong reference to the engine while it sleeps: an engine that nobody uses any more goes
//! away, and its threads with it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::{NamedThread, spawn_named};

use super::{autovacuum, reclaimer};
use crate::engine::Engine;
use crate::error::{EngineError, EngineResult};

/// The threads of one engine.
#[derive(Default)]
pub(crate) struct Background {
    signal: Arc<Signal>,
    threads: Mutex<Vec<NamedThread<()>>>,
}

/// Tells the threads to end.
#[derive(Default)]
pub(crate) struct Signal {
    ending: Mutex<bool>,
    changed: Condvar,
    /// What wakes threads that sleep elsewhere.
    at_end: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl Signal {
    /// Has `wake` called once the threads are told to end. If they have been told already, it is not: the
    /// caller asks afterwards whether they are.
    pub(super) fn at_end(&self, wake: impl Fn() + Send + 'static) {
        self.at_end.lock().push(Box::new(wake));
    }

    pub(super) fn is_ending(&self) -> bool {
        *self.ending.lock()
    }

    fn end(&self) {
        *self.ending.lock() = true;
        self.changed.notify_all();
        self.at_end.lock().iter().for_each(|wake| wake());
    }

    /// Sleeps; true if the thread is to go on afterwards.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let mut ending = self.ending.lock();
        if !*ending {
            ending = self.changed.wait_for(ending, time);
        }
        !*ending
    }
}

/// Starts the threads.
pub(crate) fn start(engine: &Arc<Engine>, background: &Background) -> EngineResult<()> {
    background.spawn(engine, "millpond-reclaim", reclaimer::run)?;
    background.spawn(engine, "millpond-upkeep", reclaimer::upkeep)?;
    background.spawn(engine, "millpond-vacuum", autovacuum::run)?;
    Ok(())
}

impl Background {
    /// The threads look around, sooner than they would.
    pub(crate) fn wake(&self) {
        self.signal.changed.notify_all();
    }

    fn spawn(
        &self,
        engine: &Arc<Engine>,
        name: &str,
        work: impl FnOnce(Weak<Engine>, Arc<Signal>) + Send + 'static,
    ) -> EngineResult<()> {
        let (engine, signal) = (Arc::downgrade(engine), Arc::clone(&self.signal));
        let handle = spawn_named(name, move || work(engine, signal)).map_err(|error| {
            tracing::error!(name, %error, "could not start a thread");
            EngineError::Internal { what: "could not start a background thread" }
        })?;
        self.threads.lock().push(handle);
        Ok(())
    }

    /// Ends the threads, and waits for them.
    pub(crate) fn stop(&self) {
        self.signal.end();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // One of them may be who lets go of the engine last.
            if !thread.is_current() && thread.join().is_err() {
                tracing::error!("a background thread has panicked");
            }
        }
    }
}
