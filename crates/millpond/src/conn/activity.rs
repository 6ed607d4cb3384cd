//! What others see of a session, and what stops it: the running statement, its timeouts, requests
//! to cancel it.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use millpond_engine::proc::MAX_SHOWN_TEXT;
use millpond_engine::session::Session;
use millpond_engine::timeout::Watchdog;
use millpond_types::current_timestamp;

use crate::cancel::{CancelHandle, DeadlineGuard, Watched};
use millpond_query::error::Result;

/// The statement that a session runs, or has run last, as watchers know it.
#[derive(Debug)]
pub(super) struct Activity {
    /// Counts statements, for timeouts.
    statement: u64,
    /// When the last statement began.
    pub(super) began: i64,
    /// The prepared statement whose text `pg_stat_activity` shows; 0: another text.
    shown: u64,
    /// The statement's text, if watchers see only a part of it.
    long_text: Option<Box<str>>,
    cancel: CancelHandle,
    watch: Option<DeadlineGuard>,
    /// While the session is idle in a transaction.
    idle_watch: Option<DeadlineGuard>,
}

impl Activity {
    pub(super) fn new(cancel: CancelHandle) -> Self {
        Self {
            statement: 0,
            began: 0,
            shown: 0,
            long_text: None,
            cancel,
            watch: None,
            idle_watch: None,
        }
    }

    pub(super) fn cancel(&self) -> &CancelHandle {
        &self.cancel
    }

    /// The statement's text, if watchers see only a part of it.
    pub(super) fn long_text(&self) -> Option<&str> {
        self.long_text.as_deref()
    }

    pub(super) fn on_end(&self, waker: Waker) {
        self.cancel.on_end(waker);
    }

    /// A statement begins: see `SqlSession::begin_statement`.
    pub(super) fn begin(
        &mut self,
        engine: &Session,
        watchdog: &Arc<Watchdog>,
        timeout: Option<Duration>,
        text: &str,
        prepared: u64,
    ) -> Result<()> {
        self.began = current_timestamp();
        // A statement that is run again has its text there already.
        let is_shown = prepared != 0 && prepared == self.shown;
        self.shown = prepared;
        if !is_shown {
            self.long_text = (text.len() > MAX_SHOWN_TEXT).then(|| text.into());
        }
        engine.proc().show_statement((!is_shown).then_some(text), self.began);
        self.statement += 1;
        if self.idle_watch.take().is_some() {
            self.cancel.session().end_idle();
        }
        engine.clear_cancel();
        self.cancel.begin(self.statement)?;
        if let Some(timeout) = timeout {
            let watched = Watched::Statement(self.statement);
            self.watch = Some(watchdog.watch(self.cancel.session(), watched, timeout));
        }
        Ok(())
    }

    /// The session is idle in a transaction from now on, which must not last too long.
    pub(super) fn begin_idle(&mut self, watchdog: &Arc<Watchdog>, timeout: Option<Duration>) {
        // Before a new one is made: it must not strike any more.
        self.idle_watch = None;
        if let Some(timeout) = timeout {
            self.cancel.session().begin_idle(self.statement);
            let watched = Watched::Idle(self.statement);
            self.idle_watch = Some(watchdog.watch(self.cancel.session(), watched, timeout));
        }
    }

    /// The statement has ended: its timeout can't strike any more, and a long text is dropped.
    pub(super) fn end(&mut self) {
        self.watch = None;
        if self.long_text.take().is_some() {
            // It is needed again if the same statement runs next.
            self.shown = 0;
        }
        self.cancel.session().end();
    }
}
