//! The seam for a second executor, which answers some queries over large inputs faster.
//!
//! The planner of this crate can plan every query. What a [`QueryEngine`] plans instead has to have
//! the same answer.

use std::fmt::Debug;
use std::sync::Arc;

use millpond_engine::catalog::{CatalogState, TableDef};

use crate::advisory::{Advisory, Key};
use crate::error::Result;
use crate::query::TableScanner;
use crate::sink::ColumnDesc;
use crate::types::Zone;
use crate::{DataType, Datum, Value};

/// What is to be planned.
#[derive(Debug)]
pub struct PlanRequest<'a> {
    /// The relations that there are.
    pub catalog: &'a Arc<CatalogState>,
    /// The session's time zone: the plan is for sessions in this one.
    pub zone: Zone,
    /// The query.
    pub text: &'a str,
    /// The types that the client has given to its parameters.
    pub given: &'a [Option<DataType>],
}

/// Plans queries. One per database.
pub trait QueryEngine: Debug + Send + Sync {
    /// `None`: its parser does not know the text.
    fn plan(&self, request: &PlanRequest<'_>) -> Result<Option<Arc<dyn ExternalPlan>>>;
}

/// What a function that locks is called with; it answers with the function's result.
pub type Lock<'l> = &'l mut dyn FnMut(Advisory, Key) -> Result<Value>;

/// A planned query.
pub trait ExternalPlan: Debug + Send + Sync {
    /// The types of its parameters.
    fn params(&self) -> &[DataType];

    /// What its columns are.
    fn columns(&self) -> &[ColumnDesc];

    /// The tables that it reads.
    fn tables(&self) -> &[Arc<TableDef>];

    /// The plan as lines of text.
    fn explain(&self, scanner: Arc<dyn TableScanner>) -> Result<Vec<String>>;

    /// Runs it over the tables of `scanner`. `each` says whether it wants more rows.
    fn run(
        &self,
        scanner: Arc<dyn TableScanner>,
        params: &[Value],
        lock: Lock<'_>,
        each: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()>;
}
