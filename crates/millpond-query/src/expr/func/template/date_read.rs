//! Dates and times read by a template: what its fields say, put together.

use super::date_fields::{self, Fields, Mode};
use super::date_pattern;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{
    USECS_PER_DAY, Zone, civil_of_date, date_of_civil, days_in_month, in_date_range,
    in_timestamp_range,
};

/// The Julian number of the first day of the year 2000.
const JULIAN_2000: i64 = 2_451_545;
/// No date has a year that is farther from 0.
const MOST_YEARS: i64 = 6_000_000;
/// Stands for every year that no date has.
const BEYOND_ALL: i64 = MOST_YEARS + 1;

/// What a text says, with each field that it does not name at its first value.
#[derive(Default)]
pub(super) struct Read {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    usecs: i64,
    pub(super) zone: Option<Zone>,
    /// The digits of the second's fraction that the template asks for.
    pub(super) fraction: u32,
}

/// A moment, in microseconds since 2000, UTC. A text without a zone is on the session's clock.
pub(super) fn timestamp(text: &str, template: &str, zone: Zone) -> Result<i64> {
    let read = read(text, template)?;
    let utc = read.local_usecs().map(|local| read.zone.unwrap_or(zone).utc(local));
    match utc.filter(|utc| in_timestamp_range(*utc)) {
        Some(utc) => Ok(rounded(utc, read.fraction)),
        None => Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")),
    }
}

/// Rounds to `digits` digits of the second's fraction. Halves go away from 2000. With 0 or 6
/// digits, the fraction stays as it is.
pub(super) fn rounded(usecs: i64, digits: u32) -> i64 {
    if !(1..6).contains(&digits) {
        return usecs;
    }
    let unit = 10i64.pow(6 - digits);
    let rounded = (usecs.abs() + unit / 2) / unit * unit;
    if usecs < 0 { -rounded } else { rounded }
}

/// A date, in days since 2000.
pub(super) fn date(text: &str, template: &str) -> Result<i32> {
    read(text, template)?.date(text)
}

impl Read {
    /// Sets year, month and day.
    fn set_whole(&mut self, days: Option<i64>) {
        let days = days.filter(|days| in_date_range(*days)).and_then(|d| i32::try_from(d).ok());
        let civil = days.map(civil_of_date);
        (self.year, self.month, self.day) = match civil {
            Some(civil) => (civil.year.into(), civil.month.into(), civil.day.into()),
            None => (BEYOND_ALL, 1, 1),
        };
    }

    /// The date in days since 2000.
    pub(super) fn date(&self, text: &str) -> Result<i32> {
        let days = self.days().filter(|days| in_date_range(*days));
        days.and_then(|days| i32::try_from(days).ok()).ok_or_else(|| {
            let message = format!("date out of range: \"{text}\"");
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        })
    }

    /// Days since 2000. A day beyond the month's end, which only a text without a year can name,
    /// is one of the next month.
    fn days(&self) -> Option<i64> {
        if self.year.abs() > MOST_YEARS {
            return None;
        }
        let month = u32::try_from(self.month).ok()?;
        date_of_civil(self.year, month, 1)?.checked_add(self.day - 1)
    }

    /// Microseconds since midnight.
    pub(super) fn clock(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.usecs
    }

    /// Microseconds since 2000 on the text's own clock.
    pub(super) fn local_usecs(&self) -> Option<i64> {
        let days = self.days().filter(|days| in_date_range(*days))?;
        days.checked_mul(USECS_PER_DAY)?.checked_add(self.clock())
    }
}

#[cold]
fn overflow(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

fn read(text: &str, template: &str) -> Result<Read> {
    let nodes = date_pattern::parsed(template, false)?;
    put_together(&date_fields::read(text, &nodes, false)?, text)
}

/// What the fields of a text say.
pub(super) fn put_together(fields: &Fields, text: &str) -> Result<Read> {
    let mut read = Read { month: 1, day: 1, fraction: fields.fraction, ..Read::default() };
    set_time(fields, &mut read)?;
    set_date(fields, &mut read, text)?;
    let fits = (0..24).contains(&read.hour)
        && (0..60).contains(&read.minute)
        && (0..60).contains(&read.second)
        && (0..1_000_000).contains(&read.usecs);
    if !fits {
        return Err(overflow(text));
    }
    if fields.zone_sign != 0 {
        let fits = (0..=15).contains(&fields.zone_hour.value)
            && (0..60).contains(&fields.zone_minute.value);
        if !fits {
            let message = format!("time zone displacement out of range: \"{text}\"");
            return Err(SqlError::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE, message));
        }
        let seconds = fields.zone_hour.value * 3600 + fields.zone_minute.value * 60;
        read.zone = Some(Zone::Fixed(fields.zone_sign * seconds));
    }
    Ok(read)
}

