//! Locks in queries: the views of them, and the functions that take them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{fresh, fresh_with, run};
use millpond::{Database, Settings, Value};

fn until_waiting(database: &Database, sessions: usize) {
    while database.engine().locks().list().iter().filter(|lock| !lock.granted).count() < sessions {
        std::thread::yield_now();
    }
}

#[test]
fn pg_locks_shows_what_is_held_and_wanted() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    let mut watcher = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key); insert into t values (1)").unwrap();
    a.batch("begin; lock table t in share mode; select pg_advisory_lock(4294967298)").unwrap();
    let (first, second) = (a.process_id(), b.process_id());
    let waiting = std::thread::spawn(move || {
        b.batch("begin; insert into t values (2); commit").unwrap();
        b
    });
    until_waiting(&fresh.database, 1);
    let shown =
        "select locktype, relation::regclass, database, classid, objid, objsubid, pid, mode,
        granted, fastpath, waitstart is not null, virtualxid = virtualtransaction
        from pg_locks where pid in (";
    let shown =
        run(&mut watcher, &format!("{shown}{first}, {second}) order by pid, locktype, mode"));
    let expected = [
        format!("advisory|NULL|5|1|2|1|{first}|ExclusiveLock|t|f|f|NULL"),
        format!("relation|t|5|NULL|NULL|NULL|{first}|ShareLock|t|f|f|NULL"),
        format!("virtualxid|NULL|NULL|NULL|NULL|NULL|{first}|ExclusiveLock|t|t|f|t"),
        format!("relation|t|5|NULL|NULL|NULL|{second}|RowExclusiveLock|f|f|t|NULL"),
        format!("virtualxid|NULL|NULL|NULL|NULL|NULL|{second}|ExclusiveLock|t|t|f|t"),
    ];
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[1..lines.len() - 1], expected, "{shown}");
    let waits = format!(
        "select state, wait_event_type, wait_event, pg_blocking_pids(pid),
         cardinality(pg_blocking_pids(pid)),
         pg_isolation_test_session_is_blocked(pid, '{{{first}}}')
         from pg_stat_activity where pid = {second}"
    );
    let rows = run(&mut watcher, &waits);
    assert_eq!(rows.lines().nth(1), Some(format!("active|Lock|relation|{{{first}}}|1|t").as_str()));
    let statement = format!(
        "select query, query_start >= backend_start, state_change = query_start,
         xact_start <= query_start, datname, usename, client_port, backend_type
         from pg_stat_activity where pid = {second}"
    );
    let rows = run(&mut watcher, &statement);
    let expected =
        "begin; insert into t values (2); commit|t|t|t|postgres|postgres|-1|client backend";
    assert_eq!(rows.lines().nth(1), Some(expected));
    let watching = "select query from pg_stat_activity where pid = pg_backend_pid()";
    assert_eq!(run(&mut watcher, watching).lines().nth(1), Some(watching));
    let workers = "select count(*) > 0, count(state) from pg_stat_activity where datname is null";
    assert_eq!(run(&mut watcher, workers).lines().nth(1), Some("t|0"));
    let state = format!("select state, wait_event from pg_stat_activity where pid = {first}");
    assert_eq!(run(&mut watcher, &state).lines().nth(1), Some("idle in transaction|NULL"));
    a.batch("commit").unwrap();
    let mut b = waiting.join().unwrap();
    // Once it has an id, a transaction is shown with a lock on it, even if no session waits.
    b.batch("begin; insert into t values (3)").unwrap();
    let ids = format!(
        "select count(*) from pg_locks l join pg_stat_activity a on l.transactionid = a.backend_xid
         where a.pid = {second} and l.pid = {second} and l.locktype = 'transactionid' and l.granted"
    );
    assert_eq!(run(&mut watcher, &ids).lines().nth(1), Some("1"));
    // A session that waits for a row waits for its writer.
    let mut c = fresh.database.connect().unwrap();
    let third = c.process_id();
    let waiting = std::thread::spawn(move || c.batch("insert into t values (3)").unwrap_err());
    until_waiting(&fresh.database, 1);
    let waits = format!("select wait_event from pg_stat_activity where pid = {third}");
    assert_eq!(run(&mut watcher, &waits).lines().nth(1), Some("transactionid"));
    let on = format!("select mode from pg_locks where pid = {third} and not granted");
    assert_eq!(run(&mut watcher, &on).lines().nth(1), Some("ShareLock"));
    b.batch("commit").unwrap();
    assert_eq!(waiting.join().unwrap().sqlstate.as_str(), "23505");
}

