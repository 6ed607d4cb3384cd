//! Runs the server: event loops, the blocking pool, the acceptor.
//!
//! A connection stays on the loop that it was given to at accept. A connection whose statement
//! would block moves to a thread of the blocking pool, and comes back when the statement is done
//! (docs/adr/0001).

mod acceptor;
mod blocking_pool;
pub mod cancel;
mod conn;
mod event_loop;
mod sender;

use crate::backend::Backend;
use crate::net::Listener;
use blocking_pool::BlockingPool;
use cancel::CancelKeys;
use conn::Conn;
use event_loop::{EventLoop, Mail, Mailbox};
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
    blocking_pool: Arc<BlockingPool<Job<B>>>,
    /// Whether new sessions are refused.
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

/// A connection on its way to the blocking pool, and the mailbox of its loop.
pub(crate) struct Job<B: Backend> {
    conn: Box<Conn<B>>,
    home: Arc<Mailbox<B>>,
}

/// The size of a server.
#[derive(Debug, Clone, Copy)]
pub struct ServerConfig {
    /// The number of event loops; by default one for each core.
    pub loops: usize,
    /// The most sessions that the backend allows.
    pub max_connections: usize,
}

/// A running server.
pub struct Server<B: Backend> {
    shared: Arc<Shared<B>>,
    mailboxes: Arc<[Arc<Mailbox<B>>]>,
    acceptor: acceptor::Acceptor,
    /// Disconnected when the last loop has ended.
    ended: Receiver<()>,
}

impl<B: Backend> Server<B> {
    /// Starts to serve the clients of the listeners.
    pub fn start(backend: B, listeners: Vec<Listener>, config: ServerConfig) -> io::Result<Self> {
        // A connection that waits for another one's lock must not take that one's thread.
        let sockets = config.max_connections.saturating_mul(2).saturating_add(16);
        let shared = Arc::new_cyclic(|weak: &std::sync::Weak<Shared<B>>| {
            let weak = weak.clone();
            let work = move |mut job: Job<B>| {
                if let Some(shared) = weak.upgrade() {
                    job.conn.turn_on_blocking_pool(&shared);
                }
                job.home.post(Mail::Returned(job.conn));
            };
            Shared {
                backend,
                keys: CancelKeys::default(),
                blocking_pool: BlockingPool::new(sockets, work),
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

    /// Refuses new sessions with 57P03 from now on. Existing sessions continue.
    pub fn refuse_sessions(&self) {
        self.shared.refusing.store(true, Ordering::Relaxed);
    }

    /// The number of sessions.
    pub fn sessions(&self) -> usize {
        self.shared.keys.sessions()
    }

    /// Stops accepting, ends every session, and returns true when all sessions have ended. After
    /// `limit` it returns false; then a thread may still run a session.
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
