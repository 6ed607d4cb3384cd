//! What a program that embeds the database can rely on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};

use common::{Transcript, fresh};
use millpond::{
    CommitTicket, Connection, Database, Executed, Params, Settings, SqlState, TransactionStatus,
    Value, Wait,
};
use millpond_buffer::Lsn;

fn count(connection: &mut Connection) -> Value {
    connection.query("select count(*) from t", &[]).unwrap().rows[0][0].clone()
}

/// Runs a statement through the calls of the extended protocol, without `sync`.
fn run_portal(connection: &mut Connection, sql: &str, max_rows: u64) -> (Executed, String) {
    let mut transcript = Transcript::default();
    let prepared = connection.prepare(sql, &[]).unwrap();
    let mut portal = connection.bind(&prepared, Params::new()).unwrap();
    let mut executed = connection.execute_portal(&mut portal, max_rows, &mut transcript).unwrap();
    while let Executed::CommitPending(_) | Executed::WouldBlock = executed {
        connection.set_wait(Wait::Allowed);
        executed = match executed {
            Executed::CommitPending(_) => connection.finish_commit(&mut transcript).unwrap(),
            _ => connection.execute_portal(&mut portal, max_rows, &mut transcript).unwrap(),
        };
    }
    (executed, transcript.text)
}

#[test]
fn complete_statement_outside_a_block_is_committed() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    for (key, wait) in [(1, Wait::Allowed), (2, Wait::Never)] {
        c.set_wait(wait);
        let insert = format!("insert into t values ({key})");
        assert_eq!(run_portal(&mut c, &insert, 0), (Executed::Complete, "INSERT 0 1\n".into()));
        assert_eq!(c.transaction_status(), TransactionStatus::Idle);
        let mut other = fresh.database.connect().unwrap();
        assert_eq!(count(&mut other), Value::Int8(key));
    }
    drop(c);
    assert_eq!(count(&mut fresh.database.connect().unwrap()), Value::Int8(2));
}

/// What stopped a statement does not stop the planning of the next one.
#[test]
fn statements_are_prepared_after_one_was_stopped() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    c.batch("set statement_timeout = '200ms'").unwrap();
    c.set_wait(Wait::Allowed);
    let endless = c.prepare("select count(*) from generate_series(1, 10000000000)", &[]).unwrap();
    let mut portal = c.bind(&endless, Params::new()).unwrap();
    let mut transcript = Transcript::default();
    let stopped = c.execute_portal(&mut portal, 0, &mut transcript).unwrap_err();
    assert_eq!(stopped.sqlstate, SqlState::QUERY_CANCELED);
    c.sync(&mut transcript).unwrap();
    // Plans of joins look whether they are to be given up.
    let join = "select count(*) from t a join t b on a.k = b.k";
    assert_eq!(run_portal(&mut c, join, 0), (Executed::Complete, "0\nSELECT 1\n".into()));
}

/// What has run to its end without rows is not run again. That is an error like any other.
#[test]
fn finished_portal_that_is_run_again_fails_the_transaction() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    c.batch("begin").unwrap();
    let insert = c.prepare("insert into t values (1)", &[]).unwrap();
    let mut portal = c.bind(&insert, Params::new()).unwrap();
    let mut transcript = Transcript::default();
    assert_eq!(c.execute_portal(&mut portal, 0, &mut transcript).unwrap(), Executed::Complete);
    let again = c.execute_portal(&mut portal, 0, &mut transcript).unwrap_err();
    assert_eq!(again.sqlstate, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert_eq!(c.transaction_status(), TransactionStatus::Failed);
    c.batch("rollback").unwrap();
    assert_eq!(count(&mut c), Value::Int8(0));
}

#[test]
fn suspended_portal_outside_a_block_is_committed_and_gives_its_other_rows() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    for wait in [Wait::Allowed, Wait::Never] {
        c.batch("truncate t").unwrap();
        let mut transcript = Transcript::default();
        let sql = "insert into t values (1), (2), (3) returning k";
        let prepared = c.prepare(sql, &[]).unwrap();
        let mut portal = c.bind(&prepared, Params::new()).unwrap();
        c.set_wait(wait);
        let mut executed = c.execute_portal(&mut portal, 2, &mut transcript).unwrap();
        while let Executed::CommitPending(_) | Executed::WouldBlock = executed {
            let is_commit = executed != Executed::WouldBlock;
            c.set_wait(Wait::Allowed);
            executed = match is_commit {
                true => c.finish_commit(&mut transcript).unwrap(),
                false => c.execute_portal(&mut portal, 2, &mut transcript).unwrap(),
            };
        }
        assert_eq!(executed, Executed::Suspended);
        assert_eq!(transcript.text, "1\n2\n");
        assert_eq!(c.transaction_status(), TransactionStatus::Idle);
        assert_eq!(count(&mut fresh.database.connect().unwrap()), Value::Int8(3));
        let executed = c.execute_portal(&mut portal, 2, &mut transcript).unwrap();
        assert_eq!(executed, Executed::Complete);
        assert_eq!(transcript.text, "1\n2\n3\nINSERT 0 1\n");
    }
}

