//! Where a session's results become messages: [`WireSink`].
//!
//! Rows are encoded straight into the connection's output buffer. On an event loop nothing leaves
//! before the statement ends (it may have to start over, see [`RowSink`]); on the lane that may block, the
//! buffer is drained whenever it is full, and a slow client holds up nobody but its own thread.

use crate::net::Socket;
use crate::wire::buffer::Output;
use crate::wire::reply;
use crate::wire::rows::{ResultFormats, RowCodec};
use millpond::types::FormatOptions;
use millpond::{ColumnDesc, CommandTag, CopyFormat, Datum, Result, RowSink, SqlError, SqlState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Above this much output, a session waits for its client.
pub const FULL_BYTES: usize = 64 << 10;
/// How often a thread that waits for its client looks whether it should give up.
pub const LOOK_UP: Duration = Duration::from_millis(100);

/// A client to which a thread may wait to write.
pub struct Stream<'a> {
    /// Its socket.
    pub socket: &'a mut Socket,
    /// The statement is to be cancelled.
    pub cancelled: &'a AtomicBool,
    /// The server is going down.
    pub stopping: &'a AtomicBool,
}

impl Stream<'_> {
    /// Writes everything, however long the client takes.
    pub fn drain(&mut self, output: &mut Output) -> Result<()> {
        loop {
            match output.write_to(self.socket) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(lost(&error)),
            }
            self.socket.wait(true, LOOK_UP).map_err(|e| lost(&e))?;
            if self.stopping.load(Ordering::Relaxed) {
                return Err(going_down());
            }
            if self.cancelled.swap(false, Ordering::Relaxed) {
                return Err(cancelled());
            }
        }
    }
}

/// The error with which a vanished client's statement ends; nobody will read it.
pub fn lost(error: &io::Error) -> SqlError {
    SqlError::fatal(SqlState::CONNECTION_FAILURE, format!("connection to client lost: {error}"))
}

/// What a statement ends with that its client has cancelled.
pub fn cancelled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

/// What sessions are told at a shutdown.
pub fn going_down() -> SqlError {
    SqlError::fatal(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

/// What a client hears when there is no room for it.
pub fn too_many() -> SqlError {
    SqlError::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

/// Turns results into messages.
pub struct WireSink<'a> {
    output: &'a mut Output,
    stream: Option<Stream<'a>>,
    codec: &'a mut RowCodec,
    options: FormatOptions,
    // Simple queries describe their rows; portals have been described, if the client asked.
    describe: bool,
    statement_start: usize,
}

impl<'a> WireSink<'a> {
    /// The sink of a simple query, whose columns come with its rows.
    pub fn simple(
        output: &'a mut Output,
        stream: Option<Stream<'a>>,
        codec: &'a mut RowCodec,
        options: FormatOptions,
    ) -> Self {
        let statement_start = output.bytes.len();
        Self { output, stream, codec, options, describe: true, statement_start }
    }

    /// The sink of a portal, for whose columns the codec has been set.
    pub fn portal(
        output: &'a mut Output,
        stream: Option<Stream<'a>>,
        codec: &'a mut RowCodec,
    ) -> Self {
        let options = FormatOptions::default();
        Self { describe: false, ..Self::simple(output, stream, codec, options) }
    }

    #[inline]
    fn grown(&mut self) -> Result<()> {
        match &mut self.stream {
            Some(stream) if self.output.bytes.len() >= FULL_BYTES => {
                self.statement_start = 0;
                stream.drain(self.output)
            }
            _ => Ok(()),
        }
    }
}

impl RowSink for WireSink<'_> {
    fn columns(&mut self, columns: &[ColumnDesc]) -> Result<()> {
        if self.describe {
            self.codec.set(columns, &ResultFormats::Text, self.options);
            reply::row_description(&mut self.output.bytes, columns, |_| 0);
        }
        Ok(())
    }

    fn formats(&mut self, options: &FormatOptions) {
        self.options = *options;
    }

    #[inline]
    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.codec.data_row(&mut self.output.bytes, row);
        self.grown()
    }

    fn complete(&mut self, tag: CommandTag) -> Result<()> {
        reply::command_complete(&mut self.output.bytes, tag);
        self.statement_start = self.output.bytes.len();
        Ok(())
    }

    fn empty(&mut self) -> Result<()> {
        reply::bare(&mut self.output.bytes, b'I');
        self.statement_start = self.output.bytes.len();
        Ok(())
    }

    fn discard(&mut self) {
        self.output.bytes.truncate(self.statement_start);
    }

    fn notice(&mut self, notice: &SqlError) {
        reply::notice(&mut self.output.bytes, notice);
    }

    fn parameter(&mut self, name: &str, value: &str) {
        reply::parameter_status(&mut self.output.bytes, name, value);
    }

    fn copy_out(&mut self, format: CopyFormat) -> Result<()> {
        reply::copy_out(&mut self.output.bytes, format.columns);
        Ok(())
    }

    fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        reply::copy_data(&mut self.output.bytes, data);
        self.grown()
    }

    fn copy_done(&mut self) -> Result<()> {
        reply::bare(&mut self.output.bytes, b'c');
        Ok(())
    }
}
