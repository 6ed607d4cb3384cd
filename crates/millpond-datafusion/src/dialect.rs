//! PostgreSQL's meaning where DataFusion's differs: integer literals and arithmetic, sums and
//! averages.
//!
//! | | DataFusion | PostgreSQL, and here |
//! |---|---|---|
//! | `1` | bigint | integer if it fits |
//! | integer `+ - *` past the range | wraps around | error 22003 |
//! | `sum(bigint)` | bigint, wraps around | numeric |
//! | `avg` of integers | double precision | numeric |
//!
//! [`apply`] changes a fresh logical plan, from the leaves up, keeping the names of columns.
//! [`CheckedArithmetic`] runs with the analyzer, after the types of operands have been made equal.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::optimizer::AnalyzerRule;

/// Gives literals and aggregates PostgreSQL's types.
pub fn apply(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    // The types of a recursive query's work table are fixed while it is planned.
    if plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))? {
        return Ok(plan);
    }
    let changed = plan.transform_up_with_subqueries(|node| {
        // LIMIT counts in bigint.
        if matches!(node, LogicalPlan::Limit(_)) {
            return Ok(Transformed::no(node));
        }
        let node = rewrite_expressions(node, |expr, schema| match expr {
            Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => {
                Ok(match i32::try_from(value) {
                    Ok(small) => {
                        Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(small)), metadata))
                    }
                    Err(_) => {
                        Transformed::no(Expr::Literal(ScalarValue::Int64(Some(value)), metadata))
                    }
                })
            }
            Expr::AggregateFunction(aggregate) => widened(aggregate, schema),
            other => Ok(Transformed::no(other)),
        })?;
        node.map_data(|node| match node {
            // The types of a VALUES list are computed once, when it is built.
            LogicalPlan::Values(list) => LogicalPlanBuilder::values(list.values)?.build(),
            node => Ok(node),
        })
    })?;
    Ok(changed.data)
}

/// Rewrites the expressions of one node; its columns keep their names.
pub(super) fn rewrite_expressions(
    node: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> DfResult<Transformed<Expr>>,
) -> DfResult<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    let schema = merge_schema(&node.inputs());
    let rewritten = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| rewrite(expr, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    if rewritten.transformed {
        return rewritten.map_data(LogicalPlan::recompute_schema);
    }
    // An input may have changed its types.
    Ok(Transformed::no(rewritten.data.recompute_schema()?))
}

/// Sums of bigint and averages of integers are numeric.
fn widened(mut aggregate: AggregateFunction, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let name = aggregate.func.name().to_owned();
    let argument = match aggregate.params.args.as_slice() {
        [argument] if matches!(name.as_str(), "sum" | "avg") => argument.clone(),
        _ => return Ok(Transformed::no(Expr::AggregateFunction(aggregate))),
    };
    let target = match (name.as_str(), argument.get_type(schema)) {
        ("sum", Ok(Arrow::Int64)) => Arrow::Decimal128(38, 0),
        // Four more digits come with the division: sixteen after the point.
        ("avg", Ok(Arrow::Int16 | Arrow::Int32 | Arrow::Int64)) => Arrow::Decimal128(31, 12),
        _ => return Ok(Transformed::no(Expr::AggregateFunction(aggregate))),
    };
    aggregate.params.args = vec![cast(argument, target)];
    Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
}

/// Integer arithmetic that says when a result is out of range.
#[derive(Debug)]
pub struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries(|node| {
            if matches!(node, LogicalPlan::Limit(_)) {
                return Ok(Transformed::no(node));
            }
            rewrite_expressions(node, |expr, schema| {
                let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
                    return Ok(Transformed::no(expr));
                };
                let checked = matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
                    && is_integer(&left, schema)
                    && is_integer(&right, schema);
                Ok(if checked {
                    let function = Arc::new(ScalarUDF::from(CheckedOperator::new(op)));
                    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                        function,
                        vec![*left, *right],
                    )))
                } else {
                    Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))
                })
            })
        })?;
        Ok(changed.data)
    }
}

fn is_integer(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(Arrow::Int16 | Arrow::Int32 | Arrow::Int64))
}

/// `+`, `-` or `*` over integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperator {
    operator: Operator,
    signature: Signature,
}

impl CheckedOperator {
    fn new(operator: Operator) -> Self {
        Self { operator, signature: Signature::any(2, Volatility::Immutable) }
    }
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

    fn return_type(&self, types: &[Arrow]) -> DfResult<Arrow> {
        Ok(types.first().cloned().unwrap_or(Arrow::Int64))
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