#[test]
fn pipelined_statements_last_until_sync_and_say_so() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    c.set_pipelined(true);
    for key in 1..=2 {
        let (executed, _) = run_portal(&mut c, &format!("insert into t values ({key})"), 0);
        assert_eq!(executed, Executed::Complete);
        assert_eq!(c.transaction_status(), TransactionStatus::InTransaction);
    }
    assert_eq!(count(&mut fresh.database.connect().unwrap()), Value::Int8(0));
    let executed = c.sync(&mut Transcript::default()).unwrap();
    assert_eq!(executed, Executed::Complete);
    assert_eq!(c.transaction_status(), TransactionStatus::Idle);
    assert_eq!(count(&mut fresh.database.connect().unwrap()), Value::Int8(2));
    // An error takes back the pipeline's statements before it.
    run_portal(&mut c, "insert into t values (3)", 0);
    let prepared = c.prepare("insert into t values (1)", &[]).unwrap();
    let mut portal = c.bind(&prepared, Params::new()).unwrap();
    c.execute_portal(&mut portal, 0, &mut Transcript::default()).unwrap_err();
    assert_eq!(c.transaction_status(), TransactionStatus::Idle);
    c.sync(&mut Transcript::default()).unwrap();
    assert_eq!(count(&mut fresh.database.connect().unwrap()), Value::Int8(2));
}

#[test]
fn empty_text_ends_the_pipeline_before_it() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    c.set_pipelined(true);
    run_portal(&mut c, "insert into t values (1)", 0);
    assert_eq!(c.simple_query("", &mut Transcript::default()).unwrap(), Executed::Complete);
    assert_eq!(c.transaction_status(), TransactionStatus::Idle);
    assert_eq!(count(&mut fresh.database.connect().unwrap()), Value::Int8(1));
}

#[test]
fn commit_of_a_failed_transaction_is_seen() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key)").unwrap();
    let fail = |c: &mut Connection| {
        c.batch("begin; insert into t values (1)").unwrap();
        assert_eq!(c.batch("select 1 / 0").unwrap_err().sqlstate, SqlState::DIVISION_BY_ZERO);
    };
    fail(&mut c);
    let error = c.execute("commit", &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::IN_FAILED_SQL_TRANSACTION);
    assert_eq!(c.transaction_status(), TransactionStatus::Idle);
    fail(&mut c);
    assert_eq!(c.batch("commit").unwrap_err().sqlstate, SqlState::IN_FAILED_SQL_TRANSACTION);
    assert_eq!(c.transaction_status(), TransactionStatus::Idle);
    // Where the text goes on, the rest of it is not run.
    fail(&mut c);
    c.batch("commit; insert into t values (2)").unwrap_err();
    assert_eq!(count(&mut c), Value::Int8(0));
    // COMMIT AND CHAIN has begun another transaction, in which there has been an error.
    fail(&mut c);
    c.batch("commit and chain").unwrap_err();
    assert_eq!(c.transaction_status(), TransactionStatus::Failed);
    c.batch("rollback").unwrap();
    // A rollback is what was asked for, and a sink sees the tag as clients of a server do.
    fail(&mut c);
    c.execute("rollback", &[]).unwrap();
    fail(&mut c);
    assert_eq!(common::run(&mut c, "commit"), "ROLLBACK\n");
    c.batch("begin; insert into t values (3); commit").unwrap();
    assert_eq!(count(&mut c), Value::Int8(1));
}

#[test]
fn after_shutdown_every_statement_is_refused() {
    let fresh = fresh();
    let connect = || fresh.database.connect().unwrap();
    let mut c = connect();
    c.batch("create table t (k int primary key); insert into t values (1)").unwrap();
    let (mut held, mut open, mut named) = (connect(), connect(), connect());
    let prepared = held.prepare("select k from t union all select 2", &[]);
    let prepared = prepared.or_else(|_| held.prepare("select k from t", &[])).unwrap();
    let mut portal = held.bind(&prepared, Params::new()).unwrap();
    held.execute_portal(&mut portal, 1, &mut Transcript::default()).unwrap();
    open.batch("begin; select * from t").unwrap();
    let select = named.prepare("select k from t where k = 1", &[]).unwrap();
    fresh.database.shutdown().unwrap();
    let gone = SqlState::ADMIN_SHUTDOWN;
    let point = "select k from t where k = 1";
    assert_eq!(c.query(point, &[]).unwrap_err().sqlstate, gone);
    assert_eq!(c.query(point, &[]).unwrap_err().sqlstate, gone, "again");
    assert_eq!(c.batch("select count(*) from t").unwrap_err().sqlstate, gone);
    assert_eq!(c.batch("show work_mem").unwrap_err().sqlstate, gone);
    let again = held.execute_portal(&mut portal, 1, &mut Transcript::default());
    assert_eq!(again.unwrap_err().sqlstate, gone, "rows that were computed before");
    assert_eq!(open.batch("select * from t").unwrap_err().sqlstate, gone);
    let mut portal = named.bind(&select, Params::new()).unwrap();
    let executed = named.execute_portal(&mut portal, 0, &mut Transcript::default());
    assert_eq!(executed.unwrap_err().sqlstate, gone);
    assert_eq!(
        fresh.database.connect().unwrap_err().sqlstate,
        SqlState::CANNOT_CONNECT_NOW,
        "a new connection"
    );
}

