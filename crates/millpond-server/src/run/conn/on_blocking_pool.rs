//! A connection's turn on the blocking pool.

use super::messages::Served;
use super::{Commit, Conn, guarded, stream_to};
use crate::backend::{Backend, Session};
use crate::proto::sink::{LOOK_UP, cancelled};
use crate::run::Shared;
use crate::wire::buffer::Received;
use millpond::{SqlError, SqlState, Wait};
use std::sync::atomic::Ordering;

impl<B: Backend> Conn<B> {
    /// Resumes what was pending, handles all received messages, and stays until the end of a COPY.
    pub fn turn_on_blocking_pool(&mut self, shared: &Shared<B>) {
        if guarded(self.number, || self.run_blocking(shared)).is_none() {
            self.closing = true;
        }
    }

    fn run_blocking(&mut self, shared: &Shared<B>) {
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
            // The next messages likely belong to it: what is slow to plan is slow to execute.
            step = self.serve(shared, true);
        }
        while self.takes_step(step, shared) {
            step = self.serve(shared, true);
        }
        self.gathered = Vec::new();
        if let Commit::None = self.commit {
            self.send();
        }
        if let Some(session) = self.protocol.session() {
            session.set_wait(Wait::Never);
        }
        // Meanwhile the loop dropped events of the socket, perhaps that of the client's end.
        self.readable = true;
        self.ended = true;
    }

    /// Does what a step asks for. False at the end of the turn.
    fn takes_step(&mut self, step: Served, shared: &Shared<B>) -> bool {
        match step {
            Served::All => {
                self.protocol.copying() && self.drain(shared) && self.await_input(shared)
            }
            Served::Full => self.drain(shared),
            // The session may wait here, so it must not refuse to.
            Served::Block => {
                let error = SqlError::internal("a statement would not wait where it may");
                self.protocol.fatal(&error, &mut self.output);
                self.closing = true;
                false
            }
            Served::Commit(ticket) => {
                self.commit = Commit::New(ticket);
                false
            }
            Served::Close => {
                self.closing = true;
                self.drain(shared);
                false
            }
        }
    }

    /// Sends everything, on the blocking pool. False when the connection must end.
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

    /// Waits for the client during a COPY, on the blocking pool. False: the connection must end.
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
