//! What an aggregate function has taken in.

use std::cmp::Ordering;

use millpond_types::numeric::Small;

use super::moments::{Moments, Pairs};
use super::sum::Sum;
use crate::analyze::tree::{AggregateFunction as F, JsonKind};
use crate::error::{Result, SqlError};
use crate::expr::int::of_column;
use crate::expr::json_aggregate as json;
use crate::expr::{Arith, Env, Expr, Val, arith, check_length};
use crate::types::FormatOptions;
use crate::{DataType, Datum, Value};

/// The state of an aggregate function. Values come in the order in which they count.
#[derive(Debug)]
pub(crate) enum Accumulator {
    Count(i64),
    Sum(Sum),
    /// The least or the greatest value.
    Extreme(Value),
    Bool(Option<bool>),
    Bits(Value),
    /// Text or bytes, one behind the other.
    Joined(Value),
    Moments(Box<Moments>),
    Pairs(Box<Pairs>),
    /// All values. (Those of an ordered-set aggregate are not taken in: see `CallState`.)
    Values(Vec<Value>),
}

/// Whether a NULL is a value that counts.
pub(super) fn takes_null(function: F) -> bool {
    matches!(
        function,
        F::CountRows | F::ArrayAgg | F::ArrayAggOfArrays | F::JsonList(_) | F::JsonObject(_)
    )
}

impl Accumulator {
    pub(crate) fn new(function: F) -> Self {
        match function {
            F::CountRows | F::Count => Self::Count(0),
            F::Sum | F::Avg => Self::Sum(Sum::default()),
            F::Min | F::Max => Self::Extreme(Value::Null),
            F::BoolAnd | F::BoolOr => Self::Bool(None),
            F::BitAnd | F::BitOr | F::BitXor => Self::Bits(Value::Null),
            F::StringAgg => Self::Joined(Value::Null),
            F::VarPop | F::VarSamp | F::StddevPop | F::StddevSamp => Self::Moments(Box::default()),
            F::Regression(_) => Self::Pairs(Box::default()),
            F::ArrayAgg
            | F::ArrayAggOfArrays
            | F::JsonList(_)
            | F::JsonObject(_)
            | F::PercentileCont
            | F::PercentileDisc
            | F::Mode
            | F::Hypothetical(_) => Self::Values(Vec::new()),
        }
    }

    /// Takes a row's values in. Says about how many bytes it has grown by.
    #[inline]
    pub(crate) fn add(
        &mut self,
        function: F,
        datum: Datum<'_>,
        second: Datum<'_>,
    ) -> Result<usize> {
        if let (Self::Count(count), F::CountRows) = (&mut *self, function) {
            *count += 1;
            return Ok(0);
        }
        if datum.is_null() && !takes_null(function) {
            return Ok(0);
        }
        match self {
            Self::Count(count) => *count += 1,
            Self::Sum(sum) => return sum.add(function, datum),
            Self::Extreme(best) => return add_extreme(best, function, datum),
            Self::Bool(all) => {
                let Datum::Bool(value) = datum else { return Ok(0) };
                *all = Some(match (*all, function) {
                    (None, _) => value,
                    (Some(all), F::BoolAnd) => all && value,
                    (Some(any), _) => any || value,
                });
            }
            Self::Bits(bits) => add_bits(bits, function, datum)?,
            Self::Joined(joined) => return add_joined(joined, datum, second),
            Self::Moments(moments) => moments.add(datum)?,
            Self::Pairs(pairs) => {
                if let (Some(y), Some(x)) = (as_f64(datum), as_f64(second)) {
                    pairs.add(y, x)?;
                }
            }
            Self::Values(values) => {
                let before = values.len();
                if function == F::ArrayAggOfArrays && datum.is_null() {
                    return Err(super::array::null_array());
                }
                if let F::JsonObject(_) = function {
                    json::check_name(&datum)?;
                    values.extend([datum.to_value(), second.to_value()]);
                } else {
                    values.push(datum.to_value());
                }
                return Ok(crate::memory::bytes_of(values.get(before..).unwrap_or_default()));
            }
        }
        Ok(0)
    }

