//! The protocol of one client: messages in, replies out, a session in between. It reads no socket.
//!
//! # State
//! `phase` says which messages are valid. A statement that can't continue leaves a [`Pending`]: the
//! blocking pool must resume the session, or the log must become durable first. No message is
//! handled while something is pending.
//!
//! # Errors
//! A statement's error is reported to the client. A simple query then ends with ReadyForQuery; the
//! extended protocol skips messages until the client's Sync. A [`Severity::Fatal`] error, or a
//! message stream that can't be followed, ends the connection ([`Step::Close`]).

mod copy;
mod extended;
mod named;
mod options;
pub mod sink;
mod startup;

use crate::backend::{Backend, Session};
use crate::wire::buffer::Output;
use crate::wire::frontend::{self, FrameError, Message, WireError};
use crate::wire::reply;
use crate::wire::rows::{ResultFormats, RowCodec};
use millpond::{CommitTicket, Executed, Result, Severity, SqlError, SqlState, TransactionStatus};
use named::Named;
use sink::{Stream, WireSink};

pub use startup::StartContext;

/// What the connection does after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Handle the next message.
    Next,
    /// Resume on a thread that may block.
    Block,
    /// Wait until the log is durable, then call [`Protocol::committed`].
    Commit(CommitTicket),
    /// Send the remaining output and close the connection.
    Close,
}

/// Which messages are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the session starts.
    Startup,
    /// Every request.
    Ready,
    /// None until Sync, after an error in the extended protocol.
    Skip,
    /// COPY data, which belongs to a call of this kind.
    CopyIn(Call),
}

/// The kind of call that is running. Calls differ in how they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Simple,
    Portal,
    Sync,
}

/// Work that waits to be continued.
#[derive(Debug)]
enum Pending {
    /// A call to resume on a thread that may block.
    Resume(Call),
    /// A portal to execute on a thread that may block, and its row limit.
    Execute(String, u64),
    /// A commit that waits for the log to become durable.
    Commit(Call),
}

struct PortalEntry<S: Session> {
    portal: S::Portal,
    formats: ResultFormats,
}

/// The protocol state of one client.
pub struct Protocol<B: Backend> {
    phase: Phase,
    session: Option<B::Session>,
    pid: i32,
    pending: Option<Pending>,
    statements: Named<<B::Session as Session>::Statement>,
    portals: Named<PortalEntry<B::Session>>,
    codec: RowCodec,
    encryption_asked: u8,
}

impl<B: Backend> Default for Protocol<B> {
    fn default() -> Self {
        Self {
            phase: Phase::Startup,
            session: None,
            pid: 0,
            pending: None,
            statements: Named::default(),
            portals: Named::default(),
            codec: RowCodec::default(),
            encryption_asked: 0,
        }
    }
}

impl<B: Backend> Protocol<B> {
    /// Whether the session has not started yet.
    pub fn starting(&self) -> bool {
        self.phase == Phase::Startup
    }

    /// Whether the client is sending COPY data. The connection then stays on the blocking pool.
    pub fn copying(&self) -> bool {
        matches!(self.phase, Phase::CopyIn(_))
    }

    /// The session's process id, once it has started.
    pub fn pid(&self) -> Option<i32> {
        self.session.is_some().then_some(self.pid)
    }

    /// The session, once it has started.
    pub fn session(&mut self) -> Option<&mut B::Session> {
        self.session.as_mut()
    }

    /// Prefetches the memory, other than the protocol's own, that handling a message uses.
    pub fn prefetch(&self) {
        self.codec.prefetch();
        if let Some(session) = &self.session {
            session.prefetch();
        }
    }

