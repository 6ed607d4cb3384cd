//! Plans of statements: hot ones on one table, mostly through a key, and queries as trees of nodes
//! ([`query`]).
//!
//! A plan is made once for a statement's text and kept with the prepared statement, or in the cache
//! behind the lexer. It holds the definitions that it was made for. It is made again when the
//! catalog's generation has moved on, or when locking the table finds another definition. Plans are
//! immutable and shared.
//!
//! What these plans can't express goes to the query engine ([`external`]), if there is one.

mod access;
mod aggregate;
mod dml;
pub mod explain;
pub mod external;
mod from;
mod insert;
mod modify;
mod order;
mod output;
pub(crate) mod query;
mod scope;
mod select;

use std::cell::Cell;
use std::sync::Arc;

use millpond_engine::catalog::{CatalogState, IndexDef, TableDef};
use millpond_engine::session::Session;
use millpond_engine::table::LockStrength;
use millpond_syntax::tree::SelectStmt;

pub use access::{Access, IndexRange, KeyBounds, KeyList, KeyPart};
pub(crate) use aggregate::Aggregate;
pub use dml::{assigned, default_of, default_value, is_default, target_column};
pub(crate) use insert::{InsertColumns, check_width, insert_table, plain_values};
pub(crate) use order::{Ordered, SortKey};
pub(crate) use output::check_target_count;
pub use output::{Output, describe};
pub use scope::{FromScope, find_table};

use self::external::PlanRequest;
use crate::analyze::tree::Slot;
use crate::analyze::{self, Written};
use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, ParamTypes, beyond};
use crate::parse::{Query, Source, Statement};
use crate::sink::ColumnDesc;
use crate::system_relations::is_system;
use crate::types::Zone;
use crate::{DataType, Wait};

/// A plan with what is known about it.
#[derive(Debug)]
pub struct Planned {
    pub plan: Plan,
    /// Types of its parameters.
    pub params: Arc<[DataType]>,
    /// Its columns, if it returns rows.
    pub columns: Option<Arc<[ColumnDesc]>>,
    /// The state of the catalog that it was made for.
    pub generation: u64,
    /// The time zone of the sessions that it was made for, if that matters.
    pub zone: Option<Zone>,
    /// It does without an index that is too new for the transaction's snapshot: not a plan to keep.
    pub passing: bool,
}

/// What a statement does.
#[derive(Debug)]
pub enum Plan {
    Select(SelectPlan),
    /// Any other query.
    Query(Box<query::node::QueryPlan>),
    Insert(InsertPlan),
    Change(ChangePlan),
    External(Arc<dyn external::ExternalPlan>),
}

/// How a SELECT locks the rows that it returns.
#[derive(Debug, Clone, Copy)]
pub struct RowLock {
    pub(crate) strength: LockStrength,
    pub(crate) conflict: OnConflict,
}

/// What a SELECT makes of a row that another transaction holds; of several clauses the last of
/// these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OnConflict {
    Wait,
    /// SKIP LOCKED
    Skip,
    /// NOWAIT
    Fail,
}

/// What is made of the rows that FROM and WHERE give.
#[derive(Debug)]
pub struct Results {
    pub aggregates: Option<Vec<Aggregate>>,
    pub output: Output,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// A SELECT of at most one table.
#[derive(Debug)]
pub struct SelectPlan {
    /// `None`: one row without columns.
    pub table: Option<Arc<TableDef>>,
    pub access: Access,
    /// What the access does not see to.
    pub filter: Option<Expr>,
    /// All of WHERE, for rows that have changed meanwhile.
    pub condition: Option<Expr>,
    /// The first row decides the aggregate: a least or greatest value, read in its index's order.
    pub first_only: bool,
    pub results: Results,
    pub lock: Option<RowLock>,
}

/// Where an INSERT's rows come from.
#[derive(Debug)]
pub(crate) enum InsertSource {
    /// Rows of expressions, one per column of the table.
    Values(Vec<Vec<Expr>>),
    /// A query; for each column of the table, an expression over the query's row.
    Query(Box<Selected>, Vec<Expr>),
}

/// An INSERT.
#[derive(Debug)]
pub struct InsertPlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) source: InsertSource,
    pub(crate) returning: Option<Output>,
}

/// An UPDATE or DELETE.
#[derive(Debug)]
pub struct ChangePlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) rows: Target,
    /// Columns with their new values; `None`: delete.
    pub(crate) set: Option<Vec<(usize, Expr)>>,
    pub(crate) returning: Option<Output>,
}

/// The rows that an UPDATE or DELETE changes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Found here; new values are computed from the row.
    Accessed {
        access: Access,
        /// What the access does not see to.
        filter: Option<Expr>,
        /// All of WHERE, for rows that have changed meanwhile.
        condition: Option<Expr>,
    },
    /// Found by a query; new values are computed from its rows.
    Selected(Box<Selected>),
}

