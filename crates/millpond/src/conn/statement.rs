//! One statement: which kind it is, and what running it takes.

use std::sync::Arc;

use super::script::Item;
use super::transaction::{Block, in_failed_transaction};
use super::{Connection, Pending};
use crate::convert::{STALE, is_would_block, would_block};
use crate::error::{Result, SqlError, SqlState};
use crate::exec::Exec;
use crate::expr::Facts;
use crate::expr::bind::ParamTypes;
use crate::parse::{Source, Statement, Which};
use crate::plan::{Planned, Planner, UsableIndexes};
use crate::query::{SessionInfo, SettingInfo};
use crate::settings::SettingId;
use crate::sink::{CommandTag, CopyFormat, RowSink};
use crate::{DataType, Value, Wait};

/// Plans that one execution of a statement makes: more would be a fault here, not a busy maker of
/// definitions.
const MOST_PLANS: u32 = 10_000;

/// How far a statement got.
pub(super) enum Step {
    /// It has ended well.
    Done(CommandTag),
    /// It has ended the transaction, or is about to: see `pending`.
    Ended,
    /// Nothing has happened.
    WouldBlock,
    /// The client is to send rows.
    CopyIn(CopyFormat),
}

impl Connection {
    /// Runs one statement. `columns`: the sink wants to know the columns.
    pub(super) fn step(
        &mut self,
        item: &Item,
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        let result = match item {
            Item::Parsed(statement) => self.statement(statement, sql, &[], columns, sink),
            Item::Planned(planned, params) => self.planned(planned, params, columns, sink),
        };
        match result {
            Err(error) if is_would_block(&error) => Ok(Step::WouldBlock),
            Err(error) if error.sqlstate == STALE && matches!(item, Item::Planned(..)) => {
                // The definition has changed since the text was found behind the lexer: parse it.
                sink.discard();
                let parsed = self.parse(sql)?;
                match parsed.into_iter().next() {
                    Some(statement) => {
                        let item = Item::Parsed(Arc::new(statement));
                        self.step(&item, sql, columns, sink)
                    }
                    None => Err(SqlError::internal("a text without statements")),
                }
            }
            other => other,
        }
    }

    /// Runs a planned statement in the transaction.
    pub(super) fn planned(
        &mut self,
        planned: &Arc<Planned>,
        params: &[Value],
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        self.need_transaction()?;
        let rows = self.run_planned(planned, params, columns, sink)?;
        Ok(Step::Done(CommandTag::counted(planned.verb(), rows)))
    }

    /// Runs a plan under a snapshot of its own.
    pub(super) fn run_planned(
        &mut self,
        planned: &Planned,
        params: &[Value],
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        if let Some(what) = planned.writes() {
            self.check_writable(what)?;
        }
        self.session.start_statement()?;
        let result = self.with_exec(|exec| {
            let described = match &planned.columns {
                Some(found) if columns => sink.columns(found),
                _ => Ok(()),
            };
            described.and_then(|()| exec.run(planned, params, sink))
        });
        self.session.end_statement();
        for notice in self.notices.take() {
            sink.notice(&notice);
        }
        if self.settings.has_calls() {
            self.set_as_called(result.is_ok())?;
        }
        if result.is_ok() {
            self.statements_run = self.statements_run.saturating_add(1);
        }
        result
    }

    /// Takes over the settings that a statement's functions have set, unless the statement failed.
    #[cold]
    fn set_as_called(&mut self, succeeded: bool) -> Result<()> {
        for call in self.settings.take_calls() {
            if succeeded {
                self.set_setting(call.id.definition().name, call.text.as_deref(), call.local)?;
            }
        }
        Ok(())
    }

