//! Bounds of a column that a condition casts before it compares: dates and time stamps to one
//! another, and `real` to `double precision`.
//!
//! The cast of a time uses the session's time zone. The bound keeps every value that meets the
//! condition. It may keep a few that do not, so the plan filters the rows by the condition, too.

use std::cmp::Ordering;

use millpond_types::{
    DATE_INFINITY, DATE_NEG_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY,
};

use crate::expr::Env;
use crate::expr::cast::day_of;
use crate::types::{USECS_PER_DAY, Zone};
use crate::{DataType, Datum};

/// The bound of a column's values, itself included. The condition casts the column to the type of
/// `value` and compares the two; `inclusive` says whether they may be equal. `None` is no bound.
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
    // The times of a day end where the next day begins.
    let of_day = |day| midnight(day, is_lower != inclusive);
    Some(match (column, value) {
        (DataType::Date, Datum::Timestamp(time)) => Datum::Date(day_of(time, column).ok()?),
        (DataType::Date, Datum::Timestamptz(time)) => {
            Datum::Date(day_of(local(time), column).ok()?)
        }
        (DataType::Timestamp(_), Datum::Timestamptz(time)) => Datum::Timestamp(local(time)),
        (DataType::Timestamp(_), Datum::Date(day)) => Datum::Timestamp(of_day(day)),
        (DataType::Timestamptz(_), Datum::Timestamp(time)) => Datum::Timestamptz(utc(time)),
        (DataType::Timestamptz(_), Datum::Date(day)) => Datum::Timestamptz(utc(of_day(day))),
        (DataType::Float4, Datum::Float8(value)) => Datum::Float4(nearest(value, is_lower)),
        _ => return None,
    })
}

/// The nearest `real` that is not above the value (a lower bound), or not below it.
fn nearest(value: f64, is_lower: bool) -> f32 {
    let near = value as f32;
    match (is_lower, f64::from(near).partial_cmp(&value)) {
        (true, Some(Ordering::Greater)) => near.next_down(),
        (false, Some(Ordering::Less)) => near.next_up(),
        _ => near,
    }
}

/// When a day begins, or the next day. Beyond all time stamps it is the infinite one.
fn midnight(day: i32, next: bool) -> i64 {
    match day {
        DATE_INFINITY => TIMESTAMP_INFINITY,
        DATE_NEG_INFINITY => TIMESTAMP_NEG_INFINITY,
        _ => (i64::from(day) + i64::from(next)).saturating_mul(USECS_PER_DAY),
    }
}
