//! Dates, times and intervals written by a template.

use millpond_types::Interval;

use super::date_pattern::{self, Case, Field, Item, Node};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Zone, civil_of_timestamp};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// The months as Roman numbers, the last first.
pub(super) const ROMAN_MONTHS: [&str; 12] =
    ["XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"];

/// A time stamp or an interval, in its fields.
pub(super) struct Moment {
    is_interval: bool,
    year: i32,
    month: i32,
    day: i32,
    hour: i64,
    minute: i32,
    second: i32,
    usecs: i32,
    day_of_year: i32,
    /// Sunday is 0.
    day_of_week: i32,
    /// Seconds east of UTC, and what the zone is called.
    zone: Option<(i32, String)>,
}

impl Moment {
    /// A time stamp's fields, on the clock of a zone; `None` of an infinite one.
    pub(super) fn of_timestamp(timestamp: i64, zone: Option<Zone>) -> Option<Self> {
        if matches!(timestamp, i64::MIN | i64::MAX) {
            return None;
        }
        let local = zone.map_or(timestamp, |zone| zone.local(timestamp));
        let civil = civil_of_timestamp(local);
        let (year, month, day) = (civil.year, civil.month as i32, civil.day as i32);
        let julian = julian_of(year, month, day);
        Some(Moment {
            is_interval: false,
            year,
            month,
            day,
            hour: civil.usecs / 3_600_000_000,
            minute: (civil.usecs / 60_000_000 % 60) as i32,
            second: (civil.usecs / 1_000_000 % 60) as i32,
            usecs: (civil.usecs % 1_000_000) as i32,
            day_of_year: julian - julian_of(year, 1, 1) + 1,
            day_of_week: (julian + 1).rem_euclid(7),
            zone: zone.map(|zone| (zone.offset_at(timestamp), zone.abbreviation_at(timestamp))),
        })
    }

    pub(super) fn of_interval(interval: Interval) -> Self {
        let Interval { months, days, usecs } = interval;
        Moment {
            is_interval: true,
            year: months / 12,
            month: months % 12,
            day: days,
            hour: usecs / 3_600_000_000,
            minute: (usecs / 60_000_000 % 60) as i32,
            second: (usecs / 1_000_000 % 60) as i32,
            usecs: (usecs % 1_000_000) as i32,
            // About what it spans.
            day_of_year: months.wrapping_mul(30).wrapping_add(days),
            day_of_week: 0,
            zone: None,
        }
    }

    /// The year as it is written: those before Christ without a sign.
    fn shown_year(&self, year: i32) -> i32 {
        if self.is_interval || year > 0 { year } else { year.wrapping_sub(1).wrapping_neg() }
    }

    /// The year and the number of the week, by ISO 8601.
    fn iso_week(&self) -> (i32, i32) {
        let julian = julian_of(self.year, self.month, self.day);
        let (mut year, mut first) = (self.year, first_monday(self.year));
        if julian < first {
            year = year.wrapping_sub(1);
            first = first_monday(year);
        }
        let mut week = julian.wrapping_sub(first) / 7 + 1;
        if week >= 53 {
            let next = first_monday(year.wrapping_add(1));
            if julian >= next {
                week = julian.wrapping_sub(next) / 7 + 1;
                year = year.wrapping_add(1);
            }
        }
        (year, week)
    }
}

/// A day's Julian number. The fields may be any numbers, for those of an interval are no date.
pub(super) fn julian_of(year: i32, month: i32, day: i32) -> i32 {
    let (year, month) = if month > 2 {
        (year.wrapping_add(4800), month.wrapping_add(1))
    } else {
        (year.wrapping_add(4799), month.wrapping_add(13))
    };
    let century = year / 100;
    let days = year.wrapping_mul(365).wrapping_sub(32_167);
    days.wrapping_add((year / 4).wrapping_sub(century).wrapping_add(century / 4))
        .wrapping_add(month.wrapping_mul(7834) / 256)
        .wrapping_add(day)
}

/// The Julian number of the Monday with which a year of ISO 8601 begins.
pub(super) fn first_monday(year: i32) -> i32 {
    let fourth = julian_of(year, 1, 4);
    fourth.wrapping_sub(fourth.rem_euclid(7))
}

