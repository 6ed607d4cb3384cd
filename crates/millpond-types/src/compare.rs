//! SQL's order of values (collation "C"), which index keys reproduce byte by byte.
//!
//! [`Datum::sql_cmp`] answers a comparison in a statement, so NULL compares with nothing.
//! [`Datum::sort_cmp`] is the order of a sort, with NULLs last.

use std::cmp::Ordering;

use super::{Datum, Value, other};

/// PostgreSQL's order of floats: NaN equals itself and is above everything; -0 equals 0.
/// The order of bytes, as text has it. An empty text may have no memory: then to compare it as
/// memory of no bytes takes a hundred cycles, because the processor's masked load meets an address
/// that is not mapped.
#[inline]
pub fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() { a.len().cmp(&b.len()) } else { a.cmp(b) }
}

fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl Datum<'_> {
    /// Compares two values of one type, or of two integer or two float types; `None` when either
    /// is NULL or the types do not compare.
    pub fn sql_cmp(&self, other: &Datum<'_>) -> Option<Ordering> {
        Some(match (*self, *other) {
            (Datum::Int4(a), Datum::Int4(b)) => a.cmp(&b),
            (Datum::Int8(a), Datum::Int8(b)) => a.cmp(&b),
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(&b),
            (Datum::Float4(a), Datum::Float4(b)) => float_order(a.into(), b.into()),
            (Datum::Float4(a), Datum::Float8(b)) => float_order(a.into(), b),
            (Datum::Float8(a), Datum::Float4(b)) => float_order(a, b.into()),
            (Datum::Float8(a), Datum::Float8(b)) => float_order(a, b),
            (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(&b),
            (Datum::Text(a), Datum::Text(b)) => compare_bytes(a.as_bytes(), b.as_bytes()),
            (Datum::Bytea(a), Datum::Bytea(b)) => a.cmp(b),
            (Datum::Date(a), Datum::Date(b)) => a.cmp(&b),
            (Datum::Timestamp(a), Datum::Timestamp(b))
            | (Datum::Timestamptz(a), Datum::Timestamptz(b)) => a.cmp(&b),
            (Datum::Other(ty, a), Datum::Other(of, b)) if ty == of => other::compare(ty, a, b)?,
            (a, b) => a.as_i64()?.cmp(&b.as_i64()?),
        })
    }

    /// The total order of a sort: [`Self::sql_cmp`] with NULLs last and equal to each other.
    pub fn sort_cmp(&self, other: &Datum<'_>) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (false, false) => self.sql_cmp(other).unwrap_or(Ordering::Equal),
            (a, b) => a.cmp(&b),
        }
    }
}

impl Value {
    /// See [`Datum::sql_cmp`].
    pub fn sql_cmp(&self, other: &Value) -> Option<Ordering> {
        self.as_datum().sql_cmp(&other.as_datum())
    }
}

#[cfg(test)]
mod tests {
    use super::compare_bytes;

    #[test]
    fn bytes_are_ordered_as_memory_is() {
        let texts: [&[u8]; 6] = [b"", b"\0", b"a", b"aa", b"ab", b"\xff"];
        for a in texts {
            for b in texts {
                assert_eq!(compare_bytes(a, b), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }
}
