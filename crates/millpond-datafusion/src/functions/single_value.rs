//! The one value of a scalar subquery, as an aggregate: an error if there are two rows.
//!
//! DataFusion turns a correlated subquery into a join only if an aggregate bounds its rows.

use std::mem::size_of_val;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType as Arrow, Field, FieldRef};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

/// The name by which rewritten subqueries call it.
pub const NAME: &str = "single_value";

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SingleValue {
    signature: Signature,
}

impl Default for SingleValue {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for SingleValue {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[Arrow]) -> DfResult<Arrow> {
        Ok(types.first().cloned().unwrap_or(Arrow::Null))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(State { value, filled: false }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        let value = args.return_field.data_type().clone();
        Ok(vec![
            Field::new("value", value, true).into(),
            Field::new("filled", Arrow::Boolean, false).into(),
        ])
    }
}

#[derive(Debug)]
struct State {
    value: ScalarValue,
    filled: bool,
}

impl State {
    fn put(&mut self, value: ScalarValue) -> DfResult<()> {
        if self.filled {
            return exec_err!("more than one row returned by a subquery used as an expression");
        }
        self.value = value;
        self.filled = true;
        Ok(())
    }
}

impl Accumulator for State {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for row in 0..values[0].len() {
            self.put(ScalarValue::try_from_array(&values[0], row)?)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() - size_of_val(&self.value)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::from(self.filled)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let Some(filled) = states[1].as_any().downcast_ref::<BooleanArray>() else {
            return exec_err!("a state of {NAME} is damaged");
        };
        for row in 0..filled.len() {
            if filled.value(row) {
                self.put(ScalarValue::try_from_array(&states[0], row)?)?;
            }
        }
        Ok(())
    }
}