    /// Takes the value of an expression in.
    #[inline]
    pub(crate) fn add_expr(&mut self, function: F, expr: &Expr, env: &Env<'_>) -> Result<usize> {
        let adds = matches!(function, F::Count | F::Sum | F::Avg);
        let mut expr = expr;
        let int = match expr {
            Expr::Column(column) if adds => of_column(env.row, *column),
            _ => {
                expr = expr.chosen(env)?;
                if adds { expr.int(env) } else { None }
            }
        };
        if let Some(int) = int {
            self.add_int(int.value)?;
            return Ok(0);
        }
        self.add_other(function, expr, env)
    }

    /// The same for what is no integer.
    fn add_other(&mut self, function: F, expr: &Expr, env: &Env<'_>) -> Result<usize> {
        if let F::Count | F::Sum | F::Avg = function
            && let Some(small) = expr.small(env)
        {
            return self.add_small(small);
        }
        self.add(function, expr.operand(env, &mut Val::null())?, Datum::Null)
    }

    /// Takes a number in, for a count, a sum or an average.
    #[inline]
    fn add_small(&mut self, small: Small) -> Result<usize> {
        match self {
            Self::Count(count) => *count += 1,
            Self::Sum(sum) => return sum.add_small(small),
            _ => {}
        }
        Ok(0)
    }

