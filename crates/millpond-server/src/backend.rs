//! What the protocol needs from a database: the interface between the wire protocol and `millpond`.
//!
//! The server is generic over it. Tests of the protocol use a scripted session, and benchmarks of
//! the event loops use one that answers without work. [`millpond::Connection`] is the real session:
//! the methods here are its methods, and their contracts are documented there.

use millpond::types::FormatOptions;
use millpond::{
    CancelHandle, ColumnDesc, CommitTicket, ConnectOptions, Connection, DataType, Database,
    Executed, Params, Portal, Prepared, Result, RowSink, SqlError, TransactionStatus, Wait,
};
use std::sync::Arc;
use std::task::Waker;

/// A database that accepts sessions.
pub trait Backend: Send + Sync + Sized + 'static {
    /// The type of its sessions.
    type Session: Session;

    /// Starts a session, or returns why it can't (53300 when there are too many).
    fn connect(&self, options: ConnectOptions) -> Result<Self::Session>;
}

/// One session.
pub trait Session: Send + Sized + 'static {
    /// A prepared statement.
    type Statement: Clone + Send;
    /// A prepared statement with values for its parameters.
    type Portal: Send;
    /// Cancels what the session runs, from any thread.
    type Cancel: Cancel;

    /// The number that clients see as the backend's process id.
    fn process_id(&self) -> i32;
    /// A handle that cancels this session. See [`Cancel`].
    fn cancel_handle(&self) -> Self::Cancel;
    /// Every setting that is reported to clients, with its value.
    fn reported_settings(&self) -> Vec<(String, String)>;
    /// The settings that the text form of values depends on.
    fn format_options(&self) -> FormatOptions {
        FormatOptions::default()
    }
    /// Prefetches the session's memory before the connection's turn. Changes nothing.
    fn prefetch(&self) {}
    /// Sets whether calls may wait.
    fn set_wait(&mut self, wait: Wait);
    /// The transaction status for ReadyForQuery.
    fn transaction_status(&self) -> TransactionStatus;

    /// The types of a statement's parameters.
    fn params(statement: &Self::Statement) -> &[DataType];
    /// A statement's columns, if it returns rows.
    fn columns(statement: &Self::Statement) -> Option<&Arc<[ColumnDesc]>>;
    /// The statement of a portal.
    fn statement(portal: &Self::Portal) -> &Self::Statement;

    /// [`Connection::simple_query`]
    fn simple_query(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Executed>;
    /// [`Connection::resume`]
    fn resume(&mut self, sink: &mut dyn RowSink) -> Result<Executed>;
    /// [`Connection::on_durable`]
    fn on_durable(&self, ticket: &CommitTicket, waker: Waker);
    /// [`Connection::wait_durable`]. The caller's thread has no other work. `false`: it did not
    /// wait.
    fn wait_durable(&mut self, _ticket: &CommitTicket) -> bool {
        false
    }
    /// [`Connection::finish_commit`]
    fn finish_commit(&mut self, sink: &mut dyn RowSink) -> Result<Executed>;
    /// [`Connection::prepare`]
    fn prepare(&mut self, sql: &str, types: &[Option<DataType>]) -> Result<Self::Statement>;
    /// [`Connection::bind`]
    fn bind(&mut self, statement: &Self::Statement, params: Params) -> Result<Self::Portal>;
    /// [`Connection::execute_portal`]
    fn execute_portal(
        &mut self,
        portal: &mut Self::Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed>;
    /// [`Connection::sync`]
    fn sync(&mut self, sink: &mut dyn RowSink) -> Result<Executed>;
    /// [`Connection::fail`]
    fn fail(&mut self);
    /// [`Connection::on_end`]
    fn on_end(&self, _waker: Waker) {}
    /// [`CancelHandle::ended`]
    fn ended(&self) -> Option<SqlError> {
        None
    }
    /// [`Connection::copy_data`]
    fn copy_data(&mut self, data: &[u8]) -> Result<()>;
    /// [`Connection::copy_done`]
    fn copy_done(&mut self, sink: &mut dyn RowSink) -> Result<Executed>;
    /// [`Connection::copy_fail`]
    fn copy_fail(&mut self, reason: &str) -> SqlError;
}

/// Cancels what a session runs, from any thread.
pub trait Cancel: Send + Sync + 'static {
    /// The running statement, if any, fails soon with 57014.
    fn cancel(&self);
    /// The running statement, if any, fails soon with 57P01.
    fn terminate(&self);
}

