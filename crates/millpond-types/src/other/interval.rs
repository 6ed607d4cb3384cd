//! The bytes of an interval, and what its type's modifier says.

use super::INTERVAL;
use crate::Value;

/// A span of time in units that don't convert into each other without a calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months, and years as twelve of them.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub usecs: i64,
}

impl Interval {
    /// A value's bytes as an interval.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (usecs, rest) = bytes.split_first_chunk()?;
        let (days, months) = rest.split_first_chunk()?;
        Some(Self {
            months: i32::from_le_bytes(months.try_into().ok()?),
            days: i32::from_le_bytes(*days),
            usecs: i64::from_le_bytes(*usecs),
        })
    }

    /// The interval's bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.usecs.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.days.to_le_bytes());
        bytes[12..].copy_from_slice(&self.months.to_le_bytes());
        bytes
    }

    /// Microseconds, with days of 24 hours and months of 30 days: what comparisons look at.
    pub fn span(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * 86_400_000_000 + i128::from(self.usecs)
    }
}

impl From<Interval> for Value {
    fn from(interval: Interval) -> Self {
        Value::Other(INTERVAL, interval.to_bytes().into())
    }
}

/// An interval's modifier has its fields in the upper half, the precision in the lower.
pub(super) fn write_name(typmod: i32, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.write_str("interval")?;
    if let Some((_, name)) = INTERVAL_FIELDS.iter().find(|(bits, _)| *bits == typmod >> 16 & 0x7fff)
    {
        write!(f, " {name}")?;
    }
    match typmod & 0xffff {
        0xffff => Ok(()),
        precision => write!(f, "({precision})"),
    }
}

const YEAR: i32 = 1 << 2;
const MONTH: i32 = 1 << 1;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;

/// The fields that an interval can be limited to, as bits of its modifier, and their names.
pub const INTERVAL_FIELDS: &[(i32, &str)] = &[
    (YEAR, "year"),
    (MONTH, "month"),
    (DAY, "day"),
    (HOUR, "hour"),
    (MINUTE, "minute"),
    (SECOND, "second"),
    (YEAR | MONTH, "year to month"),
    (DAY | HOUR, "day to hour"),
    (DAY | HOUR | MINUTE, "day to minute"),
    (DAY | HOUR | MINUTE | SECOND, "day to second"),
    (HOUR | MINUTE, "hour to minute"),
    (HOUR | MINUTE | SECOND, "hour to second"),
    (MINUTE | SECOND, "minute to second"),
];

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::other::compare;

    #[test]
    fn intervals_compare_by_their_span() {
        let of = |months, days, usecs| Interval { months, days, usecs }.to_bytes();
        let compare = |a: [u8; 16], b: [u8; 16]| compare(INTERVAL, &a, &b);
        assert_eq!(compare(of(1, 0, 0), of(0, 30, 0)), Some(Ordering::Equal));
        assert_eq!(compare(of(1, -31, 0), of(0, 0, 0)), Some(Ordering::Less));
        assert_eq!(compare(of(0, 1, 0), of(0, 0, 86_400_000_000)), Some(Ordering::Equal));
        assert_eq!(compare(of(0, -1, 0), of(0, 0, i64::MIN)), Some(Ordering::Greater));
    }
}
