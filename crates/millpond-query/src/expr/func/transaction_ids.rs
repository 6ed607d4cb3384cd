//! The numbers of transactions, and what became of them. The newer functions have them as `xid8`,
//! those that are called `txid` as `bigint`.

use millpond_engine::transam::Xid;
use millpond_engine::transam::snapshot::XidStatus;

use super::catalog::{INT8, Proc, TEXT, XID8_TYPE, proc};
use super::value::{Arg, Outcome, body};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::types::{number_of, xid8};
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(5059, "pg_current_xact_id", &[], XID8_TYPE, body!(env, || current(true, env))).stable(),
    proc(
        5060,
        "pg_current_xact_id_if_assigned",
        &[],
        XID8_TYPE,
        body!(env, || current(false, env)),
    )
    .stable(),
    proc(
        5066,
        "pg_xact_status",
        &[XID8_TYPE],
        TEXT,
        body!(env, |xid: FullXid| outcome(xid.0, env)),
    )
    .volatile(),
    proc(2943, "txid_current", &[], INT8, body!(env, || number(current(true, env)))).stable(),
    proc(3348, "txid_current_if_assigned", &[], INT8, body!(env, || number(current(false, env))))
        .stable(),
    proc(
        3360,
        "txid_status",
        &[INT8],
        TEXT,
        body!(env, |xid: i64| outcome(xid.cast_unsigned(), env)),
    )
    .volatile(),
];

/// A transaction's number as an argument and a result of type `xid8`.
struct FullXid(u64);

impl<'a> Arg<'a> for FullXid {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(millpond_types::other::XID8, bytes) => number_of(bytes).map(Self),
            _ => None,
        }
    }
}

impl Outcome for FullXid {
    fn outcome(self) -> Result<Value> {
        Ok(xid8(self.0))
    }
}

/// The transaction's number; with `assign` it gets one.
fn current(assign: bool, env: &Env<'_>) -> Result<Option<FullXid>> {
    let Some(session) = env.facts.session else { return Ok(None) };
    let xid = if assign { Some(session.assign_xid()?) } else { session.xid() };
    Ok(xid.map(|xid| FullXid(xid.0)))
}

fn number(xid: Result<Option<FullXid>>) -> Result<Option<i64>> {
    Ok(xid?.map(|xid| xid.0.cast_signed()))
}

/// What became of a transaction; `None` for 0, which is none's number. The status of each
/// transaction is kept for good, so none is too old.
fn outcome(xid: u64, env: &Env<'_>) -> Result<Option<&'static str>> {
    let Some(session) = env.facts.session.filter(|_| xid != 0) else { return Ok(None) };
    match session.status_of(Xid(xid))? {
        Some(XidStatus::InProgress) => Ok(Some("in progress")),
        Some(XidStatus::Committed(_)) => Ok(Some("committed")),
        Some(XidStatus::Aborted) => Ok(Some("aborted")),
        None => {
            let message = format!("transaction ID {xid} is in the future");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    }
}
