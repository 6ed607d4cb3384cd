//! Integer arithmetic that says when a result is out of range, instead of wrapping around.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::kernels::numeric;
use arrow::datatypes::DataType as ArrowType;
use datafusion_common::Result as DfResult;
use datafusion_common::ScalarValue;
use datafusion_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// `left operator right`, of integers of one type.
pub fn arithmetic(operator: Operator, left: Expr, right: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::from(CheckedOperator { operator, signature })).call(vec![left, right])
}

/// `+`, `-` or `*`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperator {
    operator: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for CheckedOperator {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_sub",
            _ => "checked_mul",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(types.first().cloned().unwrap_or(ArrowType::Int64))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let apply = match self.operator {
            Operator::Plus => numeric::add,
            Operator::Minus => numeric::sub,
            _ => numeric::mul,
        };
        let result = match args.args.as_slice() {
            [ColumnarValue::Array(left), ColumnarValue::Array(right)] => apply(left, right)?,
            [ColumnarValue::Array(left), ColumnarValue::Scalar(right)] => {
                apply(left, &right.to_scalar()?)?
            }
            [ColumnarValue::Scalar(left), ColumnarValue::Array(right)] => {
                apply(&left.to_scalar()?, right)?
            }
            both => {
                let arrays: Vec<ArrayRef> = ColumnarValue::values_to_arrays(both)?;
                let result = apply(&arrays[0], &arrays[1])?;
                return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
            }
        };
        Ok(ColumnarValue::Array(result))
    }
}
