//! Functions whose result may be much longer than their arguments: its length is known before it is
//! made.
//!
//! DataFusion computes a function for a batch of rows at once, and counts no memory for it.
//! [`BoundedText`] puts [`Bounded`] around those that can make long text of short arguments, and in
//! the place of `||`. A value has at most 1 GB, as in PostgreSQL (54000). The values of one batch
//! may have a quarter of what all queries may have (53200).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::concat_elements::concat_elements_utf8;
use datafusion::arrow::datatypes::{DataType as Arrow, Field, FieldRef, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use regex::Regex;

use super::dialect::rewrite_expressions;
use super::errors::external;
use millpond_query::expr::check_length;
use millpond_query::memory::{QueryMemory, out_of_memory};

/// How long a row's result is at most, in bytes, from the row's arguments.
type Length = fn(&[Argument], usize) -> usize;

/// What is bounded, and how long its results are.
const FUNCTIONS: [(&str, Length); 7] = [
    ("repeat", |args, row| of(args, 0, row).times(args, 1, row)),
    ("lpad", padded),
    ("rpad", padded),
    ("replace", replaced),
    ("regexp_replace", regexp_replaced),
    ("concat", sum),
    ("concat_ws", |args, row| sum(args, row) + of(args, 0, row).0 * args.len()),
];

/// Puts [`Bounded`] around functions.
#[derive(Debug)]
pub struct BoundedText {
    pub memory: Arc<QueryMemory>,
}

impl AnalyzerRule for BoundedText {
    fn name(&self) -> &str {
        "bounded_text"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries(|node| {
            rewrite_expressions(node, |expr, schema| Ok(self.bounded(expr, schema)))
        })?;
        Ok(changed.data)
    }
}

impl BoundedText {
    fn bounded(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        match expr {
            Expr::ScalarFunction(call) => {
                let length = FUNCTIONS.iter().find(|(name, _)| *name == call.func.name());
                // The rule may see a plan again.
                let is_bounded = call.func.inner().downcast_ref::<Bounded>().is_some();
                match length {
                    Some((_, length)) if !is_bounded => {
                        let body = Body::Function(Arc::clone(&call.func));
                        Transformed::yes(self.call(body, *length, call.args))
                    }
                    _ => Transformed::no(Expr::ScalarFunction(call)),
                }
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
                if is_text(&left, schema) && is_text(&right, schema) =>
            {
                Transformed::yes(self.call(Body::Concat, sum, vec![*left, *right]))
            }
            expr => Transformed::no(expr),
        }
    }

    fn call(&self, body: Body, length: Length, args: Vec<Expr>) -> Expr {
        let signature = Signature::any(args.len(), Volatility::Immutable);
        let memory = Arc::clone(&self.memory);
        let function = ScalarUDF::from(Bounded { body, length, memory, signature });
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))
    }
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(Arrow::Utf8))
}

/// What computes the results.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Body {
    /// DataFusion's function.
    Function(Arc<ScalarUDF>),
    /// `||`
    Concat,
}

