//! Errors of ours on their way through DataFusion, and what becomes of its own.

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;
use millpond_query::convert::temporary_file;
use millpond_query::{SqlError, SqlState};

/// Why an aggregation is not answered here.
#[derive(Debug)]
pub enum Failure {
    /// The statement ends with this.
    Statement(SqlError),
    /// The aggregation is declined.
    Declined,
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        match of_statement(&error) {
            Some(error) => Failure::Statement(error),
            None => {
                tracing::debug!("no part of an aggregation: {error}");
                Failure::Declined
            }
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        DataFusionError::from(error).into()
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        external(error).into()
    }
}

/// An error of ours on its way through DataFusion.
pub fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The error that ends the statement, if it is one. Errors of values don't: it may be that
/// PostgreSQL would not have computed them, and it has its own words for them.
fn of_statement(error: &DataFusionError) -> Option<SqlError> {
    match error.find_root() {
        DataFusionError::External(source) => source
            .downcast_ref::<SqlError>()
            .filter(|error| ends_statement(error.sqlstate))
            .cloned(),
        DataFusionError::IoError(source) => Some(temporary_file("use", source)),
        _ => None,
    }
}

/// Whether the statement would end in the same way if the other executor ran it: by an operator, by
/// a failure of the system, for want of disk, by damage. That one does with less memory.
fn ends_statement(state: SqlState) -> bool {
    const SAME: [SqlState; 3] =
        [SqlState::DISK_FULL, SqlState::CONFIGURATION_LIMIT_EXCEEDED, SqlState::DATA_CORRUPTED];
    state.0.starts_with(b"57") || state.0.starts_with(b"58") || SAME.contains(&state)
}
