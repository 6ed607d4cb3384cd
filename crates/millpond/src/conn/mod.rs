//! A connection: one session, its transaction, its prepared statements, its settings.
//!
//! # On an event loop and off it
//!
//! A server must not block its event loop. It sets [`Connection::set_wait`] to [`Wait::Never`] and
//! calls [`Connection::simple_query`], [`Connection::execute_portal`] or [`Connection::sync`] (and,
//! to prepare a statement, [`Connection::try_prepare`], whose `None` is its "would block"). What
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
//! rolled back, an explicit one has failed. The server sends the error and, for a simple query,
//! "ready for query" with [`Connection::transaction_status`]; in the extended protocol it skips to
//! Sync and calls `sync`.

/// What a connection tells expressions. (Not a function, which would borrow all of it.)
macro_rules! facts_of {
    ($connection:expr) => {
        crate::expr::Facts {
            now: $connection.now,
            user: &$connection.options.user,
            database: &$connection.options.database,
            process_id: $connection.process_id,
            settings: &$connection.settings,
            session: Some(&$connection.session),
            server: Some(&$connection.database),
            notices: &$connection.notices,
            only_locks: false,
        }
    };
}

mod cancel;
mod compile;
mod connections;
mod copy;
mod ddl;
mod embed;
mod extended;
mod in_use;
mod named;
mod prepared;
mod script;
pub(crate) mod shared;
mod statement;
mod transaction;
mod types;
mod utility;

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use millpond_buffer::Wait;
use millpond_engine::proc::ActivityState;
use millpond_engine::session::Session;
use millpond_engine::types::current_timestamp;
use millpond_sync::prefetch::prefetch;

use crate::advisory::Notices;
use crate::database::Database;
use crate::error::{Result, SqlError};
use crate::exec::Scratch;
use crate::expr::Facts;
use crate::lex::Literals;
use crate::lex::cache::Cache;
use crate::memory::Resources;
use crate::settings::SessionSettings;
use crate::sink::{CommandTag, RowSink};
use crate::types::FormatOptions;

pub use cancel::CancelHandle;
pub(crate) use connections::Connections;
pub use prepared::{Portal, Prepared};
pub use types::{
    CommitTicket, ConnectOptions, Description, Executed, Params, Rows, TransactionStatus,
};

use connections::Entry;
use in_use::InUse;
use script::Script;
use shared::Text;
use transaction::Block;

/// Plans kept behind the lexer, for one connection.
const CACHED_PLANS: usize = 256;

/// One session with a database. It is `Send`: a server moves it between its threads.
#[derive(Debug)]
pub struct Connection {
    database: Arc<Database>,
    session: Session,
    settings: SessionSettings,
    options: ConnectOptions,
    _entry: Entry,
    process_id: i32,
    wait: Wait,
    block: Block,
    /// Statements that the transaction has run.
    statements_run: u32,
    /// When the transaction began.
    now: i64,
    /// Counts statements, for timeouts.
    statement: u64,
    /// When the last statement began.
    began: i64,
    /// The prepared statement whose text `pg_stat_activity` shows; 0: another text.
    shown: u64,
    /// Counts prepared statements, to tell them apart.
    prepared_count: u32,
    cancel: CancelHandle,
    watch: Option<cancel::DeadlineGuard>,
    /// While the session is idle in a transaction.
    idle_watch: Option<cancel::DeadlineGuard>,
    cache: Cache<Text>,
    key: Vec<u8>,
    literals: Literals,
    scratch: Scratch,
    resources: Arc<Resources>,
    /// What the running statement has to say beside its result.
    notices: Notices,
    /// What is left to do of a text.
    script: Option<Script>,
    /// A commit that waits, and the tag that is due when it is durable.
    pending: Option<Pending>,
    /// The commit that is not durable yet.
    committing: Option<CommitTicket>,
    /// Implicit transactions last until `sync`.
    pipelined: bool,
    copy: Option<Box<copy::CopyIn>>,
    prepared: HashMap<String, Arc<Prepared>>,
    /// What portals read that are still open.
    in_use: InUse,
    /// Texts that were prepared lately by the extended protocol.
    recent: HashMap<Box<str>, prepared::Recent>,
}

