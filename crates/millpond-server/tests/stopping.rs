//! Shutdown signals while sessions are busy, and long computations beside short queries.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::{Raw, V3_0, startup};
use common::server::{ServerProcess, command};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time limit of a fast shutdown.
const PROMISE: Duration = Duration::from_secs(5);
/// A query that computes for hours, in the filter of a join.
const ENDLESS: &str = "select count(*) from t a, t b, t c where a.x || b.x || c.x like '%q'";

/// Runs a statement that must succeed, and returns the columns of its first row.
fn run(client: &mut Raw, sql: &str) -> Vec<String> {
    let replies = client.query(sql).replies();
    let error = replies.iter().find(|reply| reply.kind == 'E');
    assert!(error.is_none(), "{sql}: {}", error.map(|e| e.text()).unwrap_or_default());
    let row = replies.iter().find(|reply| reply.kind == 'D');
    row.map(|row| row.columns()).unwrap_or_default()
}

/// Makes a table with enough rows that its self-joins never end.
fn fill(client: &mut Raw) {
    run(client, "create table t (i int primary key, x text)");
    run(client, "insert into t select g, repeat('x', 100) || g from generate_series(1, 20000) g");
}

/// Starts a statement on its own connection.
fn start(server: &ServerProcess, before: &[&str], sql: &str) -> Raw {
    let mut client = server.client();
    for sql in before {
        run(&mut client, sql);
    }
    client.query(sql);
    client
}

/// Returns when `sessions` other sessions are running a statement.
fn await_busy(client: &mut Raw, sessions: usize) {
    let count =
        "select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()";
    while run(client, count)[0].parse::<usize>().unwrap() < sessions {
        std::thread::yield_now();
    }
}

/// The error that a session ends with. Its statement may have succeeded just before: one that
/// waits for a row lock goes on as soon as the lock's holder has been ended.
fn fatal(client: &mut Raw) -> String {
    let errors = std::iter::from_fn(|| client.reply()).filter(|reply| reply.kind == 'E');
    errors.last().map(|reply| reply.sqlstate()).unwrap_or_default()
}

#[test]
fn fast_shutdown_ends_within_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    let mut first = server.client();
    fill(&mut first);
    run(&mut first, "create table kept (i int primary key)");
    run(&mut first, "insert into kept values (1)");
    let mut busy = [
        start(&server, &[], ENDLESS),
        start(&server, &[], "select * from generate_series(1, 1000000000)"),
        start(&server, &["begin", "insert into kept values (2)"], "select pg_sleep(1000)"),
        start(&server, &["begin", "update t set x = 'y' where i = 1"], "select pg_sleep(1000)"),
        start(&server, &[], "update t set x = 'z' where i = 1"),
        start(
            &server,
            &[],
            "insert into t select g, 'z' from generate_series(200000, 100000000) g",
        ),
        start(
            &server,
            &[],
            "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
        ),
        start(
            &server,
            &[],
            "select max(n) from (select row_number() over (order by a.x) n from t a, t b) y",
        ),
    ];
    await_busy(&mut first, busy.len());
    let began = Instant::now();
    server.signal("TERM");
    let status = server.child.wait().unwrap();
    let took = began.elapsed();
    assert_eq!(status.code(), Some(0));
    assert!(took <= PROMISE, "{took:?}");
    assert_eq!(fatal(&mut first), "57P01");
    // The client of the second session reads nothing, so its socket is full of rows.
    for (number, client) in busy.iter_mut().enumerate().filter(|(number, _)| *number != 1) {
        assert_eq!(fatal(client), "57P01", "session {number}");
    }
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    let mut after = server.client();
    assert_eq!(run(&mut after, "select count(*), max(i) from kept"), ["1", "1"]);
    assert_eq!(run(&mut after, "select count(*), max(i) from t"), ["20000", "20000"]);
    assert!(server.stop().success());
    check(&data);
}

/// Planning can't be interrupted, and keeps the session's thread busy.
#[test]
fn fast_shutdown_abandons_work_that_does_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    let mut first = server.client();
    run(&mut first, "create table t (i int primary key, x text)");
    run(&mut first, "insert into t values (1, 'one')");
    let tables: Vec<_> = (0..1000).map(|number| format!("t t{number}")).collect();
    let stuck = start(
        &server,
        &["begin", "insert into t values (2, 'two')"],
        &format!("select count(*) from {} where false", tables.join(", ")),
    );
    await_busy(&mut first, 1);
    let began = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    let took = began.elapsed();
    assert!(took <= PROMISE, "{took:?}");
    drop(stuck);
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    assert_eq!(run(&mut server.client(), "select count(*), max(i) from t"), ["1", "1"]);
    assert!(server.stop().success());
    check(&data);
}