/// What gives the rows that a statement changes or inserts.
#[derive(Debug)]
pub(crate) struct Selected {
    pub(crate) plan: query::node::QueryPlan,
    /// Where the row of the table to be changed is.
    pub(crate) target: Slot,
    /// What the statement calls the table.
    pub(crate) alias: String,
    /// WHERE, for rows that have changed meanwhile.
    pub(crate) recheck: Option<Expr>,
    /// It changes one row at most, and nothing after that may have to wait.
    pub(crate) can_begin_unwaiting: bool,
}

impl Plan {
    /// Whether the query engine has a part in it.
    fn is_external(&self) -> bool {
        matches!(self, Plan::External(_))
    }

    /// The columns of the rows that it returns, if it returns any.
    fn columns(&self) -> Option<Arc<[ColumnDesc]>> {
        let output = match self {
            Plan::Select(plan) => Some(&plan.results.output),
            Plan::Query(plan) => Some(&plan.output),
            Plan::Insert(plan) => plan.returning.as_ref(),
            Plan::Change(plan) => plan.returning.as_ref(),
            Plan::External(plan) => return Some(plan.columns().into()),
        };
        output.map(|output| Arc::clone(&output.columns))
    }
}

impl Planned {
    /// The verb of its command tag.
    pub fn verb(&self) -> &'static str {
        match &self.plan {
            Plan::Select(_) | Plan::Query(_) | Plan::External(_) => "SELECT",
            Plan::Insert(_) => "INSERT",
            Plan::Change(plan) if plan.set.is_some() => "UPDATE",
            Plan::Change(_) => "DELETE",
        }
    }

    /// What it is called if it changes or locks rows.
    pub fn writes(&self) -> Option<&'static str> {
        match &self.plan {
            Plan::Select(plan) => Some(lock_name(plan.lock?.strength)),
            Plan::Query(plan) => match plan.row_lock() {
                Some(strength) => Some(lock_name(strength)),
                None => plan.modifications().next().map(|_| self.verb()),
            },
            Plan::External(_) => None,
            _ => Some(self.verb()),
        }
    }
}

fn lock_name(strength: LockStrength) -> &'static str {
    match strength {
        LockStrength::KeyShare => "SELECT FOR KEY SHARE",
        LockStrength::Share => "SELECT FOR SHARE",
        LockStrength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
        LockStrength::Update => "SELECT FOR UPDATE",
    }
}

/// What planning needs to know.
pub struct Planner<'a> {
    pub catalog: &'a Arc<CatalogState>,
    pub source: Source<'a>,
    pub external: Option<&'a dyn external::QueryEngine>,
    /// The query engine takes milliseconds to plan: an event loop has no time for it.
    pub wait: Wait,
    /// The session's time zone, which the query engine's plans depend on.
    pub zone: Zone,
    /// Whose snapshot the plan is to run under.
    pub indexes: &'a UsableIndexes<'a>,
}

/// Which indexes a plan may use.
pub struct UsableIndexes<'a> {
    session: &'a Session,
    /// Some index is too new for the session's snapshot.
    passed_over: Cell<bool>,
}

impl<'a> UsableIndexes<'a> {
    pub fn new(session: &'a Session) -> Self {
        Self { session, passed_over: Cell::new(false) }
    }

    /// Whether a plan has had to do without one.
    pub fn passed_over(&self) -> bool {
        self.passed_over.get()
    }

    /// Rows of a table, as far as known.
    pub(crate) fn live_rows(&self, table: &TableDef) -> i64 {
        if is_system(table) {
            return 0;
        }
        // Nothing is known until it is open.
        let _ = self.session.block_count(table);
        table.stats.live_rows()
    }

    /// Those of a table. One that can't be judged is not used.
    pub(crate) fn of<'t>(
        &'t self,
        table: &'t TableDef,
    ) -> impl Iterator<Item = &'t Arc<IndexDef>> + 't {
        table.indexes.iter().filter(|index| {
            let usable = self.session.is_usable(index).unwrap_or(false);
            if !usable {
                self.passed_over.set(true);
            }
            usable
        })
    }
}

impl<'a> Planner<'a> {
    /// Plans a query, INSERT, UPDATE or DELETE.
    pub fn plan(&self, statement: &Statement, params: ParamTypes<'_>) -> Result<Planned> {
        let given = match &params {
            ParamTypes::Declared(types) => types.clone(),
            _ => Vec::new(),
        };
        let again = params.again();
        let mut binder = Binder::new(self.source, params);
        let written = match statement {
            Statement::Query(query) => return self.plan_query(query, binder, &given),
            Statement::Insert(insert) => Written::Insert(insert),
            Statement::Update(update) => Written::Update(update),
            Statement::Delete(delete) => Written::Delete(delete),
            _ => return Err(SqlError::internal("this statement has no plan")),
        };
        if written.with().is_none() {
            match self.hot_modification(written, &mut binder) {
                Err(error) if is_beyond(&error) => {}
                plan => return Ok(self.planned(plan?, settled(binder.params)?)),
            }
        }
        let mut binder = Binder::new(self.source, again);
        let plan = self.modification(written, &mut binder)?;
        Ok(self.planned(plan, settled(binder.params)?))
    }

