//! Functions of text.

use super::Body;
use super::catalog::{ANY, BPCHAR, BYTEA, INT4, Proc, TEXT, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::letter::{LetterCase, initcap, mapped};
use crate::expr::{Env, cast};
use crate::memory::ValueRoom;
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(1317, "length", &[TEXT], INT4, body!(|s: &str| length(s))),
    proc(1318, "length", &[BPCHAR], INT4, body!(|s: &str| length(s))),
    proc(1381, "char_length", &[TEXT], INT4, body!(|s: &str| length(s))),
    proc(1372, "char_length", &[BPCHAR], INT4, body!(|s: &str| length(s))),
    proc(1369, "character_length", &[TEXT], INT4, body!(|s: &str| length(s))),
    proc(1367, "character_length", &[BPCHAR], INT4, body!(|s: &str| length(s))),
    proc(1257, "textlen", &[TEXT], INT4, body!(|s: &str| length(s))),
    proc(1374, "octet_length", &[TEXT], INT4, body!(|s: &str| s.len() as i32)),
    // The binder adds the spaces.
    proc(1375, "octet_length", &[BPCHAR], INT4, body!(|s: &str| s.len() as i32)),
    proc(1811, "bit_length", &[TEXT], INT4, body!(|s: &str| bits(s.len()))),
    proc(870, "lower", &[TEXT], TEXT, body!(|s: &str| mapped(s, LetterCase::Lower))),
    proc(871, "upper", &[TEXT], TEXT, body!(|s: &str| mapped(s, LetterCase::Upper))),
    proc(872, "initcap", &[TEXT], TEXT, body!(|s: &str| initcap(s))),
    proc(
        884,
        "btrim",
        &[TEXT, TEXT],
        TEXT,
        body!(|s: &str, set: &str| s.trim_matches(|c| set.contains(c))),
    ),
    proc(885, "btrim", &[TEXT], TEXT, body!(|s: &str| s.trim_matches(' '))),
    proc(
        875,
        "ltrim",
        &[TEXT, TEXT],
        TEXT,
        body!(|s: &str, set: &str| s.trim_start_matches(|c| set.contains(c))),
    ),
    proc(881, "ltrim", &[TEXT], TEXT, body!(|s: &str| s.trim_start_matches(' '))),
    proc(
        876,
        "rtrim",
        &[TEXT, TEXT],
        TEXT,
        body!(|s: &str, set: &str| s.trim_end_matches(|c| set.contains(c))),
    ),
    proc(882, "rtrim", &[TEXT], TEXT, body!(|s: &str| s.trim_end_matches(' '))),
    proc(
        883,
        "substr",
        &[TEXT, INT4],
        TEXT,
        body!(|s: &str, start: i32| substring(s, start, None)),
    ),
    proc(
        877,
        "substr",
        &[TEXT, INT4, INT4],
        TEXT,
        body!(|s: &str, start: i32, len: i32| substring(s, start, Some(len))),
    ),
    proc(
        937,
        "substring",
        &[TEXT, INT4],
        TEXT,
        body!(|s: &str, start: i32| substring(s, start, None)),
    ),
    proc(
        936,
        "substring",
        &[TEXT, INT4, INT4],
        TEXT,
        body!(|s: &str, start: i32, len: i32| substring(s, start, Some(len))),
    ),
    proc(868, "strpos", &[TEXT, TEXT], INT4, body!(|s: &str, part: &str| position(s, part))),
    proc(849, "position", &[TEXT, TEXT], INT4, body!(|s: &str, part: &str| position(s, part))),
    proc(
        2087,
        "replace",
        &[TEXT, TEXT, TEXT],
        TEXT,
        body!(|s: &str, from: &str, to: &str| replaced(s, from, to)),
    ),
    proc(3060, "left", &[TEXT, INT4], TEXT, body!(|s: &str, n: i32| left(s, n))),
    proc(3061, "right", &[TEXT, INT4], TEXT, body!(|s: &str, n: i32| right(s, n))),
    proc(1622, "repeat", &[TEXT, INT4], TEXT, body!(|s: &str, n: i32| repeat(s, n))),
    proc(3062, "reverse", &[TEXT], TEXT, body!(|s: &str| s.chars().rev().collect::<String>())),
    proc(3058, "concat", &[ANY], TEXT, Body::Datums(concat)).stable().called_on_null().variadic(),
    proc(3059, "concat_ws", &[TEXT, ANY], TEXT, Body::Datums(concat_ws))
        .stable()
        .called_on_null()
        .variadic(),
    proc(1620, "ascii", &[TEXT], INT4, body!(|s: &str| s.chars().next().map_or(0, |c| c as i32))),
    proc(1621, "chr", &[INT4], TEXT, body!(|code: i32| chr(code))),
    proc(
        873,
        "lpad",
        &[TEXT, INT4, TEXT],
        TEXT,
        body!(|s: &str, n: i32, fill: &str| pad(s, n, fill, true)),
    ),
    proc(879, "lpad", &[TEXT, INT4], TEXT, body!(|s: &str, n: i32| pad(s, n, " ", true))),
    proc(
        874,
        "rpad",
        &[TEXT, INT4, TEXT],
        TEXT,
        body!(|s: &str, n: i32, fill: &str| pad(s, n, fill, false)),
    ),
    proc(880, "rpad", &[TEXT, INT4], TEXT, body!(|s: &str, n: i32| pad(s, n, " ", false))),
    proc(
        2088,
        "split_part",
        &[TEXT, TEXT, INT4],
        TEXT,
        body!(|s: &str, by: &str, n: i32| split_part(s, by, n)),
    ),
    proc(
        878,
        "translate",
        &[TEXT, TEXT, TEXT],
        TEXT,
        body!(|s: &str, from: &str, to: &str| translate(s, from, to)),
    ),
    proc(
        1404,
        "overlay",
        &[TEXT, TEXT, INT4, INT4],
        TEXT,
        body!(|s: &str, new: &str, start: i32, len: i32| overlay(s, new, start, len)),
    ),
    proc(
        1405,
        "overlay",
        &[TEXT, TEXT, INT4],
        TEXT,
        body!(|s: &str, new: &str, start: i32| overlay(s, new, start, length(new))),
    ),
    proc(
        3696,
        "starts_with",
        &[TEXT, TEXT],
        super::catalog::BOOL,
        body!(|s: &str, start: &str| s.starts_with(start)),
    ),
    proc(401, "text", &[BPCHAR], TEXT, body!(|s: &str| s)),
    proc(1258, "textcat", &[TEXT, TEXT], TEXT, body!(|a: &str, b: &str| cat(a, b))),
    proc(1810, "bit_length", &[BYTEA], INT4, body!(|b: &[u8]| bits(b.len()))),
];

