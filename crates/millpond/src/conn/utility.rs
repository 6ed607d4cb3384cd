//! Settings, VACUUM and ANALYZE, EXPLAIN, LOCK TABLE.

use std::sync::Arc;
use std::time::Instant;

use millpond_engine::catalog::{Oid, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::TableError;
use millpond_engine::{EngineError, EngineResult};
use millpond_syntax::tree;

use super::Connection;
use super::transaction::{Block, Ended};
use crate::convert::is_would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::exec::Exec;
use crate::expr::bind::ParamTypes;
use crate::parse::{Name, Statement, VacuumOptions, Which};
use crate::plan::explain;
use crate::plan::{Plan, Planned, find_table};
use crate::settings::{SettingId, pages_of};
use crate::sink::{ColumnDesc, CommandTag, RowSink};
use crate::{DataType, Datum};

/// A table that VACUUM or ANALYZE is to work on. It may be gone once its turn comes.
struct Chosen {
    oid: Oid,
    name: String,
    by_name: bool,
}

impl Chosen {
    /// What the work gave, or nothing if the table has been dropped meanwhile: the session that
    /// named the table gets a warning.
    fn unless_gone<T>(
        &self,
        work: &str,
        result: EngineResult<T>,
        sink: &mut dyn RowSink,
    ) -> Result<Option<T>> {
        match result {
            Err(EngineError::Table(TableError::UndefinedRelation(_))) => {
                if self.by_name {
                    let name = &self.name;
                    sink.notice(&SqlError::warning(
                        SqlState::UNDEFINED_TABLE,
                        format!("skipping {work} of \"{name}\" --- relation no longer exists"),
                    ));
                }
                Ok(None)
            }
            other => Ok(Some(other?)),
        }
    }
}

impl Connection {
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        if local && self.block != Block::Explicit {
            sink.notice(&SqlError::warning(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            ));
        }
        self.set_setting(name, value, local)?;
        Ok(CommandTag::plain("SET"))
    }

    pub(super) fn set_setting(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        if name.contains('.') && SettingId::find(name).is_none() {
            return Err(SqlError::unsupported("a setting of an extension"));
        }
        let id = SettingId::named(name)?;
        match id.definition().name {
            "transaction_isolation" | "transaction_read_only" => {
                return Err(
                    SqlError::unsupported(format!("SET {name}")).hint("Use SET TRANSACTION.")
                );
            }
            "shared_buffers" => return self.resize_buffers(id, value, local),
            "default_transaction_isolation" if value == Some("serializable") => {
                return Err(SqlError::unsupported("isolation level SERIALIZABLE"));
            }
            _ => {}
        }
        self.settings.set(id, value, local)?;
        if self.block == Block::Idle || (self.block == Block::Implicit && self.is_last_of_script())
        {
            self.settings.end_transaction(true);
        }
        self.hand_on_settings();
        Ok(())
    }

    /// Changes the size of the buffer pool, at once and for everybody.
    fn resize_buffers(&mut self, id: SettingId, value: Option<&str>, local: bool) -> Result<()> {
        if local {
            return Err(SqlError::unsupported("SET LOCAL shared_buffers"));
        }
        self.check_alone("SET shared_buffers")?;
        let pages = self.settings.buffers_wanted(id, value)?;
        self.need_wait()?;
        let resized = self.session.maintenance().resize_buffers(pages);
        // Also when it could not be made as small as it should be.
        self.settings.set_live_buffers(self.database.engine().pool().frames());
        Ok(resized?)
    }

    pub(super) fn reset(&mut self, which: &Which) -> Result<CommandTag> {
        match which {
            Which::All => {
                self.settings.reset_all();
                if self.block == Block::Idle {
                    self.settings.end_transaction(true);
                }
                self.hand_on_settings();
            }
            Which::Named(name) => self.set_setting(name, None, false)?,
        }
        Ok(CommandTag::plain("RESET"))
    }

    pub(super) fn alter_system(
        &mut self,
        name: Option<&str>,
        value: Option<&str>,
    ) -> Result<CommandTag> {
        self.check_alone("ALTER SYSTEM")?;
        self.need_wait()?;
        self.database.configuration().alter_system(name, value)?;
        Ok(CommandTag::plain("ALTER SYSTEM"))
    }

    pub(super) fn discard(&mut self, all: bool) -> Result<CommandTag> {
        self.forget_plans();
        if !all {
            return Ok(CommandTag::plain("DISCARD PLANS"));
        }
        self.check_alone("DISCARD ALL")?;
        self.prepared.clear();
        self.session.locks().release_all();
        self.settings.reset_all();
        self.settings.end_transaction(true);
        Ok(CommandTag::plain("DISCARD ALL"))
    }

    pub(super) fn show_columns(&self, which: &Which) -> Result<Vec<ColumnDesc>> {
        let text = |name: &str| ColumnDesc::computed(name, DataType::Text);
        Ok(match which {
            Which::All => vec![text("name"), text("setting"), text("description")],
            Which::Named(name) => vec![text(SettingId::named(name)?.definition().name)],
        })
    }

    pub(super) fn show(
        &mut self,
        which: &Which,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let described = self.show_columns(which)?;
        if columns {
            sink.columns(&described)?;
        }
        let value = |id: SettingId| match self.show_transaction(id.definition().name) {
            Some(value) => value,
            None => self.settings.show(id),
        };
        match which {
            Which::All => {
                for id in SettingId::all() {
                    let definition = id.definition();
                    sink.row(&[
                        Datum::Text(definition.name),
                        Datum::Text(&value(id)),
                        Datum::Text(definition.about),
                    ])?;
                }
            }
            Which::Named(name) => sink.row(&[Datum::Text(&value(SettingId::named(name)?))])?,
        }
        Ok(CommandTag::plain("SHOW"))
    }

    pub(super) fn vacuum(
        &mut self,
        options: &VacuumOptions,
        names: &[Name],
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        self.check_alone("VACUUM")?;
        self.need_wait()?;
        if options.full {
            sink.notice(&SqlError::notice(
                SqlState::SUCCESSFUL_COMPLETION,
                "VACUUM FULL is done as a plain VACUUM",
            ));
        }
        let tables = self.tables_named(names)?;
        if self.block == Block::Implicit
            && let Ended::WouldBlock | Ended::Pending(_) = self.commit_now()?
        {
            return Err(SqlError::internal("a commit waits where it must not"));
        }
        self.limit_usage(options);
        for table in &tables {
            let Some(summary) =
                table.unless_gone("vacuum", self.session.maintenance().vacuum(table.oid), sink)?
            else {
                continue;
            };
            if options.verbose {
                let name = &table.name;
                sink.notice(&SqlError::notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!(
                        "\"{name}\": removed {} row versions, {} remain, {} are dead but not yet removable, in {} pages",
                        summary.removed, summary.remaining, summary.not_yet_removable, summary.pages
                    ),
                ));
            }
        }
        if options.analyze {
            self.analyze_all(options, &tables, sink)?;
            if self.block == Block::Implicit {
                let _ = self.commit_now()?;
            }
        }
        Ok(CommandTag::plain("VACUUM"))
    }

    pub(super) fn analyze(
        &mut self,
        options: &VacuumOptions,
        names: &[Name],
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let tables = self.tables_named(names)?;
        self.analyze_all(options, &tables, sink)?;
        Ok(CommandTag::plain("ANALYZE"))
    }

    fn analyze_all(
        &mut self,
        options: &VacuumOptions,
        tables: &[Chosen],
        sink: &mut dyn RowSink,
    ) -> Result<()> {
        self.need_wait()?;
        self.need_transaction()?;
        self.session.start_statement()?;
        self.limit_usage(options);
        let mut analyze = |table: &Chosen| {
            table
                .unless_gone("analyze", self.session.maintenance().analyze(table.oid), sink)
                .map(|_| ())
        };
        let result = tables.iter().try_for_each(&mut analyze);
        self.session.end_statement();
        result
    }

    /// Says how much of the buffer pool VACUUM and ANALYZE use; the next transaction begins with
    /// the settings again.
    fn limit_usage(&mut self, options: &VacuumOptions) {
        let mut bulk = self.settings.bulk_access();
        if let Some(kilobytes) = options.usage_limit_kb {
            bulk.rings.vacuum = pages_of(kilobytes.into());
        }
        self.session.set_bulk_access(bulk);
        self.settings.make_news();
    }

    /// The tables of these names; without names all.
    fn tables_named(&self, names: &[Name]) -> Result<Vec<Chosen>> {
        let catalog = self.catalog();
        let chosen = |table: &TableDef, by_name| Chosen {
            oid: table.oid,
            name: table.name.clone(),
            by_name,
        };
        if names.is_empty() {
            return Ok(catalog.tables().map(|table| chosen(table, false)).collect());
        }
        names
            .iter()
            .map(|name| find_table(&catalog, name).map(|table| chosen(&table, true)))
            .collect()
    }

    pub(super) fn explain(
        &mut self,
        analyze: bool,
        statement: &Statement,
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        if !matches!(
            statement,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
        ) {
            return Err(SqlError::unsupported("EXPLAIN of such a statement"));
        }
        self.need_transaction()?;
        let mut tries = 0;
        let lines = loop {
            let planned = self.plan(statement, sql, ParamTypes::Declared(Vec::new()))?;
            match self.explain_lines(&planned, analyze) {
                Err(error) if self.plans_again(&error, &mut tries)? => {}
                other => break other?,
            }
        };
        if columns {
            sink.columns(&[ColumnDesc::computed("QUERY PLAN", DataType::Text)])?;
        }
        for line in &lines {
            sink.row(&[Datum::Text(line)])?;
        }
        Ok(CommandTag::plain("EXPLAIN"))
    }

    fn explain_lines(&mut self, planned: &Planned, analyze: bool) -> Result<Vec<String>> {
        let mut lines = explain::lines(planned);
        if let Plan::External(plan) = &planned.plan {
            self.need_wait()?;
            lines = self.explain_external(plan)?;
        }
        if analyze {
            self.need_wait()?;
            let mut rows = super::extended::Collect::default();
            let start = Instant::now();
            let count = self.run_planned(planned, &[], false, &mut rows)?;
            let millis = start.elapsed().as_secs_f64() * 1e3;
            if let Some(first) = lines.first_mut() {
                first.push_str(&format!(" (actual rows={count} time={millis:.3} ms)"));
            }
            lines.push(format!("Execution Time: {millis:.3} ms"));
        }
        Ok(lines)
    }

    fn explain_external(
        &mut self,
        plan: &crate::plan::external::ExternalPlan,
    ) -> Result<Vec<String>> {
        self.session.start_statement()?;
        let explain = |exec: &mut Exec<'_>| plan.explain(exec.scanner(plan)?);
        let lines = self.with_exec(explain);
        self.session.end_statement();
        lines
    }

    pub(super) fn lock_tables(
        &mut self,
        names: &[Name],
        mode: tree::LockMode,
        nowait: bool,
    ) -> Result<CommandTag> {
        // The statements of one text are a transaction, too.
        let in_block = self.block == Block::Explicit || self.is_part_of_script();
        if !in_block {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "LOCK TABLE can only be used in transaction blocks",
            ));
        }
        let mode = match mode {
            tree::LockMode::AccessShare => LockMode::AccessShare,
            tree::LockMode::RowShare => LockMode::RowShare,
            tree::LockMode::RowExclusive => LockMode::RowExclusive,
            tree::LockMode::ShareUpdateExclusive => LockMode::ShareUpdateExclusive,
            tree::LockMode::Share => LockMode::Share,
            tree::LockMode::ShareRowExclusive => LockMode::ShareRowExclusive,
            tree::LockMode::Exclusive => LockMode::Exclusive,
            tree::LockMode::AccessExclusive => LockMode::AccessExclusive,
        };
        self.need_transaction()?;
        for name in names {
            self.lock_named(name, mode, nowait)?;
        }
        Ok(CommandTag::plain("LOCK TABLE"))
    }

    /// Locks the table of that name, and returns its definition as of then.
    pub(super) fn lock_named(
        &self,
        name: &Name,
        mode: LockMode,
        nowait: bool,
    ) -> Result<Arc<TableDef>> {
        let mut tries = 0;
        loop {
            let table = find_table(&self.catalog(), name)?;
            if nowait {
                // Where it may not wait, the engine says at once that it would have to.
                self.session.set_wait(crate::Wait::Never);
            }
            let locked = self.session.lock_table(&table, mode).map_err(SqlError::from);
            self.session.set_wait(self.wait);
            match locked {
                Ok(()) => return Ok(table),
                // While it waited, the definition changed. Now nobody changes it any more.
                Err(error) if self.plans_again(&error, &mut tries)? => {}
                Err(error) if nowait && is_would_block(&error) => {
                    return Err(SqlError::new(
                        SqlState::LOCK_NOT_AVAILABLE,
                        format!("could not obtain lock on relation \"{}\"", table.name),
                    ));
                }
                Err(error) => return Err(error),
            }
        }
    }
}