/// Writes by a template; `None` by an empty one.
pub(super) fn write(moment: &Moment, template: &str) -> Result<Option<String>> {
    if template.is_empty() {
        return Ok(None);
    }
    let mut out = String::new();
    for node in &*date_pattern::parsed(template, false)? {
        match node {
            Node::Char(c) | Node::Space(c) | Node::Separator(c) => out.push(*c),
            Node::Field(item) => field(moment, item, &mut out)?,
        }
    }
    Ok(Some(out))
}

/// A number with leading zeros, unless the template says `FM`; a sign takes a place of its own.
fn padded(item: &Item, number: i64, width: usize) -> String {
    match item.fill {
        true => number.to_string(),
        false => format!("{number:0width$}", width = width + usize::from(number < 0)),
    }
}

/// The same, where the sign of another number says whether there is room for one.
fn padded_by(item: &Item, number: i64, sign_of: i64, width: usize) -> String {
    let width = if item.fill { 0 } else { width + usize::from(sign_of < 0) };
    format!("{number:0width$}")
}

fn spelled(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Capital => text.to_owned(),
        Case::Lower => text.to_lowercase(),
    }
}

fn name(item: &Item, name: &str, width: usize) -> String {
    let text = spelled(name, item.case);
    if item.fill || item.translated { text } else { format!("{text:width$}") }
}

fn field(moment: &Moment, item: &Item, out: &mut String) -> Result<()> {
    let text = match item.field {
        Field::Exact => return Ok(()),
        field if field.is_of_time() => time(moment, item),
        Field::ZoneName
        | Field::ZoneHour
        | Field::ZoneMinute
        | Field::ZoneOffset
        | Field::Era(_)
        | Field::DayName(_)
        | Field::DayOfWeek
        | Field::IsoDayOfWeek
        | Field::MonthName(_)
            if moment.is_interval =>
        {
            return Err(not_of_intervals());
        }
        Field::ZoneName | Field::ZoneHour | Field::ZoneMinute | Field::ZoneOffset => {
            zone(moment, item)
        }
        _ => date(moment, item),
    };
    out.push_str(&text);
    match item.ordinal {
        Some(upper) if item.field.is_digits() && !text.is_empty() => {
            out.push_str(ordinal(&text, upper)?)
        }
        _ => {}
    }
    Ok(())
}

fn time(moment: &Moment, item: &Item) -> String {
    let fraction = |digits: u32| {
        let value = moment.usecs / 10i32.pow(6 - digits.min(6));
        format!("{value:0width$}", width = digits as usize)
    };
    match item.field {
        Field::Meridiem(points) => {
            let text = match (moment.hour % 24 >= 12, points) {
                (false, false) => "AM",
                (false, true) => "A.M.",
                (true, false) => "PM",
                (true, true) => "P.M.",
            };
            spelled(text, item.case)
        }
        Field::Hour12 => {
            let hour = if moment.hour % 12 == 0 { 12 } else { moment.hour % 12 };
            padded_by(item, hour, moment.hour, 2)
        }
        Field::Hour24 => padded(item, moment.hour, 2),
        Field::Minute => padded(item, moment.minute.into(), 2),
        Field::Second => padded(item, moment.second.into(), 2),
        Field::SecondOfDay => {
            let minutes = moment.hour * 60 + i64::from(moment.minute);
            (minutes * 60 + i64::from(moment.second)).to_string()
        }
        Field::Millisecond => fraction(3),
        Field::Fraction(digits) => fraction(digits),
        _ => fraction(6),
    }
}

fn zone(moment: &Moment, item: &Item) -> String {
    let (offset, name) = moment.zone.as_ref().map_or((0, ""), |(east, name)| (*east, name));
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 3600, offset.abs() % 3600 / 60);
    match item.field {
        Field::ZoneName => match item.case {
            Case::Lower => name.to_lowercase(),
            _ => name.to_owned(),
        },
        Field::ZoneHour => format!("{sign}{hours:02}"),
        Field::ZoneMinute => format!("{minutes:02}"),
        _ => {
            let hours = padded(item, hours.into(), 2);
            let rest = if offset % 3600 == 0 { String::new() } else { format!(":{minutes:02}") };
            format!("{sign}{hours}{rest}")
        }
    }
}

