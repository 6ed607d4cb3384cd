//! Running the server: event loops, the lane that may block, the acceptor.
//!
//! A connection stays on the loop it was given at accept. What would block a loop moves, with its whole
//! connection, to a thread of the lane, and comes back when it is done (docs/adr/0001).

mod acceptor;
pub mod cancel;
mod conn;
mod event_loop;
mod lane;
mod sender;

use crate::backend::Backend;
use crate::net::Listener;
use cancel::CancelKeys;
use conn::Conn;
use event_loop::{EventLoop, Mail, Mailbox};
use lane::Lanes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// What all loops and threads share.
pub(crate) struct Shared<B: Backend> {
    backend: B,
    keys: CancelKeys,
    lanes: Arc<Lanes<Job<B>>>,
    /// No session begins any more.
    refusing: AtomicBool,
    stopping: AtomicBool,
    numbers: AtomicU64,
}

impl<B: Backend> Shared<B> {
    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// A connection on its way to the lane, and where it comes from.
pub(crate) struct Job<B: Backend> {
    conn: Box<Conn<B>>,
    home: Arc<Mailbox<B>>,
}

/// How large a server is.
#[derive(Debug, Clone, Copy)]
pub struct ServerConfig {
    /// Event loops; by default one for each core.
    pub loops: usize,
    /// The most sessions that the backend grants.
    pub max_connections: usize,
}

/// A running server.
pub struct Server<B: Backend> {
    shared: Arc<Shared<B>>,
    mailboxes: Arc<[Arc<Mailbox<B>>]>,
    acceptor: acceptor::Acceptor,
    /// Closed when the last loop has ended.
    ended: Receiver<()>,
}

impl<B: Backend> Server<B> {
    /// Starts to serve the listeners' clients.
    pub fn start(backend: B, listeners: Vec<Listener>, config: ServerConfig) -> io::Result<Self> {
        // A connection that waits for another one's lock must never take that one's thread.
        let sockets = config.max_connections.saturating_mul(2).saturating_add(16);
        let shared = Arc::new_cyclic(|weak: &std::sync::Weak<Shared<B>>| {
            let weak = weak.clone();
            let work = move |mut job: Job<B>| {
                if let Some(shared) = weak.upgrade() {
                    job.conn.turn_on_lane(&shared);
                }
                job.home.post(Mail::Returned(job.conn));
            };
            Shared {
                backend,
                keys: CancelKeys::default(),
                lanes: Lanes::new(sockets, work),
                refusing: AtomicBool::new(false),
                stopping: AtomicBool::new(false),
                numbers: AtomicU64::new(1),
            }
        });
        let loops =
            (0..config.loops.max(1)).map(|_| EventLoop::new()).collect::<io::Result<Vec<_>>>()?;
        let mailboxes: Arc<[_]> = loops.iter().map(EventLoop::mailbox).collect();
        let (running, ended) = mpsc::channel::<()>();
        for (i, one) in loops.into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            let name = format!("loop {i}");
            let running = running.clone();
            thread::Builder::new().name(name).spawn(move || {
                let _running = running;
                one.run(&shared);
            })?;
        }
        let acceptor = acceptor::Acceptor::start(listeners, Arc::clone(&mailboxes), sockets)?;
        Ok(Self { shared, mailboxes, acceptor, ended })
    }

    /// New sessions are refused with 57P03 from now on; those that are there go on.
    pub fn refuse_sessions(&self) {
        self.shared.refusing.store(true, Ordering::Relaxed);
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.shared.keys.sessions()
    }

    /// Accepts nobody any more, ends every session, and returns when all have gone: true. After
    /// `limit` it returns without that: false, and a thread may still be at a session's work.
    pub fn stop(self, limit: Option<Duration>) -> bool {
        self.acceptor.stop();
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.keys.terminate_all();
        for mailbox in self.mailboxes.iter() {
            mailbox.wake();
        }
        let ended = match limit {
            Some(limit) => self.ended.recv_timeout(limit),
            None => self.ended.recv().map_err(RecvTimeoutError::from),
        };
        ended == Err(RecvTimeoutError::Disconnected)
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.shared.backend
    }
}