#[test]
fn pg_stat_lock_counts_what_is_slow() {
    let settings = Settings::default().with("shared_buffers", "8MB").unwrap();
    let fresh = fresh_with(settings.with("deadlock_timeout", "1ms").unwrap());
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    assert_eq!(run(&mut a, "select count(*) from pg_stat_lock").lines().nth(1), Some("12"));
    let waits = "select waits, wait_time >= 1, fastpath_exceeded, stats_reset is not null
        from pg_stat_lock where locktype = 'advisory'";
    assert_eq!(run(&mut a, waits).lines().nth(1), Some("0|f|0|t"));
    a.query("select pg_advisory_lock(1)", &[]).unwrap();
    let waiting = std::thread::spawn(move || {
        b.query("select pg_advisory_lock(1)", &[]).unwrap();
        b
    });
    until_waiting(&fresh.database, 1);
    std::thread::sleep(std::time::Duration::from_millis(2));
    a.query("select pg_advisory_unlock(1)", &[]).unwrap();
    drop(waiting.join().unwrap());
    assert_eq!(run(&mut a, waits).lines().nth(1), Some("1|t|0|t"));
    // More tables in one transaction than a session has slots.
    a.batch("begin").unwrap();
    for table in 0..20 {
        a.batch(&format!("create table t{table} (k int)")).unwrap();
    }
    a.batch("commit; begin").unwrap();
    for table in 0..20 {
        a.batch(&format!("select * from t{table}")).unwrap();
    }
    a.batch("commit").unwrap();
    let exceeded = "select fastpath_exceeded > 0 from pg_stat_lock where locktype = 'relation'";
    assert_eq!(run(&mut a, exceeded).lines().nth(1), Some("t"));
    a.batch("select pg_stat_reset_shared('lock')").unwrap();
    let left = "select sum(waits)::int8, sum(fastpath_exceeded)::int8 from pg_stat_lock";
    assert_eq!(run(&mut a, left).lines().nth(1), Some("0|0"));
}

#[test]
fn advisory_locks_in_queries() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key); insert into t values (1), (2), (3)").unwrap();
    // Once for every row, also with a key that is the same for all, and never while planning.
    let twice =
        "select count(pg_try_advisory_lock(t.k)) from t join t u on t.k = u.k where t.k < 3";
    assert_eq!(run(&mut a, twice).lines().nth(1), Some("2"));
    let same = "select pg_advisory_lock(9) from t join t u on t.k = u.k";
    assert_eq!(a.query(same, &[]).unwrap().rows.len(), 3);
    assert!(!run(&mut a, &format!("explain {same}")).contains("ERROR"));
    let columns = a.query("select pg_advisory_lock(9) l, 1 from (values (1)) v(x)", &[]);
    let types: Vec<_> = columns.unwrap().columns.iter().map(|column| column.type_oid).collect();
    assert_eq!(types[0], 2278, "void");
    run(&mut a, "select pg_advisory_unlock(9)");
    let held = "select count(*) from pg_locks where locktype = 'advisory'";
    assert_eq!(run(&mut b, held).lines().nth(1), Some("3"));
    let free = "select t.k from t join t u on t.k = u.k where pg_try_advisory_lock(t.k)";
    assert_eq!(b.query(free, &[]).unwrap().rows, [[Value::Int4(3)]]);
    for _ in 0..3 {
        assert_eq!(
            a.query("select pg_advisory_unlock(9) from (values (1)) v(x)", &[]).unwrap().rows,
            [[Value::Bool(true)]]
        );
    }
    let not_held = run(&mut a, "select pg_advisory_unlock(9) from (values (1)) v(x)");
    assert!(not_held.contains("WARNING: you don't own a lock of type ExclusiveLock"), "{not_held}");
    // Waits end like any other.
    b.batch("set lock_timeout = '20ms'").unwrap();
    let waits = "select pg_advisory_lock(t.k) from t join t u on t.k = u.k";
    let error = b.query(waits, &[]).unwrap_err();
    assert_eq!(error.message, "canceling statement due to lock timeout");
    b.batch("set lock_timeout = 0").unwrap();
    let cancel = b.cancel_handle();
    let waiting = std::thread::spawn(move || {
        let error = b.query(waits, &[]).unwrap_err();
        (b, error)
    });
    until_waiting(&fresh.database, 1);
    cancel.cancel();
    let (mut b, error) = waiting.join().unwrap();
    assert_eq!(error.message, "canceling statement due to user request");
    // Parameters.
    b.batch("prepare p as select pg_try_advisory_xact_lock($1, $2) from (values (1)) v(x)")
        .unwrap();
    assert_eq!(run(&mut b, "execute p(1, 2)").lines().nth(1), Some("t"));
    drop((a, b));
    let mut c = fresh.database.connect().unwrap();
    assert_eq!(run(&mut c, held).lines().nth(1), Some("0"));
}
