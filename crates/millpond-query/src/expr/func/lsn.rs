//! Positions in the log (`pg_lsn`): differences of them, and where the log is now.

use millpond_engine::wal::Log;
use millpond_types::NumericRef;
use millpond_types::numeric::Parts;
use millpond_types::other::PG_LSN;

use super::catalog::{LSN_TYPE, NUMERIC, Proc, proc};
use super::operators::{Operator, Work, op};
use super::value::{Arg, Outcome, body};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::types::{lsn, number_of};
use crate::{Datum, Numeric, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(3237, "pg_lsn_mi", &[LSN_TYPE, LSN_TYPE], NUMERIC, body!(|a: Lsn, b: Lsn| a.since(b))),
    proc(
        3165,
        "pg_wal_lsn_diff",
        &[LSN_TYPE, LSN_TYPE],
        NUMERIC,
        body!(|a: Lsn, b: Lsn| a.since(b)),
    ),
    proc(
        5022,
        "pg_lsn_pli",
        &[LSN_TYPE, NUMERIC],
        LSN_TYPE,
        body!(|lsn: Lsn, bytes: NumericRef<'_>| lsn.plus(bytes)),
    ),
    proc(
        5023,
        "numeric_pl_pg_lsn",
        &[NUMERIC, LSN_TYPE],
        LSN_TYPE,
        body!(|bytes: NumericRef<'_>, lsn: Lsn| lsn.plus(bytes)),
    ),
    proc(
        5024,
        "pg_lsn_mii",
        &[LSN_TYPE, NUMERIC],
        LSN_TYPE,
        body!(|lsn: Lsn, bytes: NumericRef<'_>| lsn.minus(bytes)),
    ),
    proc(6103, "pg_lsn", &[NUMERIC], LSN_TYPE, body!(|position: NumericRef<'_>| Lsn::at(position))),
    proc(
        2852,
        "pg_current_wal_insert_lsn",
        &[],
        LSN_TYPE,
        body!(env, || now(env, Log::insert_position)),
    )
    .volatile(),
    proc(2849, "pg_current_wal_lsn", &[], LSN_TYPE, body!(env, || now(env, Log::written)))
        .volatile(),
    proc(3330, "pg_current_wal_flush_lsn", &[], LSN_TYPE, body!(env, || now(env, Log::flushed)))
        .volatile(),
];

pub(super) static OPERATORS: &[Operator] = &[
    op("-", &[LSN_TYPE, LSN_TYPE], NUMERIC, Work::Call("pg_lsn_mi")),
    op("-", &[LSN_TYPE, NUMERIC], LSN_TYPE, Work::Call("pg_lsn_mii")),
    op("+", &[LSN_TYPE, NUMERIC], LSN_TYPE, Work::Call("pg_lsn_pli")),
    op("+", &[NUMERIC, LSN_TYPE], LSN_TYPE, Work::Call("numeric_pl_pg_lsn")),
];

/// A position as an argument and a result.
#[derive(Clone, Copy)]
pub(super) struct Lsn(pub(super) u64);

impl<'a> Arg<'a> for Lsn {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(PG_LSN, bytes) => number_of(bytes).map(Self),
            _ => None,
        }
    }
}

impl Outcome for Lsn {
    fn outcome(self) -> Result<Value> {
        Ok(lsn(self.0))
    }
}

impl Lsn {
    /// Whether a value is the beginning of the log, which no record ends at.
    pub(super) fn is_zero(value: &Datum<'_>) -> bool {
        Self::of(value).is_some_and(|lsn| lsn.0 == 0)
    }

    /// The position of that number, rounded.
    fn at(position: NumericRef<'_>) -> Result<Self> {
        let invalid = match position.parts() {
            Parts::NaN => "NaN",
            Parts::Infinity | Parts::NegInfinity => "infinity",
            Parts::Finite(_) => {
                let whole = position.round(0)?.as_ref().unscaled(0);
                let position = whole.and_then(|whole| u64::try_from(whole).ok());
                return position.map(Self).ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "pg_lsn out of range")
                });
            }
        };
        let message = format!("cannot convert {invalid} to pg_lsn");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }

    fn number(self) -> Numeric {
        Numeric::from(i128::from(self.0))
    }

    /// The bytes from another position to this one.
    fn since(self, other: Self) -> Numeric {
        Numeric::from(i128::from(self.0) - i128::from(other.0))
    }

    fn plus(self, bytes: NumericRef<'_>) -> Result<Self> {
        if bytes.is_nan() {
            return Err(not_a_number("add NaN to"));
        }
        Self::at(self.number().as_ref().add(bytes)?.as_ref())
    }

    fn minus(self, bytes: NumericRef<'_>) -> Result<Self> {
        if bytes.is_nan() {
            return Err(not_a_number("subtract NaN from"));
        }
        Self::at(self.number().as_ref().sub(bytes)?.as_ref())
    }
}

#[cold]
fn not_a_number(what: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot {what} pg_lsn"))
}

/// A position of the log now; `None` where no session evaluates.
fn now(env: &Env<'_>, of: fn(&Log) -> millpond_buffer::Lsn) -> Option<Lsn> {
    env.facts.session.map(|session| Lsn(of(session.engine().log()).get()))
}
