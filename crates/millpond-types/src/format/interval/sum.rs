//! Units of time, and the sum of an interval's fields.

use super::super::USECS_PER_DAY;
use super::{USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SECOND};
use crate::Interval;

/// Why a text is no interval.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    Syntax,
    /// A field is larger than it can be.
    Field,
    /// The fields don't go together in one interval.
    Sum,
}

/// A unit of time that an interval's numbers may have.
#[allow(missing_docs, reason = "each is a word of the language")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

/// The unit of a word. Only ten letters of a word count.
pub fn unit(word: &str) -> Option<Unit> {
    Some(match word.get(..10).unwrap_or(word) {
        "us" | "usec" | "usecond" | "useconds" | "usecs" | "microsecon" => Unit::Microsecond,
        "ms" | "msec" | "msecond" | "mseconds" | "msecs" | "millisecon" => Unit::Millisecond,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
        _ => return None,
    })
}

/// The fields of an interval as they are added up.
#[derive(Default)]
pub(super) struct Sum {
    years: i32,
    months: i32,
    days: i32,
    usecs: i64,
}

fn add(to: &mut i32, value: i64, times: i64) -> Result<(), Bad> {
    let more = value.checked_mul(times).and_then(|more| i32::try_from(more).ok());
    *to = more.and_then(|more| to.checked_add(more)).ok_or(Bad::Field)?;
    Ok(())
}

impl Sum {
    /// Adds a number of units: whole ones and a fraction.
    pub(super) fn add(&mut self, unit: Unit, whole: i64, fraction: f64) -> Result<(), Bad> {
        match unit {
            Unit::Microsecond => self.add_usecs(whole, fraction, 1),
            Unit::Millisecond => self.add_usecs(whole, fraction, 1000),
            Unit::Second => self.add_usecs(whole, fraction, USECS_PER_SECOND),
            Unit::Minute => self.add_usecs(whole, fraction, USECS_PER_MINUTE),
            Unit::Hour => self.add_usecs(whole, fraction, USECS_PER_HOUR),
            Unit::Day => {
                add(&mut self.days, whole, 1)?;
                self.add_usecs(0, fraction, USECS_PER_DAY)
            }
            Unit::Week => {
                add(&mut self.days, whole, 7)?;
                self.add_days(fraction * 7.0)
            }
            Unit::Month => {
                add(&mut self.months, whole, 1)?;
                self.add_days(fraction * 30.0)
            }
            Unit::Year => self.add_years(whole, fraction, 1),
            Unit::Decade => self.add_years(whole, fraction, 10),
            Unit::Century => self.add_years(whole, fraction, 100),
            Unit::Millennium => self.add_years(whole, fraction, 1000),
        }
    }

    fn add_years(&mut self, whole: i64, fraction: f64, years: i32) -> Result<(), Bad> {
        add(&mut self.years, whole, years.into())?;
        let months = (fraction * f64::from(years) * 12.0).round_ties_even();
        add(&mut self.months, months as i64, 1)
    }

    fn add_days(&mut self, days: f64) -> Result<(), Bad> {
        add(&mut self.days, days as i64, 1)?;
        self.add_usecs(0, days.fract(), USECS_PER_DAY)
    }

    fn add_usecs(&mut self, whole: i64, fraction: f64, usecs: i64) -> Result<(), Bad> {
        let part = fraction * usecs as f64;
        let rest = part.fract();
        let part = part as i64 + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        let sum = whole.checked_mul(usecs).and_then(|more| self.usecs.checked_add(more));
        self.usecs = sum.and_then(|sum| sum.checked_add(part)).ok_or(Bad::Field)?;
        Ok(())
    }

    pub(super) fn negate(&mut self) -> Result<(), Bad> {
        self.years = self.years.checked_neg().ok_or(Bad::Field)?;
        self.months = self.months.checked_neg().ok_or(Bad::Field)?;
        self.days = self.days.checked_neg().ok_or(Bad::Field)?;
        self.usecs = self.usecs.checked_neg().ok_or(Bad::Field)?;
        Ok(())
    }

    /// The SQL standard's sign: before the first field it is that of all.
    pub(super) fn make_negative(&mut self) {
        for field in [&mut self.years, &mut self.months, &mut self.days] {
            *field = -field.saturating_abs();
        }
        self.usecs = -self.usecs.saturating_abs();
    }

    pub(super) fn finish(self) -> Result<Interval, Bad> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        let months = i32::try_from(months).map_err(|_| Bad::Sum)?;
        Ok(Interval { months, days: self.days, usecs: self.usecs })
    }
}

/// Digits after the point.
pub(super) fn fraction_of(digits: &str) -> Result<f64, Bad> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Bad::Syntax);
    }
    if digits.is_empty() {
        return Ok(0.0);
    }
    format!("0.{digits}").parse().map_err(|_| Bad::Syntax)
}
