//! The fields of a date and time while they are found, and what must hold of them in the end.

use super::super::calendar::{USECS_PER_DAY, civil_of_date, date_of_civil, days_in_month};
use super::{Bad, DateOrder, USECS_PER_SECOND, Zone};

/// Sets of fields, as bits.
pub(super) mod mask {
    pub(in super::super) const YEAR: u32 = 1;
    pub(in super::super) const MONTH: u32 = 1 << 1;
    pub(in super::super) const DAY: u32 = 1 << 2;
    pub(in super::super) const HOUR: u32 = 1 << 3;
    pub(in super::super) const MINUTE: u32 = 1 << 4;
    pub(in super::super) const SECOND: u32 = 1 << 5;
    /// The part of a second.
    pub(in super::super) const FRACTION: u32 = 1 << 6;
    pub(in super::super) const DAY_OF_YEAR: u32 = 1 << 7;
    pub(in super::super) const ZONE: u32 = 1 << 8;
    pub(in super::super) const DST: u32 = 1 << 9;
    pub(in super::super) const AM_PM: u32 = 1 << 10;
    pub(in super::super) const ERA: u32 = 1 << 11;
    pub(in super::super) const DAY_OF_WEEK: u32 = 1 << 12;
    /// `infinity`, `epoch`
    pub(in super::super) const SPECIAL: u32 = 1 << 13;
    pub(in super::super) const DATE: u32 = YEAR | MONTH | DAY;
    pub(in super::super) const SECONDS: u32 = SECOND | FRACTION;
    pub(in super::super) const TIME: u32 = HOUR | MINUTE | SECONDS;
}

/// A date and time in parts.
#[derive(Debug, Default)]
pub(in crate::format) struct CivilFields {
    /// The fields that the text has.
    pub(super) found: u32,
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) day_of_year: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// Microseconds of the second.
    pub(super) fraction: i64,
    pub(super) zone: Option<Zone>,
    pub(super) pm: Option<bool>,
    pub(super) bc: bool,
    /// The year had one or two digits.
    pub(super) short_year: bool,
    /// The year is astronomical: it came from a day's number.
    pub(super) is_julian: bool,
}

impl CivilFields {
    pub(super) fn has(&self, fields: u32) -> bool {
        self.found & fields == fields
    }

    pub(super) fn has_any(&self, fields: u32) -> bool {
        self.found & fields != 0
    }

    /// Takes the day of a number of days since 2000-01-01.
    pub(super) fn set_day(&mut self, days: i64) {
        let days = days.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        let civil = civil_of_date(days);
        (self.year, self.month, self.day) =
            (civil.year.into(), civil.month.into(), civil.day.into());
    }