fn check(data: &Path) {
    let checked = command().arg("check").arg("--data").arg(data).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn smart_shutdown_waits_for_the_last_session() {
    let mut server = ServerProcess::with(&["--set", "shutdown_mode=smart"]);
    let mut session = server.client();
    run(&mut session, "create table t (i int)");
    server.signal("TERM");
    let mut refused;
    loop {
        // The server may not have received the signal yet.
        refused = Raw::tcp(server.port);
        let answers = refused.send(&startup(V3_0, &[("user", "postgres")])).replies();
        if answers.iter().any(|reply| reply.kind == 'E' && reply.sqlstate() == "57P03") {
            break;
        }
    }
    // Existing sessions continue.
    run(&mut session, "insert into t values (1)");
    assert_eq!(run(&mut session, "select count(*) from t"), ["1"]);
    assert!(server.child.try_wait().unwrap().is_none());
    drop(session);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_fast_shutdown_overtakes_a_smart_one() {
    let mut server = ServerProcess::with(&["--set", "shutdown_mode=smart"]);
    let mut session = server.client();
    server.signal("TERM");
    server.signal("INT");
    assert_eq!(fatal(&mut session), "57P01");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_immediate_shutdown_is_recovered_from() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    let socket = dir.path().join(format!(".s.PGSQL.{}", server.port));
    let mut session = server.client();
    fill(&mut session);
    // Not over the table, which has no rows in this transaction any more.
    let endless = "select count(*) from generate_series(1, 1000000000)";
    let busy = start(&server, &["begin", "delete from t"], endless);
    await_busy(&mut session, 1);
    server.signal("QUIT");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!socket.exists());
    drop(busy);
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    assert_eq!(run(&mut server.client(), "select count(*) from t"), ["20000"]);
    assert!(server.stop().success());
    check(&data);
}

#[test]
fn other_signals_do_not_end_the_server() {
    let mut server = ServerProcess::start();
    let mut session = server.client();
    for name in ["HUP", "USR1", "USR2", "PIPE"] {
        server.signal(name);
        assert_eq!(run(&mut session, "select 1"), ["1"], "{name}");
    }
    assert!(server.stop().success());
}

#[test]
fn long_queries_do_not_starve_other_sessions() {
    let mut server = ServerProcess::start();
    let mut first = server.client();
    fill(&mut first);
    run(&mut first, "create table small (i int)");
    run(&mut first, "insert into small values (1), (2), (3)");
    let cores = std::thread::available_parallelism().unwrap().get();
    let mut heavy: Vec<_> = (0..2 * cores).map(|_| start(&server, &[], ENDLESS)).collect();
    await_busy(&mut first, heavy.len());
    // If this session had to wait for the others, it would wait for hours.
    let mut fresh = server.client();
    assert_eq!(run(&mut fresh, "select 1"), ["1"]);
    for _ in 0..10 {
        assert_eq!(run(&mut fresh, "select count(*) from small"), ["3"]);
    }
    for client in &mut heavy {
        let mut other = Raw::tcp(server.port);
        other.send(&common::raw::cancel(client.pid, &client.secret));
        let replies = client.replies();
        let error = replies.iter().find(|reply| reply.kind == 'E');
        assert_eq!(error.map(|reply| reply.sqlstate()).as_deref(), Some("57014"));
        assert_eq!(run(client, "select count(*) from small"), ["3"]);
    }
    assert!(server.stop().success());
}

fn pid(client: &mut Raw) -> String {
    run(client, "select pg_backend_pid()").remove(0)
}

#[test]
fn a_session_cancels_and_ends_others() {
    let server = ServerProcess::start();
    let mut admin = server.client();
    run(&mut admin, "create table held (a int)");

    // An idle session, also in a transaction, is told, and its locks and rows are gone.
    for begin in ["select 1", "begin; insert into held values (1); lock table held"] {
        let mut idle = server.client();
        let pid = pid(&mut idle);
        idle.query(begin).replies();
        let ended = run(&mut admin, &format!("select pg_terminate_backend({pid}, 60000)"));
        assert_eq!(ended, ["t"]);
        let told = idle.reply().expect("an error without a request");
        assert_eq!((told.kind, &*told.sqlstate()), ('E', "57P01"));
        assert!(idle.reply().is_none(), "the connection is closed");
        assert_eq!(run(&mut admin, "select count(*) from held"), ["0"]);
    }

    // A statement is cancelled, and its session goes on.
    let mut sleeping = server.client();
    let sleeper = pid(&mut sleeping);
    sleeping.query("select pg_sleep(3600)");
    await_busy(&mut admin, 1);
    assert_eq!(run(&mut admin, &format!("select pg_cancel_backend({sleeper})")), ["t"]);
    let replies = sleeping.replies();
    let error = replies.iter().find(|reply| reply.kind == 'E').expect("an error");
    assert_eq!(error.sqlstate(), "57014");
    assert_eq!(run(&mut sleeping, "select 1"), ["1"]);

    // A running one is ended.
    sleeping.query("select pg_sleep_for('1 hour')");
    await_busy(&mut admin, 1);
    assert_eq!(run(&mut admin, &format!("select pg_terminate_backend({sleeper})")), ["t"]);
    assert_eq!(fatal(&mut sleeping), "57P01");

    // No session has this number any more.
    run(&mut admin, &format!("select pg_terminate_backend({sleeper}, 60000)"));
    let replies = admin.query(&format!("select pg_cancel_backend({sleeper})")).replies();
    let warning = replies.iter().find(|reply| reply.kind == 'N').expect("a warning");
    assert!(warning.text().contains(&format!("PID {sleeper} is not a PostgreSQL backend process")));
    let row = replies.iter().find(|reply| reply.kind == 'D').expect("a row");
    assert_eq!(row.columns(), ["f"]);

    // A session may end itself.
    admin.query("select pg_terminate_backend(pg_backend_pid())");
    assert_eq!(fatal(&mut admin), "57P01");
}