    /// Takes an integer in, for a count, a sum or an average.
    #[inline]
    pub(crate) fn add_int(&mut self, int: i64) -> Result<()> {
        match self {
            Self::Count(count) => *count += 1,
            Self::Sum(sum) => {
                sum.count += 1;
                sum.numbers.add_int(int)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What has been taken in, as values of which [`Self::add_part`] makes the same in another
    /// state.
    pub(super) fn part(&self) -> Result<[Value; 3]> {
        Ok(match self {
            Self::Count(count) => [Value::Int8(*count), Value::Null, Value::Null],
            Self::Sum(sum) => [Value::Int8(sum.count), sum.part()?, Value::Null],
            Self::Moments(moments) => moments.part()?,
            Self::Extreme(value) | Self::Bits(value) => [value.clone(), Value::Null, Value::Null],
            Self::Bool(value) => [value.map_or(Value::Null, Value::Bool), Value::Null, Value::Null],
            _ => return Err(no_parts()),
        })
    }

    /// Takes in what another state of the same function has taken in behind it. Says about how
    /// many bytes it has grown by.
    pub(super) fn add_part(
        &mut self,
        function: F,
        [first, second, third]: [Datum<'_>; 3],
    ) -> Result<usize> {
        match (&mut *self, first) {
            (_, Datum::Null) => {}
            (Self::Count(count), Datum::Int8(more)) => *count += more,
            (Self::Sum(sum), Datum::Int8(more)) => {
                sum.count += more;
                match second {
                    Datum::Null => {}
                    second => {
                        sum.count -= 1;
                        return sum.add(function, second);
                    }
                }
            }
            (Self::Moments(moments), _) => moments.add_part([first, second, third])?,
            (Self::Extreme(_) | Self::Bits(_) | Self::Bool(_), first) => {
                return self.add(function, first, Datum::Null);
            }
            _ => return Err(no_parts()),
        }
        Ok(0)
    }

    /// Takes a value out that was taken in before all others. If it returns false, the state is not
    /// valid any more, and the caller must begin a new one.
    pub(crate) fn take_out(&mut self, function: F, datum: Datum<'_>) -> bool {
        if datum.is_null() && !takes_null(function) {
            return true;
        }
        match self {
            Self::Count(count) => {
                *count -= 1;
                true
            }
            Self::Sum(sum) => sum.take_out(datum),
            Self::Moments(moments) => moments.take_out(datum),
            _ => false,
        }
    }

    /// The result, of a type.
    pub(crate) fn finish(
        &self,
        function: F,
        ty: DataType,
        options: &FormatOptions,
    ) -> Result<Value> {
        Ok(match self {
            Self::Count(count) => Value::Int8(*count),
            Self::Sum(sum) if function == F::Avg => sum.average(ty)?,
            Self::Sum(sum) => sum.total(ty)?,
            Self::Extreme(value) | Self::Bits(value) | Self::Joined(value) => value.clone(),
            Self::Bool(value) => value.map_or(Value::Null, Value::Bool),
            Self::Moments(moments) => moments.finish(function)?,
            Self::Pairs(pairs) => match function {
                F::Regression(what) => pairs.finish(what),
                _ => return Err(SqlError::internal("an aggregate of another kind")),
            },
            Self::Values(values) => match function {
                F::JsonList(_) | F::JsonObject(_) if values.is_empty() => Value::Null,
                F::JsonList(JsonKind::Json) => json::json_list(values, options)?,
                F::JsonList(JsonKind::Jsonb) => json::jsonb_list(values, options)?,
                F::JsonObject(JsonKind::Json) => json::json_object(values, options)?,
                F::JsonObject(JsonKind::Jsonb) => json::jsonb_object(values, options)?,
                F::ArrayAgg | F::ArrayAggOfArrays => super::array::of_values(values, ty)?,
                _ => return Err(SqlError::internal("an ordered-set aggregate without its rows")),
            },
        })
    }
}

#[cold]
fn no_parts() -> SqlError {
    SqlError::internal("an aggregate that is not put together of parts")
}

fn add_extreme(best: &mut Value, function: F, datum: Datum<'_>) -> Result<usize> {
    // Of equal values the last one stays, where they may look different.
    let differs =
        matches!(datum, Datum::Numeric(_) | Datum::Float4(_) | Datum::Float8(_) | Datum::Other(..));
    let is_better = best.is_null()
        || datum.sql_cmp(&best.as_datum()).is_some_and(|order| match (order, function) {
            (Ordering::Equal, _) => differs,
            (order, F::Min) => order.is_lt(),
            (order, _) => order.is_gt(),
        });
    if !is_better {
        return Ok(0);
    }
    let bytes = |value: &Value| crate::memory::bytes_of(std::slice::from_ref(value));
    let before = bytes(best);
    *best = datum.to_value();
    Ok(bytes(best).saturating_sub(before))
}

fn add_bits(bits: &mut Value, function: F, datum: Datum<'_>) -> Result<()> {
    let op = match function {
        F::BitAnd => Arith::BitAnd,
        F::BitOr => Arith::BitOr,
        _ => Arith::BitXor,
    };
    *bits = match bits.as_datum() {
        Datum::Null => datum.to_value(),
        before => arith::apply(op, before, datum)?,
    };
    Ok(())
}

fn add_joined(joined: &mut Value, datum: Datum<'_>, separator: Datum<'_>) -> Result<usize> {
    match (&mut *joined, datum) {
        (Value::Null, first) => {
            *joined = first.to_value();
            Ok(crate::memory::bytes_of(std::slice::from_ref(joined)))
        }
        (Value::Text(text), Datum::Text(more)) => {
            let before = text.len();
            if let Datum::Text(separator) = separator {
                text.push_str(separator);
            }
            text.push_str(more);
            check_length(text.len())?;
            Ok(text.len() - before)
        }
        (Value::Bytea(bytes), Datum::Bytea(more)) => {
            let before = bytes.len();
            if let Datum::Bytea(separator) = separator {
                bytes.extend_from_slice(separator);
            }
            bytes.extend_from_slice(more);
            check_length(bytes.len())?;
            Ok(bytes.len() - before)
        }
        _ => Err(SqlError::internal("values of two types are joined")),
    }
}

/// A number as double precision.
pub(super) fn as_f64(datum: Datum<'_>) -> Option<f64> {
    match datum {
        Datum::Float8(value) => Some(value),
        Datum::Float4(value) => Some(value.into()),
        Datum::Numeric(value) => Some(value.to_f64()),
        other => other.as_i64().map(|int| int as f64),
    }
}

#[cfg(test)]
mod tests;
