//! Sessions that meet: conflicts, locks, cancellation.

use millpond::Value;

use crate::common::{fresh, run};

#[test]
fn concurrent_updates() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key, v int); insert into t values (1, 0)").unwrap();
    // READ COMMITTED waits, and looks at the row again.
    a.batch("begin; update t set v = v + 1 where k = 1").unwrap();
    let waiting = std::thread::spawn(move || {
        let count = b.execute("update t set v = v + 10 where k = 1 and v < 100", &[]);
        (b, count)
    });
    a.batch("commit").unwrap();
    let (mut b, count) = waiting.join().unwrap();
    assert_eq!(count.unwrap(), 1);
    assert_eq!(a.query("select v from t", &[]).unwrap().rows, [[Value::Int4(11)]]);
    // REPEATABLE READ fails instead.
    b.batch("begin isolation level repeatable read").unwrap();
    assert_eq!(b.query("select v from t", &[]).unwrap().rows, [[Value::Int4(11)]]);
    a.batch("update t set v = 12").unwrap();
    let error = b.execute("update t set v = 13 where k = 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "40001");
    assert_eq!(error.message, "could not serialize access due to concurrent update");
    b.batch("rollback").unwrap();
    // Where it must not wait, a locked row is for a thread that may.
    a.batch("begin; select * from t where k = 1 for update").unwrap();
    b.set_wait(millpond::Wait::Never);
    let mut sink = crate::common::Transcript::default();
    let executed = b.simple_query("update t set v = 14 where k = 1", &mut sink).unwrap();
    assert_eq!(executed, millpond::Executed::WouldBlock);
    a.batch("commit").unwrap();
    b.set_wait(millpond::Wait::Allowed);
    assert_eq!(b.resume(&mut sink).unwrap(), millpond::Executed::Complete);
    assert_eq!(sink.text, "UPDATE 1\n");
}

#[test]
fn row_locks() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key, v int); insert into t values (1, 0), (2, 0)")
        .unwrap();
    a.batch("begin").unwrap();
    assert_eq!(run(&mut a, "select v from t where k = 1 for update"), "v\n0\nSELECT 1\n");
    assert!(run(&mut b, "select v from t where k = 1 for update nowait").contains("[55P03]"));
    assert_eq!(run(&mut b, "select v from t where k = 2 for update nowait"), "v\n0\nSELECT 1\n");
    assert!(
        run(&mut b, "begin read only; select v from t where k = 2 for update").contains("[25006]")
    );
    assert_eq!(run(&mut b, "rollback"), "ROLLBACK\n");
    assert!(run(&mut b, "lock table t").contains("[25P01]"));
    assert!(run(&mut b, "begin; lock table t nowait").contains("[55P03]"));
    a.batch("commit").unwrap();
    assert_eq!(
        run(&mut b, "rollback; begin; lock table t nowait"),
        "ROLLBACK\nBEGIN\nLOCK TABLE\n"
    );
}

#[test]
fn deadlocks_are_found() {
    let settings = millpond::Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("deadlock_timeout", "20ms"))
        .unwrap();
    let fresh = crate::common::fresh_with(settings);
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key, v int); insert into t values (1, 0), (2, 0)")
        .unwrap();
    a.batch("begin; update t set v = 1 where k = 1").unwrap();
    b.batch("begin; update t set v = 2 where k = 2").unwrap();
    let other = std::thread::spawn(move || {
        let result = b.execute("update t set v = 2 where k = 1", &[]);
        let _ = b.batch("rollback");
        result
    });
    let mine = a.execute("update t set v = 1 where k = 2", &[]);
    let _ = a.batch("rollback");
    let theirs = other.join().unwrap();
    let errors: Vec<_> = [mine, theirs].into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].sqlstate.as_str(), "40P01");
    assert_eq!(errors[0].message, "deadlock detected");
}

