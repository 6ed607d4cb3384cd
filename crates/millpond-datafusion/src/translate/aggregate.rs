//! Aggregations: keys, calls, and what a call's result is made of.

use std::sync::Arc;

use datafusion_expr::{AggregateUDF, Expr as Planned, lit};
use datafusion_functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion_functions_aggregate::sum::sum_udaf;
use millpond_query::plan::external::{Aggregate, AggregateCall, AggregateFunction};
use millpond_types::DataType;

use super::expression::Scaled;
use super::group::{Call, Grouping};
use super::{Translated, Translation, Translator, Typed, add_columns};
use crate::errors::Failure;
use crate::sum;
use crate::types::numeric;

/// What a value of a group is made of: numbers of columns.
#[derive(Debug, Clone, Copy)]
pub enum Result {
    /// A column.
    Plain(usize),
    /// A sum of numbers, and how many digits after the point it is shown with.
    Scaled { sum: usize, scale: usize },
    /// An average, of a sum and a count.
    Average { sum: usize, count: usize, scale: Option<usize>, ty: DataType },
    /// A sum of floats.
    Float(usize),
}

impl Result {
    /// The column that is the value.
    pub(super) fn plain(self) -> Option<usize> {
        match self {
            Result::Plain(at) => Some(at),
            _ => None,
        }
    }
}

/// The columns of an aggregation that is being translated.
#[derive(Default)]
struct Outputs {
    calls: Vec<Call>,
    /// The number of keys before the calls.
    keys: usize,
    types: Vec<DataType>,
}

impl Outputs {
    /// Adds a call, if it is not there; returns its column.
    fn add(&mut self, call: Call, ty: DataType) -> usize {
        if let Some(at) = self.calls.iter().position(|other| *other == call) {
            return self.keys + at;
        }
        self.calls.push(call);
        self.types.push(ty);
        self.types.len() - 1
    }
}

impl Translator<'_> {
    pub(super) fn aggregation(&mut self, aggregate: &Aggregate) -> Translated<Translation> {
        let mut wanted = self.passed.clone();
        let of_calls = aggregate.calls.iter().flat_map(|call| call.args.iter().chain(&call.filter));
        aggregate.keys.iter().chain(of_calls).for_each(|e| add_columns(e, &mut wanted));
        let rows = self.node(&aggregate.input, &wanted)?.without_conditions()?;
        let (mut outputs, mut results) = (Outputs::default(), Vec::new());
        let mut keys = Vec::new();
        for (number, key) in aggregate.keys.iter().enumerate() {
            let Typed { expr, ty } = self.value(key)?;
            // -0 and 0 are one group.
            if matches!(ty, DataType::Float4 | DataType::Float8) {
                return Err(Failure::Declined);
            }
            keys.push(expr);
            outputs.types.push(ty);
            results.push(Result::Plain(number));
        }
        outputs.keys = keys.len();
        for call in &aggregate.calls {
            results.push(self.call(call, &mut outputs)?);
        }
        let grouping = Grouping { keys, calls: outputs.calls };
        let plan = grouping.over(rows.plan, self.parts)?;
        Ok(Translation { plan, types: outputs.types, results })
    }

    fn call(&mut self, call: &AggregateCall, outputs: &mut Outputs) -> Translated<Result> {
        let filter = call.filter.as_ref().map(|filter| self.condition(filter)).transpose()?;
        let of = |function: Arc<AggregateUDF>, arg: Planned| Call {
            function,
            arg,
            filter: filter.clone(),
            is_distinct: call.distinct,
        };
        if call.function == AggregateFunction::CountRows {
            return Ok(Result::Plain(outputs.add(of(count_udaf(), lit(1i64)), DataType::Int8)));
        }
        let arg = call.args.first().ok_or(Failure::Declined)?;
        // -0 and 0 are one distinct value.
        let counts_floats = |ty| call.distinct && matches!(ty, DataType::Float4 | DataType::Float8);
        Ok(match call.function {
            AggregateFunction::Count => {
                let arg = self.value(arg)?;
                if counts_floats(arg.ty) {
                    return Err(Failure::Declined);
                }
                Result::Plain(outputs.add(of(count_udaf(), arg.expr), DataType::Int8))
            }
            AggregateFunction::Min | AggregateFunction::Max => {
                let Typed { expr, ty } = self.value(arg)?;
                if matches!(ty, DataType::Float4 | DataType::Float8 | DataType::Bytea) {
                    return Err(Failure::Declined);
                }
                let is_min = call.function == AggregateFunction::Min;
                let function = if is_min { min_udaf() } else { max_udaf() };
                Result::Plain(outputs.add(of(function, expr), ty))
            }
            AggregateFunction::BoolAnd | AggregateFunction::BoolOr => {
                let is_and = call.function == AggregateFunction::BoolAnd;
                let function = if is_and { bool_and_udaf() } else { bool_or_udaf() };
                Result::Plain(outputs.add(of(function, self.condition(arg)?), DataType::Bool))
            }
            AggregateFunction::Sum | AggregateFunction::Avg => {
                let Scaled { value, scale } = self.scaled(arg)?;
                if counts_floats(value.ty) {
                    return Err(Failure::Declined);
                }
                let average = call.function == AggregateFunction::Avg;
                let counted = value.expr.clone();
                let (function, expr, ty) = summed(value, average)?;
                let sum = outputs.add(of(function, expr), ty);
                let scale = scale.map(|scale| outputs.add(of(max_udaf(), scale), DataType::Int4));
                match (average, scale) {
                    (true, scale) => {
                        let count = outputs.add(of(count_udaf(), counted), DataType::Int8);
                        Result::Average { sum, count, scale, ty: call.ty }
                    }
                    (false, Some(scale)) => Result::Scaled { sum, scale },
                    (false, None) if ty == DataType::Float8 => Result::Float(sum),
                    (false, None) => Result::Plain(sum),
                }
            }
            _ => return Err(Failure::Declined),
        })
    }
}

/// How a value is summed, and the type of the sum.
fn summed(value: Typed, average: bool) -> Translated<(Arc<AggregateUDF>, Planned, DataType)> {
    let Typed { expr, ty } = value;
    Ok(match ty {
        // As many of them as there may be rows don't exceed a bigint.
        DataType::Int2 | DataType::Int4 => {
            (sum_udaf(), super::expression::cast(expr, DataType::Int8)?, DataType::Int8)
        }
        DataType::Int8 => {
            let digits = super::expression::cast(expr, numeric(19, 0))?;
            (sum::function(), digits, numeric(38, 0))
        }
        DataType::Numeric { precision_scale: Some((_, scale)) } => {
            (sum::function(), expr, DataType::Numeric { precision_scale: Some((38, scale)) })
        }
        DataType::Float8 => (sum_udaf(), expr, DataType::Float8),
        // A sum of floats has their precision, an average has not.
        DataType::Float4 if average => {
            (sum_udaf(), super::expression::cast(expr, DataType::Float8)?, DataType::Float8)
        }
        _ => return Err(Failure::Declined),
    })
}
