//! Threads: the standard library's, a model checker's, or a simulation's.
//!
//! A thread started by a simulated thread is simulated, too ([`scheduler`](crate::scheduler)).
//! Threads of [`spawn_named`] are the system's even under a model checker.

use std::time::Duration;

#[cfg(not(any(loom, shuttle)))]
pub use imp::{JoinHandle, spawn};
#[cfg(loom)]
pub use loom::thread::{JoinHandle, spawn, yield_now};
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::thread::{JoinHandle, spawn, yield_now};

pub use named::{NamedThread, spawn_named};

/// Lets other threads run.
#[cfg(not(any(loom, shuttle)))]
#[inline]
pub fn yield_now() {
    if !crate::scheduler::yield_now() {
        std::thread::yield_now();
    }
}

/// Sleeps. (Under a model checker, which has no time: lets other threads run.)
pub fn sleep(time: Duration) {
    #[cfg(not(any(loom, shuttle)))]
    if !crate::scheduler::sleep(time) {
        std::thread::sleep(time);
    }
    #[cfg(any(loom, shuttle))]
    {
        let _ = time;
        yield_now();
    }
}

#[cfg(not(any(loom, shuttle)))]
mod imp {
    use std::io;

    use crate::scheduler::{self, Joining};

    /// A thread that can be joined.
    #[derive(Debug)]
    pub struct JoinHandle<T> {
        thread: std::thread::JoinHandle<T>,
        simulated: Option<Joining>,
    }

    /// Starts a thread.
    ///
    /// # Panics
    /// If the system can't start a thread.
    pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        match start(None, body) {
            Ok(handle) => handle,
            Err(error) => panic!("could not start a thread: {error}"),
        }
    }

    pub(super) fn start<T: Send + 'static>(
        name: Option<&str>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        match scheduler::spawn(name.unwrap_or("unnamed"), body) {
            Ok(started) => {
                let (thread, joining) = started?;
                Ok(JoinHandle { thread, simulated: Some(joining) })
            }
            Err(body) => {
                let builder = std::thread::Builder::new();
                let builder = match name {
                    Some(name) => builder.name(name.to_owned()),
                    None => builder,
                };
                Ok(JoinHandle { thread: builder.spawn(body)?, simulated: None })
            }
        }
    }

    impl<T> JoinHandle<T> {
        /// Waits until the thread has ended. An error is the thread's panic.
        pub fn join(self) -> std::thread::Result<T> {
            if let Some(joining) = &self.simulated {
                scheduler::join(joining);
            }
            self.thread.join()
        }

        /// Whether the thread has ended.
        pub fn is_finished(&self) -> bool {
            match &self.simulated {
                Some(joining) => joining.is_done(),
                None => self.thread.is_finished(),
            }
        }

        /// The thread.
        pub fn thread(&self) -> &std::thread::Thread {
            self.thread.thread()
        }
    }
}

/// Named threads, for a program's own work. Even under a model checker they are the system's.
mod named {
    use std::io;

    /// A thread with a name.
    #[derive(Debug)]
    pub struct NamedThread<T> {
        #[cfg(not(any(loom, shuttle)))]
        handle: super::imp::JoinHandle<T>,
        #[cfg(any(loom, shuttle))]
        handle: std::thread::JoinHandle<T>,
    }

    /// Starts a thread with a name.
    pub fn spawn_named<T: Send + 'static>(
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<NamedThread<T>> {
        #[cfg(not(any(loom, shuttle)))]
        let handle = super::imp::start(Some(name), body)?;
        #[cfg(any(loom, shuttle))]
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(NamedThread { handle })
    }

    impl<T> NamedThread<T> {
        /// Waits until the thread has ended. An error is the thread's panic.
        pub fn join(self) -> std::thread::Result<T> {
            self.handle.join()
        }

        /// Whether this is the calling thread.
        pub fn is_current(&self) -> bool {
            self.handle.thread().id() == std::thread::current().id()
        }
    }
}
