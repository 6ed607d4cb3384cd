//! Variances and regressions.
//!
//! Those of floats use the updating formula of Youngs and Cramer, which does not lose what is small
//! beside a large mean. Those of integers and numerics are exact, from the sums of the values and
//! of their squares.

use millpond_types::numeric::{NumericRef, NumericSum, Parts};

use super::accumulator::as_f64;
use crate::analyze::tree::{AggregateFunction as F, Regression as R};
use crate::error::{Result, SqlError, SqlState};
use crate::{Datum, Numeric, Value};

/// What variances are computed from.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    count: i64,
    /// Of integers, as long as nothing overflows.
    ints: (i128, i128),
    /// Sum and sum of squares of numerics.
    exact: Option<Box<(NumericSum, NumericSum)>>,
    /// Some number is NaN or infinite, so that the result is NaN.
    is_special: bool,
    floats: Option<FloatMoments>,
}

/// The state of floats.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatMoments {
    count: f64,
    sum: f64,
    /// The sum of the squared differences from the mean.
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, datum: Datum<'_>) -> Result<()> {
        self.count += 1;
        if let Datum::Float8(value) = datum {
            return self.floats.get_or_insert_default().add(value);
        }
        match (datum, datum.as_i64()) {
            (_, Some(int)) if self.exact.is_none() => {
                let int = i128::from(int);
                let sums = self.ints.0.checked_add(int).zip(self.ints.1.checked_add(int * int));
                match sums {
                    Some(sums) => self.ints = sums,
                    None => {
                        self.ints_to_numerics()?;
                        self.add_numeric(Numeric::from(int).as_ref())?;
                    }
                }
            }
            (_, Some(int)) => self.add_numeric(Numeric::from(int).as_ref())?,
            (Datum::Numeric(value), _) => self.add_numeric(value)?,
            _ => {
                if let Some(value) = as_f64(datum) {
                    self.floats.get_or_insert_default().add(value)?;
                }
            }
        }
        Ok(())
    }

    /// The state, for another one to go on with: how many values there were, their sum, and the
    /// sum of their squares. Of floats it is the state that their variances are made of.
    pub(super) fn part(&self) -> Result<[Value; 3]> {
        if let Some(floats) = self.floats {
            return Ok(floats.numbers().map(Value::Float8));
        }
        if self.count == 0 {
            return Ok([const { Value::Null }; 3]);
        }
        let (sum, squares) = self.sums()?;
        let sum = if self.is_special { Numeric::nan() } else { sum };
        Ok([Value::Int8(self.count), Value::Numeric(sum), Value::Numeric(squares)])
    }

    /// Takes in what another state has taken in behind this one.
    pub(super) fn add_part(&mut self, part: [Datum<'_>; 3]) -> Result<()> {
        match part {
            [Datum::Float8(count), Datum::Float8(sum), Datum::Float8(squares)] => {
                self.count += count as i64;
                let floats = self.floats.get_or_insert_default();
                *floats = floats.with(&FloatMoments::of([count, sum, squares]))?;
            }
            [Datum::Int8(count), Datum::Numeric(sum), Datum::Numeric(squares)] => {
                self.count += count;
                if is_finite(sum) {
                    self.ints_to_numerics()?;
                    self.add_sums(sum, squares)?;
                } else {
                    self.is_special = true;
                }
            }
            _ => return Err(SqlError::internal("a damaged part of a variance")),
        }
        Ok(())
    }

    /// Takes out a value that was taken in. If it returns false, the state is not valid any more,
    /// and the caller must begin a new one.
    pub(super) fn take_out(&mut self, datum: Datum<'_>) -> bool {
        self.count -= 1;
        match (datum, datum.as_i64(), &mut self.exact) {
            (_, Some(int), None) => {
                let int = i128::from(int);
                let sums = self.ints.0.checked_sub(int).zip(self.ints.1.checked_sub(int * int));
                sums.map(|sums| self.ints = sums).is_some()
            }
            (Datum::Numeric(value), None, Some(exact)) => {
                let small =
                    value.small().and_then(|small| small.checked_mul(small).zip(Some(small)));
                small.is_some_and(|(square, small)| {
                    exact.0.take_out_small(small) && exact.1.take_out_small(square)
                })
            }
            _ => false,
        }
    }

    /// The sums of exact values and of their squares.
    fn sums(&self) -> Result<(Numeric, Numeric)> {
        Ok(match &self.exact {
            Some(exact) => (exact.0.total()?, exact.1.total()?),
            None => (Numeric::from(self.ints.0), Numeric::from(self.ints.1)),
        })
    }

    fn ints_to_numerics(&mut self) -> Result<()> {
        let (sum, squares) = std::mem::take(&mut self.ints);
        self.add_sums(Numeric::from(sum).as_ref(), Numeric::from(squares).as_ref())
    }

    fn add_numeric(&mut self, value: NumericRef<'_>) -> Result<()> {
        if let Some(small) = value.small()
            && let Some(square) = small.checked_mul(small)
        {
            let exact = self.exact.get_or_insert_default();
            exact.0.add_small(small)?;
            exact.1.add_small(square)?;
            return Ok(());
        }
        if !is_finite(value) {
            self.is_special = true;
            return Ok(());
        }
        self.add_sums(value, value.mul(value)?.as_ref())
    }

    fn add_sums(&mut self, sum: NumericRef<'_>, squares: NumericRef<'_>) -> Result<()> {
        let exact = self.exact.get_or_insert_default();
        exact.0.add(sum)?;
        exact.1.add(squares)?;
        Ok(())
    }

    pub(super) fn finish(&self, function: F) -> Result<Value> {
        let is_sample = matches!(function, F::VarSamp | F::StddevSamp);
        if self.count <= i64::from(is_sample) {
            return Ok(Value::Null);
        }
        let is_root = matches!(function, F::StddevPop | F::StddevSamp);
        if let Some(floats) = &self.floats {
            return Ok(floats.finish(function));
        }
        if self.is_special {
            return Ok(Value::Numeric(Numeric::nan()));
        }
        let (sum, squares) = self.sums()?;
        let count = i128::from(self.count);
        let more = Numeric::from(count).as_ref().mul(squares.as_ref())?;
        let difference = more.as_ref().sub(sum.as_ref().mul(sum.as_ref())?.as_ref())?;
        if difference.as_ref().signum() <= 0 {
            return Ok(Value::Numeric(Numeric::from(0i64)));
        }
        let divisor = Numeric::from(count * i128::from(self.count - i64::from(is_sample)));
        let variance = difference.as_ref().div(divisor.as_ref())?;
        if !is_root {
            return Ok(Value::Numeric(variance));
        }
        let dscale = match variance.as_ref().parts() {
            Parts::Finite(decimal) => decimal.dscale,
            _ => 0,
        };
        Ok(Value::Numeric(variance.as_ref().square_root(dscale)?))
    }
}

