//! `extract` and `date_part`: one field of a date, a time or an interval.

use millpond_types::Interval;

use super::super::catalog::{Proc, proc};
use super::super::value::body;
use super::arith::{midnight, zone};
use super::value::{Date, Stamp, StampTz, Time, TimeTz};
use super::{
    DATE, FLOAT8, INTERVAL, NUMERIC, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, is_infinite,
};
use crate::error::{Result, SqlError, SqlState};
use crate::types::datetime::UNIX_EPOCH_SHIFT;
use crate::types::interval::{self, Unit};
use crate::types::{USECS_PER_DAY, Zone, civil_of_timestamp, date_of_civil};
use crate::{Numeric, Value};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        6199,
        "extract",
        &[TEXT, DATE],
        NUMERIC,
        body!(|field: &str, d: Date| of_date(field, d).and_then(number)),
    ),
    proc(
        6200,
        "extract",
        &[TEXT, TIME],
        NUMERIC,
        body!(|field: &str, t: Time| of_time(field, t.0, None).and_then(number)),
    ),
    proc(
        6201,
        "extract",
        &[TEXT, TIMETZ],
        NUMERIC,
        body!(|field: &str, t: TimeTz| of_time(field, t.0, Some(t.1)).and_then(number)),
    ),
    proc(
        6202,
        "extract",
        &[TEXT, TIMESTAMP],
        NUMERIC,
        body!(|field: &str, t: Stamp| of_timestamp(field, t.0, None).and_then(number)),
    ),
    proc(
        6203,
        "extract",
        &[TEXT, TIMESTAMPTZ],
        NUMERIC,
        body!(env, |field: &str, t: StampTz| of_timestamp(field, t.0, Some(zone(env)))
            .and_then(number)),
    )
    .stable(),
    proc(
        6204,
        "extract",
        &[TEXT, INTERVAL],
        NUMERIC,
        body!(|field: &str, i: Interval| of_interval(field, i).and_then(number)),
    ),
    proc(
        1384,
        "date_part",
        &[TEXT, DATE],
        FLOAT8,
        body!(|field: &str, d: Date| of_timestamp(field, midnight(d)?, None).map(float)),
    ),
    proc(
        1385,
        "date_part",
        &[TEXT, TIME],
        FLOAT8,
        body!(|field: &str, t: Time| of_time(field, t.0, None).map(float)),
    ),
    proc(
        1273,
        "date_part",
        &[TEXT, TIMETZ],
        FLOAT8,
        body!(|field: &str, t: TimeTz| of_time(field, t.0, Some(t.1)).map(float)),
    ),
    proc(
        2021,
        "date_part",
        &[TEXT, TIMESTAMP],
        FLOAT8,
        body!(|field: &str, t: Stamp| of_timestamp(field, t.0, None).map(float)),
    ),
    proc(
        1171,
        "date_part",
        &[TEXT, TIMESTAMPTZ],
        FLOAT8,
        body!(env, |field: &str, t: StampTz| of_timestamp(field, t.0, Some(zone(env))).map(float)),
    )
    .stable(),
    proc(
        1172,
        "date_part",
        &[TEXT, INTERVAL],
        FLOAT8,
        body!(|field: &str, i: Interval| float_of_interval(field, i)),
    ),
];

/// A field that can be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Unit(Unit),
    Quarter,
    IsoYear,
    IsoDayOfWeek,
    DayOfWeek,
    DayOfYear,
    Julian,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

/// The field of that name.
pub(super) fn field(name: &str) -> Option<Field> {
    let name = name.to_ascii_lowercase();
    if let Some(unit) = interval::unit(&name) {
        return Some(Field::Unit(unit));
    }
    Some(match name.get(..10).unwrap_or(&name) {
        "qtr" | "quarter" => Field::Quarter,
        "isoyear" => Field::IsoYear,
        "isodow" => Field::IsoDayOfWeek,
        "dow" => Field::DayOfWeek,
        "doy" => Field::DayOfYear,
        "j" | "jd" | "julian" => Field::Julian,
        "epoch" => Field::Epoch,
        "timezone" => Field::Zone,
        "timezone_h" => Field::ZoneHour,
        "timezone_m" => Field::ZoneMinute,
        _ => return None,
    })
}

/// What a field is.
enum Part {
    Whole(i64),
    /// Millionths.
    Millionths(i128),
    /// Thousandths.
    Thousandths(i64),
    /// Julian days and microseconds of the last one.
    Julian(i64, i64),
    /// The field goes up and down, and has no value at infinity.
    None,
    Infinity,
    NegInfinity,
}

fn number(part: Part) -> Result<Value> {
    let scaled = |value: i128, digits: u32| {
        let unit = 10u128.pow(digits);
        let (sign, value) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
        let width = digits as usize;
        format!("{sign}{}.{:0width$}", value / unit, value % unit).parse::<Numeric>()
    };
    Ok(Value::Numeric(match part {
        Part::Whole(value) => Numeric::from(value),
        Part::Millionths(value) => scaled(value, 6)?,
        Part::Thousandths(value) => scaled(value.into(), 3)?,
        Part::Julian(day, usecs) => {
            let (usecs, all) = (Numeric::from(usecs), Numeric::from(USECS_PER_DAY));
            Numeric::from(day).as_ref().add(usecs.as_ref().div(all.as_ref())?.as_ref())?
        }
        Part::None => return Ok(Value::Null),
        Part::Infinity => Numeric::infinity(),
        Part::NegInfinity => Numeric::neg_infinity(),
    }))
}

