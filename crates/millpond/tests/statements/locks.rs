//! LOCK TABLE, advisory locks, and what ends a wait for them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use millpond::{Connection, DataType, Database, Executed, Value, Wait};

use crate::common::{Transcript, fresh, fresh_with, run};

/// Waits until as many sessions wait for locks.
fn until_waiting(database: &Arc<Database>, sessions: usize) {
    while database.engine().locks().list().iter().filter(|lock| !lock.granted).count() < sessions {
        std::thread::yield_now();
    }
}

fn held(database: &Arc<Database>) -> Vec<String> {
    let locks = database.engine().locks().list();
    let mut locks: Vec<_> =
        locks.iter().map(|lock| format!("{} {}", lock.process_id, lock.mode)).collect();
    locks.sort();
    locks
}

fn cell(connection: &mut Connection, sql: &str, params: &[Value]) -> Value {
    connection.query(sql, params).unwrap().rows.remove(0).remove(0)
}

#[test]
fn lock_table_in_all_its_forms() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int); create table u (a int)").unwrap();
    for (mode, lock) in [
        (" in access share mode", "AccessShareLock"),
        (" in row share mode", "RowShareLock"),
        (" in row exclusive mode", "RowExclusiveLock"),
        (" in share update exclusive mode", "ShareUpdateExclusiveLock"),
        (" in share mode", "ShareLock"),
        (" in share row exclusive mode", "ShareRowExclusiveLock"),
        (" in exclusive mode", "ExclusiveLock"),
        (" in access exclusive mode", "AccessExclusiveLock"),
        ("", "AccessExclusiveLock"),
    ] {
        let pid = c.process_id();
        for sql in [format!("lock t{mode}"), format!("lock table t *, only u{mode} nowait")] {
            c.batch("begin").unwrap();
            assert_eq!(run(&mut c, &sql), "LOCK TABLE\n");
            assert!(held(&fresh.database).contains(&format!("{pid} {lock}")), "{sql}");
            c.batch("rollback").unwrap();
            assert_eq!(held(&fresh.database), Vec::<String>::new());
        }
    }
    assert_eq!(
        run(&mut c, "lock table t"),
        "ERROR: LOCK TABLE can only be used in transaction blocks [25P01]\n"
    );
    let text = run(&mut c, "lock table t in share mode; select count(*) from t");
    assert_eq!(text, "LOCK TABLE\ncount\n0\nSELECT 1\n");
    assert_eq!(held(&fresh.database), Vec::<String>::new());
    c.batch("begin").unwrap();
    assert!(run(&mut c, "lock table nothing").contains("[42P01]"));
    c.batch("rollback; begin").unwrap();
    assert!(run(&mut c, "lock table t in no mode").contains("[42601]"));
    c.batch("rollback; begin; lock table t in share mode").unwrap();
    let mut other = fresh.database.connect().unwrap();
    assert_eq!(
        run(&mut other, "begin; lock t in row exclusive mode nowait"),
        "BEGIN\nERROR: could not obtain lock on relation \"t\" [55P03]\n"
    );
}

