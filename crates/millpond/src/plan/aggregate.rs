//! Aggregates over all rows, without groups: `count`, `sum`, `min`, `max`, `avg`.

use sqlparser::ast;

use super::TableScope;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Coercion};
use crate::expr::types::{Category, NUMERIC, Ty, category};
use crate::expr::{Arith, Env, Expr};
use crate::parse::ident;
use crate::{DataType, Numeric, Value};

/// One aggregate.
#[derive(Debug)]
pub(crate) struct Aggregate {
    kind: Kind,
    arg: Option<Expr>,
    /// The column of whole numbers that is all there is to the argument of a count, sum or average: most often it is, and its
    /// values can be added as they are.
    int_column: Option<usize>,
    /// The type of its result.
    pub(crate) ty: DataType,
    pub(crate) name: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Sum,
    Min,
    Max,
    Avg,
}

/// An aggregate in the making.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    count: i64,
    /// Sums of small integers are kept wide, so that nothing overflows before the end.
    wide: i128,
    value: Value,
}

/// The aggregate that a select item is, if it is one.
pub(super) fn bind(
    expr: &ast::Expr,
    binder: &mut Binder<'_>,
    scope: &TableScope<'_>,
) -> Result<Option<Aggregate>> {
    let ast::Expr::Function(function) = expr else { return Ok(None) };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return Ok(None);
    };
    let (kind, name) = match ident(name).as_str() {
        "count" => (Kind::Count, "count"),
        "sum" => (Kind::Sum, "sum"),
        "min" => (Kind::Min, "min"),
        "max" => (Kind::Max, "max"),
        "avg" => (Kind::Avg, "avg"),
        _ => return Ok(None),
    };
    let beyond = || SqlError::unsupported("this form of aggregate");
    if function.over.is_some() || function.filter.is_some() {
        return Err(beyond());
    }
    let ast::FunctionArguments::List(list) = &function.args else { return Err(beyond()) };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Err(beyond());
    }
    let arg = match list.args.as_slice() {
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)] if kind == Kind::Count => None,
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e))] => Some(binder.bind(e, scope)?),
        _ => return Err(beyond()),
    };
    let Some(arg) = arg else {
        let (int_column, ty) = (None, DataType::Int8);
        return Ok(Some(Aggregate { kind, arg: None, int_column, ty, name }));
    };
    let own = match arg.ty {
        Ty::Known(ty) => ty,
        Ty::Unknown => DataType::Text,
    };
    let (arg_ty, ty) = types(kind, own).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {name}({own}) does not exist"),
        )
    })?;
    let int_column = int_column(kind, own, &arg.expr);
    let arg = binder.coerce(arg, arg_ty, Coercion::Explicit)?;
    Ok(Some(Aggregate { kind, arg: Some(arg), int_column, ty, name }))
}

fn int_column(kind: Kind, own: DataType, arg: &Expr) -> Option<usize> {
    match (kind, own, arg) {
        (
            Kind::Count | Kind::Sum | Kind::Avg,
            DataType::Int2 | DataType::Int4 | DataType::Int8,
            Expr::Column(column),
        ) => Some(*column),
        _ => None,
    }
}

/// The type in which the argument is added up, and that of the result.
fn types(kind: Kind, own: DataType) -> Option<(DataType, DataType)> {
    let number = category(own) == Category::Number;
    Some(match kind {
        Kind::Count => (own, DataType::Int8),
        Kind::Min | Kind::Max if own == DataType::Bool || own == DataType::Bytea => return None,
        Kind::Min | Kind::Max => (own.base(), own.base()),
        _ if !number => return None,
        Kind::Sum => match own {
            DataType::Int2 | DataType::Int4 => (DataType::Int8, DataType::Int8),
            DataType::Int8 => (DataType::Int8, NUMERIC),
            other => (other.base(), other.base()),
        },
        Kind::Avg => match own {
            DataType::Float4 | DataType::Float8 => (DataType::Float8, DataType::Float8),
            DataType::Numeric { .. } => (NUMERIC, NUMERIC),
            _ => (DataType::Int8, NUMERIC),
        },
    })
}