/// A function that is called only if its results have room.
#[derive(Debug)]
struct Bounded {
    body: Body,
    length: Length,
    memory: Arc<QueryMemory>,
    signature: Signature,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.body.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        match &self.body {
            Body::Function(function) => function.name(),
            Body::Concat => "textcat",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[Arrow]) -> DfResult<Arrow> {
        match &self.body {
            Body::Function(function) => function.return_type(types),
            Body::Concat => Ok(Arrow::Utf8),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        match &self.body {
            Body::Function(function) => function.return_field_from_args(args),
            Body::Concat => Ok(Arc::new(Field::new(self.name(), Arrow::Utf8, true))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.check(&args)?;
        match &self.body {
            Body::Function(function) => function.invoke_with_args(args),
            Body::Concat => concat(&args),
        }
    }
}

impl Bounded {
    /// An error if the results are too long.
    fn check(&self, args: &ScalarFunctionArgs) -> DfResult<()> {
        let arguments = args.args.iter().map(Argument::new).collect::<DfResult<Vec<_>>>()?;
        let mut all = 0usize;
        for row in 0..rows(args) {
            let length = (self.length)(&arguments, row);
            check_length(length).map_err(external)?;
            all = all.saturating_add(length);
        }
        let most = (self.memory.limit() / 4).min(i32::MAX as usize);
        if all > most { Err(external(out_of_memory(all, self.name()))) } else { Ok(()) }
    }
}

/// The rows to compute: one if all arguments are constants.
fn rows(args: &ScalarFunctionArgs) -> usize {
    let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    if is_scalar { 1 } else { args.number_rows }
}

fn concat(args: &ScalarFunctionArgs) -> DfResult<ColumnarValue> {
    let arrays =
        args.args.iter().map(|arg| arg.to_array(rows(args))).collect::<DfResult<Vec<_>>>()?;
    let [left, right] = arrays.as_slice() else {
        return datafusion::common::internal_err!("|| has two operands");
    };
    let result = concat_elements_utf8(left.as_string::<i32>(), right.as_string::<i32>())?;
    if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
    }
    Ok(ColumnarValue::Array(Arc::new(result)))
}

/// One argument of all rows. What is no text and no number counts as a number of no size.
enum Argument {
    Text(StringArray, bool),
    Number(ArrayRef, bool),
}

impl Argument {
    fn new(value: &ColumnarValue) -> DfResult<Self> {
        let (array, is_scalar) = match value {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        Ok(match array.data_type() {
            Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View => {
                Self::Text(cast(&array, &Arrow::Utf8)?.as_string::<i32>().clone(), is_scalar)
            }
            Arrow::Int16 | Arrow::Int32 | Arrow::Int64 => {
                Self::Number(cast(&array, &Arrow::Int64)?, is_scalar)
            }
            // Values of other types have short texts.
            _ => Self::Number(ScalarValue::Int64(Some(64)).to_array()?, true),
        })
    }

    fn text(&self, row: usize) -> &str {
        match self {
            Self::Text(array, is_scalar) => {
                let row = if *is_scalar { 0 } else { row };
                if array.is_valid(row) { array.value(row) } else { "" }
            }
            Self::Number(..) => "",
        }
    }

    fn is_null(&self, row: usize) -> bool {
        let (array, is_scalar): (&dyn Array, _) = match self {
            Self::Text(array, is_scalar) => (array, is_scalar),
            Self::Number(array, is_scalar) => (array, is_scalar),
        };
        array.is_null(if *is_scalar { 0 } else { row })
    }

    fn number(&self, row: usize) -> usize {
        match self {
            Self::Text(..) => 0,
            Self::Number(array, is_scalar) => {
                let row = if *is_scalar { 0 } else { row };
                let array = array.as_primitive::<Int64Type>();
                if array.is_null(row) { 0 } else { usize::try_from(array.value(row)).unwrap_or(0) }
            }
        }
    }
}

/// Bytes of a text.
struct Bytes(usize);

impl Bytes {
    fn times(self, args: &[Argument], number: usize, row: usize) -> usize {
        self.0.saturating_mul(args.get(number).map_or(0, |arg| arg.number(row)))
    }
}

fn text(args: &[Argument], number: usize, row: usize) -> &str {
    args.get(number).map_or("", |arg| arg.text(row))
}

fn of(args: &[Argument], number: usize, row: usize) -> Bytes {
    Bytes(text(args, number, row).len())
}

fn sum(args: &[Argument], row: usize) -> usize {
    // What is no text is written as one that is short.
    args.iter()
        .map(|arg| arg.text(row).len().max(if let Argument::Number(..) = arg { 64 } else { 0 }))
        .sum()
}

/// The second argument counts characters. Those that fill up may each have as many bytes as the
/// widest of the third.
fn padded(args: &[Argument], row: usize) -> usize {
    if args.iter().any(|arg| arg.is_null(row)) {
        return 0;
    }
    let widest = text(args, 2, row).chars().map(char::len_utf8).max().unwrap_or(1);
    Bytes(widest).times(args, 1, row).saturating_add(text(args, 0, row).len())
}

fn replaced(args: &[Argument], row: usize) -> usize {
    let (whole, from, to) = (text(args, 0, row), text(args, 1, row), text(args, 2, row));
    if from.is_empty() || to.len() <= from.len() {
        return whole.len();
    }
    let more = whole.matches(from).count().saturating_mul(to.len() - from.len());
    whole.len().saturating_add(more)
}

/// A replacement holds each reference to what matched; what matched is in the text.
fn regexp_replaced(args: &[Argument], row: usize) -> usize {
    let (whole, pattern, to) = (text(args, 0, row), text(args, 1, row), text(args, 2, row));
    let references = to.matches('\\').count();
    let of_references = whole.len().saturating_mul(references);
    let most = (whole.len() + 1).saturating_mul(to.len());
    let literal = if most <= FEW_BYTES {
        most
    } else if !text(args, 3, row).contains('g') {
        to.len()
    } else {
        // A pattern that is none is the function's error.
        let matches = Regex::new(pattern).map_or(0, |pattern| pattern.find_iter(whole).count());
        matches.saturating_mul(to.len())
    };
    whole.len().saturating_add(literal).saturating_add(of_references)
}

/// Results so short need no look at what the pattern matches.
const FEW_BYTES: usize = 64 << 10;
