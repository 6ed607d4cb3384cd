//! A connection: socket, buffers and protocol, on its event loop or on a thread that may block.
//!
//! Whoever owns the box runs it; nothing in it is shared but two flags. Input is handled message by
//! message from the buffer; a message is consumed before its consequences, because what can't go on is kept
//! by the protocol ([`crate::proto::Protocol::resume`]).

use super::Shared;
use crate::backend::{Backend, Session};
use crate::net::Socket;
use crate::proto::sink::{FULL_BYTES, LOOK_UP, Stream, going_down};
use crate::proto::{Protocol, StartContext, Step};
use crate::wire::buffer::{Input, Output, Received, Spare};
use crate::wire::{frontend, reply, startup};
use millpond::{CommitTicket, SqlError, SqlState, Wait};
use millpond_sync::prefetch::prefetch;
use mio::{Interest, Registry, Token};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long a client may take to start its session.
const START_UP_LIMIT: Duration = Duration::from_secs(60);

/// What a connection wants after its turn on the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// An event of its socket, or a letter.
    Wait,
    /// Another turn, after everybody else's.
    Again,
    /// To send its replies, together with others'.
    Send,
    /// To go to the lane that may block.
    Block,
    /// To end.
    Close,
}

/// Where a connection's commit is.
#[derive(Debug, Clone, Copy)]
enum Commit {
    None,
    /// To be registered with the log, on the loop (whose letters would miss a connection on the lane).
    New(CommitTicket),
    Waiting,
    Durable,
}

/// What became of the messages in the buffer.
enum Served {
    /// All that were complete have been handled.
    All,
    /// The output is full.
    Full,
    Block,
    Commit(CommitTicket),
    Close,
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

