//! A connection: one session, its transaction, its prepared statements, its settings.
//!
//! # Two lanes
//!
//! A server must not block its event loop. It sets [`Connection::set_wait`] to [`Wait::Never`] and calls
//! [`Connection::simple_query`], [`Connection::execute_portal`] or [`Connection::sync`]. What comes back:
//!
//! - [`Executed::Complete`] or [`Executed::Suspended`]: done.
//! - [`Executed::WouldBlock`]: nothing has happened (of a text with several statements: the earlier
//!   ones are complete, and their replies stay in the sink). Move the connection to a thread that may block, call
//!   `set_wait(Wait::Allowed)` and [`Connection::resume`], which carries on with the statement that would have blocked.
//! - [`Executed::CommitPending`]: the transaction is committed in memory and its log record is on its way to
//!   disk. Register a waker with [`Connection::on_durable`]; when it has fired call
//!   [`Connection::finish_commit`], which carries on (and can answer anything again, when more statements follow).
//! - [`Executed::CopyIn`]: the client is to send data: [`Connection::copy_data`], then
//!   [`Connection::copy_done`] or [`Connection::copy_fail`]. It only comes in the blocking lane, and the connection
//!   has to stay there until the copy has ended.
//!
//! After an error, the connection has already done what PostgreSQL does: an implicit transaction is rolled
//! back, an explicit one has failed. The server sends the error and, for a simple query, "ready for query" with
//! [`Connection::transaction_status`]; in the extended protocol it skips to Sync and calls `sync`.

mod types;

use std::sync::Arc;
use std::task::Waker;

use millpond_buffer::Wait;

use crate::database::Database;
use crate::error::{Result, SqlError};
use crate::settings::SessionSettings;
use crate::sink::{ColumnDesc, RowSink};
use crate::{DataType, Value};

pub use types::{
    CommitTicket, ConnectOptions, Description, Executed, Params, Rows, TransactionStatus,
};

/// A prepared statement. It belongs to the connection that prepared it.
#[derive(Debug)]
pub struct Prepared {
    description: Description,
}

impl Prepared {
    /// The types of the parameters.
    pub fn params(&self) -> &[DataType] {
        &self.description.params
    }

    /// The columns, if the statement returns rows. They don't change: if DDL has changed what the statement would
    /// return, executing it fails with "cached plan must not change result type".
    pub fn columns(&self) -> Option<&Arc<[ColumnDesc]>> {
        self.description.columns.as_ref()
    }
}

/// A prepared statement with its parameters, ready to run or in the middle of it.
#[derive(Debug)]
pub struct Portal {
    prepared: Arc<Prepared>,
}

impl Portal {
    /// The statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }
}

/// Cancels what a connection is doing, from any thread.
#[derive(Debug, Clone)]
pub struct CancelHandle {}

impl CancelHandle {
    /// The running statement, if any, fails soon with 57014.
    pub fn cancel(&self) {}

    /// The running statement, if any, fails soon with 57P01: the server is going down.
    pub fn terminate(&self) {}
}

/// One session with a database. It is `Send`: a server moves it between its lanes.
#[derive(Debug)]
pub struct Connection {
    settings: SessionSettings,
}

impl Connection {
    /// Whether calls may wait. A new connection's may.
    pub fn set_wait(&mut self, wait: Wait) {
        let _ = wait;
    }

    /// A number of its own, which clients know as the backend's process id.
    pub fn process_id(&self) -> i32 {
        0
    }

    /// Idle, in a transaction, or in a failed one.
    pub fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// The session's settings. What clients are told at the start are those whose definition says `report`.
    pub fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// A handle with which others can cancel what runs here.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle {}
    }

    /// Runs a text of any number of statements, as the simple protocol does: without an explicit
    /// transaction, all of them are one.
    pub fn simple_query(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Executed> {
        let _ = (sql, sink);
        Err(SqlError::unsupported("a query"))
    }

    /// Carries on where [`Executed::WouldBlock`] was the answer, whatever the call was.
    /// For `execute_portal` call that one again instead; this is for `simple_query`, `sync` and `finish_commit`.
    pub fn resume(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let _ = sink;
        Ok(Executed::Complete)
    }

    /// Wakes the waker when the commit is durable, or when the log has failed.
    pub fn on_durable(&self, ticket: &CommitTicket, waker: Waker) {
        let _ = ticket;
        waker.wake();
    }

    /// Carries on after [`Executed::CommitPending`].
    pub fn finish_commit(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let _ = sink;
        Ok(Executed::Complete)
    }

    /// Prepares one statement. Parameters whose type is not given get it from where they stand.
    pub fn prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        let _ = (sql, param_types);
        Err(SqlError::unsupported("a prepared statement"))
    }

    /// Binds parameters: one value for each of [`Prepared::params`], of that type or NULL.
    pub fn bind(&mut self, prepared: &Arc<Prepared>, params: Params) -> Result<Portal> {
        let _ = params;
        Ok(Portal { prepared: Arc::clone(prepared) })
    }

    /// Runs a portal for at most `max_rows` rows (0: all). On [`Executed::WouldBlock`] call it again where
    /// waiting is allowed. The sink's `columns` is not called.
    pub fn execute_portal(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        let _ = (portal, max_rows, sink);
        Err(SqlError::unsupported("a portal"))
    }

    /// Ends a batch of the extended protocol: an implicit transaction commits.
    pub fn sync(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let _ = sink;
        Ok(Executed::Complete)
    }

    /// An error outside of this crate (a malformed parameter, say) has hit the current batch or query: the
    /// transaction fails as it would for an error in here.
    pub fn fail(&mut self) {}

    /// Data of a `COPY FROM STDIN`, cut anywhere.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        let _ = data;
        Ok(())
    }

    /// The end of the data. Carries on with what follows in a simple query.
    pub fn copy_done(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let _ = sink;
        Ok(Executed::Complete)
    }

    /// The client gives up: returns the error to send.
    pub fn copy_fail(&mut self, reason: &str) -> SqlError {
        SqlError::new(crate::SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {reason}"))
    }

    /// Runs one statement, blocking, and says how many rows it returned or changed.
    pub fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let _ = (sql, params);
        Err(SqlError::unsupported("a statement"))
    }

    /// Runs one statement, blocking, and returns its rows.
    pub fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        let _ = (sql, params);
        Err(SqlError::unsupported("a query"))
    }

    /// Runs any number of statements without parameters, blocking.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        let _ = sql;
        Err(SqlError::unsupported("a batch"))
    }
}

pub(crate) fn open(database: &Arc<Database>, options: ConnectOptions) -> Result<Connection> {
    let mut settings = SessionSettings::new(Arc::clone(database.settings()));
    for (name, value) in &options.settings {
        settings.set_at_start(name, value)?;
    }
    Ok(Connection { settings })
}