fn float(part: Part) -> Value {
    Value::Float8(match part {
        Part::Whole(value) => value as f64,
        Part::Millionths(value) => value as f64 / 1e6,
        Part::Thousandths(value) => value as f64 / 1e3,
        Part::Julian(day, usecs) => day as f64 + usecs as f64 / USECS_PER_DAY as f64,
        Part::None => return Value::Null,
        Part::Infinity => f64::INFINITY,
        Part::NegInfinity => f64::NEG_INFINITY,
    })
}

/// Seconds are added up as floats in PostgreSQL's order, which may show in the last digit.
fn float_of_interval(name: &str, i: Interval) -> Result<Value> {
    let part = of_interval(name, i)?;
    if !matches!(field(name), Some(Field::Epoch)) {
        return Ok(float(part));
    }
    const DAY: f64 = 86_400.0;
    let of_years = 365.25 * DAY * f64::from(i.months / 12);
    let of_months = 30.0 * DAY * f64::from(i.months % 12);
    let seconds = i.usecs as f64 / 1e6 + of_years + of_months + DAY * f64::from(i.days);
    Ok(Value::Float8(seconds))
}

#[cold]
pub(super) fn unknown(name: &str, ty: &str) -> SqlError {
    // It is shown as long as a name may be.
    let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unit \"{}\" not recognized for type {ty}", name.to_ascii_lowercase()),
    )
}

/// How many bytes a name has at most.
const LONGEST_NAME: usize = 63;

#[cold]
pub(super) fn unsupported(name: &str, ty: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{}\" not supported for type {ty}", name.to_ascii_lowercase()),
    )
}

/// Parts of a second and of a day, which all types with a clock have.
fn of_clock(unit: Unit, usecs: i64) -> Option<Part> {
    let in_minute = usecs % 60_000_000;
    Some(match unit {
        Unit::Microsecond => Part::Whole(in_minute),
        Unit::Millisecond => Part::Thousandths(in_minute),
        Unit::Second => Part::Millionths(in_minute.into()),
        Unit::Minute => Part::Whole(usecs / 60_000_000 % 60),
        Unit::Hour => Part::Whole(usecs / 3_600_000_000),
        _ => return None,
    })
}

/// Parts of a year's number. There is no year 0.
fn of_year(unit: Unit, year: i64) -> Option<Part> {
    let counted = |length: i64| {
        if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
    };
    Some(Part::Whole(match unit {
        Unit::Year if year > 0 => year,
        Unit::Year => year - 1,
        Unit::Decade => year.div_euclid(10),
        Unit::Century => counted(100),
        Unit::Millennium => counted(1000),
        _ => return None,
    }))
}

/// The week of ISO 8601 that a day is in, and the year that the week belongs to.
pub(in crate::expr::func) fn iso_week(day: i64, year: i64) -> (i64, i64) {
    let first_monday = |year: i64| {
        // The fourth of January is always in the first week.
        let fourth = date_of_civil(year, 1, 4).unwrap_or(0);
        fourth - iso_day_of_week(fourth) + 1
    };
    let year = if day >= first_monday(year + 1) {
        year + 1
    } else if day < first_monday(year) {
        year - 1
    } else {
        year
    };
    ((day - first_monday(year)) / 7 + 1, year)
}

/// 1 on Mondays to 7 on Sundays, of days since 2000-01-01, which was a Saturday.
pub(in crate::expr::func) fn iso_day_of_week(day: i64) -> i64 {
    (day + 5).rem_euclid(7) + 1
}

/// The number of a day in its year.
pub(in crate::expr::func) fn day_of_year(day: i64, year: i64) -> i64 {
    day - date_of_civil(year, 1, 1).unwrap_or(day) + 1
}

/// Julian day of 2000-01-01.
pub(in crate::expr::func) const JULIAN_2000: i64 = 2_451_545;

/// Whether the field only grows with time.
fn grows(field: Field) -> bool {
    matches!(
        field,
        Field::Unit(Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium)
            | Field::IsoYear
            | Field::Julian
            | Field::Epoch
    )
}

fn at_infinity(field: Field, positive: bool) -> Part {
    match (grows(field), positive) {
        (false, _) => Part::None,
        (true, true) => Part::Infinity,
        (true, false) => Part::NegInfinity,
    }
}

