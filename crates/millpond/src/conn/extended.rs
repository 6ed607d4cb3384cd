//! The extended protocol: prepared statements, portals, batches that end with Sync.

use std::collections::VecDeque;
use std::sync::Arc;

use super::prepared::{Body, Portal, PortalState, Prepared};
use super::script::Item;
use super::shared::{Text, prepared_key};
use super::statement::Step;
use super::transaction::{Block, in_failed_transaction};
use super::types::Description;
use super::{Connection, Executed, Params, Pending};
use crate::convert::is_would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::ParamTypes;
use crate::parse::{self, Statement, Which, data_type};
use crate::plan::Planned;
use crate::sink::{ColumnDesc, CommandTag, RowSink};
use crate::{DataType, Datum, Value, Wait};

/// Texts kept by a connection whose client prepares the same ones over and over (`-M extended`, most drivers).
const RECENT_STATEMENTS: usize = 64;
/// Longer texts are not worth their memory.
const RECENT_TEXT_BYTES: usize = 4 << 10;

/// A text that was prepared, and is the same statement as long as no definition changes.
#[derive(Debug)]
pub(super) struct Recent {
    generation: u64,
    param_types: Vec<Option<DataType>>,
    prepared: Arc<Prepared>,
}

impl Connection {
    /// Prepares one statement, however long planning it takes. Parameters whose type is not given get it from
    /// where they stand.
    pub fn prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        self.prepare_within(Wait::Allowed, sql, param_types).inspect_err(|_| self.fail())
    }

    /// The same for a server's event loop: `None` where the connection must not wait and the query engine would
    /// have to plan. Then nothing has happened; call it again where waiting is allowed.
    pub fn try_prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Option<Arc<Prepared>>> {
        match self.prepare_within(self.wait, sql, param_types) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(error) if is_would_block(&error) => Ok(None),
            Err(error) => {
                self.fail();
                Err(error)
            }
        }
    }

    fn prepare_within(
        &mut self,
        wait: Wait,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        let generation = self.session.catalog_generation();
        if self.block != Block::Failed
            && let Some(recent) = self.recent.get(sql)
            && recent.generation == generation
            && recent.param_types == param_types
        {
            return Ok(Arc::clone(&recent.prepared));
        }
        let known = self.known_plan(sql, param_types, generation);
        let mut prepared = match known {
            Some(planned) => Prepared::of_plan(planned, sql),
            None => self.prepare_anew(wait, sql, param_types)?,
        };
        self.prepared_count = self.prepared_count.wrapping_add(1);
        let process = u64::from(self.process_id.cast_unsigned());
        prepared.number = (process << 32) | u64::from(self.prepared_count);
        let prepared = Arc::new(prepared);
        if let Body::Planned(_) = prepared.body
            && sql.len() <= RECENT_TEXT_BYTES
        {
            if self.recent.len() >= RECENT_STATEMENTS {
                self.recent.clear();
            }
            let param_types = param_types.to_vec();
            let recent = Recent { generation, param_types, prepared: Arc::clone(&prepared) };
            self.recent.insert(sql.into(), recent);
        }
        Ok(prepared)
    }

    /// The plan with which another connection has prepared the same statement.
    fn known_plan(
        &self,
        sql: &str,
        param_types: &[Option<DataType>],
        generation: u64,
    ) -> Option<Arc<Planned>> {
        if self.block == Block::Failed || !self.session.sees_the_latest_catalog() {
            return None;
        }
        let key = prepared_key(sql, param_types);
        self.database.plans().get(&key, generation)?.planned.clone()
    }

    /// Lets other connections have a plan.
    fn share_plan(&self, sql: &str, param_types: &[Option<DataType>], planned: &Arc<Planned>) {
        if sql.len() <= RECENT_TEXT_BYTES && self.session.sees_the_latest_catalog() {
            let key = prepared_key(sql, param_types);
            let text = Text::new(&key, Some(Arc::clone(planned)), planned.generation);
            self.database.plans().put(&text);
        }
    }

    fn prepare_anew(
        &self,
        wait: Wait,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Prepared> {
        let mut parsed = parse::parse(sql)?;
        let statement = match parsed.len() {
            0 => Statement::Empty,
            1 => parsed.remove(0).statement,
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "cannot insert multiple commands into a prepared statement",
                ));
            }
        };
        if self.block == Block::Failed
            && !matches!(statement, Statement::Commit { .. } | Statement::Rollback { .. })
        {
            return Err(in_failed_transaction());
        }
        self.prepare_statement(wait, statement, sql, param_types)
    }

    fn prepare_statement(
        &self,
        wait: Wait,
        statement: Statement,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Prepared> {
        if let Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_) = &statement
        {
            let types = ParamTypes::Declared(param_types.to_vec());
            let planned = Arc::new(self.plan_within(wait, &statement, sql, types)?);
            self.share_plan(sql, param_types, &planned);
            return Ok(Prepared::of_plan(planned, sql));
        }
        let (description, body) = match &statement {
            Statement::Empty => (Description { params: Arc::new([]), columns: None }, Body::Empty),
            _ => {
                let columns = self.utility_columns(&statement)?;
                let description = Description { params: Arc::new([]), columns };
                (description, Body::Utility(Arc::new(statement)))
            }
        };
        Ok(Prepared { description, sql: sql.to_owned(), number: 0, body })
    }

    /// The columns that a statement without a plan returns.
    fn utility_columns(&self, statement: &Statement) -> Result<Option<Arc<[ColumnDesc]>>> {
        Ok(match statement {
            Statement::Show(which) => Some(self.show_columns(which)?.into()),
            Statement::Explain { .. } => {
                Some([ColumnDesc::computed("QUERY PLAN", DataType::Text)].into())
            }
            Statement::Execute { name, .. } => {
                self.find_prepared(name)?.description.columns.clone()
            }
            _ => None,
        })
    }

    pub(super) fn find_prepared(&self, name: &str) -> Result<&Arc<Prepared>> {
        self.prepared.get(name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }

    /// Binds parameters: one value for each of [`Prepared::params`], of that type or NULL.
    pub fn bind(&mut self, prepared: &Arc<Prepared>, params: Params) -> Result<Portal> {
        if params.len() != prepared.params().len() {
            self.fail();
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"\" requires {}",
                    params.len(),
                    prepared.params().len()
                ),
            ));
        }
        Ok(Portal {
            prepared: Arc::clone(prepared),
            params,
            state: PortalState::Ready,
            reads: None,
        })
    }

    /// Runs a portal for at most `max_rows` rows (0: all). On [`Executed::WouldBlock`] call it again where
    /// waiting is allowed. The sink's `columns` is not called.
    pub fn execute_portal(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        if self.pending.is_some() {
            // A COMMIT that would have blocked.
            let executed = self.settle(sink)?;
            if executed == Executed::Complete {
                portal.state = PortalState::Done;
            }
            return Ok(executed);
        }
        match portal.state {
            PortalState::Holding { .. } => return self.give_held(portal, max_rows, sink),
            PortalState::Done => return done_again(portal, sink),
            PortalState::Ready => {
                self.begin_statement(&portal.prepared.sql, portal.prepared.number);
            }
            // It has begun: a request to cancel it that came in between is not forgotten.
            PortalState::Blocked => portal.state = PortalState::Ready,
        }
        let prepared = Arc::clone(&portal.prepared);
        let result = match &prepared.body {
            Body::Empty => {
                sink.empty()?;
                self.finish_statement(sink);
                portal.state = PortalState::Done;
                return Ok(Executed::Complete);
            }
            Body::Planned(slot) => {
                if self.block == Block::Failed {
                    Err(in_failed_transaction())
                } else {
                    self.execute_planned(&prepared, slot, portal, max_rows, sink)
                }
            }
            Body::Utility(statement) => {
                let item = Item::Parsed(Arc::clone(statement));
                self.step(&item, &prepared.sql, false, sink)
            }
        };
        match result {
            Ok(Step::Done(tag)) => {
                self.finish_statement(sink);
                if let PortalState::Holding { tag: held, .. } = &mut portal.state {
                    *held = tag;
                    return self.give_held(portal, max_rows, sink);
                }
                portal.state = PortalState::Done;
                sink.complete(tag)?;
                Ok(Executed::Complete)
            }
            Ok(Step::Ended) => {
                let executed = self.settle(sink)?;
                self.finish_statement(sink);
                portal.state = PortalState::Done;
                Ok(executed)
            }
            Ok(Step::WouldBlock) => {
                sink.discard();
                portal.state = PortalState::Blocked;
                Ok(Executed::WouldBlock)
            }
            Ok(Step::CopyIn(format)) => Ok(Executed::CopyIn(format)),
            Err(error) if is_would_block(&error) => {
                sink.discard();
                portal.state = PortalState::Blocked;
                Ok(Executed::WouldBlock)
            }
            Err(error) => Err(self.statement_failed(error, sink)),
        }
    }

    fn execute_planned(
        &mut self,
        prepared: &Prepared,
        slot: &parking_lot::Mutex<Arc<Planned>>,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        let mut tries = 0;
        // Kept while the plan runs: to count one more pointer to it would write to memory that is shared with other
        // connections. An embedder may have given the statement to two of them: one does not wait for the other here,
        // where no deadlock would be found.
        let mut kept = slot.try_lock();
        let mut own = None;
        let planned = match kept.as_deref_mut() {
            Some(planned) => planned,
            None => own.insert(self.plan_again(prepared)?),
        };
        loop {
            if planned.generation != self.session.catalog_generation()
                || planned.passing
                || planned.zone.is_some_and(|zone| zone != self.settings.format_options().zone)
                || tries > 0
            {
                *planned = self.plan_again(prepared)?;
            }
            let result = if max_rows == 0 {
                let result = self.planned(planned, &portal.params, false, sink);
                let may_outlast = self.block == Block::Explicit && planned.columns.is_some();
                if may_outlast && matches!(result, Ok(Step::Done(_))) {
                    portal.reads = self.in_use.note(planned);
                }
                result
            } else {
                let mut rows = Collect::default();
                let result = self.planned(planned, &portal.params, false, &mut rows);
                if planned.columns.is_some() && result.is_ok() {
                    portal.reads = self.in_use.note(planned);
                    portal.state = PortalState::Holding {
                        rows: rows.rows,
                        tag: CommandTag::plain(planned.verb()),
                    };
                }
                result
            };
            match result {
                Err(error) if self.plans_again(&error, &mut tries)? => sink.discard(),
                other => return other,
            }
        }
    }

    /// Plans a prepared statement for the catalog as it is now.
    fn plan_again(&mut self, prepared: &Prepared) -> Result<Arc<Planned>> {
        let mut parsed = parse::parse(&prepared.sql)?;
        if parsed.len() != 1 {
            return Err(SqlError::internal("a prepared statement has changed"));
        }
        let types = prepared.params().iter().copied().map(Some).collect();
        let types = ParamTypes::Declared(types);
        let planned = self.plan(&parsed.remove(0).statement, &prepared.sql, types)?;
        let same = match (&planned.columns, prepared.columns()) {
            (None, None) => true,
            (Some(now), Some(then)) => {
                now.len() == then.len()
                    && now.iter().zip(then.iter()).all(|(a, b)| a.ty == b.ty && a.name == b.name)
            }
            _ => false,
        };
        if !same {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            ));
        }
        Ok(Arc::new(planned))
    }

    /// Gives rows that were computed before.
    fn give_held(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        if self.block == Block::Failed {
            return Err(in_failed_transaction());
        }
        let PortalState::Holding { rows, tag } = &mut portal.state else {
            return Ok(Executed::Complete);
        };
        let mut now = 0;
        while max_rows == 0 || now < max_rows {
            let Some(row) = rows.pop_front() else { break };
            let datums: Vec<Datum<'_>> = row.iter().map(Value::as_datum).collect();
            sink.row(&datums)?;
            now += 1;
        }
        // PostgreSQL, too, says "suspended" when exactly as many rows were left as were asked for.
        if max_rows > 0 && now == max_rows {
            return Ok(Executed::Suspended);
        }
        let tag = CommandTag::counted(tag.verb(), now);
        portal.state = PortalState::Done;
        sink.complete(tag)?;
        Ok(Executed::Complete)
    }

    /// Ends a batch of the extended protocol: an implicit transaction commits.
    pub fn sync(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        if self.block == Block::Implicit && self.pending.is_none() {
            self.pending = Some(Pending { commit: true, tag: None, chain: None });
        }
        let executed = self.settle(sink)?;
        if self.settings.has_reports() {
            self.finish_statement(sink);
        } else if self.block == Block::Idle {
            // An implicit transaction has ended.
            self.show_state();
        }
        Ok(executed)
    }

    pub(super) fn prepare_named(
        &mut self,
        name: &str,
        types: &[sqlparser::ast::DataType],
        _statement: &Statement,
        text: &str,
    ) -> Result<CommandTag> {
        if self.prepared.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let types = types.iter().map(|ty| data_type(ty).map(Some)).collect::<Result<Vec<_>>>()?;
        let prepared = self.prepare_within(self.wait, text, &types)?;
        self.prepared.insert(name.to_owned(), prepared);
        Ok(CommandTag::plain("PREPARE"))
    }

    pub(super) fn execute_named(
        &mut self,
        name: &str,
        args: &[sqlparser::ast::Expr],
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        use crate::expr::bind::{Binder, Coercion, NoColumns};
        let prepared = Arc::clone(self.find_prepared(name)?);
        if args.len() != prepared.params().len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .detail(format!(
                "Expected {} parameters but got {}.",
                prepared.params().len(),
                args.len()
            )));
        }
        let mut params = Params::new();
        {
            let mut binder = Binder::new(parse::Source::new(sql), ParamTypes::None);
            let facts = self.facts();
            let env = crate::expr::Env { row: crate::expr::Row::None, params: &[], facts: &facts };
            for (arg, ty) in args.iter().zip(prepared.params()) {
                let expr = binder.bind_as(arg, *ty, Coercion::Assignment, &NoColumns)?;
                params.push(expr.eval(&env)?.into_value());
            }
        }
        match &prepared.body {
            Body::Planned(slot) => {
                let described = match prepared.columns() {
                    Some(found) if columns => sink.columns(found),
                    _ => Ok(()),
                };
                described?;
                let mut portal = Portal {
                    prepared: Arc::clone(&prepared),
                    params,
                    state: PortalState::Ready,
                    reads: None,
                };
                self.execute_planned(&prepared, slot, &mut portal, 0, sink)
            }
            _ => Err(SqlError::unsupported("EXECUTE of such a statement")),
        }
    }

    pub(super) fn deallocate(&mut self, which: &Which) -> Result<CommandTag> {
        match which {
            Which::All => {
                self.prepared.clear();
                Ok(CommandTag::plain("DEALLOCATE ALL"))
            }
            Which::Named(name) => {
                self.find_prepared(name)?;
                self.prepared.remove(name);
                Ok(CommandTag::plain("DEALLOCATE"))
            }
        }
    }
}

/// Keeps rows.
#[derive(Debug, Default)]
pub(super) struct Collect {
    pub(super) rows: VecDeque<Vec<Value>>,
}

impl RowSink for Collect {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.rows.push_back(row.iter().map(Datum::to_value).collect());
        Ok(())
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {
        self.rows.clear();
    }
}

/// A portal that has run to its end has no rows left; it is not run again.
fn done_again(portal: &Portal, sink: &mut dyn RowSink) -> Result<Executed> {
    if let Body::Empty = portal.prepared.body {
        sink.empty()?;
        return Ok(Executed::Complete);
    }
    if portal.prepared.columns().is_none() {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the portal has been run to completion and cannot be run again",
        ));
    }
    sink.complete(CommandTag::counted("SELECT", 0))?;
    Ok(Executed::Complete)
}