fn date(moment: &Moment, item: &Item) -> String {
    let sign_of = i64::from(moment.shown_year(moment.year));
    let year = |year: i32, digits: u32| {
        let year = i64::from(moment.shown_year(year));
        let shown = if digits == 4 { year } else { year % 10i64.pow(digits) };
        match digits {
            1 => shown.to_string(),
            _ => padded_by(item, shown, sign_of, digits as usize),
        }
    };
    match item.field {
        Field::Era(points) => {
            let text = match (moment.year <= 0, points) {
                (false, false) => "AD",
                (false, true) => "A.D.",
                (true, false) => "BC",
                (true, true) => "B.C.",
            };
            spelled(text, item.case)
        }
        Field::Century => {
            let century = match moment.year {
                year if moment.is_interval => year / 100,
                year if year > 0 => (year - 1) / 100 + 1,
                year => year / 100 - 1,
            };
            padded(item, century.into(), 2)
        }
        Field::MonthName(full) => {
            let month = usize::try_from(moment.month - 1).ok().and_then(|at| MONTHS.get(at));
            let month = month.copied().unwrap_or("");
            if full { name(item, month, 9) } else { name(item, month.get(..3).unwrap_or(""), 3) }
        }
        Field::DayName(full) => {
            let day = usize::try_from(moment.day_of_week).ok().and_then(|at| DAYS.get(at));
            let day = day.copied().unwrap_or("");
            if full { name(item, day, 9) } else { name(item, day.get(..3).unwrap_or(""), 3) }
        }
        Field::RomanMonth => roman_month(moment, item),
        Field::Month => padded(item, moment.month.into(), 2),
        Field::DayOfYear => padded_by(item, moment.day_of_year.into(), 0, 3),
        Field::IsoDayOfYear => {
            let (year, _) = moment.iso_week();
            let julian = julian_of(moment.year, moment.month, moment.day);
            let day = julian.wrapping_sub(first_monday(year)).wrapping_add(1);
            padded_by(item, day.into(), 0, 3)
        }
        Field::Day => padded_by(item, moment.day.into(), 0, 2),
        Field::DayOfWeek => (moment.day_of_week + 1).to_string(),
        Field::IsoDayOfWeek => {
            if moment.day_of_week == 0 {
                "7".to_owned()
            } else {
                moment.day_of_week.to_string()
            }
        }
        Field::Week => padded_by(item, (moment.day_of_year.wrapping_sub(1) / 7 + 1).into(), 0, 2),
        Field::IsoWeek => padded_by(item, moment.iso_week().1.into(), 0, 2),
        Field::WeekOfMonth => (moment.day.wrapping_sub(1) / 7 + 1).to_string(),
        Field::Quarter if moment.month == 0 => String::new(),
        Field::Quarter => ((moment.month - 1) / 3 + 1).to_string(),
        Field::Julian => julian_of(moment.year, moment.month, moment.day).to_string(),
        Field::Year(digits) => year(moment.year, digits),
        Field::IsoYear(digits) => year(moment.iso_week().0, digits),
        _ => {
            let year = moment.shown_year(moment.year);
            format!("{},{:03}", year / 1000, year % 1000)
        }
    }
}

fn roman_month(moment: &Moment, item: &Item) -> String {
    let from_last = match moment.month {
        0 if moment.year == 0 => return String::new(),
        0 if moment.year > 0 => 0,
        0 => 11,
        month if month < 0 => -(month + 1),
        month => 12 - month,
    };
    let text = usize::try_from(from_last).ok().and_then(|at| ROMAN_MONTHS.get(at));
    let text = spelled(text.copied().unwrap_or(""), item.case);
    if item.fill { text } else { format!("{text:4}") }
}

/// `st`, `nd`, `rd` or `th`, after a number.
pub(super) fn ordinal(number: &str, upper: bool) -> Result<&'static str> {
    let digits = number.as_bytes();
    let last = digits.last().copied().filter(u8::is_ascii_digit).ok_or_else(|| {
        let message = format!("\"{number}\" is not a number");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })?;
    let teen = digits.len() > 1 && digits.get(digits.len() - 2) == Some(&b'1');
    Ok(match (last, upper) {
        (b'1', true) if !teen => "ST",
        (b'1', false) if !teen => "st",
        (b'2', true) if !teen => "ND",
        (b'2', false) if !teen => "nd",
        (b'3', true) if !teen => "RD",
        (b'3', false) if !teen => "rd",
        (_, true) => "TH",
        (_, false) => "th",
    })
}

#[cold]
fn not_of_intervals() -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        "invalid format specification for an interval value",
    )
    .hint("Intervals are not tied to specific calendar dates.")
}