    /// Runs `run` with what plans need of the connection.
    pub(super) fn with_exec<R>(&mut self, run: impl FnOnce(&mut Exec<'_>) -> R) -> R {
        let (facts, database) = (facts_of!(self), &self.database);
        let info = || session_info(&facts, database);
        run(&mut Exec {
            session: &self.session,
            facts: &facts,
            scratch: &mut self.scratch,
            wait: self.wait,
            resources: &self.resources,
            cancel: &self.cancel,
            info: &info,
        })
    }

    /// Plans a statement for the catalog as it is now. Where the query engine has to, "would block"
    /// if the connection must not wait.
    pub(super) fn plan(
        &self,
        statement: &Statement,
        sql: &str,
        params: ParamTypes<'_>,
    ) -> Result<Planned> {
        self.plan_within(self.wait, statement, sql, params)
    }

    /// The same, taking the time that `wait` allows.
    pub(super) fn plan_within(
        &self,
        wait: Wait,
        statement: &Statement,
        sql: &str,
        params: ParamTypes<'_>,
    ) -> Result<Planned> {
        let catalog = self.catalog();
        let indexes = UsableIndexes::new(&self.session);
        let planner = Planner {
            catalog: &catalog,
            source: Source::new(sql),
            external: self.database.query_engine(),
            zone: self.settings.format_options().zone,
            wait,
            indexes: &indexes,
        };
        planner.plan(statement, params)
    }

    /// Plans and runs; when the definition changes in between, again.
    fn plan_and_run(
        &mut self,
        statement: &Statement,
        sql: &str,
        declared: &[DataType],
        params: &[Value],
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        let mut tries = 0;
        loop {
            let types = if declared.is_empty() && params.is_empty() {
                ParamTypes::None
            } else {
                ParamTypes::Declared(declared.iter().copied().map(Some).collect())
            };
            let planned = Arc::new(self.plan(statement, sql, types)?);
            match self.planned(&planned, params, columns, sink) {
                Err(error) if self.plans_again(&error, &mut tries)? => sink.discard(),
                other => return other,
            }
        }
    }

    /// Whether an error only asks for another plan, because the definitions have changed while the
    /// statement waited for its tables. However often that happens, the statement goes on, unless
    /// it has been told to stop.
    pub(super) fn plans_again(&self, error: &SqlError, tries: &mut u32) -> Result<bool> {
        if error.sqlstate != STALE || *tries == MOST_PLANS {
            return Ok(false);
        }
        *tries += 1;
        self.session.check_cancel()?;
        Ok(true)
    }

    pub(super) fn need_wait(&self) -> Result<()> {
        if self.wait == Wait::Allowed { Ok(()) } else { Err(would_block()) }
    }

    /// Runs a parsed statement.
    pub(super) fn statement(
        &mut self,
        statement: &Statement,
        sql: &str,
        params: &[Value],
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        use Statement as S;
        if self.block == Block::Failed
            && !matches!(statement, S::Commit { .. } | S::Rollback { .. })
        {
            return Err(in_failed_transaction());
        }
        let tag = match statement {
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) => {
                return self.plan_and_run(statement, sql, &[], params, columns, sink);
            }
            S::Begin { modes, start } => self.begin(*modes, *start, sink)?,
            S::Commit { chain } => return self.commit_statement(*chain, sink),
            S::Rollback { chain } => return self.rollback_statement(*chain, sink),
            S::SetTransaction { modes, session } => self.set_transaction(*modes, *session, sink)?,
            S::Set { name, value, local } => self.set(name, value.as_deref(), *local, sink)?,
            S::Show(which) => self.show(which, columns, sink)?,
            S::Reset(which) => self.reset(which)?,
            S::Discard { all } => self.discard(*all)?,
            S::AlterSystem { name, value } => {
                self.alter_system(name.as_deref(), value.as_deref())?
            }
            S::CreateTable(create) => self.create_table(create, sql, sink)?,
            S::CreateIndex(create) => self.create_index(create, sql, sink)?,
            S::AlterTable(alter) => self.alter_table(alter, sql, sink)?,
            S::DropTable { names, if_exists } => self.drop_tables(names, *if_exists, sink)?,
            S::DropIndex { names, if_exists } => self.drop_indexes(names, *if_exists, sink)?,
            S::Truncate { names } => self.truncate(names)?,
            S::Vacuum { options, tables } => self.vacuum(options, tables, sink)?,
            S::Analyze { options, tables } => self.analyze(options, tables, sink)?,
            S::Checkpoint => {
                self.need_wait()?;
                self.database.engine().checkpoint()?;
                CommandTag::plain("CHECKPOINT")
            }
            S::Copy(copy) => return self.copy(copy, sql, sink),
            S::Explain { analyze, statement } => {
                self.explain(*analyze, statement, sql, columns, sink)?
            }
            S::Prepare(prepare) => self.prepare_named(prepare, sql)?,
            S::Execute { name, args } => return self.execute_named(name, args, sql, columns, sink),
            S::Deallocate(which) => self.deallocate(which)?,
            S::Close(Which::All) => CommandTag::plain("CLOSE CURSOR ALL"),
            S::Close(Which::Named(name)) => {
                return Err(SqlError::new(
                    SqlState::INVALID_CURSOR_NAME,
                    format!("cursor \"{name}\" does not exist"),
                ));
            }
            S::Unlisten => CommandTag::plain("UNLISTEN"),
            S::Lock { names, mode, nowait } => self.lock_tables(names, *mode, *nowait)?,
            S::Unsupported(what) => return Err(SqlError::unsupported(what)),
        };
        if let S::CreateTable(_) | S::CreateIndex(_) | S::AlterTable(_) | S::Truncate { .. } =
            statement
        {
            self.warn_of_file_numbers(sink);
        }
        Ok(Step::Done(tag))
    }

