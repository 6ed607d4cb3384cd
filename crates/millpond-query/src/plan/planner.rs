//! The planner: how each kind of statement gets its plan.

use std::sync::Arc;

use millpond_engine::catalog::CatalogState;

use super::range_estimates::RangeEstimates;
use super::usable_indexes::UsableIndexes;
use super::{Plan, Planned};
use crate::DataType;
use crate::analyze::{self, Written};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, ParamTypes};
use crate::parse::{Query, Source, Statement};

/// What planning needs to know.
pub struct Planner<'a> {
    pub catalog: &'a Arc<CatalogState>,
    pub source: Source<'a>,
    /// Whether there is a second executor for large inputs.
    pub accelerated: bool,
    /// Whose snapshot the plan is to run under.
    pub indexes: &'a UsableIndexes<'a>,
    /// How many rows are within parts of them.
    pub ranges: &'a RangeEstimates<'a>,
}

impl<'a> Planner<'a> {
    /// Plans a query, INSERT, UPDATE or DELETE.
    pub fn plan(&self, statement: &Statement, params: ParamTypes<'a>) -> Result<Planned> {
        let again = params.again();
        let mut binder = self.binder(params);
        let written = match statement {
            Statement::Query(query) => return self.plan_query(query, binder),
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
        let mut binder = self.binder(again);
        let plan = self.modification(written, &mut binder)?;
        Ok(self.planned(plan, settled(binder.params)?))
    }

    fn binder(&self, params: ParamTypes<'a>) -> Binder<'a> {
        Binder::of_session(self.source, params, self.indexes.session)
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
        let passing = self.indexes.passed_over() || self.ranges.is_unsure();
        let (generation, ranges) = (self.catalog.generation(), self.ranges.noted());
        Planned { plan, params, columns, generation, ranges, passing }
    }

    /// Plans a query: as a hot statement if it is simple enough, else as a tree of nodes.
    fn plan_query(&self, query: &Query, mut binder: Binder<'a>) -> Result<Planned> {
        let again = binder.params.again();
        let mut plan = match self.select(&query.select, &mut binder) {
            Ok(plan) => plan,
            Err(error) if is_beyond(&error) => {
                let mut binder = self.binder(again);
                let analyzed = analyze::analyze(self.catalog, &query.select, &mut binder)?;
                let plan = self.plan_analyzed(analyzed, binder.params.count())?;
                let params = settled(binder.params)?;
                return Ok(self.planned(Plan::Query(Box::new(plan)), params));
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

/// Types of all parameters. A literal that nothing has given a type is text.
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
        ParamTypes::Lifted(_, types) => {
            Ok(types.into_iter().map(|ty| ty.unwrap_or(DataType::Text)).collect())
        }
        ParamTypes::None => Ok(Arc::new([])),
    }
}