/// What is due when a transaction has ended.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// Nothing has been tried yet, or it would have blocked: commit when resumed.
    commit: bool,
    tag: Option<CommandTag>,
    /// The portal has more rows: the transaction's end is not its own.
    suspended: bool,
    /// COMMIT AND CHAIN.
    chain: Option<millpond_engine::session::TransactionOptions>,
}

impl Pending {
    /// The commit of an implicit transaction, and the tag that is due then.
    fn commit(tag: Option<CommandTag>) -> Self {
        Pending { commit: true, tag, suspended: false, chain: None }
    }
}

impl Connection {
    /// Whether calls may wait. A new connection's may.
    pub fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
        self.session.set_wait(wait);
    }

    /// Asks the processor for the memory that the next short statement will use beside the
    /// connection itself. It is for an event loop that serves many connections in turn: without it,
    /// each finds that memory evicted from the near caches. Changes nothing.
    pub fn prefetch(&self) {
        self.session.prefetch();
        self.cancel.session().prefetch();
        prefetch(&self.key[..]);
        prefetch(self.scratch.row_bytes());
    }

    /// A number of its own, which clients know as the backend's process id.
    pub fn process_id(&self) -> i32 {
        self.process_id
    }

    /// The session's settings. What clients are told at the start are those whose definition says
    /// `report`.
    pub fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// How the session wants values to be written.
    pub fn format_options(&self) -> FormatOptions {
        *self.settings.format_options()
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// A handle with which others can cancel what runs here.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Wakes the waker when the ticket's commit is durable, or when the log has failed. The commit
    /// may be another connection's, or over.
    pub fn on_durable(&self, ticket: &CommitTicket, waker: Waker) {
        self.session.on_durable(ticket, waker);
    }

    /// Returns when the ticket's commit is durable, or when the log has failed: for a thread that
    /// has nothing else to do.
    pub fn wait_durable(&mut self, ticket: &CommitTicket) {
        self.session.wait_durable(ticket);
    }

    /// Whether implicit transactions last until [`Connection::sync`], as in the pipelines of
    /// PostgreSQL's extended protocol. A new connection's do not: each of its statements outside of
    /// a transaction block is committed when [`Connection::execute_portal`] answers
    /// [`Executed::Complete`] or [`Executed::Suspended`].
    pub fn set_pipelined(&mut self, pipelined: bool) {
        self.pipelined = pipelined;
    }

    /// An error outside of this crate (a malformed parameter, say) has hit the current batch or
    /// query: the transaction fails as it would for an error in here.
    pub fn fail(&mut self) {
        self.script = None;
        self.copy = None;
        self.pending = None;
        self.transaction_failed();
        self.show_state();
    }

    /// A statement begins: its timeout runs, and watchers see it. `prepared` tells prepared
    /// statements apart; 0: it is none. None begins once the session has been told to end.
    fn begin_statement(&mut self, text: &str, prepared: u64) -> Result<()> {
        self.began = current_timestamp();
        self.settings.follow(self.database.configuration());
        // A statement that is run again has its text there already.
        let is_shown = prepared != 0 && prepared == self.shown;
        self.shown = prepared;
        self.session.proc().show_statement((!is_shown).then_some(text), self.began);
        self.statement += 1;
        if self.idle_watch.take().is_some() {
            self.cancel.session().end_idle();
        }
        self.session.clear_cancel();
        self.cancel.begin(self.statement)?;
        if let Some(timeout) = self.settings.statement_timeout() {
            let watched = cancel::Watched::Statement(self.statement);
            self.watch =
                Some(self.database.watchdog().watch(self.cancel.session(), watched, timeout));
        }
        Ok(())
    }

    /// The statement has ended, well or not.
    fn finish_statement(&mut self, sink: &mut dyn RowSink) {
        self.watch = None;
        self.cancel.session().end();
        self.show_state();
        if self.settings.has_reports() {
            for id in self.settings.take_reports() {
                sink.parameter(id.definition().name, &self.settings.show(id));
            }
            self.show_application_name();
        }
    }

    /// Shows watchers that the session waits for its client, unless an implicit transaction is
    /// still to be committed.
    fn show_state(&mut self) {
        if let Block::Explicit | Block::Failed = self.block {
            self.watch_idle_time();
        }
        let state = match self.block {
            Block::Idle => ActivityState::Idle,
            Block::Implicit => return,
            Block::Explicit => ActivityState::IdleInTransaction,
            Block::Failed => ActivityState::IdleInTransactionAborted,
        };
        // What ran through on an event loop took microseconds: not worth another look at the clock.
        let is_quick = self.wait == Wait::Never && self.block == Block::Idle;
        let now = if is_quick { self.began } else { current_timestamp() };
        self.session.proc().show_state(state, now);
    }

    /// The session is idle in a transaction from now on, which must not last too long.
    fn watch_idle_time(&mut self) {
        // Before a new one is made: it must not strike any more.
        self.idle_watch = None;
        if let Some(timeout) = self.settings.idle_in_transaction_session_timeout() {
            self.cancel.session().begin_idle(self.statement);
            let watched = cancel::Watched::Idle(self.statement);
            self.idle_watch =
                Some(self.database.watchdog().watch(self.cancel.session(), watched, timeout));
        }
    }

    /// Has `waker` woken when the session has been idle in a transaction for
    /// `idle_in_transaction_session_timeout`. From then on [`CancelHandle::idle_timeout`] says so,
    /// and every statement fails with that error. Its transaction is rolled back when the
    /// connection is dropped.
    pub fn on_idle_timeout(&self, waker: Waker) {
        self.cancel.on_idle_timeout(waker);
    }

    /// Shows the session's identity in the views of sessions.
    fn show_application_name(&self) {
        let name = self.settings.text("application_name");
        self.session.proc().set_activity(|activity| {
            if *activity.application != *name {
                activity.application = name.into();
            }
        });
    }

    /// An error has ended a statement: everything that it deserves.
    #[cold]
    fn statement_failed(&mut self, error: SqlError, sink: &mut dyn RowSink) -> SqlError {
        self.script = None;
        self.copy = None;
        self.pending = None;
        let is_stopped = error.sqlstate == crate::SqlState::QUERY_CANCELED
            || error.sqlstate == crate::SqlState::CANNOT_CONNECT_NOW;
        let error = if is_stopped && self.cancel.is_raised() {
            self.cancel.error()
        } else if error.sqlstate == crate::convert::STALE {
            SqlError::new(
                crate::SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the table's definition kept changing",
            )
        } else {
            error
        };
        self.transaction_failed();
        self.finish_statement(sink);
        error
    }

    fn facts(&self) -> Facts<'_> {
        facts_of!(self)
    }
}

