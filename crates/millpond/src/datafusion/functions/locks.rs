//! Advisory locks in queries. Rows are computed by the query's threads, but locks belong to the session, which
//! its own thread uses alone: so a call is sent to that thread, which waits for the query's rows meanwhile
//! ([`RowStream::next_batch`](crate::datafusion::plan::RowStream::next_batch)), and the function waits for the answer.
//! There the wait for the lock heeds cancellation and timeouts like any other; if it fails, so does the statement.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::{ScalarValue, exec_err, internal_err};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::ScalarUDF;
use tokio::sync::mpsc::UnboundedSender;

use super::scalar::{action, number, void_action};
use crate::Value;
use crate::advisory::{self, Advisory, Key};
use crate::error::{SqlError, SqlState};

/// A call that waits for the session's thread.
pub struct LockCall {
    pub function: Advisory,
    pub key: Key,
    pub reply: SyncSender<Value>,
}

/// Where calls go.
pub type LockCalls = UnboundedSender<LockCall>;

/// A name, and what it does.
type Entry = (&'static str, Advisory);

const FUNCTIONS: &[Entry] = &[
    ("pg_advisory_lock", advisory::LOCK),
    ("pg_advisory_lock_shared", advisory::LOCK_SHARED),
    ("pg_try_advisory_lock", advisory::TRY_LOCK),
    ("pg_try_advisory_lock_shared", advisory::TRY_LOCK_SHARED),
    ("pg_advisory_xact_lock", advisory::XACT_LOCK),
    ("pg_advisory_xact_lock_shared", advisory::XACT_LOCK_SHARED),
    ("pg_try_advisory_xact_lock", advisory::TRY_XACT_LOCK),
    ("pg_try_advisory_xact_lock_shared", advisory::TRY_XACT_LOCK_SHARED),
    ("pg_advisory_unlock", advisory::UNLOCK),
    ("pg_advisory_unlock_shared", advisory::UNLOCK_SHARED),
    ("pg_advisory_unlock_all", advisory::UNLOCK_ALL),
];

fn arguments(entry: &Entry) -> (usize, usize) {
    if entry.1 == advisory::UNLOCK_ALL { (0, 0) } else { (1, 2) }
}

fn make(
    entry: &Entry,
    body: impl Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    if entry.1.is_void() {
        return void_action(entry.0, arguments(entry), body);
    }
    action(entry.0, arguments(entry), Arrow::Boolean, body)
}

/// Whether a function of that name locks or unlocks.
pub fn is_lock(name: &str) -> bool {
    FUNCTIONS.iter().any(|entry| entry.0 == name)
}

/// What stands in a plan until a run replaces it.
pub fn placeholders() -> impl Iterator<Item = Arc<ScalarUDF>> {
    FUNCTIONS.iter().map(|entry| {
        let name = entry.0;
        make(entry, move |_| internal_err!("{name}() was not bound to a session"))
    })
}

/// The function of that name, whose calls go to `calls`.
pub fn bind(name: &str, calls: &LockCalls) -> Option<Arc<ScalarUDF>> {
    let entry = FUNCTIONS.iter().find(|entry| entry.0 == name)?;
    let (function, calls) = (entry.1, calls.clone());
    Some(make(entry, move |args| {
        if args.iter().any(ScalarValue::is_null) {
            return Ok(ScalarValue::Null);
        }
        match ask(&calls, function, key(args)?) {
            Some(Value::Bool(answer)) => Ok(ScalarValue::from(answer)),
            Some(_) => Ok(super::scalar::utf8("")),
            // The statement has failed, and says why.
            None => exec_err!("the statement has ended"),
        }
    }))
}

/// Has the session's thread do it. `None` if that does not listen any more.
fn ask(calls: &LockCalls, function: Advisory, key: Key) -> Option<Value> {
    let (reply, answer) = sync_channel(1);
    calls.send(LockCall { function, key, reply }).ok()?;
    // It may take long: other queries' tasks go on on another thread.
    tokio::task::block_in_place(|| answer.recv()).ok()
}

fn key(args: &[ScalarValue]) -> DfResult<Key> {
    let wrong = |state, what: &str| {
        DataFusionError::External(Box::new(SqlError::new(state, what.to_owned())))
    };
    let of = |index: usize| {
        let what = "the key of an advisory lock is an integer";
        number(args, index).ok_or_else(|| wrong(SqlState::UNDEFINED_FUNCTION, what))
    };
    // There is no function of two bigints: what does not fit has no function to go to.
    let narrow = |number: i64| {
        let what = "the two keys of an advisory lock are of type integer";
        i32::try_from(number).map_err(|_| wrong(SqlState::UNDEFINED_FUNCTION, what))
    };
    Ok(match args.len() {
        0 => Key::None,
        1 => Key::One(of(0)?),
        _ => Key::Two(narrow(of(0)?)?, narrow(of(1)?)?),
    })
}
