//! `date_trunc` and `date_bin`.

use millpond_types::Interval;

use super::super::catalog::{Proc, proc};
use super::super::value::body;
use super::arith::zone;
use super::part::{Field, field, iso_day_of_week, unknown, unsupported};
use super::value::{Stamp, StampTz};
use super::zone::zone_named;
use super::{INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, checked, is_infinite, timestamp_out_of_range};
use crate::error::{Result, SqlError, SqlState};
use crate::types::interval::Unit;
use crate::types::{USECS_PER_DAY, Zone, civil_of_timestamp, date_of_civil};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        2020,
        "date_trunc",
        &[TEXT, TIMESTAMP],
        TIMESTAMP,
        body!(|unit: &str, t: Stamp| truncated(unit, t.0, "timestamp without time zone").map(Stamp)),
    ),
    proc(
        1217,
        "date_trunc",
        &[TEXT, TIMESTAMPTZ],
        TIMESTAMPTZ,
        body!(env, |unit: &str, t: StampTz| in_zone(unit, t.0, zone(env)).map(StampTz)),
    )
    .stable(),
    proc(
        1284,
        "date_trunc",
        &[TEXT, TIMESTAMPTZ, TEXT],
        TIMESTAMPTZ,
        body!(|unit: &str, t: StampTz, name: &str| in_zone_named(unit, t.0, name).map(StampTz)),
    )
    .stable(),
    proc(
        1218,
        "date_trunc",
        &[TEXT, INTERVAL],
        INTERVAL,
        body!(|unit: &str, i: Interval| interval(unit, i)),
    ),
    proc(
        6177,
        "date_bin",
        &[INTERVAL, TIMESTAMP, TIMESTAMP],
        TIMESTAMP,
        body!(|stride: Interval, t: Stamp, origin: Stamp| bin(stride, t.0, origin.0).map(Stamp)),
    ),
    proc(
        6178,
        "date_bin",
        &[INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ],
        TIMESTAMPTZ,
        body!(
            |stride: Interval, t: StampTz, origin: StampTz| bin(stride, t.0, origin.0).map(StampTz)
        ),
    ),
];

/// The microseconds of a unit that divides days.
fn usecs_of(unit: Unit) -> Option<i64> {
    Some(match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1000,
        Unit::Second => 1_000_000,
        Unit::Minute => 60_000_000,
        Unit::Hour => 3_600_000_000,
        Unit::Day => USECS_PER_DAY,
        _ => return None,
    })
}

/// The field of that name, if it is a unit. Only those can be cut off.
fn unit_named(name: &str) -> Option<Field> {
    field(name).filter(|field| {
        matches!(
            field,
            Field::Unit(_) | Field::Quarter | Field::Zone | Field::ZoneHour | Field::ZoneMinute
        )
    })
}

/// The beginning of a unit of the calendar or the clock.
fn truncated(name: &str, timestamp: i64, ty: &str) -> Result<i64> {
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let field = unit_named(name).ok_or_else(|| unknown(name, ty))?;
    if let Field::Unit(unit) = field
        && let Some(usecs) = usecs_of(unit)
    {
        let start = timestamp.div_euclid(usecs).checked_mul(usecs);
        return start.ok_or_else(timestamp_out_of_range);
    }
    let civil = civil_of_timestamp(timestamp);
    let (year, day) = (i64::from(civil.year), timestamp.div_euclid(USECS_PER_DAY));
    // Centuries begin with the year 1, and there is none before it.
    let first_of = |length: i64| {
        if year > 0 {
            (year - 1) / length * length + 1
        } else {
            year.div_euclid(length) * length + 1
        }
    };
    let first_day = |year, month| date_of_civil(year, month, 1);
    let start = match field {
        Field::Unit(Unit::Week) => Some(day - iso_day_of_week(day) + 1),
        Field::Unit(Unit::Month) => first_day(year, civil.month),
        Field::Quarter => first_day(year, (civil.month - 1) / 3 * 3 + 1),
        Field::Unit(Unit::Year) => first_day(year, 1),
        Field::Unit(Unit::Decade) => first_day(year.div_euclid(10) * 10, 1),
        Field::Unit(Unit::Century) => first_day(first_of(100), 1),
        Field::Unit(Unit::Millennium) => first_day(first_of(1000), 1),
        _ => return Err(unsupported(name, ty)),
    };
    let usecs = start.and_then(|day| day.checked_mul(USECS_PER_DAY));
    checked(usecs.ok_or_else(timestamp_out_of_range)?)
}

/// Of an infinite time, the zone does not matter, nor whether there is one of that name.
fn in_zone_named(unit: &str, timestamp: i64, zone: &str) -> Result<i64> {
    if is_infinite(timestamp) { Ok(timestamp) } else { in_zone(unit, timestamp, zone_named(zone)?) }
}

fn in_zone(unit: &str, timestamp: i64, zone: Zone) -> Result<i64> {
    let local = truncated(unit, zone.local(timestamp), "timestamp with time zone")?;
    if is_infinite(local) {
        return Ok(local);
    }
    let same_clock = matches!(field(unit), Some(Field::Unit(unit)) if usecs_of(unit)
        .is_some_and(|usecs| usecs < USECS_PER_DAY));
    if same_clock {
        // Within an hour that the clock shows twice, it stays the same one.
        return checked(timestamp.saturating_sub(zone.local(timestamp).saturating_sub(local)));
    }
    checked(zone.utc(local))
}

fn interval(name: &str, i: Interval) -> Result<Interval> {
    let field = unit_named(name).ok_or_else(|| unknown(name, "interval"))?;
    let years = |length: i32| Interval {
        months: i.months / (12 * length) * (12 * length),
        ..Interval::default()
    };
    Ok(match field {
        Field::Unit(Unit::Day) => Interval { usecs: 0, ..i },
        Field::Unit(Unit::Month) => Interval { months: i.months, ..Interval::default() },
        Field::Quarter => Interval { months: i.months / 3 * 3, ..Interval::default() },
        Field::Unit(Unit::Year) => years(1),
        Field::Unit(Unit::Decade) => years(10),
        Field::Unit(Unit::Century) => years(100),
        Field::Unit(Unit::Millennium) => years(1000),
        Field::Unit(unit) => match usecs_of(unit) {
            Some(usecs) => Interval { usecs: i.usecs / usecs * usecs, ..i },
            None => {
                return Err(
                    unsupported(name, "interval").detail("Months usually have fractional weeks.")
                );
            }
        },
        _ => return Err(unsupported(name, "interval")),
    })
}

/// The beginning of the stride, counted from an origin, that a time stamp is in.
fn bin(stride: Interval, timestamp: i64, origin: i64) -> Result<i64> {
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    if is_infinite(origin) {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "origin out of range"));
    }
    if stride.months != 0 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let days = i64::from(stride.days).checked_mul(USECS_PER_DAY);
    let usecs = days
        .and_then(|days| days.checked_add(stride.usecs))
        .ok_or_else(crate::types::interval::out_of_range)?;
    if usecs <= 0 {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "stride must be greater than zero",
        ));
    }
    let distance =
        timestamp.checked_sub(origin).ok_or_else(crate::types::interval::out_of_range)?;
    // The stride may begin so far from the origin that the distance does not fit.
    let start = i128::from(origin) + i128::from(distance.div_euclid(usecs)) * i128::from(usecs);
    checked(i64::try_from(start).map_err(|_| timestamp_out_of_range())?)
}
