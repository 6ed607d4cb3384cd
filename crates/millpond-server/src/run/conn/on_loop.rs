//! A connection's turns on its event loop, where nothing waits.

use super::messages::Served;
use super::{Commit, Conn, guarded};
use crate::backend::{Backend, Session};
use crate::run::Shared;
use crate::wire::buffer::{Received, Spare};
use millpond::CommitTicket;
use std::io;

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

impl<B: Backend> Conn<B> {
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
        if std::mem::take(&mut self.woken)
            && let Some(error) = self.protocol.session().and_then(|session| session.idle_timeout())
        {
            self.protocol.fatal(&error, &mut self.output);
            self.closing = true;
            return if self.send() { Turn::Close } else { Turn::Block };
        }
        let mut step = match self.commit {
            Commit::None => Served::All,
            Commit::New(ticket) => Served::Commit(ticket),
            Commit::Waiting => return Turn::Wait,
            Commit::Durable => {
                self.commit = Commit::None;
                self.protocol.committed(&mut self.output, None).into()
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
                    step = self.protocol.committed(&mut self.output, None).into();
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

    /// Waits for the log here, if the session does such a thing.
    fn wait_durable(&mut self, ticket: &CommitTicket) -> bool {
        self.protocol.session().is_some_and(|session| session.wait_durable(ticket))
    }
}
