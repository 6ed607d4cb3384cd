//! Comparisons of a column with a constant, which a table's scan decides on a row's bytes before
//! the row becomes part of a batch.
//!
//! They cover integers, `text`, `varchar`, dates and time stamps without zone. DataFusion decides
//! all other comparisons itself. A NULL passes no comparison.

use std::cmp::Ordering;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use millpond_engine::catalog::TableDef;
use millpond_types::tuple::TupleLayout;

use super::provider::damaged;
use super::types::{EPOCH_DAYS, EPOCH_US};
use millpond_query::error::Result;
use millpond_types::{DataType, Datum, Value};

/// `column operator constant`.
pub struct RowFilter {
    column: usize,
    operator: Operator,
    constant: Value,
}

impl RowFilter {
    /// The filter that decides `expr`, if it is of the simple kind. Casts are looked through only
    /// where the coercer wrapped nothing: a column must stand bare.
    pub fn new(def: &TableDef, expr: &Expr) -> Option<Self> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
        let (name, operator, constant) = match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) => (&column.name, *op, value),
            (Expr::Literal(value, _), Expr::Column(column)) => (&column.name, op.swap()?, value),
            _ => return None,
        };
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if !matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            return None;
        }
        let column = def.column(name)?;
        let constant = constant_of(def.columns[column].ty, constant)?;
        Some(Self { column, operator, constant })
    }

    /// Whether the row passes. NULL passes nothing.
    pub fn passes(&self, layout: &TupleLayout, tuple: &[u8]) -> Result<bool> {
        let datum = layout.column(tuple, self.column).map_err(damaged)?;
        let Some(order) = compare(&datum, &self.constant.as_datum()) else { return Ok(false) };
        Ok(match self.operator {
            Operator::Eq => order == Ordering::Equal,
            Operator::NotEq => order != Ordering::Equal,
            Operator::Lt => order == Ordering::Less,
            Operator::LtEq => order != Ordering::Greater,
            Operator::Gt => order == Ordering::Greater,
            _ => order != Ordering::Less,
        })
    }
}

/// The constant as a value of the column's type. Floats and numerics are left to DataFusion.
fn constant_of(ty: DataType, constant: &ScalarValue) -> Option<Value> {
    Some(match (ty, constant) {
        (DataType::Int2, ScalarValue::Int16(Some(v))) => Value::Int2(*v),
        (DataType::Int4, ScalarValue::Int32(Some(v))) => Value::Int4(*v),
        (DataType::Int8, ScalarValue::Int64(Some(v))) => Value::Int8(*v),
        (DataType::Text | DataType::Varchar(_) | DataType::Name, ScalarValue::Utf8(Some(v))) => {
            Value::Text(v.clone())
        }
        (DataType::Date, ScalarValue::Date32(Some(v))) => Value::Date(v.checked_sub(EPOCH_DAYS)?),
        (DataType::Timestamp(_), ScalarValue::TimestampMicrosecond(Some(v), None)) => {
            Value::Timestamp(v.checked_sub(EPOCH_US)?)
        }
        _ => return None,
    })
}

/// The order of two values of one type; `None` if either is NULL.
fn compare(left: &Datum<'_>, right: &Datum<'_>) -> Option<Ordering> {
    match (left, right) {
        (Datum::Text(left), Datum::Text(right)) => Some(left.cmp(right)),
        (Datum::Date(left), Datum::Date(right)) => Some(left.cmp(right)),
        (Datum::Timestamp(left), Datum::Timestamp(right)) => Some(left.cmp(right)),
        (left, right) => Some(left.as_i64()?.cmp(&right.as_i64()?)),
    }
}
