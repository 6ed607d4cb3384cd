//! COPY FROM STDIN: passes the client's data to the session.

use super::sink::{Stream, WireSink};
use super::{Call, Phase, Protocol, Step, violation};
use crate::backend::{Backend, Session};
use crate::wire::buffer::Output;
use crate::wire::frontend::Message;
use millpond::SqlError;

impl<B: Backend> Protocol<B> {
    /// Ends a COPY with an error of the server. The rest of the client's COPY data is ignored.
    pub fn abandon_copy(&mut self, error: SqlError, out: &mut Output) {
        if let (Phase::CopyIn(call), Some(session)) = (self.phase, &mut self.session) {
            session.copy_fail(&error.message);
            self.ended(call, Err(error), out);
        }
    }

    pub(super) fn copy_message(
        &mut self,
        call: Call,
        message: Message<'_>,
        out: &mut Output,
        stream: Option<Stream<'_>>,
    ) -> Step {
        let Some(session) = &mut self.session else { return Step::Close };
        match message {
            Message::CopyData(data) => match session.copy_data(data) {
                Ok(()) => Step::Next,
                Err(error) => self.ended(call, Err(error), out),
            },
            Message::CopyDone => {
                self.phase = Phase::Ready;
                let options = session.format_options();
                let mut sink = WireSink::simple(out, stream, &mut self.codec, options);
                let result = session.copy_done(&mut sink);
                self.ended(call, result, out)
            }
            Message::CopyFail(reason) => {
                let error = session.copy_fail(reason);
                self.ended(call, Err(error), out)
            }
            // Client libraries send Flush and Sync after Execute even if the statement was a COPY.
            Message::Flush | Message::Sync => Step::Next,
            _ => {
                session.copy_fail("unexpected message");
                let error = violation("unexpected message type during COPY from stdin");
                self.ended(call, Err(error), out)
            }
        }
    }
}
