//! Translates errors of DataFusion and Arrow to SQL errors with PostgreSQL's SQLSTATEs. Also
//! carries SQL errors of ours through DataFusion unchanged.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use millpond_query::convert::temporary_file;
use millpond_query::error::{SqlError, SqlState};

/// An error of ours on its way through DataFusion.
pub fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The SQL error that `error` stands for. An error of ours that travelled through DataFusion comes
/// back as it was.
pub fn from_datafusion(error: DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(source) => match source.downcast::<SqlError>() {
            Ok(ours) => *ours,
            Err(other) => SqlError::internal(other.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_datafusion(*inner)
        }
        DataFusionError::Shared(shared) => from_shared(&shared),
        DataFusionError::Collection(mut errors) if !errors.is_empty() => {
            from_datafusion(errors.remove(0))
        }
        DataFusionError::ArrowError(source, _) => from_arrow(*source),
        DataFusionError::SchemaError(source, _) => from_schema(&source),
        DataFusionError::SQL(source, _) => {
            SqlError::new(SqlState::SYNTAX_ERROR, source.to_string())
        }
        DataFusionError::NotImplemented(what) => SqlError::unsupported(what),
        DataFusionError::Plan(message) => from_plan(message),
        DataFusionError::Execution(message) => from_execution(message),
        DataFusionError::ResourcesExhausted(message) => exhausted(message),
        DataFusionError::IoError(source) => temporary_file("use", &source),
        other => SqlError::internal(other.strip_backtrace()),
    }
}

/// Memory that is not to be had, as PostgreSQL words it. Only temporary files are files to
/// DataFusion here.
fn exhausted(message: String) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .detail(message)
        .hint("The queries of all sessions share query_memory_limit.")
}

/// An error that several partitions share cannot be moved out; ours is copied.
fn from_shared(error: &DataFusionError) -> SqlError {
    match error.find_root() {
        DataFusionError::External(source) => match source.downcast_ref::<SqlError>() {
            Some(ours) => ours.clone(),
            None => SqlError::internal(source.to_string()),
        },
        DataFusionError::ArrowError(source, _) => arrow(source),
        DataFusionError::Execution(message) => from_execution(message.clone()),
        DataFusionError::Plan(message) => from_plan(message.clone()),
        DataFusionError::ResourcesExhausted(message) => exhausted(message.clone()),
        DataFusionError::IoError(source) => temporary_file("use", source),
        other => SqlError::internal(other.strip_backtrace()),
    }
}

/// The same for Arrow's kernels.
pub fn from_arrow(error: ArrowError) -> SqlError {
    match error {
        ArrowError::ExternalError(source) => match source.downcast::<DataFusionError>() {
            Ok(inner) => from_datafusion(*inner),
            Err(source) => match source.downcast::<SqlError>() {
                Ok(ours) => *ours,
                Err(other) => SqlError::internal(other.to_string()),
            },
        },
        other => arrow(&other),
    }
}

fn arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::DivideByZero => SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(_) => {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")
                .detail(error.to_string())
        }
        ArrowError::CastError(message) | ArrowError::ParseError(message) => {
            if message.contains("Can't cast value") || message.contains("too large") {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message.clone())
            } else {
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message.clone())
            }
        }
        ArrowError::ComputeError(message) if message.contains("verflow") => {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message.clone())
        }
        ArrowError::IoError(_, source) => temporary_file("use", source),
        ArrowError::NotYetImplemented(what) => SqlError::unsupported(what),
        other => SqlError::internal(other.to_string()),
    }
}

fn from_schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, .. } => {
            let name = match &field.relation {
                Some(relation) => format!("{}.{}", relation.table(), field.name),
                None => format!("\"{}\"", field.name),
            };
            SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column {name} does not exist"))
        }
        SchemaError::AmbiguousReference { field } => SqlError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("column reference \"{}\" is ambiguous", field.name),
        ),
        other => SqlError::new(SqlState::DUPLICATE_COLUMN, other.to_string()),
    }
}

fn from_plan(message: String) -> SqlError {
    let state =
        if message.starts_with("Invalid function") || message.contains("No function matches") {
            SqlState::UNDEFINED_FUNCTION
        } else if message.contains("GROUP BY") || message.contains("aggregate") {
            SqlState::GROUPING_ERROR
        } else if message.contains("coerce") || message.contains("type") {
            SqlState::DATATYPE_MISMATCH
        } else {
            SqlState::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION
        };
    SqlError::new(state, message.split("\n\n").next().unwrap_or(&message).trim().to_owned())
}

fn from_execution(message: String) -> SqlError {
    if message.contains("more than one row") {
        return SqlError::new(
            SqlState::CARDINALITY_VIOLATION,
            "more than one row returned by a subquery used as an expression",
        );
    }
    let state = if message.contains("verflow") || message.contains("out of range") {
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE
    } else {
        SqlState::DATA_EXCEPTION
    };
    SqlError::new(state, message)
}
