//! From a parsed query to a plan that can be run many times.
//!
//! Planning (names, types, the optimizer) happens once per statement and catalog generation. Each
//! run replaces parameters and what depends on the session, then makes the physical plan. One
//! [`SessionState`] with its functions is shared by all.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource,
    WindowUDF,
};
use datafusion::prelude::SessionConfig;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{Query, Statement};
use millpond_engine::catalog::{CatalogState, TableDef};
use parking_lot::Mutex;

use super::bounded::BoundedText;
use super::dialect::{self, CheckedArithmetic};
use super::errors::from_datafusion;
use super::functions;
use super::plan::{BATCH_ROWS, QueryPlan};
use super::provider::Table;
use super::rewrite;
use super::text;
use super::threads::QueryThreads;
use super::types::{arrow_type, sql_type};
use super::views;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::memory::QueryMemory;
use millpond_query::plan::external::{ExternalPlan, PlanRequest, QueryEngine};
use millpond_types::DataType;
use millpond_types::format::Zone;

/// Plans queries. One per database.
pub struct Planner {
    base: Arc<SessionState>,
    threads: Arc<QueryThreads>,
}

impl std::fmt::Debug for Planner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Planner").finish_non_exhaustive()
    }
}

impl QueryEngine for Planner {
    fn plan(&self, request: &PlanRequest<'_>) -> Result<Option<Arc<dyn ExternalPlan>>> {
        Ok(self.plan_text(request)?.map(|plan| Arc::new(plan) as Arc<dyn ExternalPlan>))
    }
}

impl Planner {
    /// Sets DataFusion up: its functions, ours, and the `query_threads` threads that queries run
    /// on, whose priority is lower by that many steps of `nice`. Results of functions are bounded
    /// by a share of `memory`.
    pub fn new(niceness: i32, query_threads: usize, memory: &Arc<QueryMemory>) -> Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut config =
            SessionConfig::new().with_target_partitions(threads).with_batch_size(BATCH_ROWS);
        let options = config.options_mut();
        // Repartitioning small inputs between threads costs more than it brings.
        options.optimizer.enable_round_robin_repartition = false;
        options.sql_parser.map_string_types_to_utf8view = false;
        options.catalog.information_schema = false;
        options.catalog.create_default_catalog_and_schema = false;
        // Without a zone now() and casts to timestamptz would make time stamps without time zone.
        options.execution.time_zone = Zone::UTC.arrow_name();
        let mut base =
            SessionStateBuilder::new().with_config(config).with_default_features().build();
        base.add_analyzer_rule(Arc::new(CheckedArithmetic));
        base.add_analyzer_rule(Arc::new(BoundedText { memory: Arc::clone(memory) }));
        functions::register(&mut base).map_err(from_datafusion)?;
        let threads = QueryThreads::new(threads, query_threads, niceness);
        Ok(Self { base: Arc::new(base), threads })
    }

    /// Whether something of a run that has ended is still computed.
    #[cfg(test)]
    pub fn is_computing(&self) -> bool {
        self.threads.computing() > 0
    }

    /// Plans the query that a text is; `None` if its grammar is not known here.
    fn plan_text(&self, request: &PlanRequest<'_>) -> Result<Option<QueryPlan>> {
        let (text, params) = (request.text, request.given);
        let misunderstood = text::misunderstood(text).map(SqlError::unsupported);
        let Some(query) = text::parse(text)? else {
            return misunderstood.map_or(Ok(None), Err);
        };
        match (self.plan_tree(request, query, params), misunderstood) {
            (Ok(plan), None) => Ok(Some(plan)),
            (Err(error), None) => Err(error),
            // It says more that there is no such table.
            (Err(error), Some(_)) if error.sqlstate == SqlState::UNDEFINED_TABLE => Err(error),
            (_, Some(misunderstood)) => Err(misunderstood),
        }
    }

    /// Plans `query`. `params` are the types that the client gave to its parameters; those it left
    /// open are inferred.
    fn plan_tree(
        &self,
        request: &PlanRequest<'_>,
        mut query: Box<Query>,
        params: &[Option<DataType>],
    ) -> Result<QueryPlan> {
        rewrite::adapt(&mut query);
        let (state, zone) = self.in_zone(request.zone)?;
        let names = Names {
            state: &state,
            zone: &zone,
            catalog: request.catalog,
            catalog_functions: functions::of_catalog(request.catalog),
            used: Mutex::new(Vec::new()),
            misplaced: Mutex::new(None),
        };
        let options = ParserOptions::new()
            .with_parse_float_as_decimal(true)
            .with_map_string_types_to_utf8view(false);
        let planner = SqlToRel::new_with_options(&names, options);
        let given = params.iter().map(|ty| {
            ty.map(|ty| {
                Arc::new(datafusion::arrow::datatypes::Field::new("", arrow_type(ty), true))
            })
        });
        let mut context = PlannerContext::new().with_prepare_param_data_types(given.collect());
        let logical = planner
            .sql_statement_to_plan_with_context(Statement::Query(query), &mut context)
            .map_err(|error| names.misplaced().unwrap_or_else(|| from_datafusion(error)))?;
        let logical = dialect::apply(logical).map_err(from_datafusion)?;
        let tables = names.used.into_inner();
        QueryPlan::new(
            state.clone(),
            Arc::clone(&self.threads),
            logical,
            zone.clone(),
            tables,
            params,
        )
    }
}

