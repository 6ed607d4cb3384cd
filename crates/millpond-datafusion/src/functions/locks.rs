//! Advisory locks in queries. The query's threads compute rows, but locks belong to the session,
//! which only its own thread uses. So a function sends its call to that thread and waits for the
//! answer. Meanwhile that thread waits for the query's rows
//! ([`RowStream::next_batch`](crate::plan::RowStream::next_batch)). There the wait for
//! the lock heeds cancellation and timeouts like any other; if it fails, so does the statement.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::{ScalarValue, exec_err, internal_err};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::ScalarUDF;
use tokio::sync::mpsc::UnboundedSender;

use super::scalar::{action, number, void_action};
use millpond_query::advisory::{self, Advisory, Key};
use millpond_query::error::{SqlError, SqlState};
use millpond_types::Value;

/// A call that waits for the session's thread.
pub struct LockCall {
    pub function: Advisory,
    pub key: Key,
    pub reply: SyncSender<Value>,
}

/// Where calls go.
pub type LockCalls = UnboundedSender<LockCall>;

fn make(
    name: &str,
    function: Advisory,
    body: impl Fn(&[ScalarValue]) -> DfResult<ScalarValue> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    let arguments = if function.takes_key() { (1, 2) } else { (0, 0) };
    if function.is_void() {
        return void_action(name, arguments, body);
    }
    action(name, arguments, Arrow::Boolean, body)
}

/// Whether a function of that name locks or unlocks.
pub fn is_lock(name: &str) -> bool {
    advisory::find(name).is_some()
}

/// What stands in a plan until a run replaces it.
pub fn placeholders() -> impl Iterator<Item = Arc<ScalarUDF>> {
    advisory::FUNCTIONS.iter().map(|&(name, function)| {
        make(name, function, move |_| internal_err!("{name}() was not bound to a session"))
    })
}

/// The function of that name, whose calls go to `calls`.
pub fn bind(name: &str, calls: &LockCalls) -> Option<Arc<ScalarUDF>> {
    let (function, calls) = (advisory::find(name)?, calls.clone());
    Some(make(name, function, move |args| {
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