#[test]
fn advisory_locks_of_sessions_and_transactions() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    let pid = a.process_id();
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(cell(&mut a, "select pg_advisory_lock(1)", &[]), text(""));
    let void = "select pg_advisory_unlock_all(), pg_try_advisory_lock(1), pg_sleep(0), pg_advisory_lock(1) as l";
    let columns = a.query(void, &[]).unwrap().columns;
    let types: Vec<_> = columns.iter().map(|column| (&*column.name, column.type_oid)).collect();
    let (void, bool) = (2278, 16);
    let expected = [
        ("pg_advisory_unlock_all", void),
        ("pg_try_advisory_lock", bool),
        ("pg_sleep", void),
        ("l", void),
    ];
    assert_eq!(types, expected);
    a.query("select pg_advisory_unlock(1)", &[]).unwrap();
    // Once more, as a parameter; a rollback does not matter.
    a.batch("begin").unwrap();
    assert_eq!(cell(&mut a, "select pg_advisory_lock($1)", &[Value::Int8(1)]), text(""));
    assert_eq!(cell(&mut a, "select pg_try_advisory_xact_lock(1, 2)", &[]), Value::Bool(true));
    a.batch("rollback").unwrap();
    assert_eq!(held(&fresh.database), [format!("{pid} ExclusiveLock")]);
    let attempt = "select pg_try_advisory_lock(1)";
    assert_eq!(cell(&mut b, attempt, &[]), Value::Bool(false));
    // Two numbers are another object than one.
    assert_eq!(cell(&mut b, "select pg_try_advisory_lock(0, 1)", &[]), Value::Bool(true));
    assert_eq!(cell(&mut b, "select pg_advisory_unlock(0, 1)", &[]), Value::Bool(true));
    assert_eq!(cell(&mut a, "select pg_advisory_unlock(1)", &[]), Value::Bool(true));
    assert_eq!(cell(&mut b, attempt, &[]), Value::Bool(false), "it was locked twice");
    assert_eq!(cell(&mut a, "select pg_advisory_unlock(1)", &[]), Value::Bool(true));
    assert_eq!(
        run(&mut a, "select pg_advisory_unlock(1)"),
        "pg_advisory_unlock\nf\nWARNING: you don't own a lock of type ExclusiveLock\nSELECT 1\n"
    );
    assert_eq!(
        run(&mut a, "select pg_advisory_unlock_shared(1)"),
        "pg_advisory_unlock_shared\nf\nWARNING: you don't own a lock of type ShareLock\nSELECT 1\n"
    );
    // Shared ones agree with each other.
    assert_eq!(cell(&mut a, "select pg_advisory_lock_shared(7)", &[]), text(""));
    assert_eq!(cell(&mut b, "select pg_try_advisory_lock_shared(7)", &[]), Value::Bool(true));
    assert_eq!(cell(&mut b, "select pg_try_advisory_xact_lock(7)", &[]), Value::Bool(false));
    assert_eq!(cell(&mut b, "select pg_try_advisory_xact_lock_shared(7)", &[]), Value::Bool(true));
    assert_eq!(cell(&mut a, "select pg_advisory_unlock_all()", &[]), text(""));
    b.batch("discard all").unwrap();
    assert_eq!(held(&fresh.database), Vec::<String>::new());
    // A transaction's cannot be unlocked.
    a.batch("begin; select pg_advisory_xact_lock(3); select pg_advisory_xact_lock_shared(1, 4)")
        .unwrap();
    assert!(run(&mut a, "select pg_advisory_unlock(3)").contains("WARNING"));
    assert_eq!(held(&fresh.database).len(), 2);
    a.batch("commit").unwrap();
    assert_eq!(held(&fresh.database), Vec::<String>::new());
    assert_eq!(cell(&mut a, "select pg_advisory_lock(null)", &[]), Value::Null);
    assert!(run(&mut a, "select pg_advisory_lock('x')").contains("[22P02]"));
    assert!(run(&mut a, "select pg_advisory_lock(1, 5000000000)").contains("[42883]"));
    // Per row, and the end of the session.
    a.batch("create table t (k int primary key); insert into t values (1), (2), (3)").unwrap();
    let rows = a.query("select pg_advisory_lock(k) from t where k > 1", &[]).unwrap().rows;
    assert_eq!((rows.len(), held(&fresh.database).len()), (2, 2));
    let free = "select k from t where pg_try_advisory_lock(k) order by k limit 1";
    assert_eq!(cell(&mut b, free, &[]), Value::Int4(1));
    drop((a, b));
    assert_eq!(held(&fresh.database), Vec::<String>::new());
}

#[test]
fn an_event_loop_never_waits_for_an_advisory_lock() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    for c in [&mut a, &mut b] {
        c.set_wait(Wait::Never);
    }
    let mut sink = Transcript::default();
    // What is free is had at once.
    assert_eq!(
        a.simple_query("select pg_advisory_lock(1)", &mut sink).unwrap(),
        Executed::Complete
    );
    let taken = b.simple_query("select pg_advisory_lock(1)", &mut sink).unwrap();
    assert_eq!(taken, Executed::WouldBlock);
    // Two locks could be had by halves: not there.
    let two = "select pg_advisory_lock(2), pg_advisory_lock(1)";
    let mut c = fresh.database.connect().unwrap();
    c.set_wait(Wait::Never);
    assert_eq!(c.simple_query(two, &mut sink).unwrap(), Executed::WouldBlock);
    assert_eq!(held(&fresh.database).len(), 1);
    let resumed = std::thread::spawn(move || {
        b.set_wait(Wait::Allowed);
        let executed = b.resume(&mut Transcript::default()).unwrap();
        (b, executed)
    });
    until_waiting(&fresh.database, 1);
    let released = a.simple_query("select pg_advisory_unlock(1)", &mut sink).unwrap();
    assert_eq!(released, Executed::Complete);
    let (b, executed) = resumed.join().unwrap();
    assert_eq!(executed, Executed::Complete);
    assert_eq!(held(&fresh.database), [format!("{} ExclusiveLock", b.process_id())]);
}

