//! The signals of a server, with PostgreSQL's meanings.
//!
//! | signal | what it asks for |
//! |---|---|
//! | SIGTERM | to stop as `shutdown_mode` says |
//! | SIGINT | to stop fast: sessions are ended |
//! | SIGQUIT | to leave at once, without a checkpoint |
//! | SIGHUP | to read the configuration again |
//! | SIGUSR1, SIGUSR2 | nothing |
//!
//! A separate thread receives the signals. It exits the process itself when the main thread can't:
//! at SIGQUIT, and while the database is being opened. [`Signals::wait`] returns all other
//! requests.

use crate::net::UnixPath;
use parking_lot::{Condvar, Mutex};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A request to the main thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Read the configuration again.
    Reload,
    /// Stop as the setting `shutdown_mode` says.
    Stop,
    /// Stop fast.
    StopFast,
}

/// The signal handler of this process.
pub struct Signals {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Asked>,
    changed: Condvar,
    sockets: Mutex<Vec<Arc<UnixPath>>>,
}

/// The requests that the main thread has not received yet.
#[derive(Default)]
struct Asked {
    reload: bool,
    stop: bool,
    stop_fast: bool,
    /// Whether the main thread receives requests.
    serving: bool,
}

impl Signals {
    /// Handles the signals from now on.
    pub fn take() -> io::Result<Self> {
        let taken = [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2];
        let mut signals = signal_hook::iterator::Signals::new(taken)?;
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                thread_shared.note(signal);
            }
        })?;
        Ok(Self { shared })
    }

    /// Adds a socket whose files are removed when the process exits.
    pub fn remove_at_leave(&self, socket: &Arc<UnixPath>) {
        self.shared.sockets.lock().push(Arc::clone(socket));
    }

    /// From now on [`Signals::wait`] returns the requests. The caller is about to call it.
    pub fn serving(&self) {
        self.shared.asked.lock().serving = true;
    }

    /// The next request, the most urgent first; `None` if there is none within `limit`.
    pub fn wait(&self, limit: Option<Duration>) -> Option<Request> {
        let mut asked = self.shared.asked.lock();
        loop {
            if let Some(request) = asked.next() {
                return Some(request);
            }
            match limit {
                None => self.shared.changed.wait(&mut asked),
                Some(limit) => {
                    if self.shared.changed.wait_for(&mut asked, limit).timed_out() {
                        return asked.next();
                    }
                }
            }
        }
    }

    /// Exits the process without waiting for any thread.
    pub fn leave(&self, status: i32) -> ! {
        self.shared.leave(status)
    }

    /// A function with which another thread can exit the process.
    pub fn leaver(&self) -> impl FnOnce(i32) + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move |status| shared.leave(status)
    }
}

impl Asked {
    fn next(&mut self) -> Option<Request> {
        let taken = |flag: &mut bool, request| std::mem::take(flag).then_some(request);
        taken(&mut self.stop_fast, Request::StopFast)
            .or_else(|| taken(&mut self.stop, Request::Stop))
            .or_else(|| taken(&mut self.reload, Request::Reload))
    }
}

impl Shared {
    fn note(&self, signal: i32) {
        let mut asked = self.asked.lock();
        match signal {
            SIGQUIT => {
                tracing::info!("received immediate shutdown request");
                drop(asked);
                self.leave(0);
            }
            SIGTERM | SIGINT if !asked.serving => {
                tracing::info!("received shutdown request before the server was ready");
                drop(asked);
                self.leave(0);
            }
            SIGTERM => asked.stop = true,
            SIGINT => asked.stop_fast = true,
            SIGHUP => asked.reload = true,
            _ => return,
        }
        self.changed.notify_all();
    }

    fn leave(&self, status: i32) -> ! {
        for socket in self.sockets.lock().iter() {
            socket.remove();
        }
        process::exit(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_urgent_request_is_returned_first() {
        let signals = Signals { shared: Arc::default() };
        signals.serving();
        for signal in [SIGHUP, SIGUSR1, SIGTERM, SIGINT, SIGHUP] {
            signals.shared.note(signal);
        }
        let heard: Vec<_> = std::iter::from_fn(|| signals.wait(Some(Duration::ZERO))).collect();
        assert_eq!(heard, [Request::StopFast, Request::Stop, Request::Reload]);
    }
}