fn is_finite(number: NumericRef<'_>) -> bool {
    matches!(number.parts(), Parts::Finite(_))
}

impl FloatMoments {
    /// Those of a count, a sum, and the sum of the squared differences from the mean.
    pub(crate) fn of([count, sum, squares]: [f64; 3]) -> Self {
        Self { count, sum, squares }
    }

    /// The numbers for [`Self::of`].
    pub(crate) fn numbers(&self) -> [f64; 3] {
        [self.count, self.sum, self.squares]
    }

    pub(crate) fn add(&mut self, value: f64) -> Result<()> {
        let (before, count_before) = (self.sum, self.count);
        self.count += 1.0;
        self.sum += value;
        let count = self.count;
        if !is_some(count_before) {
            if !value.is_finite() {
                self.squares = f64::NAN;
            }
            return Ok(());
        }
        let difference = value * count - self.sum;
        self.squares += difference * difference / (count * count_before);
        if self.sum.is_infinite() || self.squares.is_infinite() {
            if !before.is_infinite() && !value.is_infinite() {
                return Err(overflow());
            }
            self.squares = f64::NAN;
        }
        Ok(())
    }

    /// Those of the values of both.
    pub(crate) fn with(&self, other: &Self) -> Result<Self> {
        if self.count == 0.0 || other.count == 0.0 {
            return Ok(if self.count == 0.0 { *other } else { *self });
        }
        let count = self.count + other.count;
        let apart = self.sum / self.count - other.sum / other.count;
        let squares = Products { counts: (self.count, other.count), apart: (apart, apart) };
        Ok(Self {
            count,
            sum: sum_of(self.sum, other.sum)?,
            squares: squares.joined(self.squares, other.squares)?,
        })
    }

    pub(crate) fn finish(&self, function: F) -> Value {
        let is_sample = matches!(function, F::VarSamp | F::StddevSamp);
        let divisor = if is_sample { self.count - 1.0 } else { self.count };
        // A state that a client has written may have any count.
        if self.count == 0.0 || is_sample && self.count <= 1.0 {
            return Value::Null;
        }
        let variance = self.squares / divisor;
        let is_root = matches!(function, F::StddevPop | F::StddevSamp);
        Value::Float8(if is_root { variance.sqrt() } else { variance })
    }
}

