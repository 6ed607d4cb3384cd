//! Functions of integers.

use super::catalog::{BYTEA, INT2, INT4, INT8, NUMERIC, Proc, TEXT, proc};
use super::numeric;
use super::value::body;
use crate::error::{Result, SqlError, SqlState};

pub(super) static PROCS: &[Proc] = &[
    proc(
        1398,
        "abs",
        &[INT2],
        INT2,
        body!(|x: i16| x.checked_abs().ok_or_else(|| range("smallint"))),
    ),
    proc(
        1397,
        "abs",
        &[INT4],
        INT4,
        body!(|x: i32| x.checked_abs().ok_or_else(|| range("integer"))),
    ),
    proc(
        1396,
        "abs",
        &[INT8],
        INT8,
        body!(|x: i64| x.checked_abs().ok_or_else(|| range("bigint"))),
    ),
    proc(
        1253,
        "int2abs",
        &[INT2],
        INT2,
        body!(|x: i16| x.checked_abs().ok_or_else(|| range("smallint"))),
    ),
    proc(
        1251,
        "int4abs",
        &[INT4],
        INT4,
        body!(|x: i32| x.checked_abs().ok_or_else(|| range("integer"))),
    ),
    proc(
        1230,
        "int8abs",
        &[INT8],
        INT8,
        body!(|x: i64| x.checked_abs().ok_or_else(|| range("bigint"))),
    ),
    proc(
        940,
        "mod",
        &[INT2, INT2],
        INT2,
        body!(|a: i16, b: i16| modulo(a.into(), b.into()).map(|m| m as i16)),
    ),
    proc(
        941,
        "mod",
        &[INT4, INT4],
        INT4,
        body!(|a: i32, b: i32| modulo(a.into(), b.into()).map(|m| m as i32)),
    ),
    proc(947, "mod", &[INT8, INT8], INT8, body!(|a: i64, b: i64| modulo(a, b))),
    proc(5044, "gcd", &[INT4, INT4], INT4, body!(|a: i32, b: i32| gcd4(a, b))),
    proc(5045, "gcd", &[INT8, INT8], INT8, body!(|a: i64, b: i64| gcd8(a, b))),
    proc(5046, "lcm", &[INT4, INT4], INT4, body!(|a: i32, b: i32| lcm4(a, b))),
    proc(5047, "lcm", &[INT8, INT8], INT8, body!(|a: i64, b: i64| lcm8(a, b))),
    proc(1376, "factorial", &[INT8], NUMERIC, body!(env, |n: i64| numeric::factorial(n, env))),
    proc(2089, "to_hex", &[INT4], TEXT, body!(|x: i32| format!("{x:x}"))),
    proc(2090, "to_hex", &[INT8], TEXT, body!(|x: i64| format!("{x:x}"))),
    proc(
        6163,
        "bit_count",
        &[BYTEA],
        INT8,
        body!(|b: &[u8]| b.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>()),
    ),
    proc(1896, "int2shl", &[INT2, INT4], INT2, body!(|x: i16, n: i32| shift_left(x, n))),
    proc(1897, "int2shr", &[INT2, INT4], INT2, body!(|x: i16, n: i32| shift_right(x, n))),
    proc(1895, "int2not", &[INT2], INT2, body!(|x: i16| !x)),
    proc(1901, "int4not", &[INT4], INT4, body!(|x: i32| !x)),
    proc(1907, "int8not", &[INT8], INT8, body!(|x: i64| !x)),
];

#[cold]
pub(super) fn range(ty: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

/// The remainder, with the sign of the dividend.
fn modulo(a: i64, b: i64) -> Result<i64> {
    match b {
        0 => Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")),
        // The smallest integer modulo -1 is 0, not an overflow.
        _ => Ok(a.wrapping_rem(b)),
    }
}

// A smallint is shifted as an integer, and cut.

fn shift_left(x: i16, n: i32) -> i16 {
    i32::from(x).wrapping_shl(n as u32) as i16
}

fn shift_right(x: i16, n: i32) -> i16 {
    i32::from(x).wrapping_shr(n as u32) as i16
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn gcd4(a: i32, b: i32) -> Result<i32> {
    let gcd = gcd(a.unsigned_abs().into(), b.unsigned_abs().into());
    i32::try_from(gcd).map_err(|_| range("integer"))
}

fn gcd8(a: i64, b: i64) -> Result<i64> {
    i64::try_from(gcd(a.unsigned_abs(), b.unsigned_abs())).map_err(|_| range("bigint"))
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    match gcd(a, b) {
        0 => Some(0),
        gcd => (a / gcd).checked_mul(b),
    }
}

fn lcm4(a: i32, b: i32) -> Result<i32> {
    let lcm = lcm(a.unsigned_abs().into(), b.unsigned_abs().into());
    lcm.and_then(|lcm| i32::try_from(lcm).ok()).ok_or_else(|| range("integer"))
}

fn lcm8(a: i64, b: i64) -> Result<i64> {
    let lcm = lcm(a.unsigned_abs(), b.unsigned_abs());
    lcm.and_then(|lcm| i64::try_from(lcm).ok()).ok_or_else(|| range("bigint"))
}