#[test]
fn waits_for_advisory_locks_end() {
    let fresh = fresh();
    let mut holder = fresh.database.connect().unwrap();
    holder.query("select pg_advisory_lock(1)", &[]).unwrap();
    let mut c = fresh.database.connect().unwrap();
    let waits = "select pg_advisory_lock(1)";
    c.batch("set lock_timeout = '20ms'").unwrap();
    let error = c.query(waits, &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "55P03");
    assert_eq!(error.message, "canceling statement due to lock timeout");
    c.batch("set lock_timeout = 0; set statement_timeout = '20ms'").unwrap();
    let error = c.query(waits, &[]).unwrap_err();
    assert_eq!(error.message, "canceling statement due to statement timeout");
    c.batch("reset statement_timeout").unwrap();
    let cancel = c.cancel_handle();
    let waiting = std::thread::spawn(move || c.query(waits, &[]).unwrap_err());
    until_waiting(&fresh.database, 1);
    cancel.cancel();
    let error = waiting.join().unwrap();
    assert_eq!(error.message, "canceling statement due to user request");
    assert_eq!(held(&fresh.database).len(), 1);
}

/// What a transaction has set for itself counts neither for one that is chained to it nor after
/// RESET ALL.
#[test]
fn a_chained_transaction_waits_as_the_session_says() {
    let settings = millpond::Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("lock_timeout", "20ms"))
        .and_then(|settings| settings.with("statement_timeout", "20s"))
        .unwrap();
    let fresh = fresh_with(settings);
    let mut holder = fresh.database.connect().unwrap();
    holder.query("select pg_advisory_lock(1)", &[]).unwrap();
    let mut c = fresh.database.connect().unwrap();
    for ground in [
        "begin; set local lock_timeout = 0; commit and chain",
        "begin; set local lock_timeout = 0; rollback and chain",
        "begin; set lock_timeout = 0; reset all",
    ] {
        c.batch(ground).unwrap();
        let error = c.query("select pg_advisory_lock(1)", &[]).unwrap_err();
        assert_eq!(error.message, "canceling statement due to lock timeout", "{ground}");
        c.batch("rollback").unwrap();
    }
}

#[test]
fn a_deadlock_names_every_party_and_a_session_may_look_sooner() {
    let settings = millpond::Settings::default().with("shared_buffers", "8MB").unwrap();
    let fresh = fresh_with(settings.with("deadlock_timeout", "1h").unwrap());
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    assert_eq!(run(&mut b, "show deadlock_timeout"), "deadlock_timeout\n1h\nSHOW\n");
    b.batch("set deadlock_timeout = '10ms'").unwrap();
    a.batch("begin; select pg_advisory_xact_lock(1)").unwrap();
    b.batch("begin; select pg_advisory_xact_lock(2)").unwrap();
    let (first, second) = (a.process_id(), b.process_id());
    let waiting = std::thread::spawn(move || {
        a.query("select pg_advisory_xact_lock(2)", &[]).unwrap();
        a
    });
    until_waiting(&fresh.database, 1);
    let blocked = "select pg_blocking_pids($1)::text";
    let by = b.query(blocked, &[Value::Int4(first)]).unwrap().rows.remove(0).remove(0);
    assert_eq!(by, Value::Text(format!("{{{second}}}")));
    let asked = format!("select pg_isolation_test_session_is_blocked({first}, '{{{second},99}}')");
    assert_eq!(cell(&mut b, &asked, &[]), Value::Bool(true));
    let asked = format!("select pg_isolation_test_session_is_blocked({first}, '{{99}}')");
    assert_eq!(cell(&mut b, &asked, &[]), Value::Bool(false));
    let error = b.query("select pg_advisory_xact_lock(1)", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "40P01");
    assert_eq!(error.message, "deadlock detected");
    let line = |waiter: i32, key: i32, blocker: i32| {
        format!(
            "Process {waiter} waits for ExclusiveLock on advisory lock [5,0,{key},1]; blocked by process {blocker}."
        )
    };
    let lines = [line(second, 1, first), line(first, 2, second)].join("\n");
    assert_eq!(error.detail.as_deref(), Some(lines.as_str()));
    assert_eq!(error.hint.as_deref(), Some("See server log for query details."));
    b.batch("rollback").unwrap();
    drop(waiting.join().unwrap());
}

#[test]
fn prepared_advisory_locks() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let prepared = c.prepare("select pg_try_advisory_lock($1)", &[]).unwrap();
    assert_eq!(prepared.params(), [DataType::Int8]);
    c.batch("prepare q(bigint) as select pg_try_advisory_lock($1)").unwrap();
    assert_eq!(run(&mut c, "execute q(1)"), "pg_try_advisory_lock\nt\nSELECT 1\n");
    c.batch("select pg_advisory_unlock_all()").unwrap();
    c.batch("prepare p as select pg_advisory_lock($1, $2)").unwrap();
    assert_eq!(run(&mut c, "execute p(1, 2)"), "pg_advisory_lock\n\nSELECT 1\n");
    assert_eq!(held(&fresh.database).len(), 1);
}