fn length(s: &str) -> i32 {
    s.chars().count() as i32
}

fn bits(bytes: usize) -> Result<i32> {
    bytes
        .checked_mul(8)
        .and_then(|bits| i32::try_from(bits).ok())
        .ok_or_else(|| super::integer::range("integer"))
}

fn position(s: &str, part: &str) -> i32 {
    s.find(part).map_or(0, |at| length(&s[..at]) + 1)
}

/// The characters of the text from number `start` on (counted from 0), `take` of them.
fn chars_from(s: &str, start: usize, take: usize) -> &str {
    let at = |s: &str, n: usize| s.char_indices().nth(n).map_or(s.len(), |(at, _)| at);
    let rest = &s[at(s, start)..];
    &rest[..at(rest, take)]
}

/// Where a part begins (counted from 0) and ends; the part's `start` counts from 1 and may lie
/// before the first.
pub(super) fn span(start: i32, len: Option<i32>) -> Result<(usize, usize)> {
    let start = i64::from(start) - 1;
    let end = match len {
        // What would lie beyond the largest position has no end.
        Some(len) if len < 0 => {
            return Err(SqlError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(len) => start + i64::from(len),
        None => i64::MAX,
    };
    let begin = start.max(0);
    Ok((begin as usize, usize::try_from(end - begin).unwrap_or(0)))
}

fn substring(s: &str, start: i32, len: Option<i32>) -> Result<&str> {
    let (begin, take) = span(start, len)?;
    Ok(chars_from(s, begin, take))
}

/// The number of characters that `left` and `right` keep.
fn kept(s: &str, n: i32) -> (usize, usize) {
    let total = s.chars().count() as i64;
    let keep = if n >= 0 { i64::from(n) } else { total + i64::from(n) }.clamp(0, total);
    (keep as usize, total as usize)
}

fn left(s: &str, n: i32) -> &str {
    let (keep, _) = kept(s, n);
    chars_from(s, 0, keep)
}

fn right(s: &str, n: i32) -> &str {
    // PostgreSQL changes the sign, which this number does not have.
    if n == i32::MIN {
        return s;
    }
    let (keep, total) = kept(s, n);
    chars_from(s, total - keep, keep)
}

fn repeat(s: &str, n: i32) -> Result<String> {
    let times = usize::try_from(n).unwrap_or(0);
    check_length(s.len().saturating_mul(times))?;
    Ok(s.repeat(times))
}

fn replaced(s: &str, from: &str, to: &str) -> Result<String> {
    if from.is_empty() {
        return Ok(s.to_owned());
    }
    if to.len() > from.len() {
        let more = s.matches(from).count().saturating_mul(to.len() - from.len());
        check_length(s.len().saturating_add(more))?;
    }
    Ok(s.replace(from, to))
}

fn cat(a: &str, b: &str) -> Result<String> {
    check_length(a.len() + b.len())?;
    Ok([a, b].concat())
}

/// Appends a value as its type prints it.
pub(super) fn print(value: &Datum<'_>, env: &Env<'_>, out: &mut String) -> Result<()> {
    match value {
        Datum::Null => {}
        Datum::Text(text) => {
            check_length(out.len() + text.len())?;
            out.push_str(text);
        }
        Datum::Bool(b) => out.push(if *b { 't' } else { 'f' }),
        Datum::Int2(int) => push_int((*int).into(), out),
        Datum::Int4(int) => push_int((*int).into(), out),
        Datum::Int8(int) => push_int(*int, out),
        datum => out.push_str(&cast::text_of(datum, env.facts.settings.format_options())),
    }
    check_length(out.len())
}

fn push_int(int: i64, out: &mut String) {
    use std::fmt::Write;
    // Writing to memory can't fail.
    let _ = write!(out, "{int}");
}

/// The values that are not NULL, as text, one after the other.
fn concat(values: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let mut out = String::new();
    for value in values {
        print(value, env, &mut out)?;
    }
    Ok(Value::Text(out))
}

/// The same with a separator between them, which comes first.
fn concat_ws(values: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some((Datum::Text(separator), values)) = values.split_first() else {
        return Ok(Value::Null);
    };
    let mut out = String::new();
    let mut first = true;
    for value in values.iter().filter(|value| !value.is_null()) {
        if !std::mem::take(&mut first) {
            out.push_str(separator);
        }
        print(value, env, &mut out)?;
    }
    Ok(Value::Text(out))
}

fn chr(code: i32) -> Result<String> {
    let limit = |message: String| Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    match u32::try_from(code) {
        Err(_) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "character number must be positive",
        )),
        Ok(0) => limit("null character not permitted".to_owned()),
        Ok(code) if code > 0x10_ffff => {
            limit(format!("requested character too large for encoding: {code}"))
        }
        Ok(code) => match char::from_u32(code) {
            Some(c) => Ok(c.to_string()),
            None => limit(format!("requested character not valid for encoding: {code}")),
        },
    }
}