fn set_time(fields: &Fields, read: &mut Read) -> Result<()> {
    let of_day = i64::from(fields.second_of_day.value);
    read.hour = of_day / 3600;
    read.minute = of_day / 60 % 60;
    read.second = of_day % 60;
    for (field, place) in [
        (&fields.second, &mut read.second),
        (&fields.minute, &mut read.minute),
        (&fields.hour, &mut read.hour),
    ] {
        if field.value != 0 {
            *place = field.value.into();
        }
    }
    if fields.is_12_hours {
        if !(1..=12).contains(&read.hour) {
            let message = format!("hour \"{}\" is invalid for the 12-hour clock", read.hour);
            return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        read.hour = read.hour % 12 + if fields.afternoon.value != 0 { 12 } else { 0 };
    }
    read.usecs = i64::from(fields.millisecond.value) * 1000 + i64::from(fields.microsecond.value);
    Ok(())
}

/// The year, if the fields say one.
fn year_of(fields: &Fields) -> Option<i64> {
    let sign = if fields.before_christ.value != 0 { -1 } else { 1 };
    let (year, century) = (i64::from(fields.year.value), i64::from(fields.century.value));
    if year == 0 && century == 0 {
        return None;
    }
    let signed = century * sign;
    Some(if year == 0 {
        // The first year of the century.
        if signed >= 0 { (signed - 1) * 100 + 1 } else { signed * 100 + 1 }
    } else if century != 0 && fields.year_digits <= 2 {
        match (year % 100, signed >= 0) {
            (0, true) => signed * 100,
            (0, false) => signed * 100 + 1,
            (rest, true) => rest + (signed - 1) * 100,
            (rest, false) => (signed + 1) * 100 - rest + 1,
        }
    } else {
        let year = year * sign;
        if year < 0 { year + 1 } else { year }
    })
}

/// The days since 2000 of the Monday with which a year of ISO 8601 begins.
fn first_monday(year: i64) -> Option<i64> {
    let fourth = date_of_civil(year, 1, 4)?;
    Some(fourth - (fourth + JULIAN_2000).rem_euclid(7))
}

fn set_date(fields: &Fields, read: &mut Read, text: &str) -> Result<()> {
    let year = year_of(fields);
    let (mut has_month, mut has_day) = (false, false);
    let mut has_year = year.is_some();
    read.year = year.unwrap_or(0);
    if read.year.abs() > MOST_YEARS {
        read.year = BEYOND_ALL;
    }
    if fields.julian.value != 0 {
        read.set_whole(Some(i64::from(fields.julian.value) - JULIAN_2000));
        (has_year, has_month, has_day) = (true, true, true);
    }
    let mut day_of_year = i64::from(fields.day_of_year.value);
    let week = i64::from(fields.week.value);
    if week != 0 {
        if fields.mode == Some(Mode::Iso) {
            let monday = first_monday(read.year).map(|monday| monday + (week - 1) * 7);
            // Sunday, the last day of the week, is counted as the first.
            let within = match fields.day_of_week.value {
                0 => 0,
                day if day > 1 => i64::from(day) - 2,
                _ => 6,
            };
            read.set_whole(monday.map(|monday| monday + within));
            (has_year, has_month, has_day) = (true, true, true);
        } else {
            day_of_year = (week - 1) * 7 + 1;
        }
    }
    let mut day = i64::from(fields.day.value);
    if fields.week_of_month.value != 0 {
        day = (i64::from(fields.week_of_month.value) - 1) * 7 + 1;
    }
    if day != 0 {
        (read.day, has_day) = (day, true);
    }
    if fields.month.value != 0 {
        (read.month, has_month) = (fields.month.value.into(), true);
    }
    if day_of_year != 0 && (read.month <= 1 || read.day <= 1) {
        if read.year == 0 && fields.before_christ.value == 0 {
            let message = "cannot calculate day of year without year information";
            return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message));
        }
        if fields.mode == Some(Mode::Iso) {
            read.set_whole(first_monday(read.year).map(|monday| monday + day_of_year - 1));
            (has_year, has_month, has_day) = (true, true, true);
        } else {
            let (mut month, mut rest) = (1, day_of_year);
            while month < 13 {
                let days = i64::from(days_in_month(read.year, month.min(12)));
                if rest <= days {
                    break;
                }
                (month, rest) = (month + 1, rest - days);
            }
            if read.month <= 1 {
                read.month = month.into();
            }
            if read.day <= 1 {
                read.day = rest;
            }
            (has_month, has_day) = (true, true);
        }
    }
    let month_fits = !has_month || (1..=12).contains(&read.month);
    let day_fits = !has_day || (1..=31).contains(&read.day);
    let all = has_year && has_month && has_day && month_fits;
    let within = !all || read.day <= i64::from(days_in_month(read.year, read.month as u32));
    if month_fits && day_fits && within { Ok(()) } else { Err(overflow(text)) }
}
