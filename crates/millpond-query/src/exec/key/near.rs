//! Bounds of a column that is compared with a value of another type: of dates and time stamps, and
//! of `real` beside `double precision`.
//!
//! The comparison casts the column's values to the other type, times in the session's time zone.
//! The bound leaves out no value that meets it, and leaves few in that do not: the condition stays
//! a filter.

use std::cmp::Ordering;

use crate::expr::Env;
use crate::types::{USECS_PER_DAY, Zone};
use crate::{DataType, Datum};

/// The bound of a column's values, included, for a value that the column, cast to the value's type,
/// is compared with. `inclusive`: it may be equal to it. `None`: there is no bound.
pub(super) fn bound(
    column: DataType,
    value: Datum<'_>,
    (is_lower, inclusive): (bool, bool),
    env: &Env<'_>,
) -> Option<Datum<'static>> {
    let zone = env.facts.settings.format_options().zone;
    let end_of = |(earliest, latest)| if is_lower { earliest } else { latest };
    let local = |utc| end_of(Zone::locals_near(zone, utc));
    let utc = |local| end_of(Zone::utcs_near(zone, local));
    // A day has times up to the next one, at which those behind it begin.
    let of_day = |day| midnight(day, is_lower != inclusive);
    Some(match (column, value) {
        (DataType::Date, Datum::Timestamp(time)) => Datum::Date(day(time)),
        (DataType::Date, Datum::Timestamptz(time)) => Datum::Date(day(local(time))),
        (DataType::Timestamp(_), Datum::Timestamptz(time)) => Datum::Timestamp(local(time)),
        (DataType::Timestamp(_), Datum::Date(day)) => Datum::Timestamp(of_day(day)),
        (DataType::Timestamptz(_), Datum::Timestamp(time)) => Datum::Timestamptz(utc(time)),
        (DataType::Timestamptz(_), Datum::Date(day)) => Datum::Timestamptz(utc(of_day(day))),
        (DataType::Float4, Datum::Float8(value)) => Datum::Float4(nearest(value, is_lower)),
        _ => return None,
    })
}

/// The nearest number of less precision that is not above the value, or not below it.
fn nearest(value: f64, is_lower: bool) -> f32 {
    let near = value as f32;
    match (is_lower, f64::from(near).partial_cmp(&value)) {
        (true, Some(Ordering::Greater)) => near.next_down(),
        (false, Some(Ordering::Less)) => near.next_up(),
        _ => near,
    }
}

/// The day of a time. The infinite ones have infinite days.
fn day(time: i64) -> i32 {
    match time {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        _ => i32::try_from(time.div_euclid(USECS_PER_DAY)).unwrap_or(i32::MAX),
    }
}

/// When a day begins, or the next one. Where no time stamp reaches, it is the infinite one.
fn midnight(day: i32, next: bool) -> i64 {
    match day {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        _ => (i64::from(day) + i64::from(next)).saturating_mul(USECS_PER_DAY),
    }
}
