//! What statements run in: a session of the engine with its transaction block, its settings, the
//! memory of its queries, and what watches it.
//!
//! It knows no protocol: neither texts of several statements, nor portals, nor when a transaction
//! that is due to commit does so. The connection above it does. Its methods are here and, by role,
//! in four other files. `transaction` has the block, `run` planning and running, `settings` values
//! of settings, `status` how statements begin and end. Utility statements are functions that get it
//! (`utility`).

use std::sync::{Arc, Weak};

use millpond_buffer::Wait;
use millpond_engine::catalog::CatalogState;
use millpond_engine::session::Session;

use super::activity::Activity;
use super::in_use::InUse;
use super::types::ConnectOptions;
use crate::cancel::CancelHandle;
use crate::database::Database;
use millpond_query::advisory::Notices;
use millpond_query::convert::would_block;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::exec::{Exec, Scratch};
use millpond_query::expr::Facts;
use millpond_query::memory::{Resources, ValueRoom};
use millpond_query::parse::{self, Statement};
use millpond_query::query::{PreparedInfo, Server, SessionInfo, SettingInfo};
use millpond_query::settings::{SessionSettings, SettingId};

/// What a session tells expressions. (Not a function, which would borrow all of it.)
macro_rules! facts_of {
    ($session:expr) => {
        Facts {
            now: $session.now,
            user: &$session.options.user,
            database: &$session.options.database,
            process_id: $session.process_id(),
            long_text: $session.activity.long_text(),
            settings: &$session.settings,
            session: Some(&$session.engine),
            look: None,
            server: Some(&*$session.database),
            notices: &$session.notices,
            only_locks: false,
        }
    };
}

/// Where the transaction block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// No transaction.
    Idle,
    /// The transaction of one statement, or of one text, or of one batch.
    Implicit,
    /// After BEGIN.
    Explicit,
    /// After BEGIN and an error; the engine's transaction has been rolled back already.
    Failed,
}

/// A session of the engine as SQL statements use it.
#[derive(Debug)]
pub(super) struct SqlSession {
    pub(super) database: Arc<Database>,
    pub(super) engine: Session,
    pub(super) settings: SessionSettings,
    pub(super) options: ConnectOptions,
    process_id: i32,
    pub(super) wait: Wait,
    pub(super) block: Block,
    /// Whether the transaction is DEFERRABLE, if it says so.
    pub(super) deferrable: Option<bool>,
    /// Whether the running statement is one of several of a text.
    pub(super) in_script: bool,
    /// Statements that the transaction has run.
    pub(super) statements_run: u32,
    /// When the transaction began.
    pub(super) now: i64,
    pub(super) activity: Activity,
    pub(super) scratch: Scratch,
    pub(super) resources: Arc<Resources>,
    /// What the running statement has to say beside its result.
    pub(super) notices: Notices,
    /// What portals read that are still open.
    pub(super) in_use: InUse,
    /// What PREPARE has named, as the view shows it.
    pub(super) named: Vec<PreparedInfo>,
}

impl SqlSession {
    pub(super) fn new(
        database: &Arc<Database>,
        engine: Session,
        options: ConnectOptions,
        settings: SessionSettings,
    ) -> Self {
        let resources = Resources::new(&engine, database.memory());
        Self {
            database: Arc::clone(database),
            // The engine's numbers fit.
            process_id: engine.proc().process_id().cast_signed(),
            activity: Activity::new(CancelHandle::new(engine.cancel_handle())),
            engine,
            settings,
            options,
            wait: Wait::Allowed,
            block: Block::Idle,
            deferrable: None,
            in_script: false,
            statements_run: 0,
            now: 0,
            scratch: Scratch::default(),
            resources,
            notices: Notices::default(),
            in_use: InUse::default(),
            named: Vec::new(),
        }
    }

    pub(super) fn process_id(&self) -> i32 {
        self.process_id
    }

    pub(super) fn cancel(&self) -> &CancelHandle {
        self.activity.cancel()
    }

