//! Expressions that DataFusion has no equal kernel for: the evaluator of `millpond-query` computes
//! them, row by row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion_common::Result as DfResult;
use datafusion_expr::{
    ColumnarValue, Expr as Planned, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use millpond_query::expr::{Expr, Row};
use millpond_query::plan::external::Surroundings;
use millpond_query::{Result, SqlError};
use millpond_types::{DataType, Datum};

use super::batch::ColumnBuilder;
use super::column::Column;
use super::errors::external;

/// An expression whose columns are numbered as its arguments are.
#[derive(Debug)]
pub struct RowFunction {
    pub expr: Expr,
    pub arguments: Vec<DataType>,
    pub result: ArrowType,
    pub surroundings: Arc<Surroundings>,
}

impl RowFunction {
    /// A call with these arguments.
    pub fn call(self, arguments: Vec<Planned>) -> Planned {
        let signature = Signature::any(arguments.len(), Volatility::Immutable);
        let function = Function { inner: Arc::new(self), signature };
        Arc::new(ScalarUDF::from(function)).call(arguments)
    }

    fn compute(&self, args: &ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let types = self.arguments.iter().zip(&arrays);
        let columns: Vec<Column> = types
            .map(|(ty, array)| Column::new(*ty, array))
            .collect::<Result<_>>()
            .map_err(external)?;
        let mut results = ColumnBuilder::new(&self.result, args.number_rows);
        let surroundings = self.surroundings.local();
        surroundings
            .with(|env| {
                let mut row: Vec<Datum<'_>> = Vec::new();
                for number in 0..args.number_rows {
                    row.clear();
                    row.extend(columns.iter().map(|column| column.datum(number)));
                    let env = env.with_row(Row::Datums(&row));
                    results.push(self.expr.eval(&env)?.datum())?;
                }
                Ok::<_, SqlError>(())
            })
            .map_err(external)?;
        Ok(ColumnarValue::Array(results.finish()))
    }
}

/// Two functions are the same if they are the same piece of a plan.
#[derive(Debug)]
struct Function {
    inner: Arc<RowFunction>,
    signature: Signature,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.inner).hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        "by_rows"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(self.inner.result.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.inner.compute(&args)
    }
}
