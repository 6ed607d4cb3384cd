//! How statements of a session begin, end and fail, and what watchers see of it.

use millpond_engine::proc::ActivityState;
use millpond_types::current_timestamp;

use super::session::{Block, SqlSession};
use crate::Wait;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::sink::RowSink;

impl SqlSession {
    /// A statement begins: its timeout runs, and watchers see it. `prepared` tells prepared
    /// statements apart; 0: it is none. None begins once the session has been told to end.
    pub(super) fn begin_statement(&mut self, text: &str, prepared: u64) -> Result<()> {
        self.settings.follow(self.database.configuration());
        let timeout = self.settings.statement_timeout();
        self.activity.begin(&self.engine, self.database.watchdog(), timeout, text, prepared)
    }

    /// The statement has ended, well or not.
    pub(super) fn finish_statement(&mut self, sink: &mut dyn RowSink) {
        self.activity.end();
        self.warn_of_escapes(sink);
        self.show_state();
        if self.settings.has_reports() {
            for id in self.settings.take_reports() {
                sink.parameter(id.definition().name, &self.settings.show(id));
            }
            self.show_application_name();
        }
    }

    /// A statement has been planned that will be executed later, or can't be planned.
    pub(super) fn end_planning(&mut self) {
        self.activity.end();
        self.show_state();
    }

    /// Tells the client what parsing has to say of escapes in plain strings.
    pub(super) fn warn_of_escapes(&mut self, sink: &mut dyn RowSink) {
        if !self.settings.standard_strings() {
            self.notices.take().iter().for_each(|warning| sink.notice(warning));
        }
    }

    /// An error has ended the statement: the transaction has failed, watchers see that nothing
    /// runs. Returns the error for the client, which names the request that has stopped it.
    #[cold]
    pub(super) fn statement_failed(&mut self, error: SqlError, sink: &mut dyn RowSink) -> SqlError {
        let error = if error.sqlstate == millpond_query::convert::STALE {
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the table's definition kept changing",
            )
        } else {
            self.named_stop(error)
        };
        self.transaction_failed();
        self.finish_statement(sink);
        error
    }

    /// Shows watchers that the session waits for its client, unless an implicit transaction is
    /// still to be committed.
    pub(super) fn show_state(&mut self) {
        if let Block::Explicit | Block::Failed = self.block {
            let timeout = self.settings.idle_in_transaction_session_timeout();
            self.activity.begin_idle(self.database.watchdog(), timeout);
        }
        let state = match self.block {
            Block::Idle => ActivityState::Idle,
            Block::Implicit => return,
            Block::Explicit => ActivityState::IdleInTransaction,
            Block::Failed => ActivityState::IdleInTransactionAborted,
        };
        // What ran through on an event loop took microseconds: not worth another look at the clock.
        let is_quick = self.wait == Wait::Never && self.block == Block::Idle;
        let now = if is_quick { self.activity.began } else { current_timestamp() };
        self.engine.proc().show_state(state, now);
    }

    /// Shows the session's identity in the views of sessions.
    pub(super) fn show_identity(&self) {
        self.engine.proc().set_activity(|activity| {
            activity.user = self.options.user.as_str().into();
            activity.database = self.options.database.as_str().into();
            activity.client = self.options.client_addr.as_str().into();
            activity.server_port = self.options.server_port;
        });
        self.show_application_name();
    }

    fn show_application_name(&self) {
        let name = self.settings.text("application_name");
        self.engine.proc().set_activity(|activity| {
            if *activity.application != *name {
                activity.application = name.into();
            }
        });
    }
}
