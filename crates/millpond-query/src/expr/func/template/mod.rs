//! `to_char`, `to_date`, `to_timestamp` and `to_number`: values as templates write and read them.

mod date_fields;
mod date_input;
mod date_pattern;
mod date_read;
mod date_value;
mod date_write;
mod number_pattern;
mod number_read;
mod number_text;
mod number_write;

use millpond_types::{Interval, NumericRef};

use super::catalog::{
    DATE, FLOAT4, FLOAT8, INT4, INT8, NUMERIC, Param, Proc, TEXT, TIMESTAMPTZ, proc,
};
use super::datetime::{Date, INTERVAL, Stamp, StampTz};
use super::value::body;
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::types::Zone;
pub(super) use date_value::{DateTime, Template};
use date_write::Moment;
use number_text::Shown;

const TIMESTAMP: Param = Param::Type(DataType::Timestamp(None));

pub(super) static PROCS: &[Proc] = &[
    proc(
        2049,
        "to_char",
        &[TIMESTAMP, TEXT],
        TEXT,
        body!(|t: Stamp, template: &str| Moment::of_timestamp(t.0, None)
            .map(|moment| date_write::write(&moment, template))
            .transpose()
            .map(Option::flatten)),
    )
    .stable(),
    proc(
        1770,
        "to_char",
        &[TIMESTAMPTZ, TEXT],
        TEXT,
        body!(env, |t: StampTz, template: &str| Moment::of_timestamp(t.0, Some(zone(env)))
            .map(|moment| date_write::write(&moment, template))
            .transpose()
            .map(Option::flatten)),
    )
    .stable(),
    proc(
        1768,
        "to_char",
        &[INTERVAL, TEXT],
        TEXT,
        body!(|i: Interval, template: &str| date_write::write(&Moment::of_interval(i), template)),
    )
    .stable(),
    proc(
        1773,
        "to_char",
        &[INT4, TEXT],
        TEXT,
        body!(|n: i32, template: &str| number(template, |p| number_text::of_int4(n, p))),
    )
    .stable(),
    proc(
        1774,
        "to_char",
        &[INT8, TEXT],
        TEXT,
        body!(|n: i64, template: &str| number(template, |p| number_text::of_int8(n, p))),
    )
    .stable(),
    proc(
        1775,
        "to_char",
        &[FLOAT4, TEXT],
        TEXT,
        body!(|n: f32, template: &str| number(template, |p| number_text::of_float4(n, p))),
    )
    .stable(),
    proc(
        1776,
        "to_char",
        &[FLOAT8, TEXT],
        TEXT,
        body!(|n: f64, template: &str| number(template, |p| number_text::of_float8(n, p))),
    )
    .stable(),
    proc(
        1772,
        "to_char",
        &[NUMERIC, TEXT],
        TEXT,
        body!(|n: NumericRef<'_>, template: &str| number(template, |p| number_text::of_numeric(
            n, p
        ))),
    )
    .stable(),
    proc(
        1777,
        "to_number",
        &[TEXT, TEXT],
        NUMERIC,
        body!(|text: &str, template: &str| number_read::read(text, template)),
    )
    .stable(),
    proc(
        1778,
        "to_timestamp",
        &[TEXT, TEXT],
        TIMESTAMPTZ,
        body!(env, |text: &str, template: &str| date_read::timestamp(text, template, zone(env))
            .map(StampTz)),
    )
    .stable(),
    proc(
        1780,
        "to_date",
        &[TEXT, TEXT],
        DATE,
        body!(|text: &str, template: &str| date_read::date(text, template).map(Date)),
    )
    .stable(),
];

/// An error of a template, or of a text that does not fit it.
#[cold]
fn wrong(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn zone(env: &Env<'_>) -> Zone {
    env.facts.settings.format_options().zone
}

/// A number by a template. `text` gives the digits, and may make the template longer.
fn number(
    template: &str,
    text: impl FnOnce(&mut number_pattern::Pattern) -> Result<Shown>,
) -> Result<String> {
    if template.is_empty() {
        return Ok(String::new());
    }
    let parsed = number_pattern::parsed(template)?;
    let (nodes, mut pattern) = (&parsed.0, parsed.1);
    let shown = text(&mut pattern)?;
    number_write::write(nodes, pattern, shown)
}
