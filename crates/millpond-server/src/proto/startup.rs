//! Start-up: from the first packet to the first ReadyForQuery.

use super::{Phase, Protocol, Step, options, violation};
use crate::backend::{Backend, Cancel, Session};
use crate::run::cancel::{CancelKeys, Why};
use crate::wire::buffer::Output;
use crate::wire::reply;
use crate::wire::startup::{Packet, Startup, StartupError};
use millpond::{ConnectOptions, SqlError, SqlState, TransactionStatus, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

/// The newest minor version of protocol 3 that the server supports.
const NEWEST_MINOR: u16 = 2;

/// What a start-up needs from the server.
pub struct StartContext<'a, B> {
    /// The database that starts sessions.
    pub backend: &'a B,
    /// The table of cancel keys.
    pub keys: &'a CancelKeys,
    /// Whether new sessions are refused because a smart shutdown waits for the last session to end.
    pub refusing: bool,
    /// Set by a cancel request, for a thread that waits for the client.
    pub cancelled: &'a Arc<AtomicBool>,
    /// The client's address with its port; empty for a Unix socket.
    pub client_addr: &'a str,
    /// The server's port, to which the client has connected; `None` for a Unix socket.
    pub server_port: Option<u16>,
    /// Wakes the connection on its loop.
    pub waker: &'a Waker,
}

impl<B: Backend> Protocol<B> {
    /// Handles one start-up packet.
    pub fn packet(
        &mut self,
        packet: Packet,
        context: &StartContext<'_, B>,
        out: &mut Output,
    ) -> Step {
        match packet {
            Packet::Ssl | Packet::Gss => {
                self.encryption_asked += 1;
                if self.encryption_asked > 2 {
                    return self.fatal(&violation("too many requests for encryption"), out);
                }
                out.bytes.push(b'N');
                Step::Next
            }
            Packet::Cancel { pid, secret } => {
                context.keys.cancel(pid, &secret);
                Step::Close
            }
            Packet::Startup(startup) => match self.start(startup, context, out) {
                Ok(()) => Step::Next,
                Err(error) => self.fatal(&error, out),
            },
        }
    }

    /// Reports a packet that can't be decoded, and ends the connection.
    pub fn bad_packet(&mut self, error: StartupError, out: &mut Output) -> Step {
        let state = match error {
            StartupError::Version(..) => SqlState::FEATURE_NOT_SUPPORTED,
            StartupError::NoUser => SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            StartupError::Text(_) => SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            StartupError::Length | StartupError::Layout => SqlState::PROTOCOL_VIOLATION,
        };
        self.fatal(&SqlError::fatal(state, error.to_string()), out)
    }

    fn start(
        &mut self,
        startup: Startup,
        context: &StartContext<'_, B>,
        out: &mut Output,
    ) -> millpond::Result<()> {
        if context.refusing {
            let message = "the database system is shutting down";
            return Err(SqlError::fatal(SqlState::CANNOT_CONNECT_NOW, message));
        }
        let mut session = context.backend.connect(ConnectOptions {
            user: startup.user,
            database: startup.database,
            client_addr: context.client_addr.to_owned(),
            server_port: context.server_port,
            settings: options::settings(startup.settings)?,
        })?;
        session.set_wait(Wait::Never);
        session.on_end(context.waker.clone());
        let out = &mut out.bytes;
        if startup.minor > NEWEST_MINOR || !startup.unknown_options.is_empty() {
            reply::negotiate_protocol(out, &startup.unknown_options);
        }
        reply::authentication_ok(out);
        for (name, value) in session.reported_settings() {
            reply::parameter_status(out, &name, &value);
        }
        self.pid = session.process_id();
        let handle = session.cancel_handle();
        let cancelled = Arc::clone(context.cancelled);
        let interrupt = Arc::new(move |why| match why {
            Why::Cancel => {
                cancelled.store(true, Ordering::Relaxed);
                handle.cancel();
            }
            Why::Shutdown => handle.terminate(),
        });
        let secret = context.keys.grant(self.pid, startup.minor >= NEWEST_MINOR, interrupt);
        reply::backend_key_data(out, self.pid, &secret);
        reply::ready_for_query(out, TransactionStatus::Idle);
        self.session = Some(session);
        self.phase = Phase::Ready;
        Ok(())
    }
}