#[test]
fn a_session_that_waited_for_a_table_sees_it_as_it_is_then() {
    let fresh = fresh();
    let mut first = fresh.database.connect().unwrap();
    first.batch("create table t (a int primary key); insert into t values (1)").unwrap();
    for waits in ["begin; lock table t; commit", "copy t to stdout"] {
        first.batch("begin; truncate t; insert into t values (2)").unwrap();
        let database = fresh.database.clone();
        let second = std::thread::spawn(move || {
            let mut c = database.connect().unwrap();
            let mut sink = crate::common::Transcript::default();
            c.simple_query(waits, &mut sink).map(|_| sink.text)
        });
        let locks = fresh.database.engine().locks();
        while locks.list().iter().all(|lock| lock.granted) && !second.is_finished() {
            std::thread::yield_now();
        }
        first.batch("commit").unwrap();
        let text = second.join().unwrap().unwrap();
        assert!(!waits.starts_with("copy") || text.contains('2'), "{text}");
    }
}

#[test]
fn timeouts_and_cancellation() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let mut other = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b int); insert into t values (1, 0)").unwrap();
    other.batch("begin; update t set b = 1 where a = 1").unwrap();
    c.batch("set statement_timeout = '50ms'").unwrap();
    let error = c.execute("update t set b = 2 where a = 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "57014");
    assert_eq!(error.message, "canceling statement due to statement timeout");
    c.batch("set statement_timeout = 0; set lock_timeout = '50ms'").unwrap();
    let error = c.execute("update t set b = 2 where a = 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "55P03", "{error}");
    c.batch("reset lock_timeout").unwrap();
    let cancel = c.cancel_handle();
    let waiting = std::thread::spawn(move || {
        let result = c.execute("update t set b = 2 where a = 1", &[]);
        (c, result)
    });
    // Asked until it is heard: a request before the statement begins is not for it.
    let error = loop {
        cancel.cancel();
        if waiting.is_finished() {
            let (c, result) = waiting.join().unwrap();
            drop(c);
            break result.unwrap_err();
        }
        std::thread::yield_now();
    };
    assert_eq!(error.message, "canceling statement due to user request");
    other.batch("commit").unwrap();
    let mut c = fresh.database.connect().unwrap();
    assert_eq!(c.query("select b from t", &[]).unwrap().rows, [[Value::Int4(1)]]);
}

#[test]
fn a_terminated_session_runs_nothing_more() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.cancel_handle().terminate();
    for _ in 0..2 {
        let error = c.execute("select pg_sleep(30)", &[]).unwrap_err();
        assert_eq!(error.sqlstate.as_str(), "57P01", "{error}");
    }
}

#[test]
fn what_sleeps_goes_where_it_may_wait() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b text); insert into t values (1, '')").unwrap();
    for (statement, rows) in [
        ("select pg_sleep(0.001)", 1),
        ("select a from t where pg_sleep(0.001) is not null", 1),
        ("insert into t values (2, pg_sleep(0.001))", 2),
        ("insert into t values (3, '') returning pg_sleep(0.001)", 3),
        ("update t set b = '' where a = 1 returning pg_sleep(0.001)", 3),
        ("delete from t where a = 1 returning pg_sleep(0.001)", 2),
    ] {
        let mut sink = crate::common::Transcript::default();
        c.set_wait(millpond::Wait::Never);
        let executed = c.simple_query(statement, &mut sink).unwrap();
        assert_eq!(executed, millpond::Executed::WouldBlock, "{statement}");
        c.set_wait(millpond::Wait::Allowed);
        assert_eq!(c.resume(&mut sink).unwrap(), millpond::Executed::Complete, "{statement}");
        assert!(sink.text.ends_with(" 1\n"), "{statement}: {}", sink.text);
        let count = c.query("select a from t", &[]).unwrap().rows.len();
        assert_eq!(count, if statement.starts_with("select") { 1 } else { rows }, "{statement}");
    }
}
