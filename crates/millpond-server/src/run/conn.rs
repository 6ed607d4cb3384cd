//! A connection: socket, buffers and protocol, on its event loop or on a thread that may block.
//!
//! Whoever owns the box runs it; nothing in it is shared but two flags. This file has what both places need;
//! on_loop.rs and on_lane.rs have its turns there, messages.rs has how it handles what it has received.

mod messages;
mod on_lane;
mod on_loop;

use super::Shared;
use crate::backend::Backend;
use crate::net::Socket;
use crate::proto::Protocol;
use crate::proto::sink::{Stream, going_down};
use crate::wire::buffer::{Input, Output, Received};
use crate::wire::reply;
use millpond::{CommitTicket, SqlError, SqlState};
use millpond_sync::prefetch::prefetch;
use mio::{Interest, Registry, Token};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Waker;
use std::time::{Duration, Instant};

pub use on_loop::Turn;

/// How long a client may take to start its session.
const START_UP_LIMIT: Duration = Duration::from_secs(60);

/// Where a connection's commit is.
#[derive(Debug, Clone, Copy)]
enum Commit {
    None,
    /// To be registered with the log, on the loop (whose letters would miss a connection on the lane).
    New(CommitTicket),
    Waiting,
    Durable,
}

/// A connection.
pub struct Conn<B: Backend> {
    /// Its slot on its loop.
    pub slot: usize,
    /// Its number, never used again.
    pub number: u64,
    socket: Socket,
    input: Input,
    output: Output,
    gathered: Vec<u8>,
    protocol: Protocol<B>,
    commit: Commit,
    waker: Waker,
    cancelled: Arc<AtomicBool>,
    // The socket may have something to read: an edge was seen, and no read has come back short since.
    readable: bool,
    // The client may have closed its side, or the socket may have failed: only an empty read can tell.
    ended: bool,
    // The socket takes no more; and whether the poll is to say when it does.
    stuck: bool,
    watching_room: bool,
    // Nothing is left to do but to send what there is.
    closing: bool,
    // The session is to be asked whether it has been idle for too long.
    woken: bool,
    since: Instant,
}

impl<B: Backend> Conn<B> {
    /// A connection that has just been accepted.
    pub fn new(socket: Socket, slot: usize, number: u64, waker: Waker) -> Self {
        Self {
            slot,
            number,
            socket,
            input: Input::default(),
            output: Output::default(),
            gathered: Vec::new(),
            protocol: Protocol::default(),
            commit: Commit::None,
            waker,
            cancelled: Arc::new(AtomicBool::new(false)),
            readable: true,
            ended: false,
            stuck: false,
            watching_room: false,
            closing: false,
            woken: false,
            since: Instant::now(),
        }
    }

    /// Asks for its memory, some turns ahead of its own.
    pub fn prefetch(&self) {
        prefetch(self);
    }

    /// Asks for what it points to, when its own memory has come.
    pub fn prefetch_session(&self) {
        self.protocol.prefetch();
    }

    /// The poll has said something about the socket.
    pub fn note_event(&mut self, readable: bool, closed: bool) {
        self.readable |= readable || closed;
        self.ended |= closed;
    }

    /// Has the poll say when the socket has room, while replies wait for that, and only then: a client that takes
    /// a reply makes room, and would wake the loop for nothing.
    pub fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        if self.stuck == self.watching_room {
            return Ok(());
        }
        let reading = Interest::READABLE;
        let interest = if self.stuck { reading | Interest::WRITABLE } else { reading };
        registry.reregister(&mut self.socket, Token(self.slot), interest)?;
        self.watching_room = self.stuck;
        Ok(())
    }

    /// It comes back from the lane, and may have been woken while it was away.
    pub fn note_return(&mut self) {
        self.woken = true;
    }

    /// Somebody has woken the connection: its commit is durable (or the log has failed, as the session will find), or it
    /// has been idle in a transaction for too long.
    pub fn note_wake(&mut self) {
        match self.commit {
            Commit::Waiting => self.commit = Commit::Durable,
            _ => self.woken = true,
        }
    }

    /// Whether the session has not started yet.
    pub fn starting(&self) -> bool {
        self.protocol.starting()
    }

    /// Whether the client takes too long to start its session.
    pub fn dawdles(&self, now: Instant) -> bool {
        self.protocol.starting() && now.saturating_duration_since(self.since) > START_UP_LIMIT
    }

    /// Its socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends what the socket takes; true when nothing is left.
    fn send(&mut self) -> bool {
        match self.output.write_to(&mut self.socket) {
            Ok(done) => {
                self.stuck = !done;
                done
            }
            Err(error) => {
                tracing::debug!(%error, connection = self.number, "client is gone");
                self.output.clear();
                self.stuck = false;
                self.closing = true;
                true
            }
        }
    }

    fn receive(&mut self) -> Received {
        self.input.read_from(&mut self.socket).unwrap_or_else(|error| {
            tracing::debug!(%error, connection = self.number, "client is gone");
            Received::End
        })
    }

    /// Tells the client that the server is going down.
    pub fn say_goodbye(&mut self) {
        if !self.protocol.starting() {
            reply::error(&mut self.output.bytes, &going_down());
        }
        self.send();
    }

    /// Tells the client that there is no thread for its statement.
    pub fn refuse_thread(&mut self) {
        let error = SqlError::new(
            SqlState::INSUFFICIENT_RESOURCES,
            "could not start a thread for the statement",
        );
        self.protocol.fatal(&error, &mut self.output);
        self.send();
    }

    /// The end: forgets the cancel key, rolls back what is open.
    pub fn end(self, shared: &Shared<B>) {
        let Self { protocol, socket, number, .. } = self;
        if let Some(pid) = protocol.pid() {
            shared.keys.revoke(pid);
        }
        guarded(number, || drop(protocol));
        drop(socket);
    }
}

fn stream_to<'a>(
    socket: &'a mut Socket,
    cancelled: &'a AtomicBool,
    stopping: &'a AtomicBool,
) -> Stream<'a> {
    Stream { socket, cancelled, stopping }
}

/// A panic ends one session, not its loop with all the others.
fn guarded<R>(connection: u64, run: impl FnOnce() -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    if result.is_none() {
        tracing::error!(connection, "a session has panicked and is ended");
    }
    result
}
