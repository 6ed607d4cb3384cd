//! Functions and operators of dates, times and intervals.

mod age;
mod arith;
pub(crate) mod interval;
mod make;
mod order;
mod overlaps;
mod part;
mod trunc;
mod value;
mod zone;

use super::catalog::{BOOL, DATE, FLOAT8, INT4, NUMERIC, Param, TEXT, TIMESTAMPTZ, other};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::types::in_timestamp_range;

pub(super) use age::PROCS as AGE;
pub(super) use arith::{Later, OPERATORS, PROCS as ARITH};
pub(crate) use arith::{add as timestamp_plus, add_in_zone as timestamptz_plus};
pub(super) use interval::PROCS as INTERVALS;
pub(super) use make::PROCS as MAKE;
pub(in crate::expr) use order::{DATE_IN_ORDER, DATE_IN_ORDER_OF_ZONE};
pub(super) use overlaps::PROCS as OVERLAPS;
pub(super) use part::PROCS as PARTS;
pub(super) use trunc::PROCS as TRUNC;
pub(super) use value::{Date, Stamp, StampTz, Time, TimeTz};
pub(super) use zone::PROCS as ZONES;

pub(super) const TIMESTAMP: Param = Param::Type(DataType::Timestamp(None));
pub(super) const TIME: Param = other(millpond_types::other::TIME);
pub(super) const TIMETZ: Param = other(millpond_types::other::TIMETZ);
pub(super) const INTERVAL: Param = other(millpond_types::other::INTERVAL);

#[cold]
fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// A time stamp that there is.
fn checked(timestamp: i64) -> Result<i64> {
    if in_timestamp_range(timestamp) { Ok(timestamp) } else { Err(timestamp_out_of_range()) }
}

fn is_infinite(timestamp: i64) -> bool {
    matches!(timestamp, i64::MAX | i64::MIN)
}