    /// Takes the time of day of its microseconds.
    pub(super) fn set_clock(&mut self, usecs: i64) {
        let seconds = usecs / USECS_PER_SECOND;
        (self.hour, self.minute, self.second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        self.fraction = usecs % USECS_PER_SECOND;
    }

    /// Settles the year's era and century, and checks the day.
    pub(super) fn check_day(&mut self) -> Result<(), Bad> {
        if self.has(mask::YEAR) && !self.is_julian {
            self.year = match self.year {
                // No year is 0.
                year if self.bc && year > 0 => 1 - year,
                _ if self.bc => return Err(Bad::Field),
                0..70 if self.short_year => self.year + 2000,
                70..100 if self.short_year => self.year + 1900,
                year if year <= 0 => return Err(Bad::Field),
                year => year,
            };
        }
        if self.has(mask::DAY_OF_YEAR) {
            let first = date_of_civil(self.year, 1, 1).ok_or(Bad::Field)?;
            self.set_day(first + self.day_of_year - 1);
        }
        if self.has(mask::MONTH) && !(1..=12).contains(&self.month)
            || self.has(mask::DAY) && !(1..=31).contains(&self.day)
        {
            return Err(Bad::Order);
        }
        if self.has(mask::DATE) && self.day > i64::from(days_in_month(self.year, self.month as u32))
        {
            return Err(Bad::Field);
        }
        Ok(())
    }

    /// Makes 24 hours of 12 with `am` or `pm`.
    pub(super) fn apply_pm(&mut self) -> Result<(), Bad> {
        let Some(pm) = self.pm else { return Ok(()) };
        if self.hour > 12 {
            return Err(Bad::Field);
        }
        self.hour = self.hour % 12 + if pm { 12 } else { 0 };
        Ok(())
    }

    /// Days since 2000-01-01; of fields without one, that of nothing.
    pub(in crate::format) fn days(&self) -> Result<i64, Bad> {
        date_of_civil(self.year, self.month as u32, self.day as u32).ok_or(Bad::Field)
    }

    /// Whether there is a day.
    pub(in crate::format) fn has_day(&self) -> bool {
        self.has(mask::DATE)
    }

    /// Microseconds since midnight, up to 24:00:00.
    pub(in crate::format) fn usecs(&self) -> Result<i64, Bad> {
        let in_range = (0..=24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=USECS_PER_SECOND).contains(&self.fraction);
        if !in_range {
            return Err(Bad::Field);
        }
        let seconds = (self.hour * 60 + self.minute) * 60 + self.second;
        let usecs = seconds * USECS_PER_SECOND + self.fraction;
        if usecs <= USECS_PER_DAY { Ok(usecs) } else { Err(Bad::Field) }
    }

    /// The zone of the text.
    pub(in crate::format) fn zone(&self) -> Option<Zone> {
        self.zone
    }
}

/// The next number of a text and what stands behind it.
pub(super) fn number(text: &str) -> Result<(i64, &str), Bad> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Err(Bad::Syntax);
    }
    let value = digits.parse::<i64>().ok().filter(|value| *value <= i32::MAX.into());
    Ok((value.ok_or(Bad::Field)?, rest))
}

/// The microseconds of digits behind a point, which comes first, rounded.
pub(super) fn fraction(text: &str) -> Result<i64, Bad> {
    let digits = text.strip_prefix('.').ok_or(Bad::Syntax)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Bad::Syntax);
    }
    let part: f64 = format!("0.{digits}0").parse().map_err(|_| Bad::Syntax)?;
    Ok((part * USECS_PER_SECOND as f64).round_ties_even() as i64)
}

/// Reads `+02`, `-3:30`, `+05:30:15` or `-0330`: seconds east of UTC.
pub(super) fn offset(text: &str) -> Result<i32, Bad> {
    let range = |bad: Bad| if matches!(bad, Bad::Field) { Bad::Displacement } else { bad };
    let unsigned = text.strip_prefix(['+', '-']).ok_or(Bad::Syntax)?;
    let (mut hours, mut rest) = number(unsigned).map_err(range)?;
    let (mut minutes, mut seconds) = (0, 0);
    // Nothing behind a colon is a zero.
    let part = |text: &'_ str| text.is_empty() || text.starts_with(':');
    if let Some(after) = rest.strip_prefix(':') {
        (minutes, rest) = if part(after) { (0, after) } else { number(after).map_err(range)? };
        if let Some(after) = rest.strip_prefix(':') {
            (seconds, rest) =
                if part(after) { (0, after) } else { number(after).map_err(range)? };
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Bad::Displacement);
    }
    if !rest.is_empty() {
        return Err(Bad::Syntax);
    }
    let offset = (hours * 3600 + minutes * 60 + seconds) as i32;
    Ok(if text.starts_with('-') { -offset } else { offset })
}

/// What the first number of a date is, where nothing else tells.
pub(super) fn first_of(order: DateOrder) -> u32 {
    match order {
        DateOrder::Mdy => mask::MONTH,
        DateOrder::Dmy => mask::DAY,
        DateOrder::Ymd => mask::YEAR,
    }
}
