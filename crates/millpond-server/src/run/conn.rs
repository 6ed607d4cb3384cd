//! A connection: its socket, buffers and protocol. It runs on its event loop or on a thread of the
//! blocking pool.
//!
//! The thread that owns the box runs the connection. Of its fields only the flag `cancelled` is
//! shared. This file has what both places need. on_loop.rs and on_blocking_pool.rs have the turns
//! there; messages.rs handles what was received.

mod messages;
mod on_blocking_pool;
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

/// How long a client may take for its start-up.
const START_UP_LIMIT: Duration = Duration::from_secs(60);

/// The state of a connection's commit.
#[derive(Debug, Clone, Copy)]
enum Commit {
    None,
    /// Must be registered with the log on the loop, which drops letters for a connection on the
    /// blocking pool.
    New(CommitTicket),
    Waiting,
    Durable,
}

/// A connection.
pub struct Conn<B: Backend> {
    /// The slot on its loop.
    pub slot: usize,
    /// Its number, which is never reused.
    pub number: u64,
    socket: Socket,
    input: Input,
    output: Output,
    gathered: Vec<u8>,
    protocol: Protocol<B>,
    commit: Commit,
    waker: Waker,
    cancelled: Arc<AtomicBool>,
    // The socket may have something to read: an edge was seen, and no short read has followed.
    readable: bool,
    // The client may have closed its side, or the socket failed. Only an empty read can tell.
    ended: bool,
    // `stuck`: the socket accepts no more bytes. `watching_room`: the poll reports when it does.
    stuck: bool,
    watching_room: bool,
    // The connection only has to send the remaining output.
    closing: bool,
    // The session must be asked whether it is to end.
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

    /// Prefetches this memory, some turns before the connection's own.
    pub fn prefetch(&self) {
        prefetch(self);
    }

    /// Prefetches what the connection points to, after its own memory has arrived.
    pub fn prefetch_session(&self) {
        self.protocol.prefetch();
    }

    /// Notes an event of the socket.
    pub fn note_event(&mut self, readable: bool, closed: bool) {
        self.readable |= readable || closed;
        self.ended |= closed;
    }

    /// Registers for events of a socket with room, but only while replies wait for room. A client
    /// that reads a reply makes room, and would otherwise wake the loop for nothing.
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

    /// Notes the return from the blocking pool. A wake-up may have been dropped meanwhile.
    pub fn note_return(&mut self) {
        self.woken = true;
    }

    /// Notes a wake-up: the commit is durable, or the session is to end. If the log has failed
    /// instead, or the commit is not durable yet, the session finds that out.
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

    /// Whether the client has exceeded the time for its start-up.
    pub fn dawdles(&self, now: Instant) -> bool {
        self.protocol.starting() && now.saturating_duration_since(self.since) > START_UP_LIMIT
    }

    /// Its socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends what the socket accepts. True when nothing is left.
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

    /// Tells the client that the server is shutting down.
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
        )
        .hint("Raise the limit of threads (ulimit -u), or use fewer connections.");
        self.protocol.fatal(&error, &mut self.output);
        self.send();
    }

    /// Ends the connection: revokes the cancel key and rolls back an open transaction.
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

/// Runs a session's work. A panic ends only this session, not the loop and its other connections.
fn guarded<R>(connection: u64, run: impl FnOnce() -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    if result.is_none() {
        tracing::error!(connection, "a session has panicked and is ended");
    }
    result
}
