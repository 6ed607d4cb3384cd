//! Sizes in bytes as people write them.

use millpond_types::NumericRef;

use super::catalog::{INT8, NUMERIC, Proc, TEXT, proc};
use super::value::body;
use crate::Numeric;
use crate::error::{Result, SqlError, SqlState};

pub(super) static PROCS: &[Proc] = &[
    proc(2288, "pg_size_pretty", &[INT8], TEXT, body!(|size: i64| pretty(size))),
    proc(
        3166,
        "pg_size_pretty",
        &[NUMERIC],
        TEXT,
        body!(|size: NumericRef<'_>| pretty_numeric(size)),
    ),
    proc(3334, "pg_size_bytes", &[TEXT], INT8, body!(|text: &str| size_bytes(text))),
];

const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/// The size in the first unit in which it is below this.
const LIMIT: i128 = 10 * 1024;
/// Sizes beyond the first unit are halves of the unit until they are rounded.
const LIMIT_IN_HALVES: i128 = 20 * 1024 - 1;

fn pretty(size: i64) -> String {
    pretty_wide(size.into())
}

fn pretty_wide(size: i128) -> String {
    if size.abs() < LIMIT {
        return format!("{size} bytes");
    }
    // What is cut off does not matter for rounding to halves: only the half does.
    let mut halves = size / 512;
    for unit in &UNITS[1..] {
        if halves.abs() < LIMIT_IN_HALVES || *unit == "PB" {
            let rounded = (halves + halves.signum()) / 2;
            return format!("{rounded} {unit}");
        }
        halves /= 1024;
    }
    String::new()
}

fn pretty_numeric(size: NumericRef<'_>) -> Result<String> {
    let limit = Numeric::from(i64::try_from(LIMIT).unwrap_or(i64::MAX));
    if size.abs() < limit {
        return Ok(format!("{size} bytes"));
    }
    // Sizes that are no numbers, or too large for any unit, are printed as they are.
    match size.round(0)?.to_string().parse::<i128>() {
        Ok(wide) => Ok(pretty_wide(wide)),
        Err(_) => Ok(format!("{size} PB")),
    }
}

fn size_bytes(text: &str) -> Result<i64> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let invalid =
        || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid size: \"{text}\""));
    let number_end = number_length(trimmed.as_bytes()).ok_or_else(invalid)?;
    let (number, unit) = trimmed.split_at(number_end);
    let number: Numeric = number.parse()?;
    let unit = unit.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let factor: i64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        "tb" => 1 << 40,
        "pb" => 1 << 50,
        _ => {
            return Err(invalid().detail(format!("Invalid size unit: \"{unit}\".")).hint(
                "Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".",
            ));
        }
    };
    Ok(number.as_ref().mul(Numeric::from(factor).as_ref())?.as_ref().to_i64("bigint")?)
}

/// How many bytes of the text are a number.
fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| text[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
        let exponent = if at + 1 + sign <= text.len() { digits(at + 1 + sign) } else { 0 };
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    Some(at)
}
