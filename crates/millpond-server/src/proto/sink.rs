//! [`WireSink`] turns a session's results into messages.
//!
//! It encodes rows directly into the connection's output buffer. On an event loop nothing is sent
//! before the statement ends, because the statement may have to start over (see [`RowSink`]). On
//! the blocking pool the thread drains a full buffer, so a slow client delays only its own thread.

use crate::net::Socket;
use crate::wire::buffer::Output;
use crate::wire::reply;
use crate::wire::rows::{ResultFormats, RowCodec};
use millpond::types::FormatOptions;
use millpond::{ColumnDesc, CommandTag, CopyFormat, Datum, Result, RowSink, SqlError, SqlState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// With more output than this, a session waits for its client.
pub const FULL_BYTES: usize = 64 << 10;
/// How often a thread that waits for its client checks for a cancel request or a shutdown.
pub const LOOK_UP: Duration = Duration::from_millis(100);

/// A client that a thread may wait for when it writes.
pub struct Stream<'a> {
    /// The client's socket.
    pub socket: &'a mut Socket,
    /// Set when the statement is to be cancelled.
    pub cancelled: &'a AtomicBool,
    /// Set when the server is shutting down.
    pub stopping: &'a AtomicBool,
}

impl Stream<'_> {
    /// Writes all of the output, however long the client takes to read it.
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

/// The error that ends a statement whose client has disconnected. No client receives it.
pub fn lost(error: &io::Error) -> SqlError {
    SqlError::fatal(SqlState::CONNECTION_FAILURE, format!("connection to client lost: {error}"))
}

/// The error of a statement that its client cancelled.
pub fn cancelled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

/// The error that sessions report at a shutdown.
pub fn going_down() -> SqlError {
    SqlError::fatal(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

/// The error for a client beyond the limit of connections.
pub fn too_many() -> SqlError {
    SqlError::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

/// Encodes results as messages.
pub struct WireSink<'a> {
    output: &'a mut Output,
    stream: Option<Stream<'a>>,
    codec: &'a mut RowCodec,
    options: FormatOptions,
    // A simple query describes its rows. For a portal the client sends Describe if it wants that.
    describe: bool,
    statement_start: usize,
}

impl<'a> WireSink<'a> {
    /// The sink of a simple query. It describes the columns before the rows.
    pub fn simple(
        output: &'a mut Output,
        stream: Option<Stream<'a>>,
        codec: &'a mut RowCodec,
        options: FormatOptions,
    ) -> Self {
        let statement_start = output.bytes.len();
        Self { output, stream, codec, options, describe: true, statement_start }
    }

    /// The sink of a portal. The caller has set the codec for the portal's columns.
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