#[test]
fn second_opening_in_one_process_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || Settings::default().with("shared_buffers", "4MB").unwrap();
    let first = Database::open(dir.path(), settings()).unwrap();
    let error = Database::open(dir.path(), settings()).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::LOCK_FILE_EXISTS);
    assert!(error.message.contains("already open in this process"), "{error}");
    assert!(!error.message.contains("another process"), "{error}");
    drop(first);
    Database::open(dir.path(), settings()).unwrap();
}

/// Notes how far the log was durable when it was woken.
struct Woken {
    log: Arc<millpond_engine::wal::Log>,
    flushed: Mutex<Option<Lsn>>,
    changed: Condvar,
}

impl Woken {
    fn new(database: &Database) -> Arc<Self> {
        let log = Arc::clone(database.engine().log());
        Arc::new(Woken { log, flushed: Mutex::default(), changed: Condvar::new() })
    }

    fn wait(&self) -> Lsn {
        let mut flushed = self.flushed.lock().unwrap();
        while flushed.is_none() {
            flushed = self.changed.wait(flushed).unwrap();
        }
        flushed.unwrap()
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.flushed.lock().unwrap() = Some(self.log.flushed());
        self.changed.notify_all();
    }
}

/// Commits as far as is possible without waiting.
fn commit_pending(connection: &mut Connection, sql: &str) -> CommitTicket {
    connection.set_wait(Wait::Never);
    match connection.simple_query(sql, &mut Transcript::default()).unwrap() {
        Executed::CommitPending(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn on_durable_waits_for_the_commit_of_its_ticket() {
    let fresh = fresh();
    let database = &fresh.database;
    let (mut writer, other) = (database.connect().unwrap(), database.connect().unwrap());
    writer.batch("create table t (k int primary key); insert into t values (0)").unwrap();
    // Another connection waits for it, which has nothing to commit itself.
    let first = commit_pending(&mut writer, "insert into t values (1)");
    let woken = Woken::new(database);
    other.on_durable(&first, Waker::from(Arc::clone(&woken)));
    assert!(woken.wait() >= first.lsn, "woken before the commit was durable");
    let done = writer.finish_commit(&mut Transcript::default()).unwrap();
    assert_eq!(done, Executed::Complete);
    // A commit that is durable is not waited for, although another one is pending.
    commit_pending(&mut writer, "insert into t values (2)");
    let woken = Woken::new(database);
    writer.on_durable(&first, Waker::from(Arc::clone(&woken)));
    assert!(woken.flushed.lock().unwrap().is_some(), "not woken at once");
    writer.set_wait(Wait::Allowed);
    writer.wait_durable(&first);
    let done = writer.finish_commit(&mut Transcript::default()).unwrap();
    assert_eq!(done, Executed::Complete);
}

/// Inside of an embedder's asynchronous code.
#[cfg(feature = "datafusion")]
mod inside_of_a_runtime {
    use super::*;

    /// More batches of rows than a task of tokio gets messages in one turn.
    const LONG: &str = "select g from generate_series(1, 1500000) g";

    fn use_a_database() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().with("shared_buffers", "4MB").unwrap();
        let database = Database::open(dir.path(), settings).unwrap();
        let mut c = database.connect().unwrap();
        c.batch("create table t (k int primary key); insert into t values (1), (2)").unwrap();
        let joined = c.query("select a.k + b.k from t a join t b using (k) order by 1", &[]);
        assert_eq!(joined.unwrap().rows.len(), 2);
        assert_eq!(c.query(LONG, &[]).unwrap().rows.len(), 1_500_000);
        drop(c);
        database.shutdown().unwrap();
        // The last of it.
        drop(database);
    }

    #[test]
    fn queries_run_and_the_database_ends_in_block_on() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { use_a_database() });
    }

    #[test]
    fn queries_run_and_the_database_ends_in_a_task() {
        let builder = &mut tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).build().unwrap();
        runtime.block_on(runtime.spawn(async { use_a_database() })).unwrap();
    }

    #[test]
    fn queries_run_and_the_database_ends_in_another_executor() {
        futures::executor::block_on(async { use_a_database() });
    }
}
