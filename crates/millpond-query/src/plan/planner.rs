//! The planner: how each kind of statement gets its plan.

use std::sync::Arc;

use millpond_engine::catalog::CatalogState;
use millpond_syntax::tree::SelectStmt;

use super::external::{PlanRequest, QueryEngine};
use super::query;
use super::usable_indexes::UsableIndexes;
use super::{Plan, Planned};
use crate::analyze::{self, Written};
use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, ParamTypes, beyond};
use crate::parse::{Query, Source, Statement};
use crate::types::Zone;
use crate::{DataType, Wait};

/// What planning needs to know.
pub struct Planner<'a> {
    pub catalog: &'a Arc<CatalogState>,
    pub source: Source<'a>,
    pub external: Option<&'a dyn QueryEngine>,
    /// The query engine takes milliseconds to plan: an event loop has no time for it.
    pub wait: Wait,
    /// The session's time zone, which the query engine's plans depend on.
    pub zone: Zone,
    /// Whose snapshot the plan is to run under.
    pub indexes: &'a UsableIndexes<'a>,
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
