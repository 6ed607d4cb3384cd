//! Sums of decimal numbers that say when they are too large, instead of wrapping around.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Field, FieldRef};
use datafusion_common::Result as DfResult;
use datafusion_common::{ScalarValue, exec_err, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

use super::types::MOST_DIGITS;

/// The function, of a `Decimal128`.
pub fn function() -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::from(ExactSum { signature }))
}

/// Whether it is the function.
pub fn is_exact(function: &AggregateUDF) -> bool {
    *function == *self::function()
}

/// What a sum that was too large stays.
const TOO_LARGE: i128 = i128::MAX;

fn add(sum: &mut i128, value: i128) {
    let is_too_large = *sum == TOO_LARGE || value == TOO_LARGE;
    let next = if is_too_large { None } else { sum.checked_add(value) };
    *sum = next.unwrap_or(TOO_LARGE);
}

fn checked(sums: ArrayRef) -> DfResult<ArrayRef> {
    let values = sums.as_primitive::<Decimal128Type>();
    if values.iter().flatten().any(|sum| sum == TOO_LARGE) {
        return exec_err!("a sum is too large");
    }
    Ok(sums)
}

fn sum_type(argument: &ArrowType) -> DfResult<ArrowType> {
    match argument {
        ArrowType::Decimal128(_, scale) => Ok(ArrowType::Decimal128(MOST_DIGITS, *scale)),
        other => not_impl_err!("an exact sum of {other}"),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactSum {
    signature: Signature,
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "exact_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> DfResult<ArrowType> {
        types.first().map_or_else(|| not_impl_err!("a sum of nothing"), sum_type)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new("sum", args.return_field.data_type().clone(), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        if args.is_distinct {
            return not_impl_err!("an exact sum of distinct values");
        }
        Ok(Box::new(Total { sum: None, ty: args.return_field.data_type().clone() }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        let ty = args.return_field.data_type();
        Ok(Box::new(Totals(PrimitiveGroupsAccumulator::new(ty, add as fn(&mut i128, i128)))))
    }
}

/// The sum of all rows.
#[derive(Debug)]
struct Total {
    sum: Option<i128>,
    ty: ArrowType,
}

impl Total {
    fn scalar(&self) -> DfResult<ScalarValue> {
        let ArrowType::Decimal128(precision, scale) = self.ty else {
            return not_impl_err!("an exact sum of {}", self.ty);
        };
        Ok(ScalarValue::Decimal128(self.sum, precision, scale))
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let values: &Decimal128Array = values.as_primitive::<Decimal128Type>();
        for value in values.iter().flatten() {
            add(self.sum.get_or_insert(0), value);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![self.scalar()?])
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        if self.sum == Some(TOO_LARGE) {
            return exec_err!("a sum is too large");
        }
        self.scalar()
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sums of groups.
#[derive(Debug)]
struct Totals(PrimitiveGroupsAccumulator<Decimal128Type, fn(&mut i128, i128)>);

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DfResult<()> {
        self.0.update_batch(values, group_indices, opt_filter, total_num_groups)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> DfResult<()> {
        self.0.merge_batch(values, group_indices, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        checked(self.0.evaluate(emit_to)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> DfResult<Vec<ArrayRef>> {
        self.0.convert_to_state(values, opt_filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