/// The text with as many characters of `fill` before or behind it as it takes to be `n` long; cut
/// if it is longer.
fn pad(s: &str, n: i32, fill: &str, before: bool) -> Result<String> {
    let wanted = usize::try_from(n).unwrap_or(0);
    let missing = wanted.saturating_sub(s.chars().count());
    if missing == 0 || fill.is_empty() {
        return Ok(chars_from(s, 0, wanted).to_owned());
    }
    // At least a byte for each character.
    check_length(s.len().saturating_add(missing))?;
    let mut out = String::with_capacity(s.len() + missing);
    if !before {
        out.push_str(s);
    }
    for c in fill.chars().cycle().take(missing) {
        out.push(c);
        check_length(out.len())?;
    }
    if before {
        out.push_str(s);
        check_length(out.len())?;
    }
    Ok(out)
}

/// Field number `n` of a text with separators; counted from the end if negative.
fn split_part<'a>(s: &'a str, separator: &str, n: i32) -> Result<&'a str> {
    if n == 0 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "field position must not be zero",
        ));
    }
    if s.is_empty() {
        return Ok("");
    }
    let place = n.unsigned_abs() as usize - 1;
    if separator.is_empty() {
        return Ok(if place == 0 { s } else { "" });
    }
    let part = match separator.as_bytes() {
        // One character is found faster than a text.
        [one @ 0..0x80] if n > 0 => s.split(char::from(*one)).nth(place),
        _ if n > 0 => s.split(separator).nth(place),
        _ => from_end(s, separator, place),
    };
    Ok(part.unwrap_or(""))
}

/// Field number `place` from the end. Separators are found from the start, where they overlap.
fn from_end<'a>(s: &'a str, separator: &str, place: usize) -> Option<&'a str> {
    let count = s.split(separator).count();
    s.split(separator).nth(count.checked_sub(place + 1)?)
}

/// Each character of `from` becomes the one of `to` at its place, or goes away if there is none.
fn translate(s: &str, from: &str, to: &str) -> Result<String> {
    let mut map = std::collections::HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let target = to.next();
        map.entry(c).or_insert(target);
    }
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match map.get(&c) {
            None => out.push(c),
            Some(target) => out.extend(target),
        }
    }
    check_length(out.len())?;
    Ok(out)
}

/// Where the part that `overlay` replaces begins, as `substring` counts, and where what follows it
/// does.
pub(super) fn overlay_places(start: i32, len: i32) -> Result<(i32, i32)> {
    if start <= 0 {
        return Err(SqlError::new(
            SqlState::SUBSTRING_ERROR,
            "negative substring length not allowed",
        ));
    }
    let end = start.checked_add(len).ok_or_else(|| super::integer::range("integer"))?;
    Ok((start, end))
}

fn overlay(s: &str, new: &str, start: i32, len: i32) -> Result<String> {
    let (start, end) = overlay_places(start, len)?;
    let before = substring(s, 1, Some(start - 1))?;
    let behind = substring(s, end, None)?;
    check_length(before.len() + new.len() + behind.len())?;
    Ok([before, new, behind].concat())
}

/// Refuses values larger than PostgreSQL's, and those that would take all memory.
pub fn check_length(bytes: usize) -> Result<()> {
    if bytes >= 1 << 30 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    ValueRoom::check(bytes)
}