    fn commit_statement(&mut self, chain: bool, sink: &mut dyn RowSink) -> Result<Step> {
        let options = self.session.options();
        match self.block {
            Block::Failed => {
                self.ended(false);
                self.pending = Some(Pending {
                    commit: false,
                    tag: Some(CommandTag::failed_commit()),
                    suspended: false,
                    chain: chain.then_some(options),
                });
            }
            Block::Explicit => {
                self.pending = Some(Pending {
                    commit: true,
                    tag: Some(CommandTag::plain("COMMIT")),
                    suspended: false,
                    chain: chain.then_some(options),
                });
            }
            Block::Idle | Block::Implicit => {
                self.no_transaction(chain, "COMMIT", sink)?;
                self.pending = Some(Pending {
                    commit: self.block == Block::Implicit,
                    tag: Some(CommandTag::plain("COMMIT")),
                    suspended: false,
                    chain: None,
                });
            }
        }
        Ok(Step::Ended)
    }

    fn rollback_statement(&mut self, chain: bool, sink: &mut dyn RowSink) -> Result<Step> {
        let options = self.session.options();
        match self.block {
            Block::Failed => self.ended(false),
            Block::Explicit => self.rollback_now(),
            Block::Idle | Block::Implicit => {
                self.no_transaction(chain, "ROLLBACK", sink)?;
                if self.block == Block::Implicit {
                    self.rollback_now();
                }
            }
        }
        self.pending = Some(Pending {
            commit: false,
            tag: Some(CommandTag::plain("ROLLBACK")),
            suspended: false,
            chain: chain.then_some(options),
        });
        Ok(Step::Ended)
    }

    fn no_transaction(&self, chain: bool, what: &str, sink: &mut dyn RowSink) -> Result<()> {
        use crate::SqlState;
        if chain {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                format!("{what} AND CHAIN can only be used in transaction blocks"),
            ));
        }
        sink.notice(&SqlError::warning(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "there is no transaction in progress",
        ));
        Ok(())
    }
}

/// What system views show of the session.
fn session_info(facts: &Facts<'_>, database: &Arc<crate::Database>) -> SessionInfo {
    SessionInfo {
        database: facts.database.to_owned(),
        user: facts.user.to_owned(),
        pid: facts.process_id,
        statistics: Some(Arc::clone(database.statistics())),
        server: Arc::downgrade(database),
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
