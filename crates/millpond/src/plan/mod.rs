//! Plans of statements that read or change one table, mostly through a key.
//!
//! A plan is made once for a statement's text and kept with the prepared statement, or in the cache behind the
//! lexer. It holds the definitions that it was made for; when the catalog's generation has moved on, or when
//! locking the table finds another definition, it is made again. Plans are immutable and shared.
//!
//! What these plans can't express goes to the query engine ([`external`]), if there is one.

mod access;
mod aggregate;
mod dml;
pub(crate) mod explain;
pub(crate) mod external;
mod modify;
mod order;
mod output;
mod scope;
mod select;

use std::sync::Arc;

use millpond_engine::catalog::{CatalogState, TableDef};
use millpond_engine::table::LockStrength;

pub(crate) use access::{Access, IndexRange, KeyPart};
pub(crate) use aggregate::Aggregate;
pub(crate) use dml::{default_expression, default_of};
pub(crate) use modify::ModifyPlan;
pub(crate) use order::{Ordered, SortKey};
pub(crate) use output::{Output, describe};
pub(crate) use scope::{TableScope, find_table};

use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, ParamTypes};
use crate::parse::{Source, Statement};
use crate::sink::ColumnDesc;
use crate::{DataType, Wait};

/// A plan with what is known about it.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// Types of its parameters.
    pub(crate) params: Arc<[DataType]>,
    /// Its columns, if it returns rows.
    pub(crate) columns: Option<Arc<[ColumnDesc]>>,
    /// The state of the catalog that it was made for.
    pub(crate) generation: u64,
}

/// What a statement does.
#[derive(Debug)]
pub(crate) enum Plan {
    Select(SelectPlan),
    Insert(InsertPlan),
    Update(UpdatePlan),
    Delete(DeletePlan),
    Modify(ModifyPlan),
    External(external::ExternalPlan),
}

/// A SELECT of at most one table.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    /// `None`: one row without columns.
    pub(crate) table: Option<Arc<TableDef>>,
    pub(crate) access: Access,
    /// What the access does not see to.
    pub(crate) filter: Option<Expr>,
    /// All of WHERE, for rows that have changed meanwhile.
    pub(crate) condition: Option<Expr>,
    pub(crate) aggregates: Option<Vec<Aggregate>>,
    /// The first row decides the aggregate: a least or greatest value, read in its index's order.
    pub(crate) first_only: bool,
    pub(crate) output: Output,
    pub(crate) sort: Vec<SortKey>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    pub(crate) lock: Option<(LockStrength, bool)>,
}

/// Where an INSERT's rows come from.
#[derive(Debug)]
pub(crate) enum InsertSource {
    /// Rows of expressions, one per column of the table.
    Values(Vec<Vec<Expr>>),
    /// A query; for each column of the table, an expression over the query's row.
    Query(Arc<Planned>, Vec<Expr>),
}

/// An INSERT.
#[derive(Debug)]
pub(crate) struct InsertPlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) source: InsertSource,
    pub(crate) returning: Option<Output>,
}

/// An UPDATE.
#[derive(Debug)]
pub(crate) struct UpdatePlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) access: Access,
    pub(crate) filter: Option<Expr>,
    pub(crate) condition: Option<Expr>,
    /// Columns with their new values.
    pub(crate) set: Vec<(usize, Expr)>,
    pub(crate) returning: Option<Output>,
}

/// A DELETE.
#[derive(Debug)]
pub(crate) struct DeletePlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) access: Access,
    pub(crate) filter: Option<Expr>,
    pub(crate) condition: Option<Expr>,
    pub(crate) returning: Option<Output>,
}

impl Planned {
    /// The verb of its command tag.
    pub(crate) fn verb(&self) -> &'static str {
        match &self.plan {
            Plan::Select(_) | Plan::External(_) => "SELECT",
            Plan::Insert(_) => "INSERT",
            Plan::Modify(plan) if plan.set.is_some() => "UPDATE",
            Plan::Update(_) => "UPDATE",
            Plan::Delete(_) | Plan::Modify(_) => "DELETE",
        }
    }

    /// What it is called if it changes or locks rows.
    pub(crate) fn writes(&self) -> Option<&'static str> {
        match &self.plan {
            Plan::Select(plan) if plan.lock.is_some() => Some("SELECT FOR UPDATE"),
            Plan::Select(_) | Plan::External(_) => None,
            _ => Some(self.verb()),
        }
    }
}

