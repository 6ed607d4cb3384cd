//! Sums and averages.

use millpond_types::Interval;
use millpond_types::numeric::{NumericSum, Small};
use millpond_types::other::INTERVAL;

use crate::analyze::tree::AggregateFunction as F;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::interval_math;
use crate::expr::{Arith, arith};
use crate::{DataType, Datum, Numeric, Value};

/// A sum, and of how many values.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(super) count: i64,
    /// Of integers and decimal numbers. Nothing overflows before the end.
    pub(super) numbers: NumericSum,
    /// Of floats and the rest. It is elsewhere, because most of many groups do without.
    other: Option<Box<Value>>,
}

impl Sum {
    pub(super) fn add(&mut self, function: F, datum: Datum<'_>) -> Result<usize> {
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

    /// Takes out a value that was taken in. If it returns false, the state is not valid any more,
    /// and the caller must begin a new one.
    pub(super) fn take_out(&mut self, datum: Datum<'_>) -> bool {
        self.count -= 1;
        match (datum, self.other.as_deref()) {
            (Datum::Numeric(number), _) => self.numbers.take_out(number),
            (Datum::Other(INTERVAL, less), Some(Value::Other(INTERVAL, sum))) => {
                let less =
                    interval(sum).and_then(|sum| interval_math::subtract(sum, interval(less)?));
                self.other = less.ok().map(|less| Box::new(less.into()));
                self.other.is_some()
            }
            _ => datum
                .as_i64()
                .and_then(i64::checked_neg)
                .is_some_and(|int| self.numbers.add_int(int).is_ok()),
        }
    }

    pub(super) fn add_small(&mut self, small: Small) -> Result<usize> {
        self.count += 1;
        self.numbers.add_small(small)?;
        Ok(0)
    }

    /// The sum so far, for another one to go on with: an integer as long as it is one of few
    /// digits.
    pub(super) fn part(&self) -> Result<Value> {
        Ok(match (&self.other, self.numbers.int().map(i64::try_from)) {
            _ if self.count == 0 => Value::Null,
            (Some(sum), _) => Value::clone(sum),
            (None, Some(Ok(int))) => Value::Int8(int),
            (None, _) => Value::Numeric(self.numbers.total()?),
        })
    }

    pub(super) fn total(&self, ty: DataType) -> Result<Value> {
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

    pub(super) fn average(&self, ty: DataType) -> Result<Value> {
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

/// An interval of its bytes.
pub(super) fn interval(bytes: &[u8]) -> Result<Interval> {
    Interval::from_bytes(bytes).ok_or_else(|| SqlError::internal("a damaged interval"))
}
