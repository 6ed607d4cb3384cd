//! Values as bytes that are equal where the values are: for hash tables.
//!
//! What [`Datum::sql_cmp`] takes for equal has the same bytes: integers of different widths, 0.0
//! and -0.0, all NaN, 1.0 and 1.00. NULL is equal to NULL here; a join leaves it out before.

use millpond_types::numeric::Parts;
use millpond_types::other::encode_key;

use crate::Datum;

const NULL: u8 = 0;
const BOOL: u8 = 1;
const INT: u8 = 2;
const FLOAT: u8 = 3;
const NUMERIC: u8 = 4;
const TEXT: u8 = 5;
const BYTEA: u8 = 6;
const DATE: u8 = 7;
const TIMESTAMP: u8 = 8;
const TIMESTAMPTZ: u8 = 9;
const OTHER: u8 = 10;

/// Appends a value's key.
pub(super) fn push(datum: &Datum<'_>, out: &mut Vec<u8>) {
    match *datum {
        Datum::Null => out.push(NULL),
        Datum::Bool(value) => out.extend_from_slice(&[BOOL, value.into()]),
        Datum::Int2(value) => push_int(value.into(), out),
        Datum::Int4(value) => push_int(value.into(), out),
        Datum::Int8(value) => push_int(value, out),
        Datum::Float4(value) => float(value.into(), out),
        Datum::Float8(value) => float(value, out),
        Datum::Numeric(value) => numeric(value.parts(), out),
        Datum::Text(value) => sized(TEXT, value.as_bytes(), out),
        Datum::Bytea(value) => sized(BYTEA, value, out),
        Datum::Date(value) => fixed(DATE, &value.to_le_bytes(), out),
        Datum::Timestamp(value) => fixed(TIMESTAMP, &value.to_le_bytes(), out),
        Datum::Timestamptz(value) => fixed(TIMESTAMPTZ, &value.to_le_bytes(), out),
        Datum::Other(oid, value) => other(oid, value, out),
    }
}

/// Appends an integer's key, in one piece: so there is one look whether there is room.
#[inline]
pub(super) fn push_int(value: i64, out: &mut Vec<u8>) {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    out.extend_from_slice(&[INT, a, b, c, d, e, f, g, h]);
}

/// Of a type without an order the bytes themselves.
fn other(oid: u32, value: &[u8], out: &mut Vec<u8>) {
    fixed(OTHER, &oid.to_le_bytes(), out);
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    if encode_key(oid, value, out).is_none() {
        out.truncate(start + 8);
        out.extend_from_slice(value);
    }
    let length = (out.len() - start - 8) as u64;
    if let Some(place) = out.get_mut(start..start + 8) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

fn fixed(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn sized(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&bytes.len().to_le_bytes());
    out.extend_from_slice(bytes);
}

fn float(value: f64, out: &mut Vec<u8>) {
    let value = if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    fixed(FLOAT, &value.to_le_bytes(), out);
}

fn numeric(parts: Parts, out: &mut Vec<u8>) {
    out.push(NUMERIC);
    let decimal = match parts {
        Parts::NaN => return out.push(1),
        Parts::Infinity => return out.push(2),
        Parts::NegInfinity => return out.push(3),
        Parts::Finite(decimal) => decimal,
    };
    let digits = decimal.digits.as_slice();
    let leading = digits.iter().take_while(|&&digit| digit == 0).count();
    let digits = digits.get(leading..).unwrap_or_default();
    let trailing = digits.iter().rev().take_while(|&&digit| digit == 0).count();
    let digits = digits.get(..digits.len() - trailing).unwrap_or_default();
    if digits.is_empty() {
        return out.push(4);
    }
    out.push(if decimal.negative { 5 } else { 6 });
    out.extend_from_slice(&(decimal.weight - leading as i32).to_le_bytes());
    out.extend_from_slice(&digits.len().to_le_bytes());
    for digit in digits {
        out.extend_from_slice(&digit.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Numeric, Value};

    #[test]
    fn keys_are_equal_where_values_are() {
        let numeric = |text: &str| Value::Numeric(text.parse::<Numeric>().unwrap());
        let classes = [
            vec![Value::Null],
            vec![Value::Int2(1), Value::Int4(1), Value::Int8(1)],
            vec![Value::Int8(-1), Value::Int2(-1)],
            vec![Value::Float4(0.0), Value::Float8(-0.0)],
            vec![Value::Float4(f32::NAN), Value::Float8(-f64::NAN)],
            vec![Value::Float4(1.5), Value::Float8(1.5)],
            vec![numeric("1"), numeric("1.0"), numeric("1.00000")],
            vec![numeric("0"), numeric("0.00"), numeric("-0.0")],
            vec![numeric("10000"), numeric("10000.0")],
            vec![numeric("-10000")],
            vec![numeric("NaN")],
            vec![numeric("Infinity")],
            vec![Value::from("")],
            vec![Value::from("a")],
        ];
        let key = |value: &Value| {
            let mut out = Vec::new();
            push(&value.as_datum(), &mut out);
            out
        };
        for (i, class) in classes.iter().enumerate() {
            for (j, other) in classes.iter().enumerate() {
                for (a, b) in class.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
                    assert_eq!(key(a) == key(b), i == j, "{a:?} {b:?}");
                    if !a.is_null() && a.sql_cmp(b).is_some() {
                        assert_eq!(a.sql_cmp(b) == Some(std::cmp::Ordering::Equal), i == j);
                    }
                }
            }
        }
    }
}
