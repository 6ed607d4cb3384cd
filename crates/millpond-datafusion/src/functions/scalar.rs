//! A scalar function as a closure over one row's values.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::types::view_field;
use millpond_query::sink::VOID_OID;

/// What a function does with the values of one row.
pub type Body = dyn Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync;

/// A function of `min..=max` arguments of any type.
struct Scalar {
    name: String,
    signature: Signature,
    args: (usize, usize),
    returns: DataType,
    /// It returns nothing: text that clients are told is of type `void`.
    void: bool,
    /// Called for every row, even where the arguments are the same for all.
    each_row: bool,
    body: Arc<Body>,
}

/// Makes a function. Arguments that are names or numbers come as their literals' types; use
/// [`text`] and [`number`] to read them.
pub fn function(
    name: &str,
    args: (usize, usize),
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    make(name, args, (returns, false), Volatility::Stable, body)
}

/// The same for a function that does something: it is called once for every row, and never while a
/// query is planned.
pub fn action(
    name: &str,
    args: (usize, usize),
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    make(name, args, (returns, false), Volatility::Volatile, body)
}

/// The same for one that returns nothing, which is an empty text.
pub fn void_action(
    name: &str,
    args: (usize, usize),
    body: impl Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    make(name, args, (DataType::Utf8, true), Volatility::Volatile, body)
}

fn make(
    name: &str,
    args: (usize, usize),
    (returns, void): (DataType, bool),
    volatility: Volatility,
    body: impl Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    let signature = if args.1 == 0 {
        Signature::nullary(volatility)
    } else if args.0 == 0 {
        Signature::one_of(
            vec![
                datafusion::logical_expr::TypeSignature::Nullary,
                datafusion::logical_expr::TypeSignature::VariadicAny,
            ],
            volatility,
        )
    } else {
        Signature::variadic_any(volatility)
    };
    let each_row = volatility == Volatility::Volatile;
    let body = Arc::new(body);
    let name = name.to_owned();
    Arc::new(ScalarUDF::from(Scalar { name, signature, args, returns, void, each_row, body }))
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}()", self.name)
    }
}

// Two functions of one name may differ in what they captured.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.body, &other.body)
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        if !(self.args.0..=self.args.1).contains(&types.len()) {
            return plan_err!("Invalid function {} with {} arguments", self.name, types.len());
        }
        Ok(self.returns.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let returns = self.return_type(&types)?;
        Ok(Arc::new(match self.void {
            true => view_field(&self.name, returns, VOID_OID),
            false => Field::new(&self.name, returns, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let fixed = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if fixed && !self.each_row {
            let values: Vec<ScalarValue> = args
                .args
                .iter()
                .filter_map(|arg| match arg {
                    ColumnarValue::Scalar(value) => Some(value.clone()),
                    ColumnarValue::Array(_) => None,
                })
                .collect();
            return self.typed((self.body)(&values)?).map(ColumnarValue::Scalar);
        }
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows));
        let arrays = arrays.collect::<DfResult<Vec<_>>>()?;
        let mut results = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            results.push(self.typed((self.body)(&values.collect::<DfResult<Vec<_>>>()?)?)?);
        }
        if results.is_empty() {
            return Ok(ColumnarValue::Array(new_empty_array(&self.returns)));
        }
        ScalarValue::iter_to_array(results).map(ColumnarValue::Array)
    }
}

impl Scalar {
    /// NULL is NULL of the function's type.
    fn typed(&self, value: ScalarValue) -> DfResult<ScalarValue> {
        if value.is_null() { ScalarValue::try_from(&self.returns) } else { Ok(value) }
    }
}

/// An argument as text; `None` for NULL and for a missing argument.
pub fn text(args: &[ScalarValue], index: usize) -> Option<String> {
    args.get(index).filter(|value| !value.is_null()).map(ScalarValue::to_string)
}

/// An argument as a number, written as one or as text.
pub fn number(args: &[ScalarValue], index: usize) -> Option<i64> {
    text(args, index)?.parse().ok()
}

/// A text value.
pub fn utf8(text: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8(Some(text.into()))
}

/// A value, or NULL.
pub fn utf8_or_null(text: Option<impl Into<String>>) -> ScalarValue {
    ScalarValue::Utf8(text.map(Into::into))
}