    /// Plans a statement that needs no query.
    fn hot_modification(&self, written: Written<'_>, binder: &mut Binder<'_>) -> Result<Plan> {
        Ok(match written {
            Written::Insert(insert) => Plan::Insert(self.insert(insert, binder)?),
            Written::Update(update) => Plan::Change(self.update(update, binder)?),
            Written::Delete(delete) => Plan::Change(self.delete(delete, binder)?),
        })
    }

    fn planned(&self, plan: Plan, params: Arc<[DataType]>) -> Planned {
        let columns = plan.columns();
        let passing = self.indexes.passed_over();
        let zone = plan.is_external().then_some(self.zone);
        Planned { plan, params, columns, generation: self.catalog.generation(), zone, passing }
    }

    /// Plans a query: as a hot statement if it is simple enough, else as a tree of nodes. The query
    /// engine gets what has no place there.
    fn plan_query(
        &self,
        query: &Query,
        mut binder: Binder<'_>,
        given: &[Option<DataType>],
    ) -> Result<Planned> {
        let again = binder.params.again();
        let mut plan = match self.select(&query.select, &mut binder) {
            Ok(plan) => plan,
            Err(error) if is_beyond(&error) => {
                let mut binder = Binder::new(self.source, again);
                let planned = match self.analyzed_query(&query.select, &mut binder) {
                    Err(error) if error.is_beyond && !binder.is_lifted() => {
                        return self.missing_here(query, given, error);
                    }
                    planned => planned?,
                };
                if self.external.is_some() && planned.is_for_engine() {
                    if binder.is_lifted() {
                        return Err(beyond("a query of many rows"));
                    }
                    match self.external(query, given) {
                        Ok(Some(plan)) => return Ok(plan),
                        Err(error) if self.wait == Wait::Never => return Err(error),
                        // It is slower here, and has an answer.
                        Ok(None) | Err(_) => {}
                    }
                }
                let params = settled(binder.params)?;
                return Ok(self.planned(Plan::Query(Box::new(planned.plan)), params));
            }
            Err(error) => return Err(error),
        };
        if let Plan::Select(plan) = &mut plan
            && !query.select.locking_clause.is_empty()
        {
            plan.lock = self.row_lock(&query.select, plan)?;
        }
        Ok(self.planned(plan, settled(binder.params)?))
    }

    /// Plans a query as a tree of nodes.
    fn analyzed_query(
        &self,
        query: &SelectStmt,
        binder: &mut Binder<'_>,
    ) -> Result<query::PlannedQuery> {
        let analyzed = analyze::analyze(self.catalog, query, binder)?;
        self.plan_analyzed(analyzed, binder.params.count())
    }

    /// Has the query engine plan a query for which there is no plan here, because of `error`. The
    /// engine knows more system relations and their functions.
    fn missing_here(
        &self,
        query: &Query,
        given: &[Option<DataType>],
        error: SqlError,
    ) -> Result<Planned> {
        match self.external(query, given) {
            Ok(Some(plan)) => Ok(plan),
            Ok(None) => Err(error),
            Err(theirs) => Err(if says_more(&error, &theirs) { error } else { theirs }),
        }
    }

    /// Has the query engine plan a query. `None`: there is no engine, or it can't read the text.
    fn external(&self, query: &Query, given: &[Option<DataType>]) -> Result<Option<Planned>> {
        let Some(planner) = self.external else { return Ok(None) };
        if self.wait == Wait::Never {
            return Err(would_block());
        }
        let text = self.source.piece(query.location, query.length);
        let request = PlanRequest { catalog: self.catalog, zone: self.zone, text, given };
        Ok(planner.plan(&request)?.map(|plan| {
            let params = plan.params().into();
            self.planned(Plan::External(plan), params)
        }))
    }
}

/// Whether the error of the analyzer says more than that of the query engine. A position beats
/// none. Of what is missing here, the engine's message may say only that it does not know it
/// either.
fn says_more(here: &SqlError, theirs: &SqlError) -> bool {
    let is_missing = here.sqlstate == SqlState::FEATURE_NOT_SUPPORTED;
    let is_vague = [
        SqlState::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION,
        SqlState::DATA_EXCEPTION,
        SqlState::UNDEFINED_FUNCTION,
    ]
    .contains(&theirs.sqlstate);
    is_missing && is_vague || theirs.sqlstate == here.sqlstate && here.position.is_some()
}

/// Whether there may be another plan than one for a statement on one table.
fn is_beyond(error: &SqlError) -> bool {
    [
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_OBJECT,
        SqlState::INVALID_SCHEMA_NAME,
    ]
    .contains(&error.sqlstate)
}

/// Types of all parameters; one that nothing has given a type is text, as in PostgreSQL's newer
/// versions where its use allows it.
fn settled(params: ParamTypes<'_>) -> Result<Arc<[DataType]>> {
    match params {
        ParamTypes::Declared(types) => types
            .into_iter()
            .enumerate()
            .map(|(number, ty)| {
                ty.ok_or_else(|| {
                    SqlError::new(
                        SqlState::INDETERMINATE_DATATYPE,
                        format!("could not determine data type of parameter ${}", number + 1),
                    )
                })
            })
            .collect(),
        _ => Ok(Arc::new([])),
    }
}
