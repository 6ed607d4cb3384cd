//! Functions of byte strings.

use super::catalog::{BYTEA, INT4, INT8, NAME, Proc, TEXT, proc};
use super::encoding;
use super::string::{check_length, overlay_places, span};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};

pub(super) static PROCS: &[Proc] = &[
    proc(2010, "length", &[BYTEA], INT4, body!(|b: &[u8]| b.len() as i32)),
    proc(720, "octet_length", &[BYTEA], INT4, body!(|b: &[u8]| b.len() as i32)),
    proc(
        2085,
        "substr",
        &[BYTEA, INT4, INT4],
        BYTEA,
        body!(|b: &[u8], start: i32, len: i32| substring(b, start, Some(len))),
    ),
    proc(
        2086,
        "substr",
        &[BYTEA, INT4],
        BYTEA,
        body!(|b: &[u8], start: i32| substring(b, start, None)),
    ),
    proc(
        2012,
        "substring",
        &[BYTEA, INT4, INT4],
        BYTEA,
        body!(|b: &[u8], start: i32, len: i32| substring(b, start, Some(len))),
    ),
    proc(
        2013,
        "substring",
        &[BYTEA, INT4],
        BYTEA,
        body!(|b: &[u8], start: i32| substring(b, start, None)),
    ),
    proc(
        749,
        "overlay",
        &[BYTEA, BYTEA, INT4, INT4],
        BYTEA,
        body!(|b: &[u8], new: &[u8], start: i32, len: i32| overlay(b, new, start, len)),
    ),
    proc(
        752,
        "overlay",
        &[BYTEA, BYTEA, INT4],
        BYTEA,
        body!(|b: &[u8], new: &[u8], start: i32| overlay(b, new, start, new.len() as i32)),
    ),
    proc(2014, "position", &[BYTEA, BYTEA], INT4, body!(|b: &[u8], part: &[u8]| position(b, part))),
    proc(
        2015,
        "btrim",
        &[BYTEA, BYTEA],
        BYTEA,
        body!(|b: &[u8], set: &[u8]| trim_end(trim_start(b, set), set)),
    ),
    proc(6195, "ltrim", &[BYTEA, BYTEA], BYTEA, body!(|b: &[u8], set: &[u8]| trim_start(b, set))),
    proc(6196, "rtrim", &[BYTEA, BYTEA], BYTEA, body!(|b: &[u8], set: &[u8]| trim_end(b, set))),
    proc(
        721,
        "get_byte",
        &[BYTEA, INT4],
        INT4,
        body!(|b: &[u8], n: i32| place(b.len(), n.into()).map(|n| i32::from(b[n]))),
    ),
    proc(
        722,
        "set_byte",
        &[BYTEA, INT4, INT4],
        BYTEA,
        body!(|b: &[u8], n: i32, new: i32| set_byte(b, n, new)),
    ),
    proc(
        723,
        "get_bit",
        &[BYTEA, INT8],
        INT4,
        body!(|b: &[u8], n: i64| place(b.len().saturating_mul(8), n)
            .map(|n| i32::from(b[n / 8] >> (n % 8) & 1))),
    ),
    proc(
        724,
        "set_bit",
        &[BYTEA, INT8, INT4],
        BYTEA,
        body!(|b: &[u8], n: i64, new: i32| set_bit(b, n, new)),
    ),
    proc(2011, "byteacat", &[BYTEA, BYTEA], BYTEA, body!(|a: &[u8], b: &[u8]| joined(&[a, b]))),
    proc(
        1946,
        "encode",
        &[BYTEA, TEXT],
        TEXT,
        body!(|b: &[u8], form: &str| encoding::encode(b, form)),
    ),
    proc(
        1947,
        "decode",
        &[TEXT, TEXT],
        BYTEA,
        body!(|s: &str, form: &str| encoding::decode(s, form)),
    ),
    proc(
        1714,
        "convert_from",
        &[BYTEA, NAME],
        TEXT,
        body!(|b: &[u8], name: &str| encoding::convert_from(b, name, "source")),
    )
    .stable(),
    proc(
        1717,
        "convert_to",
        &[TEXT, NAME],
        BYTEA,
        body!(|s: &str, name: &str| encoding::convert_to(s, name)),
    )
    .stable(),
    proc(
        1813,
        "convert",
        &[BYTEA, NAME, NAME],
        BYTEA,
        body!(|b: &[u8], from: &str, to: &str| encoding::convert_from(b, from, "source")
            .and_then(|s| encoding::convert_to(&s, to))),
    )
    .stable(),
    proc(
        1713,
        "length",
        &[BYTEA, NAME],
        INT4,
        body!(|b: &[u8], name: &str| encoding::convert_from(b, name, "")
            .map(|s| s.chars().count() as i32)),
    )
    .stable(),
];

fn substring(b: &[u8], start: i32, len: Option<i32>) -> Result<&[u8]> {
    let (begin, take) = span(start, len)?;
    let rest = b.get(begin..).unwrap_or_default();
    Ok(&rest[..take.min(rest.len())])
}

fn joined(parts: &[&[u8]]) -> Result<Vec<u8>> {
    check_length(parts.iter().map(|part| part.len()).sum())?;
    Ok(parts.concat())
}

fn overlay(b: &[u8], new: &[u8], start: i32, len: i32) -> Result<Vec<u8>> {
    let (start, end) = overlay_places(start, len)?;
    joined(&[substring(b, 1, Some(start - 1))?, new, substring(b, end, None)?])
}

fn position(b: &[u8], part: &[u8]) -> i32 {
    if part.is_empty() {
        return 1;
    }
    b.windows(part.len()).position(|window| window == part).map_or(0, |at| at as i32 + 1)
}

fn trim_start<'a>(b: &'a [u8], set: &[u8]) -> &'a [u8] {
    let skip = b.iter().take_while(|byte| set.contains(byte)).count();
    &b[skip..]
}

fn trim_end<'a>(b: &'a [u8], set: &[u8]) -> &'a [u8] {
    let cut = b.iter().rev().take_while(|byte| set.contains(byte)).count();
    &b[..b.len() - cut]
}

/// An index as a place in a list of this length.
fn place(length: usize, index: i64) -> Result<usize> {
    usize::try_from(index).ok().filter(|place| *place < length).ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("index {index} out of valid range, 0..{}", length as i64 - 1),
        )
    })
}

fn set_byte(b: &[u8], n: i32, new: i32) -> Result<Vec<u8>> {
    let n = place(b.len(), n.into())?;
    let mut out = b.to_vec();
    out[n] = new as u8;
    Ok(out)
}

fn set_bit(b: &[u8], n: i64, new: i32) -> Result<Vec<u8>> {
    let n = place(b.len().saturating_mul(8), n)?;
    let mut out = b.to_vec();
    match new {
        0 => out[n / 8] &= !(1 << (n % 8)),
        1 => out[n / 8] |= 1 << (n % 8),
        _ => {
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"));
        }
    }
    Ok(out)
}
