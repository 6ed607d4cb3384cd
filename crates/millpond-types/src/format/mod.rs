//! Values as clients write and read them: PostgreSQL's text and binary formats.
//!
//! [`text`] and [`binary`] take the column's type beside the value, because some types print by
//! their modifier. (`char(n)` is stored without its padding and printed with it.)

pub mod array;
pub mod binary;
pub mod bytea;
mod calendar;
pub mod datetime;
mod float;
mod hex_float;
mod integer;
pub mod interval;
pub mod json;
pub mod jsonpath;
mod length;
mod lsn;
mod other;
mod posix_zone;
mod record;
pub mod text;
mod tid;
pub mod time;
mod uuid;
mod xid;
mod zone;

use crate::DataType;
use crate::error::DataException;
use crate::sqlstate::SqlState;

pub use calendar::{
    Civil, USECS_PER_DAY, civil_of_date, civil_of_timestamp, date_of_civil, days_in_month,
    in_date_range, in_timestamp_range,
};
pub use datetime::{DateFormat, DateOrder, DateStyle};
pub use float::parse_f64;
pub use integer::write_i64;
pub use interval::IntervalStyle;
pub use length::{coerce_numeric, coerce_text, fit_timestamp, pad};
pub use lsn::value as lsn;
pub use tid::{image as tid_image, value as tid};
pub use xid::{number_of, value as xid, xid8};
pub use zone::Zone;

/// The session's settings that formats depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// `TimeZone`
    pub zone: Zone,
    /// `bytea_output = escape`.
    pub bytea_escape: bool,
    /// `IntervalStyle`
    pub interval_style: IntervalStyle,
    /// `DateStyle`
    pub date_style: DateStyle,
    /// The time of `now` and the days around it, in microseconds since 2000, UTC; `None`: the
    /// clock's.
    pub now: Option<i64>,
    /// `extra_float_digits`: above 0, floats are written so that they read back exactly.
    pub extra_float_digits: i8,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self {
            zone: Zone::default(),
            bytea_escape: false,
            interval_style: IntervalStyle::default(),
            date_style: DateStyle::default(),
            now: None,
            extra_float_digits: 1,
        }
    }
}

#[cold]
fn invalid_syntax(ty: DataType, text: &str) -> DataException {
    let name = ty.base();
    let name = if matches!(ty, DataType::Char(_)) { "character".into() } else { name.to_string() };
    DataException::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {name}: \"{text}\""),
    )
}

#[cold]
fn out_of_range(ty: DataType, text: &str) -> DataException {
    DataException::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value \"{text}\" is out of range for type {ty}"),
    )
}

#[cfg(test)]
mod tests;
