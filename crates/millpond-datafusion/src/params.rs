//! Parameters: their types, and their values as DataFusion's constants.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;

use super::batch::ColumnBuilder;
use super::errors::from_datafusion;
use super::types::{arrow_type, in_zone, sql_type};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_types::{DataType, Value};

/// The types of `$1`, `$2`, ...: those given, else those that the plan implies, else text.
pub fn sql_types(plan: &LogicalPlan, given: &[Option<DataType>]) -> Result<Vec<DataType>> {
    let inferred = plan.get_parameter_types().map_err(from_datafusion)?;
    let mut types: Vec<Option<DataType>> = given.to_vec();
    for (name, arrow) in &inferred {
        let number: Option<usize> = name.strip_prefix('$').and_then(|digits| digits.parse().ok());
        let Some(number @ 1..=65535) = number else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter {name}"),
            ));
        };
        if types.len() < number {
            types.resize(number, None);
        }
        let slot = &mut types[number - 1];
        *slot = slot.or_else(|| arrow.as_ref().and_then(parameter_type));
    }
    Ok(types.into_iter().map(|ty| ty.unwrap_or(DataType::Text)).collect())
}

fn parameter_type(arrow: &ArrowType) -> Option<DataType> {
    match arrow {
        ArrowType::Null => None,
        other => sql_type(other),
    }
}

/// A parameter's value as a constant of the type that its columns have.
pub fn scalar(ty: DataType, value: &Value, zone: &str) -> Result<ScalarValue> {
    let arrow = in_zone(arrow_type(ty), zone);
    if value.is_null() {
        return ScalarValue::try_from(&arrow).map_err(from_datafusion);
    }
    let mut builder = ColumnBuilder::new(&arrow, 1);
    builder.push(value.as_datum())?;
    ScalarValue::try_from_array(&builder.finish(), 0).map_err(from_datafusion)
}
