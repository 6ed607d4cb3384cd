//! Handles what a connection has received.
//!
//! The connection handles its input message by message, in the buffer. It consumes every message,
//! even one that can't continue: the protocol keeps that work ([`crate::proto::Protocol::resume`]).

use super::{Conn, stream_to};
use crate::backend::Backend;
use crate::proto::sink::FULL_BYTES;
use crate::proto::{StartContext, Step};
use crate::run::Shared;
use crate::wire::frontend::{self, Frame};
use crate::wire::startup;
use millpond::CommitTicket;
use std::sync::atomic::Ordering;

/// The result of handling the messages in the buffer.
pub(super) enum Served {
    /// All complete messages have been handled.
    All,
    /// The output buffer is full.
    Full,
    Block,
    Commit(CommitTicket),
    Close,
}

impl From<Step> for Served {
    fn from(step: Step) -> Self {
        match step {
            Step::Next => Served::All,
            Step::Block => Served::Block,
            Step::Commit(ticket) => Served::Commit(ticket),
            Step::Close => Served::Close,
        }
    }
}

impl<B: Backend> Conn<B> {
    /// Handles the complete messages in the input buffer.
    pub(super) fn serve(&mut self, shared: &Shared<B>, may_block: bool) -> Served {
        loop {
            if self.output.len() >= FULL_BYTES {
                return Served::Full;
            }
            let step = if self.protocol.starting() {
                self.packet(shared)
            } else {
                self.message(shared, may_block)
            };
            match step.map(Served::from) {
                Some(Served::All) => {}
                Some(other) => return other,
                None => return Served::All,
            }
        }
    }

    /// Handles the next packet of a start-up, if it is complete.
    fn packet(&mut self, shared: &Shared<B>) -> Option<Step> {
        Some(match startup::packet(self.input.data()) {
            Ok(None) => return None,
            Ok(Some((packet, length))) => {
                self.input.consume(length);
                let context = StartContext {
                    backend: &shared.backend,
                    keys: &shared.keys,
                    refusing: shared.refusing.load(Ordering::Relaxed),
                    cancelled: &self.cancelled,
                    client_addr: &self.socket.peer(),
                    server_port: self.socket.own_port(),
                    waker: &self.waker,
                };
                self.protocol.packet(packet, &context, &mut self.output)
            }
            Err(error) => self.protocol.bad_packet(error, &mut self.output),
        })
    }

    /// Handles the next message, if it is complete. Adjacent CopyData messages are handled as one.
    fn message(&mut self, shared: &Shared<B>, may_block: bool) -> Option<Step> {
        let Frame { kind, end } = match frontend::frame(self.input.data()) {
            Ok(None) => return None,
            Ok(Some(frame)) => frame,
            Err(error) => return Some(self.protocol.derailed(error, &mut self.output)),
        };
        if may_block && matches!(kind, b'Q' | b'E') {
            // A cancel request for an earlier statement must not hit this one. (Loops ignore it.)
            self.cancelled.store(false, Ordering::Relaxed);
        }
        let (body, end) = if kind == b'd' && self.protocol.copying() {
            let end = gather(self.input.data(), &mut self.gathered);
            (self.gathered.as_slice(), end)
        } else {
            (self.input.data().get(5..end).unwrap_or_default(), end)
        };
        let stream =
            may_block.then(|| stream_to(&mut self.socket, &self.cancelled, &shared.stopping));
        let step = self.protocol.message(kind, body, &mut self.output, stream);
        self.input.consume(end);
        Some(step)
    }
}

/// Joins the COPY data of the messages at the start of the input; clients send one for each row.
/// Returns where those messages end.
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