/// What the sums of products of two parts lack, because the parts have means of their own.
struct Products {
    counts: (f64, f64),
    /// How far the means are apart, of both factors.
    apart: (f64, f64),
}

impl Products {
    fn joined(&self, a: f64, b: f64) -> Result<f64> {
        let (counts, apart) = (self.counts, self.apart);
        // In this order, as the last digits depend on it.
        let joined = a + b + counts.0 * counts.1 * apart.0 * apart.1 / (counts.0 + counts.1);
        let is_new = joined.is_infinite() && !a.is_infinite() && !b.is_infinite();
        if is_new { Err(overflow()) } else { Ok(joined) }
    }
}

/// Whether a count says that there are values. That of a state that a client has written may be
/// NaN.
fn is_some(count: f64) -> bool {
    count > 0.0
}

fn sum_of(a: f64, b: f64) -> Result<f64> {
    let sum = a + b;
    let is_new = sum.is_infinite() && !a.is_infinite() && !b.is_infinite();
    if is_new { Err(overflow()) } else { Ok(sum) }
}

#[cold]
fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// What regressions are computed from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pairs {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    /// Those of a count, the sum of x and of its squared differences from the mean, the same of y,
    /// and the sum of the products of the differences.
    pub(crate) fn of([count, x, xx, y, yy, xy]: [f64; 6]) -> Self {
        Self { count, x, y, xx, yy, xy }
    }

    /// The numbers for [`Self::of`].
    pub(crate) fn numbers(&self) -> [f64; 6] {
        [self.count, self.x, self.xx, self.y, self.yy, self.xy]
    }

    /// Those of the pairs of both.
    pub(crate) fn with(&self, other: &Self) -> Result<Self> {
        if self.count == 0.0 || other.count == 0.0 {
            return Ok(if self.count == 0.0 { *other } else { *self });
        }
        let count = self.count + other.count;
        let x = self.x / self.count - other.x / other.count;
        let y = self.y / self.count - other.y / other.count;
        let counts = (self.count, other.count);
        let joined = |apart, a, b| Products { counts, apart }.joined(a, b);
        Ok(Self {
            count,
            x: sum_of(self.x, other.x)?,
            xx: joined((x, x), self.xx, other.xx)?,
            y: sum_of(self.y, other.y)?,
            yy: joined((y, y), self.yy, other.yy)?,
            xy: joined((x, y), self.xy, other.xy)?,
        })
    }

    pub(crate) fn add(&mut self, y: f64, x: f64) -> Result<()> {
        let (count_before, x_before, y_before) = (self.count, self.x, self.y);
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if !is_some(count_before) {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let scale = 1.0 / (self.count * count_before);
        let (of_x, of_y) = (x * self.count - self.x, y * self.count - self.y);
        self.xx += of_x * of_x * scale;
        self.yy += of_y * of_y * scale;
        self.xy += of_x * of_y * scale;
        let is_new = |sum: f64, squares: f64, before: f64, value: f64| {
            (sum.is_infinite() || squares.is_infinite())
                && !before.is_infinite()
                && !value.is_infinite()
        };
        let x_was_finite = !x_before.is_infinite() && !x.is_infinite();
        let y_was_finite = !y_before.is_infinite() && !y.is_infinite();
        if is_new(self.x, self.xx, x_before, x)
            || is_new(self.y, self.yy, y_before, y)
            || (self.xy.is_infinite() && x_was_finite && y_was_finite)
        {
            return Err(overflow());
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&self, what: R) -> Value {
        let Pairs { count, x, y, xx, yy, xy } = *self;
        if let R::Count = what {
            return Value::Int8(count as i64);
        }
        let is_undefined = match what {
            R::CovarSamp => count < 2.0,
            R::Corr => count < 1.0 || xx == 0.0 || yy == 0.0,
            R::R2 | R::Slope | R::Intercept => count < 1.0 || xx == 0.0,
            _ => count < 1.0,
        };
        if is_undefined {
            return Value::Null;
        }
        Value::Float8(match what {
            R::Corr => xy / (xx * yy).sqrt(),
            R::CovarPop => xy / count,
            R::CovarSamp => xy / (count - 1.0),
            R::AvgX => x / count,
            R::AvgY => y / count,
            R::Count => count,
            R::Intercept => (y - x * xy / xx) / count,
            R::R2 if yy == 0.0 => 1.0,
            R::R2 => xy * xy / (xx * yy),
            R::Slope => xy / xx,
            R::Sxx => xx,
            R::Sxy => xy,
            R::Syy => yy,
        })
    }
}
