//! A connection: one session, its transaction, its prepared statements, its settings.
//!
//! # On an event loop and off it
//!
//! A server must not block its event loop. It sets [`Connection::set_wait`] to [`Wait::Never`] and
//! calls [`Connection::simple_query`], [`Connection::execute_portal`] or [`Connection::sync`]. What
//! comes back:
//!
//! - [`Executed::Complete`] or [`Executed::Suspended`]: done. Outside of a transaction block the
//!   statement is committed, unless the connection is pipelined ([`Connection::set_pipelined`]).
//! - [`Executed::WouldBlock`]: nothing has happened (of a text with several statements: the earlier
//!   ones are complete, and their replies stay in the sink). Move the connection to a thread that
//!   may block, call `set_wait(Wait::Allowed)` and [`Connection::resume`], which carries on with
//!   the statement that would have blocked.
//! - [`Executed::CommitPending`]: the transaction is committed in memory and its log record is on
//!   its way to disk. Register a waker with [`Connection::on_durable`]; when it has fired call
//!   [`Connection::finish_commit`], which carries on (and can answer anything again, when more
//!   statements follow).
//! - [`Executed::CopyIn`]: the client is to send data: [`Connection::copy_data`], then
//!   [`Connection::copy_done`] or [`Connection::copy_fail`]. It only comes under
//!   `Wait::Allowed`, and the connection has to stay on that thread until the copy has ended.
//!
//! After an error, the connection has already done what PostgreSQL does: an implicit transaction is
//! rolled back, an explicit one has failed. The server sends the error. For a simple query it then
//! sends "ready for query" with [`Connection::transaction_status`]. In the extended protocol it
//! skips to Sync and calls `sync`.
//!
//! # Where it is
//!
//! `session` holds what statements run in, with its methods by role in `transaction`, `run`,
//! `settings` and `status`. `utility` has the statements without a plan. Beside it, `texts` knows
//! what texts have been compiled to, `prepared` the prepared statements, `portal` one of them in
//! execution. The connection joins these: `statement` runs one statement, `commit` ends
//! transactions, `script` runs a text of statements. `extended` runs portals, `copy` takes the data
//! of a COPY, and `embed` has the simple calls.

mod activity;
mod commit;
mod copy;
mod embed;
mod extended;
mod in_use;
mod named;
mod portal;
mod prepared;
mod run;
mod script;
mod session;
mod settings;
mod statement;
mod status;
mod texts;
mod transaction;
mod types;
mod utility;

use std::sync::Arc;
use std::task::Waker;

use millpond_buffer::Wait;
use millpond_engine::session::Session;
use millpond_sync::prefetch::prefetch;

use crate::cancel::CancelHandle;
use crate::connections::Entry;
use crate::database::Database;
use millpond_query::error::{Result, SqlError};
use millpond_query::settings::SessionSettings;
use millpond_query::sink::RowSink;
use millpond_types::format::FormatOptions;

pub use portal::Portal;
pub use prepared::Prepared;
pub use types::{
    CommitTicket, ConnectOptions, Description, Executed, Params, Rows, TransactionStatus,
};

use prepared::PreparedStatements;
use script::Script;
use session::{Block, SqlSession};
use texts::Texts;
use transaction::Pending;
use utility::copy::CopyIn;

/// One session with a database. It is `Send`: a server moves it between its threads.
#[derive(Debug)]
pub struct Connection {
    session: SqlSession,
    texts: Texts,
    prepared: PreparedStatements,
    /// What is left to do of a text.
    script: Option<Script>,
    /// A commit that waits, and the tag that is due when it is durable.
    pending: Option<Pending>,
    /// The commit that is not durable yet.
    committing: Option<CommitTicket>,
    /// Implicit transactions last until `sync`.
    pipelined: bool,
    copy: Option<Box<CopyIn>>,
    _entry: Entry,
}

impl Connection {
    /// Whether calls may wait. A new connection's may.
    pub fn set_wait(&mut self, wait: Wait) {
        self.session.set_wait(wait);
    }

    /// Asks the processor for the memory that the next short statement will use beside the
    /// connection itself. It is for an event loop that serves many connections in turn: without it,
    /// each finds that memory evicted from the near caches. Changes nothing.
    pub fn prefetch(&self) {
        self.session.engine.prefetch();
        self.session.cancel().session().prefetch();
        self.texts.prefetch();
        prefetch(self.session.scratch.row_bytes());
    }