    /// The commit is durable (or the log has failed, as the session will find).
    pub fn note_commit(&mut self) {
        if let Commit::Waiting = self.commit {
            self.commit = Commit::Durable;
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

    /// A turn on the event loop: nothing here waits. Replies that are there already are sent if `send` says so;
    /// those that come up are for a turn of their own.
    /// Its buffers have memory of the loop's while there is something in them.
    ///
    /// Who is `alone` on the loop waits for the log here: nobody else would have the loop's time, and the way to
    /// the log's thread and back takes as long as a fast device's sync.
    pub fn turn_on_loop(
        &mut self,
        shared: &Shared<B>,
        send: bool,
        alone: bool,
        spare: &mut Spare,
    ) -> Turn {
        spare.lend(&mut self.input, &mut self.output);
        let turn =
            guarded(self.number, || self.loop_turn(shared, send, alone)).unwrap_or(Turn::Close);
        spare.take_back(&mut self.input, &mut self.output);
        turn
    }

    fn loop_turn(&mut self, shared: &Shared<B>, mut send: bool, alone: bool) -> Turn {
        let mut step = match self.commit {
            Commit::None => Served::All,
            Commit::New(ticket) => Served::Commit(ticket),
            Commit::Waiting => return Turn::Wait,
            Commit::Durable => {
                self.commit = Commit::None;
                let step = self.protocol.committed(&mut self.output, None);
                self.after(step)
            }
        };
        let mut reads = 0;
        loop {
            if let Served::All | Served::Full = step {
                if !self.output.is_empty() {
                    if !send && matches!(step, Served::All) {
                        return Turn::Send;
                    }
                    send = false;
                    // While a client doesn't take its replies, it gets no more of them.
                    if !self.send() {
                        return if self.closing { Turn::Close } else { Turn::Wait };
                    }
                }
                if self.closing {
                    return Turn::Close;
                }
                step = self.serve(shared, false);
            }
            match step {
                Served::All if self.output.is_empty() => {}
                Served::All | Served::Full => continue,
                Served::Block => return Turn::Block,
                Served::Commit(ticket) if alone && self.wait_durable(&ticket) => {
                    self.commit = Commit::None;
                    let next = self.protocol.committed(&mut self.output, None);
                    step = self.after(next);
                    continue;
                }
                Served::Commit(ticket) => {
                    self.commit = Commit::Waiting;
                    if let Some(session) = self.protocol.session() {
                        session.on_durable(&ticket, self.waker.clone());
                    }
                    return Turn::Wait;
                }
                Served::Close => {
                    self.closing = true;
                    // What its client has not taken yet comes before the end; the lane may wait for that.
                    return if self.send() { Turn::Close } else { Turn::Block };
                }
            }
            if !self.readable {
                return Turn::Wait;
            }
            if reads > 0 {
                return Turn::Again;
            }
            reads += 1;
            match self.receive() {
                Received::Full => {}
                // A short read has emptied the socket; but the end of the stream may be behind it.
                Received::Short => self.readable = self.ended,
                Received::Nothing => {
                    self.readable = false;
                    self.ended = false;
                    return Turn::Wait;
                }
                Received::End => return Turn::Close,
            }
        }
    }

    /// Gives its replies away, to be sent together with others': the bytes, and where in them they begin.
    pub fn take_replies(&mut self) -> Option<(Vec<u8>, usize)> {
        (!self.output.is_empty()).then(|| self.output.take())
    }

    /// What became of its replies: what is left of them, and where. Returns whether it now has nothing to do until its client
    /// says something.
    pub fn replies_sent(
        &mut self,
        bytes: Vec<u8>,
        rest: usize,
        result: io::Result<()>,
        spare: &mut Spare,
    ) -> bool {
        match result {
            // What is lost with the replies is the connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => self.closing = true,
            // A socket that is full or broken says so again, in a turn.
            _ => self.output.put_back(bytes, rest),
        }
        self.stuck &= !self.output.is_empty();
        // Who has waited for room has a turn, in which that is watched no more.
        let rests = self.output.is_empty()
            && !self.watching_room
            && self.input.is_empty()
            && !self.readable
            && !self.closing
            && matches!(self.commit, Commit::None);
        if rests {
            spare.take_back(&mut self.input, &mut self.output);
        }
        rests
    }

    /// Its socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Waits for the log here, if the session does such a thing.
    fn wait_durable(&mut self, ticket: &CommitTicket) -> bool {
        self.protocol.session().is_some_and(|session| session.wait_durable(ticket))
    }

    /// Runs on a thread that may block: takes up what was pending, then handles what has been received
    /// until nothing is left, and in the middle of a COPY until that is over.
    pub fn turn_on_lane(&mut self, shared: &Shared<B>) {
        if guarded(self.number, || self.lane_turn(shared)).is_none() {
            self.closing = true;
        }
    }

    fn lane_turn(&mut self, shared: &Shared<B>) {
        if self.closing {
            self.cancelled.store(false, Ordering::Relaxed);
            self.drain(shared);
            return;
        }
        if let Some(session) = self.protocol.session() {
            session.set_wait(Wait::Allowed);
        }
        self.cancelled.store(false, Ordering::Relaxed);
        if self.output.answers {
            // Answers to earlier requests don't wait for this one.
            self.send();
        }
        let stream = stream_to(&mut self.socket, &self.cancelled, &shared.stopping);
        let step = self.protocol.resume(&mut self.output, Some(stream));
        let mut step = self.after(step);
        if let Served::All = step {
            // What follows is likely to belong to it: a statement that was long to plan is long to run.
            step = self.serve(shared, true);
        }
        loop {
            match step {
                Served::All if self.protocol.copying() => {
                    if !self.drain(shared) || !self.await_input(shared) {
                        break;
                    }
                }
                Served::All => break,
                Served::Full => {
                    if !self.drain(shared) {
                        break;
                    }
                }
                // Waiting is allowed here, so nothing can refuse to.
                Served::Block => {
                    let error = SqlError::internal("a statement would not wait where it may");
                    self.protocol.fatal(&error, &mut self.output);
                    self.closing = true;
                    break;
                }
                Served::Commit(ticket) => {
                    self.commit = Commit::New(ticket);
                    break;
                }
                Served::Close => {
                    self.closing = true;
                    self.drain(shared);
                    break;
                }
            }
            step = self.serve(shared, true);
        }
        self.gathered = Vec::new();
        if let Commit::None = self.commit {
            self.send();
        }
        if let Some(session) = self.protocol.session() {
            session.set_wait(Wait::Never);
        }
        // Events meanwhile went to an empty slot, that of the client's end among them.
        self.readable = true;
        self.ended = true;
    }

    /// Handles the complete messages in the input buffer.
    fn serve(&mut self, shared: &Shared<B>, may_block: bool) -> Served {
        loop {
            if self.output.len() >= FULL_BYTES {
                return Served::Full;
            }
            let step = if self.protocol.starting() {
                match startup::packet(self.input.data()) {
                    Ok(None) => return Served::All,
                    Ok(Some((packet, length))) => {
                        self.input.consume(length);
                        let context = StartContext {
                            backend: &shared.backend,
                            keys: &shared.keys,
                            cancelled: &self.cancelled,
                            client_addr: &self.socket.peer(),
                        };
                        self.protocol.packet(packet, &context, &mut self.output)
                    }
                    Err(error) => self.protocol.bad_packet(error, &mut self.output),
                }
            } else {
                match frontend::frame(self.input.data()) {
                    Ok(None) => return Served::All,
                    Ok(Some(frame)) if frame.kind == b'd' && self.protocol.copying() => {
                        let end = gather(self.input.data(), &mut self.gathered);
                        let stream = may_block.then(|| {
                            stream_to(&mut self.socket, &self.cancelled, &shared.stopping)
                        });
                        let data = &self.gathered;
                        let step = self.protocol.message(b'd', data, &mut self.output, stream);
                        self.input.consume(end);
                        step
                    }
                    Ok(Some(frame)) => {
                        if may_block && matches!(frame.kind, b'Q' | b'E') {
                            // What was asked of a statement is not meant for the next. (On a loop nobody looks.)
                            self.cancelled.store(false, Ordering::Relaxed);
                        }
                        let body = self.input.data().get(5..frame.end).unwrap_or_default();
                        let stream = may_block.then(|| {
                            stream_to(&mut self.socket, &self.cancelled, &shared.stopping)
                        });
                        let step =
                            self.protocol.message(frame.kind, body, &mut self.output, stream);
                        self.input.consume(frame.end);
                        step
                    }
                    Err(error) => self.protocol.derailed(error, &mut self.output),
                }
            };
            match self.after(step) {
                Served::All => {}
                other => return other,
            }
        }
    }

    fn after(&mut self, step: Step) -> Served {
        match step {
            Step::Next => Served::All,
            // What is waiting leaves at the latest when the input has been handled, which is at once:
            // nothing here waits for more of it.
            Step::Flush => Served::All,
            Step::Block => Served::Block,
            Step::Commit(ticket) => Served::Commit(ticket),
            Step::Close => Served::Close,
        }
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

    /// On the lane: sends everything. False when there is no point in going on.
    fn drain(&mut self, shared: &Shared<B>) -> bool {
        let mut stream = stream_to(&mut self.socket, &self.cancelled, &shared.stopping);
        match stream.drain(&mut self.output) {
            Ok(()) => true,
            Err(error) if error.sqlstate == SqlState::QUERY_CANCELED => true,
            Err(_) => {
                self.closing = true;
                false
            }
        }
    }

    /// On the lane, in a COPY: waits for the client. False when there is no point in going on.
    fn await_input(&mut self, shared: &Shared<B>) -> bool {
        loop {
            match self.receive() {
                Received::Full | Received::Short => return true,
                Received::Nothing => {}
                Received::End => {
                    self.closing = true;
                    return false;
                }
            }
            if shared.stopping() {
                self.say_goodbye();
                self.closing = true;
                return false;
            }
            if self.cancelled.swap(false, Ordering::Relaxed) {
                let error = SqlError::new(
                    SqlState::QUERY_CANCELED,
                    "canceling statement due to user request",
                );
                self.protocol.abandon_copy(error, &mut self.output);
                return self.drain(shared);
            }
            if self.socket.wait(false, LOOK_UP).is_err() {
                self.closing = true;
                return false;
            }
        }
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

/// Joins the COPY data of the messages at the head of the input, of which clients send one for each row.
/// Returns where they end.
fn gather(input: &[u8], data: &mut Vec<u8>) -> usize {
    data.clear();
    let mut end = 0;
    while let Some(rest) = input.get(end..)
        && let Ok(Some(frame)) = frontend::frame(rest)
        && frame.kind == b'd'
    {
        data.extend_from_slice(rest.get(5..frame.end).unwrap_or_default());
        end += frame.end;
    }
    end
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