/// What planning needs to know.
pub(crate) struct Planner<'a> {
    pub(crate) catalog: &'a Arc<CatalogState>,
    pub(crate) source: Source<'a>,
    pub(crate) external: Option<&'a external::ExternalPlanner>,
    /// The query engine takes milliseconds to plan: an event loop has no time for it.
    pub(crate) wait: Wait,
}

impl<'a> Planner<'a> {
    /// Plans a query, INSERT, UPDATE or DELETE.
    pub(crate) fn plan(&self, statement: &Statement, params: ParamTypes<'_>) -> Result<Planned> {
        let given = match &params {
            ParamTypes::Declared(types) => types.clone(),
            _ => Vec::new(),
        };
        let mut binder = Binder::new(self.source, params);
        let (plan, columns) = match statement {
            Statement::Query(query) => return self.plan_query(query, binder, &given),
            Statement::Insert(insert) => {
                let plan = self.insert(insert, &mut binder, &given)?;
                let columns = plan.returning.as_ref().map(|output| Arc::clone(&output.columns));
                (Plan::Insert(plan), columns)
            }
            Statement::Update(update) => {
                let plan = match self.update(update, &mut binder) {
                    Err(error) if is_beyond(&error) && !binder.is_lifted() => {
                        let plan = self.modify_update(update, &mut binder, &given, error)?;
                        return Ok(self.modified(plan));
                    }
                    other => other?,
                };
                let columns = plan.returning.as_ref().map(|output| Arc::clone(&output.columns));
                (Plan::Update(plan), columns)
            }
            Statement::Delete(delete) => {
                let plan = match self.delete(delete, &mut binder) {
                    Err(error) if is_beyond(&error) && !binder.is_lifted() => {
                        let plan = self.modify_delete(delete, &mut binder, &given, error)?;
                        return Ok(self.modified(plan));
                    }
                    other => other?,
                };
                let columns = plan.returning.as_ref().map(|output| Arc::clone(&output.columns));
                (Plan::Delete(plan), columns)
            }
            _ => return Err(SqlError::internal("this statement has no plan")),
        };
        let params = settled(binder.params)?;
        Ok(Planned { plan, params, columns, generation: self.catalog.generation() })
    }

    fn modified(&self, plan: ModifyPlan) -> Planned {
        Planned {
            params: plan.query.params(),
            columns: plan.returning.as_ref().map(|output| Arc::clone(&output.columns)),
            plan: Plan::Modify(plan),
            generation: self.catalog.generation(),
        }
    }

    /// Plans a query: here if it is simple enough, else by the query engine.
    fn plan_query(
        &self,
        query: &sqlparser::ast::Query,
        mut binder: Binder<'_>,
        given: &[Option<DataType>],
    ) -> Result<Planned> {
        let plan = match self.select(query, &mut binder) {
            Ok(plan) => plan,
            Err(error) if is_beyond(&error) && !binder.is_lifted() => {
                return self.external(query, given, error);
            }
            Err(error) => return Err(error),
        };
        let columns = Some(Arc::clone(&plan.output.columns));
        let params = settled(binder.params)?;
        let generation = self.catalog.generation();
        Ok(Planned { plan: Plan::Select(plan), params, columns, generation })
    }

    fn external(
        &self,
        query: &sqlparser::ast::Query,
        given: &[Option<DataType>],
        error: SqlError,
    ) -> Result<Planned> {
        let Some(planner) = self.external else { return Err(error) };
        if let Some(what) = crate::parse::misunderstood(&query.to_string()) {
            return Err(SqlError::unsupported(what));
        }
        if self.wait == Wait::Never {
            return Err(would_block());
        }
        let plan = planner.plan(self.catalog, query, given, None).map_err(|theirs| {
            // A position beats none; what both don't know is best said in the statement's own words.
            if theirs.sqlstate == error.sqlstate && error.position.is_some() {
                error
            } else {
                theirs
            }
        })?;
        Ok(Planned {
            params: plan.params(),
            columns: Some(plan.columns()),
            plan: Plan::External(plan),
            generation: self.catalog.generation(),
        })
    }
}

/// Whether the query engine may know better.
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

/// Types of all parameters; one that nothing has given a type is text, as in PostgreSQL's newer versions where
/// its use allows it.
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