    pub(super) fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
        self.engine.set_wait(wait);
    }

    /// "Would block" where the session must not wait.
    pub(super) fn need_wait(&self) -> Result<()> {
        if self.wait == Wait::Allowed { Ok(()) } else { Err(would_block()) }
    }

    /// Tells the engine's session what it has to know of the settings, unless it does already: most
    /// transactions change none.
    pub(super) fn hand_on_settings(&mut self) {
        if self.settings.take_news() {
            self.engine.locks().set_timeout(self.settings.lock_timeout());
            self.engine.locks().set_deadlock_timeout(self.settings.deadlock_timeout());
            self.engine.locks().set_log_waits(self.settings.bool("log_lock_waits"));
            self.engine.set_bulk_access(self.settings.bulk_access());
            self.engine.temp_space().set_limit_kb(self.settings.temp_file_limit_kb());
            let (work_mem, hash_multiplier) = self.settings.work_mem();
            self.resources.memory.set_work(work_mem, hash_multiplier);
        }
    }

    /// The catalog that statements see.
    pub(super) fn catalog(&self) -> Arc<CatalogState> {
        self.engine.catalog()
    }

    /// What expressions may know.
    pub(super) fn facts(&self) -> Facts<'_> {
        facts_of!(self)
    }

    /// Runs `run` with what plans need of the session.
    pub(super) fn with_exec<R>(&mut self, run: impl FnOnce(&mut Exec<'_>) -> R) -> R {
        let (facts, database, named) = (facts_of!(self), &self.database, &self.named);
        let info = || SessionInfo { prepared: named.clone(), ..session_info(&facts, database) };
        run(&mut Exec {
            session: &self.engine,
            facts: &facts,
            scratch: &mut self.scratch,
            wait: self.wait,
            resources: &self.resources,
            cancel: self.activity.cancel().session(),
            accelerator: database.accelerator(),
            threads: database.scan_threads(),
            info: &info,
        })
    }

    /// Bounds what this thread makes for the session, until it is dropped.
    pub(super) fn value_room(&self) -> ValueRoom {
        ValueRoom::enter(self.resources.memory.share())
    }

    /// The statements of a text.
    pub(super) fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        if self.settings.standard_strings() {
            return self.parse_again(sql, true);
        }
        let _room = self.value_room();
        let warns = self.settings.bool("escape_string_warning");
        let mut warn = |warning| {
            if warns {
                self.notices.borrow_mut().push(warning);
            }
        };
        let parsed = parse::parse_escapes(sql, &mut warn, &|| self.is_to_stop());
        parsed.map_err(|error| self.named_stop(error))
    }

    /// Where an error only says that the session was told to stop: the error that says why.
    #[cold]
    pub(super) fn named_stop(&self, error: SqlError) -> SqlError {
        let is_stopped = error.sqlstate == SqlState::QUERY_CANCELED
            || error.sqlstate == SqlState::CANNOT_CONNECT_NOW;
        if is_stopped && self.cancel().is_raised() { self.cancel().error() } else { error }
    }

    fn is_to_stop(&self) -> bool {
        self.engine.interrupt().is_some()
    }

    /// The same for a text that has been parsed before, with `standard_conforming_strings` as it
    /// was then.
    pub(super) fn parse_again(&self, sql: &str, standard_strings: bool) -> Result<Vec<Statement>> {
        let _room = self.value_room();
        let stop: parse::Stop<'_> = &|| self.is_to_stop();
        let parsed = match standard_strings {
            true => parse::parse(sql, stop),
            false => parse::parse_escapes(sql, &mut |_| {}, stop),
        };
        parsed.map_err(|error| self.named_stop(error))
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        // What was not committed is rolled back.
        self.engine.set_wait(Wait::Allowed);
        if self.engine.in_transaction() {
            self.engine.abort();
        }
    }
}

/// What system views show of the session.
fn session_info(facts: &Facts<'_>, database: &Arc<crate::Database>) -> SessionInfo {
    SessionInfo {
        database: facts.database.to_owned(),
        user: facts.user.to_owned(),
        pid: facts.process_id,
        statistics: Some(Arc::clone(database.statistics())),
        server: Some(Arc::downgrade(database) as Weak<dyn Server>),
        prepared: Vec::new(),
        settings: SettingId::all()
            .map(|id| SettingInfo {
                name: id.definition().name.to_owned(),
                setting: facts.settings.show(id),
                description: id.definition().about.to_owned(),
                is_own: facts.settings.is_own(id),
                origin: facts.settings.origin(id),
                is_pending: facts.settings.is_pending(id),
            })
            .collect(),
    }
}