impl Planner {
    /// What plans for sessions in a time zone are made with, and the zone as Arrow names it.
    fn in_zone(&self, zone: Zone) -> Result<(Arc<SessionState>, Arc<str>)> {
        let Some(name) = zone.arrow_name() else {
            return Err(SqlError::unsupported("a time zone with seconds in such a query"));
        };
        if zone == Zone::UTC {
            return Ok((Arc::clone(&self.base), name.into()));
        }
        let mut state = SessionState::clone(&self.base);
        state.config_mut().options_mut().execution.time_zone = Some(name.clone());
        // Some functions, as now(), have taken the zone from the configuration that they were made
        // with.
        let options = Arc::clone(state.config_options());
        let functions: Vec<_> = state.scalar_functions().values().cloned().collect();
        for function in functions {
            if let Some(other) = function.inner().with_updated_config(&options) {
                state.register_udf(Arc::new(other)).map_err(from_datafusion)?;
            }
        }
        Ok((Arc::new(state), name.into()))
    }
}

/// Where a query's names are looked up.
struct Names<'a> {
    state: &'a SessionState,
    zone: &'a str,
    catalog: &'a Arc<CatalogState>,
    catalog_functions: HashMap<String, Arc<ScalarUDF>>,
    used: Mutex<Vec<Arc<TableDef>>>,
    /// A function that returns rows, where a value was wanted.
    misplaced: Mutex<Option<String>>,
}

impl Names<'_> {
    /// What to say of a query with such a function.
    fn misplaced(&self) -> Option<SqlError> {
        let name = self.misplaced.lock();
        name.as_ref().map(|name| SqlError::unsupported(format!("function {name} outside of FROM")))
    }

    fn user_table(&self, name: &str) -> Option<Arc<dyn TableSource>> {
        let def = self.catalog.table_by_name(name)?;
        let mut used = self.used.lock();
        if !used.iter().any(|known| known.oid == def.oid) {
            used.push(Arc::clone(def));
        }
        Some(provider_as_source(Arc::new(Table::new(Arc::clone(def), self.zone))))
    }

    fn view(&self, schema: &str, name: &str) -> Option<Arc<dyn TableSource>> {
        views::find(schema, name, self.catalog, self.zone).map(provider_as_source)
    }
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> DfResult<Arc<dyn TableSource>> {
        // PostgreSQL's path: pg_catalog before public.
        let found = match (name.schema(), name.table()) {
            (None, table) => self.view("pg_catalog", table).or_else(|| self.user_table(table)),
            (Some("public"), table) => self.user_table(table),
            (Some(schema), table) => self.view(schema, table),
        };
        found.ok_or_else(|| {
            let shown = match name.schema() {
                Some(schema) => format!("{schema}.{}", name.table()),
                None => name.table().to_owned(),
            };
            DataFusionError::External(Box::new(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{shown}\" does not exist"),
            )))
        })
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<Expr>,
    ) -> DfResult<Arc<dyn TableSource>> {
        use datafusion::catalog::TableFunctionArgs;
        if args.is_empty()
            && let Some(table) = views::find_function(name, self.catalog, self.zone)
        {
            return Ok(provider_as_source(table));
        }
        let Some(function) = self.state.table_functions().get(name) else {
            return Err(no_function(name, &args));
        };
        let table =
            function.create_table_provider_with_args(TableFunctionArgs::new(&args, self.state))?;
        Ok(provider_as_source(table))
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: datafusion::arrow::datatypes::SchemaRef,
    ) -> DfResult<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let of_catalog = self.catalog_functions.get(name);
        let found = of_catalog.or_else(|| self.state.scalar_functions().get(name)).cloned();
        let returns_rows =
            || rewrite::returns_rows(name) || self.state.table_functions().contains_key(name);
        if found.is_none() && returns_rows() {
            *self.misplaced.lock() = Some(name.to_owned());
        }
        found
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(
        &self,
        _names: &[String],
    ) -> Option<datafusion::arrow::datatypes::DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}

/// Makes sure that the crate's plans can be kept by connections on any thread.
const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<Planner>();
const _: () = assert_send_sync::<LogicalPlan>();

/// There is no function of that name in `FROM`, or none that takes these arguments.
fn no_function(name: &str, args: &[Expr]) -> DataFusionError {
    let type_name = |arg: &Expr| {
        let known = arg.get_type(&DFSchema::empty()).ok().and_then(|arrow| sql_type(&arrow));
        known.map_or("unknown".to_owned(), |ty| ty.to_string())
    };
    let types: Vec<_> = args.iter().map(type_name).collect();
    let what = format!("function {name}({}) does not exist", types.join(", "));
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    DataFusionError::External(Box::new(
        SqlError::new(SqlState::UNDEFINED_FUNCTION, what).hint(hint),
    ))
}