impl Aggregate {
    /// The column whose least (or, with the flag, greatest) value this is.
    pub(super) fn extreme_of_column(&self) -> Option<(usize, bool)> {
        match (self.kind, &self.arg) {
            (Kind::Min, Some(Expr::Column(column))) => Some((*column, false)),
            (Kind::Max, Some(Expr::Column(column))) => Some((*column, true)),
            _ => None,
        }
    }

    /// Whether it is the number of rows, whatever is in them.
    pub(crate) fn is_count_of_rows(&self) -> bool {
        self.kind == Kind::Count && self.arg.is_none()
    }

    /// Takes that many rows in at once, if it only [counts](Self::is_count_of_rows) them.
    pub(crate) fn add_rows(&self, into: &mut Accumulator, rows: usize) {
        debug_assert!(self.is_count_of_rows());
        into.count += rows as i64;
    }

    /// Takes a row in.
    #[inline]
    pub(crate) fn add(&self, into: &mut Accumulator, env: &Env<'_>) -> Result<()> {
        let Some(column) = self.int_column else { return self.add_value(into, env) };
        // NULL is no number.
        if let Some(int) = env.column(column)?.as_i64() {
            into.count += 1;
            into.wide += i128::from(int);
        }
        Ok(())
    }

    fn add_value(&self, into: &mut Accumulator, env: &Env<'_>) -> Result<()> {
        let Some(arg) = &self.arg else {
            into.count += 1;
            return Ok(());
        };
        let value = arg.eval(env)?;
        let datum = value.datum();
        if datum.is_null() {
            return Ok(());
        }
        into.count += 1;
        match self.kind {
            Kind::Count => {}
            Kind::Sum | Kind::Avg => match datum.as_i64() {
                Some(int) => into.wide += i128::from(int),
                None if into.value.is_null() => into.value = datum.to_value(),
                None => {
                    let sum = Expr::Arith(
                        Arith::Add,
                        Box::new((
                            Expr::Const(std::mem::take(&mut into.value)),
                            Expr::Const(datum.to_value()),
                        )),
                    );
                    into.value = sum.eval(env)?.into_value();
                }
            },
            Kind::Min | Kind::Max => {
                let better = into.value.is_null()
                    || datum.sql_cmp(&into.value.as_datum()).is_some_and(|order| {
                        if self.kind == Kind::Min { order.is_lt() } else { order.is_gt() }
                    });
                if better {
                    into.value = datum.to_value();
                }
            }
        }
        Ok(())
    }

    /// The result.
    pub(crate) fn finish(&self, from: Accumulator, env: &Env<'_>) -> Result<Value> {
        let is_int = from.value.is_null();
        Ok(match self.kind {
            Kind::Count => Value::Int8(from.count),
            _ if from.count == 0 => Value::Null,
            Kind::Min | Kind::Max => from.value,
            Kind::Sum if is_int && self.ty == DataType::Int8 => {
                Value::Int8(i64::try_from(from.wide).map_err(|_| {
                    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
                })?)
            }
            Kind::Sum if is_int => Value::Numeric(Numeric::from(from.wide)),
            Kind::Sum => from.value,
            Kind::Avg => {
                let count = if self.ty == DataType::Float8 {
                    Value::Float8(from.count as f64)
                } else {
                    Value::Numeric(Numeric::from(from.count))
                };
                let sum =
                    if is_int { Value::Numeric(Numeric::from(from.wide)) } else { from.value };
                let mean =
                    Expr::Arith(Arith::Div, Box::new((Expr::Const(sum), Expr::Const(count))));
                mean.eval(env)?.into_value()
            }
        })
    }
}