    /// Handles one message.
    pub fn message(
        &mut self,
        kind: u8,
        body: &[u8],
        out: &mut Output,
        stream: Option<Stream<'_>>,
    ) -> Step {
        if self.phase == Phase::Skip && !matches!(kind, b'S' | b'X') {
            return Step::Next;
        }
        let message = match frontend::decode(kind, body) {
            Ok(message) => message,
            Err(error) => return self.malformed(kind, error, out),
        };
        match (self.phase, message) {
            (_, Message::Terminate) => Step::Close,
            (Phase::CopyIn(call), message) => self.copy_message(call, message, out, stream),
            (_, Message::Query(sql)) => self.query(sql, out, stream),
            (_, Message::Parse { name, sql, types }) => self.parse(name, sql, types, out),
            (_, Message::Bind(bind)) => {
                let done = self.bind(&bind);
                self.reply(done, b'2', out)
            }
            (_, Message::Describe(target, name)) => {
                let done = self.describe(target, name, out);
                self.extended(done, out)
            }
            (_, Message::Close(target, name)) => {
                self.close(target, name);
                reply::bare(&mut out.bytes, b'3');
                Step::Next
            }
            (_, Message::Execute { portal, max_rows }) => {
                self.execute(portal, u64::try_from(max_rows).unwrap_or(0), out, stream)
            }
            (_, Message::Sync) => self.sync(out, stream),
            // The output is sent once the buffered input is handled, which never waits for more
            // input.
            (_, Message::Flush) => Step::Next,
            // The client sent these before it received its COPY's error.
            (_, Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_)) => Step::Next,
            (_, Message::FunctionCall) => {
                let error = SqlError::unsupported("the function call message");
                if let Some(session) = &mut self.session {
                    session.fail();
                }
                self.ended(Call::Simple, Err(error), out)
            }
            (_, Message::Password) => self.fatal(&violation("no password has been asked for"), out),
        }
    }

    /// Continues after a [`Step::Block`], where it may block. [`Step::Next`] if nothing is pending.
    pub fn resume(&mut self, out: &mut Output, stream: Option<Stream<'_>>) -> Step {
        match self.pending.take() {
            Some(Pending::Execute(name, max_rows)) => self.execute(&name, max_rows, out, stream),
            Some(Pending::Resume(call)) => {
                let Some(session) = &mut self.session else { return Step::Close };
                let options = session.format_options();
                let mut sink = WireSink::simple(out, stream, &mut self.codec, options);
                let result = session.resume(&mut sink);
                self.ended(call, result, out)
            }
            other => {
                self.pending = other;
                Step::Next
            }
        }
    }

    /// Continues after a [`Step::Commit`].
    pub fn committed(&mut self, out: &mut Output, stream: Option<Stream<'_>>) -> Step {
        let Some(Pending::Commit(call)) = self.pending.take() else { return Step::Next };
        let Some(session) = &mut self.session else { return Step::Close };
        let options = session.format_options();
        let mut sink = WireSink::simple(out, stream, &mut self.codec, options);
        let result = session.finish_commit(&mut sink);
        self.ended(call, result, out)
    }

    /// Ends the connection: the message stream can't be followed any further.
    pub fn derailed(&mut self, error: FrameError, out: &mut Output) -> Step {
        self.fatal(&violation(error.to_string()), out)
    }

    /// Reports an error that ends the connection.
    pub fn fatal(&mut self, error: &SqlError, out: &mut Output) -> Step {
        let mut error = error.clone();
        error.severity = error.severity.max(Severity::Fatal);
        reply::error(&mut out.bytes, &error);
        Step::Close
    }

    fn query(&mut self, sql: &str, out: &mut Output, stream: Option<Stream<'_>>) -> Step {
        self.statements.remove("");
        self.portals.remove("");
        let Some(session) = &mut self.session else { return Step::Close };
        let options = session.format_options();
        let mut sink = WireSink::simple(out, stream, &mut self.codec, options);
        let result = session.simple_query(sql, &mut sink);
        self.ended(Call::Simple, result, out)
    }

    fn sync(&mut self, out: &mut Output, stream: Option<Stream<'_>>) -> Step {
        self.phase = Phase::Ready;
        let Some(session) = &mut self.session else { return Step::Close };
        let options = session.format_options();
        let mut sink = WireSink::simple(out, stream, &mut self.codec, options);
        let result = session.sync(&mut sink);
        self.ended(Call::Sync, result, out)
    }

    /// Reports the result of a session's call and decides what comes next.
    fn ended(&mut self, call: Call, result: Result<Executed>, out: &mut Output) -> Step {
        if self.phase == Phase::CopyIn(call) && !matches!(result, Ok(Executed::CopyIn(_))) {
            self.phase = Phase::Ready;
        }
        match result {
            Ok(Executed::Complete) => {}
            Ok(Executed::Suspended) => reply::bare(&mut out.bytes, b's'),
            Ok(Executed::WouldBlock) => {
                self.pending = Some(Pending::Resume(call));
                return Step::Block;
            }
            Ok(Executed::CommitPending(ticket)) => {
                self.pending = Some(Pending::Commit(call));
                return Step::Commit(ticket);
            }
            Ok(Executed::CopyIn(format)) => {
                reply::copy_in(&mut out.bytes, format.columns);
                self.phase = Phase::CopyIn(call);
                return Step::Next;
            }
            Err(error) => {
                reply::report(&mut out.bytes, &error);
                if error.severity >= Severity::Fatal {
                    return Step::Close;
                }
                if call == Call::Portal {
                    self.phase = Phase::Skip;
                    return Step::Next;
                }
            }
        }
        match call {
            Call::Portal => Step::Next,
            Call::Simple | Call::Sync => self.ready(out),
        }
    }

    fn ready(&mut self, out: &mut Output) -> Step {
        let Some(session) = &self.session else { return Step::Close };
        let status = session.transaction_status();
        if status == TransactionStatus::Idle {
            // A portal ends with its transaction.
            self.portals.clear();
        }
        reply::ready_for_query(&mut out.bytes, status);
        out.answers = true;
        Step::Next
    }

    /// Sends a reply that is one message without a body, or an error.
    fn reply(&mut self, done: Result<()>, kind: u8, out: &mut Output) -> Step {
        if done.is_ok() {
            reply::bare(&mut out.bytes, kind);
        }
        self.extended(done, out)
    }

    /// Ends an extended-protocol message that the session did not run.
    fn extended(&mut self, done: Result<()>, out: &mut Output) -> Step {
        match done {
            Ok(()) => Step::Next,
            Err(error) => {
                if let Some(session) = &mut self.session {
                    session.fail();
                }
                self.ended(Call::Portal, Err(error), out)
            }
        }
    }

    fn malformed(&mut self, kind: u8, error: WireError, out: &mut Output) -> Step {
        let error = match error {
            WireError::Malformed(_) => violation(error.to_string()),
            WireError::Encoding(_) => {
                SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, error.to_string())
            }
        };
        let call = match (self.phase, kind) {
            (Phase::CopyIn(call), _) => {
                let Some(session) = &mut self.session else { return Step::Close };
                session.copy_fail("protocol violation");
                call
            }
            (_, b'P' | b'B' | b'D' | b'C' | b'E' | b'H') => Call::Portal,
            _ => {
                // Even a malformed Sync ends the skipping: ReadyForQuery follows.
                self.phase = Phase::Ready;
                Call::Simple
            }
        };
        if let Some(session) = &mut self.session {
            session.fail();
        }
        self.ended(call, Err(error), out)
    }
}

fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}
