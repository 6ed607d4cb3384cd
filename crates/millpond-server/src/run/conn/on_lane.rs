//! A connection's turns on a thread that may block.

use super::messages::Served;
use super::{Commit, Conn, guarded, stream_to};
use crate::backend::{Backend, Session};
use crate::proto::sink::{LOOK_UP, cancelled};
use crate::run::Shared;
use crate::wire::buffer::Received;
use millpond::{SqlError, SqlState, Wait};
use std::sync::atomic::Ordering;

impl<B: Backend> Conn<B> {
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
        let mut step = self.protocol.resume(&mut self.output, Some(stream)).into();
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
                self.protocol.abandon_copy(cancelled(), &mut self.output);
                return self.drain(shared);
            }
            if self.socket.wait(false, LOOK_UP).is_err() {
                self.closing = true;
                return false;
            }
        }
    }
}
