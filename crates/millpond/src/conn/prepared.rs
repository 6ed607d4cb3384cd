//! Prepared statements: what they are, how they are made and kept.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::session::{Block, SqlSession};
use super::transaction::in_failed_transaction;
use super::types::Description;
use super::utility::explain::explain_columns;
use super::utility::variables::show_columns;
use crate::DataType;
use crate::shared_plans::{Compiled, Text, prepared_key};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::expr::bind::ParamTypes;
use millpond_query::parse::Statement;
use millpond_query::plan::Planned;
use millpond_query::sink::ColumnDesc;

/// Texts kept by a connection whose client prepares the same ones over and over (`-M extended`,
/// most drivers).
const RECENT_STATEMENTS: usize = 64;
/// Longer texts, or more declared types, are not worth their memory.
const RECENT_TEXT_BYTES: usize = 4 << 10;
const RECENT_PARAM_TYPES: usize = 256;

/// Whether a statement's plan is kept for clients that prepare it again.
fn is_short(sql: &str, param_types: &[Option<DataType>]) -> bool {
    sql.len() <= RECENT_TEXT_BYTES && param_types.len() <= RECENT_PARAM_TYPES
}

/// A prepared statement. It belongs to the connection that prepared it.
#[derive(Debug)]
pub struct Prepared {
    pub(super) description: Description,
    pub(super) sql: String,
    /// Tells it from all others; 0 while it is being made.
    pub(super) number: u64,
    /// What `standard_conforming_strings` was when the text was read.
    pub(super) standard_strings: bool,
    pub(super) body: Body,
}

impl Prepared {
    /// What has this plan.
    pub(super) fn of_plan(planned: Arc<Planned>, sql: &str) -> Self {
        let description =
            Description { params: Arc::clone(&planned.params), columns: planned.columns.clone() };
        let body = Body::Planned(Mutex::new(planned));
        Self { description, sql: sql.to_owned(), number: 0, standard_strings: true, body }
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

/// A text that was prepared, and is the same statement as long as no definition changes.
#[derive(Debug)]
pub(super) struct Recent {
    generation: u64,
    param_types: Vec<Option<DataType>>,
    prepared: Arc<Prepared>,
}

/// The prepared statements of a connection: those that PREPARE named, and texts that were prepared
/// lately by the extended protocol.
#[derive(Debug, Default)]
pub(super) struct PreparedStatements {
    pub(super) named: HashMap<String, Arc<Prepared>>,
    recent: HashMap<Box<str>, Recent>,
    /// Counts statements, to tell them apart.
    count: u32,
}

impl PreparedStatements {
    /// What the same text was prepared to lately.
    pub(super) fn known(
        &self,
        session: &SqlSession,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Option<Arc<Prepared>> {
        if !session.settings.standard_strings() || session.block == Block::Failed {
            return None;
        }
        let recent = self.recent.get(sql)?;
        let is_known = recent.generation == session.engine.catalog_generation()
            && recent.param_types == param_types;
        is_known.then(|| Arc::clone(&recent.prepared))
    }

    /// Prepares one statement.
    pub(super) fn prepare(
        &mut self,
        session: &SqlSession,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        if let Some(known) = self.known(session, sql, param_types) {
            return Ok(known);
        }
        let generation = session.engine.catalog_generation();
        let standard_strings = session.settings.standard_strings();
        let known = known_plan(session, sql, param_types, generation);
        let mut prepared = match known {
            Some(planned) => Prepared::of_plan(planned, sql),
            None => self.prepare_anew(session, sql, param_types)?,
        };
        self.count = self.count.wrapping_add(1);
        let process = u64::from(session.process_id().cast_unsigned());
        prepared.number = (process << 32) | u64::from(self.count);
        prepared.standard_strings = standard_strings;
        let prepared = Arc::new(prepared);
        if let Body::Planned(_) = prepared.body
            && standard_strings
            && is_short(sql, param_types)
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

    fn prepare_anew(
        &self,
        session: &SqlSession,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Prepared> {
        let mut parsed = session.parse(sql)?;
        if parsed.len() > 1 {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        let statement = parsed.pop();
        if session.block == Block::Failed
            && !matches!(statement, Some(Statement::Commit { .. } | Statement::Rollback { .. }))
        {
            return Err(in_failed_transaction());
        }
        let Some(statement) = statement else {
            let description = Description { params: Arc::new([]), columns: None };
            let (sql, body) = (sql.to_owned(), Body::Empty);
            return Ok(Prepared { description, sql, number: 0, standard_strings: true, body });
        };
        self.prepare_statement(session, statement, sql, param_types)
    }

    fn prepare_statement(
        &self,
        session: &SqlSession,
        statement: Statement,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Prepared> {
        if has_plan(&statement) {
            let types = ParamTypes::Declared(param_types.to_vec());
            let planned = Arc::new(session.plan(&statement, sql, types)?);
            share_plan(session, sql, param_types, &planned);
            return Ok(Prepared::of_plan(planned, sql));
        }
        let params = match &statement {
            Statement::Explain(explain) if has_plan(&explain.statement) => {
                let types = ParamTypes::Declared(param_types.to_vec());
                session.plan(&explain.statement, sql, types)?.params
            }
            _ => Arc::new([]),
        };
        let columns = self.utility_columns(&statement)?;
        let body = Body::Utility(Arc::new(statement));
        let description = Description { params, columns };
        let sql = sql.to_owned();
        Ok(Prepared { description, sql, number: 0, standard_strings: true, body })
    }

    /// The columns that a statement without a plan returns.
    fn utility_columns(&self, statement: &Statement) -> Result<Option<Arc<[ColumnDesc]>>> {
        Ok(match statement {
            Statement::Show(which) => Some(show_columns(which)?.into()),
            Statement::Explain(_) => Some(explain_columns().into()),
            Statement::Execute { name, .. } => self.find(name)?.description.columns.clone(),
            _ => None,
        })
    }

    /// The statement that PREPARE gave that name.
    pub(super) fn find(&self, name: &str) -> Result<&Arc<Prepared>> {
        self.named.get(name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }

    /// Forgets what PREPARE has named.
    pub(super) fn clear_named(&mut self, session: &mut SqlSession) {
        self.named.clear();
        session.named.clear();
    }
}

/// Whether a statement runs by a plan.
pub(super) fn has_plan(statement: &Statement) -> bool {
    use Statement as S;
    matches!(statement, S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_))
}

/// The plan with which another connection has prepared the same statement.
fn known_plan(
    session: &SqlSession,
    sql: &str,
    param_types: &[Option<DataType>],
    generation: u64,
) -> Option<Arc<Planned>> {
    if !is_short(sql, param_types)
        || session.block == Block::Failed
        || !session.settings.standard_strings()
        || !session.engine.sees_the_latest_catalog()
    {
        return None;
    }
    let key = prepared_key(sql, param_types);
    session.database.plans().get(&key, generation)?.compiled.plan().cloned()
}

/// Lets other connections have a plan.
fn share_plan(
    session: &SqlSession,
    sql: &str,
    param_types: &[Option<DataType>],
    planned: &Arc<Planned>,
) {
    if is_short(sql, param_types)
        && session.settings.standard_strings()
        && session.engine.sees_the_latest_catalog()
    {
        let key = prepared_key(sql, param_types);
        let text = Text::new(&key, Compiled::Plan(Arc::clone(planned)), planned.generation);
        session.database.plans().put(&text);
    }
}
