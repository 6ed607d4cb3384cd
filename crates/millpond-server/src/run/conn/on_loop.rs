//! A connection's turns on its event loop. Nothing waits here, but a lone connection for the log.

use super::messages::Served;
use super::{Commit, Conn, guarded};
use crate::backend::{Backend, Session};
use crate::run::Shared;
use crate::wire::buffer::{Received, SpareBuffers};
use millpond::CommitTicket;
use std::{io, mem};

/// What a connection needs after its turn on the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// To wait for an event of its socket, or for a letter.
    Wait,
    /// Another turn, after all other connections.
    Again,
    /// To send its replies, together with others.
    Send,
    /// To move to the blocking pool.
    Block,
    /// To end.
    Close,
}

impl<B: Backend> Conn<B> {
    /// One turn on the event loop. It sends existing replies if `send` is set; new replies are for
    /// another turn. While the buffers hold data, they use memory of the loop.
    ///
    /// If the connection is `alone` on the loop, it waits for the log here. No other connection
    /// needs the loop then. A hand-over to the log's thread and back takes as long as a sync of a
    /// fast device.
    pub fn turn_on_loop(
        &mut self,
        shared: &Shared<B>,
        send: bool,
        alone: bool,
        spare: &mut SpareBuffers,
    ) -> Turn {
        spare.lend(&mut self.input, &mut self.output);
        let turn =
            guarded(self.number, || self.loop_turn(shared, send, alone)).unwrap_or(Turn::Close);
        spare.take_back(&mut self.input, &mut self.output);
        turn
    }

    fn loop_turn(&mut self, shared: &Shared<B>, mut send: bool, alone: bool) -> Turn {
        let mut step = match self.commit {
            Commit::None if mem::take(&mut self.woken) => self.end_if_told(Served::All),
            Commit::None => Served::All,
            Commit::New(ticket) => Served::Commit(ticket),
            Commit::Waiting => return Turn::Wait,
            Commit::Durable => {
                let step = self.committed();
                // The wake-up may have been for both.
                self.end_if_told(step)
            }
        };
        let mut has_read = false;
        loop {
            if let Served::All | Served::Full = step {
                if !self.output.is_empty() {
                    if !send && matches!(step, Served::All) {
                        return Turn::Send;
                    }
                    send = false;
                    // While replies are unread, the server handles no more of the client's
                    // requests.
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
                    step = self.committed();
                    continue;
                }
                Served::Commit(ticket) => return self.await_commit(&ticket),
                Served::Close => {
                    self.closing = true;
                    // The client first gets its unread output; the blocking pool may wait for that.
                    return if self.send() { Turn::Close } else { Turn::Block };
                }
            }
            if !self.readable {
                return Turn::Wait;
            }
            if mem::replace(&mut has_read, true) {
                return Turn::Again;
            }
            if let Some(turn) = self.read_socket() {
                return turn;
            }
        }
    }

    /// The log wakes the connection when the commit is durable.
    fn await_commit(&mut self, ticket: &CommitTicket) -> Turn {
        self.commit = Commit::Waiting;
        if let Some(session) = self.protocol.session() {
            session.on_durable(ticket, self.waker.clone());
        }
        Turn::Wait
    }

    /// Goes on after a commit that is durable now.
    fn committed(&mut self) -> Served {
        self.commit = Commit::None;
        self.protocol.committed(&mut self.output, None).into()
    }

    /// Reads what has come from the client. The turn ends if nothing has.
    #[inline]
    fn read_socket(&mut self) -> Option<Turn> {
        match self.receive() {
            Received::Full => None,
            // A short read emptied the socket, but the end of the stream may follow.
            Received::Short => {
                self.readable = self.ended;
                None
            }
            Received::Nothing => {
                self.readable = false;
                self.ended = false;
                Some(Turn::Wait)
            }
            Received::End => Some(Turn::Close),
        }
    }

    /// After everything has been served: whether the session is to end.
    fn end_if_told(&mut self, step: Served) -> Served {
        let Served::All = step else { return step };
        match self.protocol.session().and_then(|session| session.ended()) {
            Some(error) => self.protocol.fatal(&error, &mut self.output).into(),
            None => step,
        }
    }

    /// Takes the replies, to send them together with others: the bytes and where they begin.
    pub fn take_replies(&mut self) -> Option<(Vec<u8>, usize)> {
        (!self.output.is_empty()).then(|| self.output.take())
    }

    /// Takes back the replies after a send: the bytes, and where the unsent rest begins. Returns
    /// whether the connection has nothing to do until its client sends something.
    pub fn replies_sent(
        &mut self,
        bytes: Vec<u8>,
        rest: usize,
        result: io::Result<()>,
        spare: &mut SpareBuffers,
    ) -> bool {
        match result {
            // Here the replies are lost, and with them the connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => self.closing = true,
            // If the socket is full or broken, a send in a later turn fails the same way.
            _ => self.output.put_back(bytes, rest),
        }
        self.stuck &= !self.output.is_empty();
        // A connection that waited for room needs a turn, which ends that registration.
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

    /// Waits for the log here, if the session supports that.
    fn wait_durable(&mut self, ticket: &CommitTicket) -> bool {
        self.protocol.session().is_some_and(|session| session.wait_durable(ticket))
    }
}
