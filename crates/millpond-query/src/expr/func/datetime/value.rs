//! Dates and times as arguments and results.

use millpond_types::Interval;
use millpond_types::other::{INTERVAL, TIME, TIMETZ, timetz_parts};

use super::super::value::{Arg, Outcome};
use crate::error::Result;
use crate::types::time::{time_usecs, time_value, timetz_value};
use crate::{Datum, Value};

/// Days since 2000.
#[derive(Clone, Copy)]
pub(in crate::expr::func) struct Date(pub(in crate::expr::func) i32);

/// Microseconds since 2000, of no zone.
#[derive(Clone, Copy)]
pub(in crate::expr::func) struct Stamp(pub(in crate::expr::func) i64);

/// Microseconds since 2000, UTC.
#[derive(Clone, Copy)]
pub(in crate::expr::func) struct StampTz(pub(in crate::expr::func) i64);

/// Microseconds since midnight.
#[derive(Clone, Copy)]
pub(in crate::expr::func) struct Time(pub(in crate::expr::func) i64);

/// The same in a zone, which is given in seconds west of UTC.
#[derive(Clone, Copy)]
pub(in crate::expr::func) struct TimeTz(
    pub(in crate::expr::func) i64,
    pub(in crate::expr::func) i32,
);

impl<'a> Arg<'a> for Date {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Date(days) => Some(Date(*days)),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for Stamp {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Timestamp(usecs) => Some(Stamp(*usecs)),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for StampTz {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Timestamptz(usecs) => Some(StampTz(*usecs)),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for Time {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(TIME, bytes) => time_usecs(bytes).map(Time),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for TimeTz {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(TIMETZ, bytes) => {
                timetz_parts(bytes).map(|(usecs, west)| TimeTz(usecs, west))
            }
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for Interval {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(INTERVAL, bytes) => Interval::from_bytes(bytes),
            _ => None,
        }
    }
}

impl Outcome for Date {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Date(self.0))
    }
}

impl Outcome for Stamp {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Timestamp(self.0))
    }
}

impl Outcome for StampTz {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Timestamptz(self.0))
    }
}

impl Outcome for Time {
    fn outcome(self) -> Result<Value> {
        Ok(time_value(self.0))
    }
}

impl Outcome for TimeTz {
    fn outcome(self) -> Result<Value> {
        Ok(timetz_value(self.0, self.1))
    }
}

impl Outcome for Interval {
    fn outcome(self) -> Result<Value> {
        Ok(self.into())
    }
}