pub(crate) fn open(
    database: &Arc<Database>,
    session: Session,
    options: ConnectOptions,
) -> Result<Connection> {
    let mut settings = SessionSettings::of(database.configuration());
    for (name, value) in &options.settings {
        settings.set_at_start(name, value)?;
    }
    let cancel = CancelHandle::new(session.cancel_handle());
    let entry = database.connections().enter(&cancel)?;
    // The engine's numbers fit.
    let process_id = session.proc().process_id().cast_signed();
    session.proc().set_activity(|activity| {
        activity.user = options.user.as_str().into();
        activity.database = options.database.as_str().into();
        activity.client = options.client_addr.as_str().into();
    });
    let resources = Resources::new(&session, database.memory());
    let connection = Connection {
        database: Arc::clone(database),
        session,
        settings,
        options,
        _entry: entry,
        process_id,
        wait: Wait::Allowed,
        block: Block::Idle,
        statements_run: 0,
        now: 0,
        statement: 0,
        began: 0,
        shown: 0,
        prepared_count: 0,
        cancel,
        watch: None,
        idle_watch: None,
        cache: Cache::new(CACHED_PLANS),
        key: Vec::new(),
        literals: Literals::new(),
        scratch: Scratch::default(),
        resources,
        notices: Notices::default(),
        script: None,
        pending: None,
        committing: None,
        pipelined: false,
        copy: None,
        prepared: HashMap::new(),
        in_use: InUse::default(),
        recent: HashMap::new(),
    };
    connection.show_application_name();
    Ok(connection)
}

impl Drop for Connection {
    fn drop(&mut self) {
        // What was not committed is rolled back.
        self.session.set_wait(Wait::Allowed);
        if self.session.in_transaction() {
            self.session.abort();
        }
    }
}