    /// A number of its own, which clients know as the backend's process id.
    pub fn process_id(&self) -> i32 {
        self.session.process_id()
    }

    /// The session's settings. What clients are told at the start are those whose definition says
    /// `report`.
    pub fn settings(&self) -> &SessionSettings {
        &self.session.settings
    }

    /// How the session wants values to be written.
    pub fn format_options(&self) -> FormatOptions {
        *self.session.settings.format_options()
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.session.database
    }

    /// A handle with which others can cancel what runs here.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.session.cancel().clone()
    }

    /// Wakes the waker when the ticket's commit is durable, or when the log has failed. The commit
    /// may be another connection's, or over.
    pub fn on_durable(&self, ticket: &CommitTicket, waker: Waker) {
        self.session.engine.on_durable(ticket, waker);
    }

    /// Returns when the ticket's commit is durable, or when the log has failed: for a thread that
    /// has nothing else to do.
    pub fn wait_durable(&mut self, ticket: &CommitTicket) {
        self.session.engine.wait_durable(ticket);
    }

    /// Whether implicit transactions last until [`Connection::sync`], as in the pipelines of
    /// PostgreSQL's extended protocol. A new connection's do not: each of its statements outside of
    /// a transaction block is committed when [`Connection::execute_portal`] answers
    /// [`Executed::Complete`] or [`Executed::Suspended`].
    pub fn set_pipelined(&mut self, pipelined: bool) {
        self.pipelined = pipelined;
    }

    /// Idle, in a transaction, or in a failed one. A pipeline whose `sync` is yet to come is in a
    /// transaction, as in PostgreSQL.
    pub fn transaction_status(&self) -> TransactionStatus {
        match self.session.block {
            Block::Idle => TransactionStatus::Idle,
            Block::Implicit | Block::Explicit => TransactionStatus::InTransaction,
            Block::Failed => TransactionStatus::Failed,
        }
    }

    /// An error outside of this crate (a malformed parameter, say) has hit the current batch or
    /// query. The transaction fails as it would for an error in here.
    pub fn fail(&mut self) {
        self.give_up();
        self.session.transaction_failed();
        self.session.show_state();
    }

    /// Has `waker` woken when the session is to end without having a statement that could stop: it
    /// has been idle in a transaction for `idle_in_transaction_session_timeout`, or another session
    /// has called `pg_terminate_backend`. From then on [`CancelHandle::ended`] says so, and every
    /// statement fails with that error. Its transaction is rolled back when the connection is
    /// dropped.
    pub fn on_end(&self, waker: Waker) {
        self.session.activity.on_end(waker);
    }

    /// Forgets what was still to be done of a text, a COPY or a transaction's end.
    fn give_up(&mut self) {
        self.end_script();
        self.copy = None;
        self.pending = None;
    }

    /// An error has ended a statement: everything that it deserves.
    #[cold]
    fn statement_failed(&mut self, error: SqlError, sink: &mut dyn RowSink) -> SqlError {
        self.give_up();
        self.session.statement_failed(error, sink)
    }
}

impl Database {
    /// A connection for user `postgres`.
    pub fn connect(self: &Arc<Self>) -> Result<Connection> {
        self.connect_as(ConnectOptions::default())
    }

    /// A connection for a client. With `max_connections` in use it fails with 53300.
    pub fn connect_as(self: &Arc<Self>, options: ConnectOptions) -> Result<Connection> {
        let session = self.engine().session()?;
        open(self, session, options)
    }
}

fn open(database: &Arc<Database>, engine: Session, options: ConnectOptions) -> Result<Connection> {
    let mut settings = SessionSettings::of(database.configuration());
    for (name, value) in &options.settings {
        settings.set_at_start(name, value)?;
    }
    let session = SqlSession::new(database, engine, options, settings);
    let entry = database.connections().enter(session.process_id(), session.cancel())?;
    session.show_identity();
    Ok(Connection {
        session,
        texts: Texts::new(),
        prepared: PreparedStatements::default(),
        script: None,
        pending: None,
        committing: None,
        pipelined: false,
        copy: None,
        _entry: entry,
    })
}
