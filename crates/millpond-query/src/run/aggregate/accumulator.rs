//! What an aggregate function has taken in.

use std::cmp::Ordering;

use millpond_types::Interval;
use millpond_types::numeric::{NumericSum, Small};
use millpond_types::other::INTERVAL;

use super::moments::{Moments, Pairs};
use crate::analyze::tree::{AggregateFunction as F, JsonKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::int::of_column;
use crate::expr::interval_math;
use crate::expr::json_aggregate as json;
use crate::expr::{Arith, Env, Expr, arith, check_length};
use crate::types::FormatOptions;
use crate::{DataType, Datum, Numeric, Value};

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
    /// All values: those of an ordered-set aggregate come sorted.
    Values(Vec<Value>),
}

/// A sum, and of how many values.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    count: i64,
    /// Of integers and decimal numbers. Nothing overflows before the end.
    numbers: NumericSum,
    /// Of floats and the rest. It is elsewhere, because most of many groups do without.
    other: Option<Box<Value>>,
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
        self.add(function, expr.eval(env)?.datum(), Datum::Null)
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

    /// What has been taken in, as two values of which [`Self::add_part`] makes the same in another
    /// state.
    pub(super) fn part(&self) -> Result<[Value; 2]> {
        Ok(match self {
            Self::Count(count) => [Value::Int8(*count), Value::Null],
            Self::Sum(sum) => [Value::Int8(sum.count), sum.numbers_value()?],
            Self::Extreme(value) | Self::Bits(value) => [value.clone(), Value::Null],
            Self::Bool(value) => [value.map_or(Value::Null, Value::Bool), Value::Null],
            _ => return Err(no_parts()),
        })
    }

    /// Takes in what another state of the same function has taken in behind it. Says about how
    /// many bytes it has grown by.
    pub(super) fn add_part(
        &mut self,
        function: F,
        [first, second]: [Datum<'_>; 2],
    ) -> Result<usize> {
        match (&mut *self, first) {
            (_, Datum::Null) => {}
            (Self::Count(count), Datum::Int8(more)) => *count += more,
            (Self::Sum(sum), Datum::Int8(more)) => {
                sum.count += more;
                match second {
                    Datum::Null => {}
                    Datum::Numeric(number) => sum.numbers.add(number)?,
                    int => sum.numbers.add_int(int.as_i64().ok_or_else(no_parts)?)?,
                }
            }
            (Self::Extreme(_) | Self::Bits(_) | Self::Bool(_), first) => {
                return self.add(function, first, Datum::Null);
            }
            _ => return Err(no_parts()),
        }
        Ok(0)
    }

    /// Takes a value out that was taken in before all others. False if that can't be done, and then
    /// nothing is known any more.
    pub(crate) fn take_out(&mut self, function: F, datum: Datum<'_>) -> bool {
        if datum.is_null() && function != F::CountRows {
            return true;
        }
        match (self, datum.as_i64()) {
            (Self::Count(count), _) => *count -= 1,
            (Self::Sum(sum), Some(int)) => {
                sum.count -= 1;
                return int.checked_neg().is_some_and(|int| sum.numbers.add_int(int).is_ok());
            }
            _ => return false,
        }
        true
    }

    /// The result, of a type.
    pub(crate) fn finish(
        &self,
        function: F,
        ty: DataType,
        fraction: Datum<'_>,
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
                F::Mode => super::ordered_set::mode(values),
                F::PercentileDisc => super::ordered_set::discrete(values, fraction, ty)?,
                F::PercentileCont => super::ordered_set::continuous(values, fraction, ty)?,
                F::JsonList(_) | F::JsonObject(_) if values.is_empty() => Value::Null,
                F::JsonList(JsonKind::Json) => json::json_list(values, options)?,
                F::JsonList(JsonKind::Jsonb) => json::jsonb_list(values, options)?,
                F::JsonObject(JsonKind::Json) => json::json_object(values, options)?,
                F::JsonObject(JsonKind::Jsonb) => json::jsonb_object(values, options)?,
                _ => super::array::of_values(values, ty)?,
            },
        })
    }
}

impl Sum {
    fn add(&mut self, function: F, datum: Datum<'_>) -> Result<usize> {
        self.count += 1;
        let datum = match datum {
            Datum::Numeric(number) => {
                self.numbers.add(number)?;
                return Ok(0);
            }
            // An average is of double precision.
            Datum::Float4(value) if function == F::Avg => Datum::Float8(value.into()),
            datum => datum,
        };
        if let Some(int) = datum.as_i64() {
            self.numbers.add_int(int)?;
            return Ok(0);
        }
        let Some(sum) = &mut self.other else {
            self.other = Some(Box::new(datum.to_value()));
            return Ok(size_of::<Value>());
        };
        **sum = match (sum.as_datum(), datum) {
            (Datum::Other(INTERVAL, sum), Datum::Other(INTERVAL, more)) => {
                interval_math::add(interval(sum)?, interval(more)?)?.into()
            }
            (sum, more) => arith::apply(Arith::Add, sum, more)?,
        };
        Ok(0)
    }