fn of_timestamp(name: &str, timestamp: i64, zone: Option<Zone>) -> Result<Part> {
    let ty = match zone {
        Some(_) => "timestamp with time zone",
        None => "timestamp without time zone",
    };
    let field = field(name).ok_or_else(|| unknown(name, ty))?;
    if is_infinite(timestamp) {
        return Ok(at_infinity(field, timestamp > 0));
    }
    let offset = zone.map_or(0, |zone| zone.offset_at(timestamp));
    let local = timestamp.saturating_add(i64::from(offset) * 1_000_000);
    let (civil, day) = (civil_of_timestamp(local), local.div_euclid(USECS_PER_DAY));
    let part = match field {
        Field::Epoch => {
            let since = i128::from(timestamp) + i128::from(UNIX_EPOCH_SHIFT);
            Some(Part::Millionths(since))
        }
        Field::Julian => Some(Part::Julian(day + JULIAN_2000, civil.usecs)),
        Field::Zone | Field::ZoneHour | Field::ZoneMinute => {
            zone.and_then(|_| of_offset(field, offset))
        }
        Field::Unit(unit) => of_clock(unit, civil.usecs).or_else(|| of_day(field, day)),
        _ => of_day(field, day),
    };
    part.ok_or_else(|| unsupported(name, ty))
}

fn of_offset(field: Field, east: i32) -> Option<Part> {
    let east = i64::from(east);
    Some(Part::Whole(match field {
        Field::Zone => east,
        Field::ZoneHour => east / 3600,
        Field::ZoneMinute => east / 60 % 60,
        _ => return None,
    }))
}

/// The fields that a day alone has.
fn of_day(field: Field, day: i64) -> Option<Part> {
    let civil = crate::types::civil_of_date(i32::try_from(day).ok()?);
    let year = i64::from(civil.year);
    Some(Part::Whole(match field {
        Field::Unit(Unit::Day) => civil.day.into(),
        Field::Unit(Unit::Month) => civil.month.into(),
        Field::Unit(Unit::Week) => iso_week(day, year).0,
        Field::Unit(unit) => return of_year(unit, year),
        Field::Quarter => i64::from((civil.month - 1) / 3 + 1),
        Field::IsoYear => match iso_week(day, year).1 {
            year if year > 0 => year,
            year => year - 1,
        },
        Field::IsoDayOfWeek => iso_day_of_week(day),
        Field::DayOfWeek => iso_day_of_week(day) % 7,
        Field::DayOfYear => day_of_year(day, year),
        _ => return None,
    }))
}

fn of_date(name: &str, date: Date) -> Result<Part> {
    let field = field(name).ok_or_else(|| unknown(name, "date"))?;
    let is_clock = match field {
        Field::Unit(unit) => of_clock(unit, 0).is_some(),
        Field::Zone | Field::ZoneHour | Field::ZoneMinute => true,
        _ => false,
    };
    if is_clock {
        return Err(unsupported(name, "date"));
    }
    match date.0 {
        i32::MAX | i32::MIN => return Ok(at_infinity(field, date.0 > 0)),
        _ => {}
    }
    let day = i64::from(date.0);
    Ok(match field {
        Field::Epoch => Part::Whole((day + UNIX_EPOCH_SHIFT / USECS_PER_DAY) * 86_400),
        Field::Julian => Part::Whole(day + JULIAN_2000),
        _ => return of_day(field, day).ok_or_else(|| unsupported(name, "date")),
    })
}

fn of_time(name: &str, usecs: i64, west: Option<i32>) -> Result<Part> {
    let ty = match west {
        Some(_) => "time with time zone",
        None => "time without time zone",
    };
    let field = field(name).ok_or_else(|| unknown(name, ty))?;
    let part = match (field, west) {
        (Field::Unit(unit), _) => of_clock(unit, usecs),
        (Field::Epoch, west) => {
            let west = i128::from(west.unwrap_or(0)) * 1_000_000;
            Some(Part::Millionths(i128::from(usecs) + west))
        }
        (field, Some(west)) => of_offset(field, west.saturating_neg()),
        _ => None,
    };
    part.ok_or_else(|| unsupported(name, ty))
}

fn of_interval(name: &str, i: Interval) -> Result<Part> {
    let field = field(name).ok_or_else(|| unknown(name, "interval"))?;
    let years = i64::from(i.months / 12);
    let part = match field {
        Field::Unit(unit) => of_clock(unit, i.usecs).or(match unit {
            Unit::Day => Some(Part::Whole(i.days.into())),
            Unit::Month => Some(Part::Whole((i.months % 12).into())),
            Unit::Year => Some(Part::Whole(years)),
            Unit::Decade => Some(Part::Whole(years / 10)),
            Unit::Century => Some(Part::Whole(years / 100)),
            Unit::Millennium => Some(Part::Whole(years / 1000)),
            _ => None,
        }),
        Field::Quarter => Some(Part::Whole((i.months % 12 / 3 + 1).into())),
        Field::Epoch => {
            // A year is 365.25 days, so a quarter of a day is counted.
            let quarters =
                i128::from(years) * 1461 + i128::from(i.months % 12) * 120 + i128::from(i.days) * 4;
            Some(Part::Millionths(quarters * 21_600_000_000 + i128::from(i.usecs)))
        }
        _ => None,
    };
    part.ok_or_else(|| unsupported(name, "interval"))
}
