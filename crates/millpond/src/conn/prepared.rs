//! Prepared statements: what they are, how they are made and kept; and portals.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Connection;
use super::in_use::Reads;
use super::shared::{Compiled, Text, prepared_key};
use super::transaction::{Block, in_failed_transaction};
use super::types::{Description, Params};
use crate::convert::is_would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::ParamTypes;
use crate::memory::Rows;
use crate::parse::Statement;
use crate::plan::Planned;
use crate::sink::{ColumnDesc, CommandTag};
use crate::{DataType, Wait};

/// Texts kept by a connection whose client prepares the same ones over and over (`-M extended`,
/// most drivers).
const RECENT_STATEMENTS: usize = 64;
/// Longer texts are not worth their memory.
const RECENT_TEXT_BYTES: usize = 4 << 10;

/// A prepared statement. It belongs to the connection that prepared it.
#[derive(Debug)]
pub struct Prepared {
    pub(super) description: Description,
    pub(super) sql: String,
    /// Tells it from all others; 0 while it is being made.
    pub(super) number: u64,
    pub(super) body: Body,
}

impl Prepared {
    /// What has this plan.
    pub(super) fn of_plan(planned: Arc<Planned>, sql: &str) -> Self {
        let description =
            Description { params: Arc::clone(&planned.params), columns: planned.columns.clone() };
        let body = Body::Planned(Mutex::new(planned));
        Self { description, sql: sql.to_owned(), number: 0, body }
    }
}

/// What executing it means.
#[derive(Debug)]
pub(super) enum Body {
    Empty,
    /// A plan, made again when the catalog has changed. Locked for as long as it runs; a second
    /// connection that an embedder has given the statement to makes a plan of its own meanwhile.
    Planned(Mutex<Arc<Planned>>),
    /// Anything else is executed from its parsed form.
    Utility(Arc<Statement>),
}

impl Prepared {
    /// The types of the parameters.
    pub fn params(&self) -> &[DataType] {
        &self.description.params
    }

    /// The columns, if the statement returns rows. They don't change: if DDL has changed what the
    /// statement would return, executing it fails with "cached plan must not change result type".
    pub fn columns(&self) -> Option<&Arc<[ColumnDesc]>> {
        self.description.columns.as_ref()
    }

    /// The statement's text.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

/// A prepared statement with its parameters, ready to run or in the middle of it.
#[derive(Debug)]
pub struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) params: Params,
    pub(super) state: PortalState,
    /// What it reads, once it has been executed.
    pub(super) reads: Option<Reads>,
}

#[derive(Debug)]
pub(super) enum PortalState {
    Ready,
    /// It has begun, and is to be repeated where it may wait.
    Blocked,
    /// Rows that have been computed but not been asked for yet.
    Holding {
        rows: Rows,
        tag: CommandTag,
    },
    Done,
}

impl Portal {
    /// The statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }
}

/// A text that was prepared, and is the same statement as long as no definition changes.
#[derive(Debug)]
pub(super) struct Recent {
    generation: u64,
    param_types: Vec<Option<DataType>>,
    prepared: Arc<Prepared>,
}

impl Connection {
    /// Prepares one statement, however long planning it takes. Parameters whose type is not given
    /// get it from where they stand.
    pub fn prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        self.prepare_within(Wait::Allowed, sql, param_types).inspect_err(|_| self.fail())
    }

    /// The same for a server's event loop: `None` where the connection must not wait and the query
    /// engine would have to plan. Then nothing has happened; call it again where waiting is
    /// allowed.
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

    pub(super) fn prepare_within(
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
        self.database.plans().get(&key, generation)?.compiled.plan().cloned()
    }

    /// Lets other connections have a plan.
    fn share_plan(&self, sql: &str, param_types: &[Option<DataType>], planned: &Arc<Planned>) {
        if sql.len() <= RECENT_TEXT_BYTES && self.session.sees_the_latest_catalog() {
            let key = prepared_key(sql, param_types);
            let text = Text::new(&key, Compiled::Plan(Arc::clone(planned)), planned.generation);
            self.database.plans().put(&text);
        }
    }

    fn prepare_anew(
        &self,
        wait: Wait,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Prepared> {
        let mut parsed = self.parse(sql)?;
        if parsed.len() > 1 {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        let statement = parsed.pop();
        if self.block == Block::Failed
            && !matches!(statement, Some(Statement::Commit { .. } | Statement::Rollback { .. }))
        {
            return Err(in_failed_transaction());
        }
        let Some(statement) = statement else {
            let description = Description { params: Arc::new([]), columns: None };
            let (sql, body) = (sql.to_owned(), Body::Empty);
            return Ok(Prepared { description, sql, number: 0, body });
        };
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
        let columns = self.utility_columns(&statement)?;
        let body = Body::Utility(Arc::new(statement));
        let description = Description { params: Arc::new([]), columns };
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
}