    fn add_small(&mut self, small: Small) -> Result<usize> {
        self.count += 1;
        self.numbers.add_small(small)?;
        Ok(0)
    }

    /// The sum of integers and decimal numbers: an integer as long as it is one of few digits.
    fn numbers_value(&self) -> Result<Value> {
        Ok(match self.numbers.int().map(i64::try_from) {
            _ if self.count == 0 => Value::Null,
            Some(Ok(int)) => Value::Int8(int),
            _ => Value::Numeric(self.numbers.total()?),
        })
    }

    fn total(&self, ty: DataType) -> Result<Value> {
        Ok(match (&self.other, ty) {
            _ if self.count == 0 => Value::Null,
            (Some(sum), _) => Value::clone(sum),
            (None, DataType::Int8) => {
                let int = self.numbers.int().and_then(|sum| i64::try_from(sum).ok());
                let out_of_range =
                    || SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range");
                Value::Int8(int.ok_or_else(out_of_range)?)
            }
            (None, _) => Value::Numeric(self.numbers.total()?),
        })
    }

    fn average(&self, ty: DataType) -> Result<Value> {
        if self.count == 0 {
            return Ok(Value::Null);
        }
        if let Some(Value::Other(INTERVAL, sum)) = self.other.as_deref() {
            return Ok(interval_math::divide(interval(sum)?, self.count as f64)?.into());
        }
        let count = match ty {
            DataType::Float8 => Value::Float8(self.count as f64),
            _ => Value::Numeric(Numeric::from(self.count)),
        };
        let sum = match (&self.other, ty) {
            (Some(sum), _) => Value::clone(sum),
            (None, DataType::Float8) => Value::Float8(self.numbers.int().unwrap_or(0) as f64),
            (None, _) => Value::Numeric(self.numbers.total()?),
        };
        arith::apply(Arith::Div, sum.as_datum(), count.as_datum())
    }
}

/// The average of that many values with this sum, in type `ty`.
pub(crate) fn average_of(sum: &Datum<'_>, count: i64, ty: DataType) -> Result<Value> {
    let mut total = Sum::default();
    total.add(F::Avg, *sum)?;
    total.count = count;
    total.average(ty)
}

#[cold]
fn no_parts() -> SqlError {
    SqlError::internal("an aggregate that is not put together of parts")
}

/// An interval of its bytes.
pub(super) fn interval(bytes: &[u8]) -> Result<Interval> {
    Interval::from_bytes(bytes).ok_or_else(|| SqlError::internal("a damaged interval"))
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
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use proptest::prelude::*;

    use super::*;

    /// Values of one type, and NULLs.
    fn values() -> impl Strategy<Value = Vec<Value>> {
        let number = |text: String| Value::Numeric(text.parse().unwrap());
        prop_oneof![
            of((-5i32..5).prop_map(Value::Int4)),
            of(any::<i64>().prop_map(Value::Int8)),
            of("-?[0-9]{1,12}\\.[0-9]{0,6}".prop_map(number)),
            of("-?[0-2]\\.0{1,3}|NaN|Infinity".prop_map(number)),
        ]
    }

    fn of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Value>> {
        prop::collection::vec(prop_oneof![1 => Just(Value::Null), 5 => values], 0..40)
    }

    fn taken(function: F, values: &[Value]) -> Accumulator {
        let mut state = Accumulator::new(function);
        for value in values {
            state.add(function, value.as_datum(), Datum::Null).unwrap();
        }
        state
    }

    fn result(function: F, state: &Accumulator) -> Value {
        let ty = match function {
            F::Count => DataType::Int8,
            _ => DataType::Numeric { precision_scale: None },
        };
        state.finish(function, ty, Datum::Null, &FormatOptions::default()).unwrap()
    }

    proptest! {
        #[test]
        fn parts_give_what_the_whole_gives(values in values(), cuts in prop::collection::vec(0usize..40, 0..5)) {
            for function in [F::Count, F::Sum, F::Avg, F::Min, F::Max] {
                let whole = taken(function, &values);
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (values.len() + 1)).collect();
                cuts.extend([0, values.len()]);
                cuts.sort_unstable();
                let mut state = Accumulator::new(function);
                for range in cuts.windows(2) {
                    let part = taken(function, &values[range[0]..range[1]]).part().unwrap();
                    state.add_part(function, part.each_ref().map(Value::as_datum)).unwrap();
                }
                let (expected, found) = (result(function, &whole), result(function, &state));
                prop_assert_eq!(format!("{:?}", expected), format!("{:?}", found), "{:?}", function);
            }
        }
    }
}