impl Backend for Arc<Database> {
    type Session = Connection;

    fn connect(&self, options: ConnectOptions) -> Result<Connection> {
        let mut connection = self.connect_as(options)?;
        // In the extended protocol, Sync ends an implicit transaction.
        connection.set_pipelined(true);
        Ok(connection)
    }
}

impl Cancel for CancelHandle {
    fn cancel(&self) {
        CancelHandle::cancel(self);
    }

    fn terminate(&self) {
        CancelHandle::terminate(self);
    }
}

impl Session for Connection {
    type Statement = Arc<Prepared>;
    type Portal = Portal;
    type Cancel = CancelHandle;

    fn process_id(&self) -> i32 {
        Connection::process_id(self)
    }

    fn cancel_handle(&self) -> CancelHandle {
        Connection::cancel_handle(self)
    }

    fn format_options(&self) -> FormatOptions {
        Connection::format_options(self)
    }

    fn reported_settings(&self) -> Vec<(String, String)> {
        millpond::settings::SettingId::all()
            .filter(|id| id.definition().report)
            .map(|id| (id.definition().name.to_owned(), self.settings().show(id)))
            .collect()
    }

    fn prefetch(&self) {
        Connection::prefetch(self);
    }

    fn set_wait(&mut self, wait: Wait) {
        Connection::set_wait(self, wait);
    }

    fn transaction_status(&self) -> TransactionStatus {
        Connection::transaction_status(self)
    }

    fn params(statement: &Arc<Prepared>) -> &[DataType] {
        statement.params()
    }

    fn columns(statement: &Arc<Prepared>) -> Option<&Arc<[ColumnDesc]>> {
        statement.columns()
    }

    fn statement(portal: &Portal) -> &Arc<Prepared> {
        portal.prepared()
    }

    fn simple_query(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Executed> {
        Connection::simple_query(self, sql, sink)
    }

    fn resume(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        Connection::resume(self, sink)
    }

    fn on_durable(&self, ticket: &CommitTicket, waker: Waker) {
        Connection::on_durable(self, ticket, waker);
    }

    fn wait_durable(&mut self, ticket: &CommitTicket) -> bool {
        Connection::wait_durable(self, ticket);
        true
    }

    fn finish_commit(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        Connection::finish_commit(self, sink)
    }

    fn prepare(&mut self, sql: &str, types: &[Option<DataType>]) -> Result<Arc<Prepared>> {
        Connection::prepare(self, sql, types)
    }

    fn bind(&mut self, statement: &Arc<Prepared>, params: Params) -> Result<Portal> {
        Connection::bind(self, statement, params)
    }

    fn execute_portal(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        Connection::execute_portal(self, portal, max_rows, sink)
    }

    fn sync(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        Connection::sync(self, sink)
    }

    fn fail(&mut self) {
        Connection::fail(self);
    }

    fn on_end(&self, waker: Waker) {
        Connection::on_end(self, waker);
    }

    fn ended(&self) -> Option<SqlError> {
        Connection::cancel_handle(self).ended()
    }

    fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        Connection::copy_data(self, data)
    }

    fn copy_done(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        Connection::copy_done(self, sink)
    }

    fn copy_fail(&mut self, reason: &str) -> SqlError {
        Connection::copy_fail(self, reason)
    }
}
