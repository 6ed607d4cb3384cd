//! Real clients against the server: tokio-postgres, and psql and pgbench if installed.

mod common;

use common::server::{ServerProcess, installed};
use std::process::Command;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, error::SqlState};

async fn connect(server: &ServerProcess) -> Client {
    let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_in_binary() {
    let server = ServerProcess::start();
    let client = connect(&server).await;
    let create = "create table t (a int primary key, b bigint, c text, d bool, e float8, f bytea, g smallint, h real)";
    client.batch_execute(create).await.expect("creates");
    let insert = client
        .prepare("insert into t values ($1, $2, $3, $4, $5, $6, $7, $8)")
        .await
        .expect("prepares");
    for a in 0..100i32 {
        let c = (a % 7 != 0).then(|| format!("text {a}"));
        let f = vec![a as u8; 3];
        let count = client
            .execute(
                &insert,
                &[
                    &a,
                    &(i64::from(a) << 32),
                    &c,
                    &(a % 2 == 0),
                    &f64::from(a),
                    &f,
                    &(a as i16),
                    &(a as f32),
                ],
            )
            .await
            .expect("inserts");
        assert_eq!(count, 1);
    }
    let select = client
        .prepare("select a, b, c, d, e, f, g, h from t where a = $1")
        .await
        .expect("prepares");
    for a in [0i32, 1, 7, 99] {
        let row = client.query_one(&select, &[&a]).await.expect("finds");
        assert_eq!(row.get::<_, i32>(0), a);
        assert_eq!(row.get::<_, i64>(1), i64::from(a) << 32);
        assert_eq!(row.get::<_, Option<String>>(2), (a % 7 != 0).then(|| format!("text {a}")));
        assert_eq!(row.get::<_, bool>(3), a % 2 == 0);
        assert_eq!(row.get::<_, f64>(4), f64::from(a));
        assert_eq!(row.get::<_, Vec<u8>>(5), vec![a as u8; 3]);
        assert_eq!(row.get::<_, i16>(6), a as i16);
        assert_eq!(row.get::<_, f32>(7), a as f32);
    }
    assert!(client.query(&select, &[&100i32]).await.expect("runs").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_carry_their_fields() {
    let server = ServerProcess::start();
    let mut client = connect(&server).await;
    client
        .batch_execute("create table t (a int primary key, b text not null)")
        .await
        .expect("creates");
    client.batch_execute("insert into t values (1, 'x')").await.expect("inserts");
    let error = client.batch_execute("insert into t values (1, 'y')").await.expect_err("duplicate");
    let error = error.as_db_error().expect("from the server");
    assert_eq!(error.code(), &SqlState::UNIQUE_VIOLATION);
    assert_eq!(error.constraint(), Some("t_pkey"));
    assert_eq!(error.table(), Some("t"));
    let error = client.batch_execute("insert into t values (2, null)").await.expect_err("not null");
    assert_eq!(error.code(), Some(&SqlState::NOT_NULL_VIOLATION));
    let error = client.batch_execute("selec 1").await.expect_err("syntax");
    assert_eq!(error.code(), Some(&SqlState::SYNTAX_ERROR));
    let error =
        client.batch_execute("select * from nowhere where a = 1").await.expect_err("no table");
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
    let error =
        client.execute("insert into t values ($1, 'x')", &[&"text"]).await.expect_err("type");
    assert!(error.code().is_none(), "the driver refuses it: {error}");

    // A failed transaction accepts only its end.
    let transaction = client.transaction().await.expect("begins");
    transaction.execute("insert into t values (3, 'z')", &[]).await.expect("inserts");
    transaction.batch_execute("insert into t values (3, 'z')").await.expect_err("duplicate");
    let error =
        transaction.batch_execute("insert into t values (4, 'z')").await.expect_err("failed");
    assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
    transaction.rollback().await.expect("rolls back");
    assert!(client.query("select a from t where a = 3", &[]).await.expect("runs").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portals_are_read_in_pieces_and_pipelines_run() {
    let server = ServerProcess::start();
    let mut client = connect(&server).await;
    client.batch_execute("create table t (a int primary key)").await.expect("creates");
    let insert = client.prepare("insert into t values ($1)").await.expect("prepares");
    let numbers: Vec<i32> = (0..100).collect();
    // All at once: the driver pipelines futures that are polled together.
    let inserts: Vec<_> = numbers
        .iter()
        .map(|n| {
            let (client, insert) = (&client, &insert);
            async move { client.execute(insert, &[n]).await }
        })
        .collect();
    for done in join_all(inserts).await {
        assert_eq!(done.expect("inserts"), 1);
    }
    let transaction = client.transaction().await.expect("begins");
    let portal =
        transaction.bind("select a from t where a >= 0 order by a", &[]).await.expect("binds");
    let mut got = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 7).await.expect("reads");
        if rows.is_empty() {
            break;
        }
        assert!(rows.len() <= 7);
        got.extend(rows.iter().map(|r| r.get::<_, i32>(0)));
    }
    transaction.commit().await.expect("commits");
    assert_eq!(got, numbers);
}

/// Polls all futures together, as `futures::future::join_all` does.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(move |context| {
        let mut ready = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready {
            std::task::Poll::Ready(futures.iter_mut().filter_map(|(_, o)| o.take()).collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_statement_follows_changed_definitions() {
    let server = ServerProcess::start();
    let (client, other) = (connect(&server).await, connect(&server).await);
    let text = "select * from t where a = $1";
    for round in 0..3i32 {
        let columns: String = (0..round).map(|i| format!(", c{i} text default 'x'")).collect();
        let create =
            format!("create table t (a int primary key{columns}); insert into t values (1)");
        other.batch_execute(&create).await.expect("creates");
        for _ in 0..3 {
            let row = client.query_one(text, &[&1i32]).await.expect("finds");
            assert_eq!(row.len() as i32, 1 + round);
        }
        other.batch_execute("drop table t").await.expect("drops");
        let error = client.query(text, &[&1i32]).await.expect_err("gone");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_and_timeouts() {
    let server = ServerProcess::start();
    let (client, other) = (connect(&server).await, connect(&server).await);
    client.batch_execute("create table t (a int primary key, b int)").await.expect("creates");
    client.batch_execute("insert into t values (1, 0)").await.expect("inserts");
    client.batch_execute("begin; update t set b = 1 where a = 1").await.expect("updates");
    // The row lock is not released: only a cancel request or a timeout ends the wait.
    let token = other.cancel_token();
    let waiting = other.batch_execute("update t set b = 2 where a = 1");
    let cancel = async {
        // The request may arrive before the statement, so one is not enough.
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            token.cancel_query(NoTls).await.expect("asks");
        }
    };
    let error = tokio::select! {
        done = waiting => done.expect_err("cancelled"),
        () = cancel => unreachable!("it never ends"),
    };
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    // A late cancel may hit the next statement.
    let _ = other.batch_execute("set statement_timeout = '50ms'").await;
    other.batch_execute("set statement_timeout = '50ms'").await.expect("sets");
    let error = other.batch_execute("update t set b = 2 where a = 1").await.expect_err("timed out");
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    client.batch_execute("commit").await.expect("commits");
    other.batch_execute("update t set b = 2 where a = 1").await.expect("updates");
}

/// More sessions than loops wait for advisory locks, and other sessions are still served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn advisory_locks_are_waited_for_without_stopping_others() {
    let server = ServerProcess::start();
    let holder = connect(&server).await;
    holder.query_one("select pg_advisory_lock($1)", &[&1i64]).await.expect("locks");
    let mut waiting = Vec::new();
    for _ in 0..12 {
        let client = connect(&server).await;
        waiting.push(tokio::spawn(async move {
            client.query_one("select pg_advisory_lock($1)", &[&1i64]).await.expect("waits");
            client.query_one("select pg_advisory_unlock($1)", &[&1i64]).await.expect("unlocks")
        }));
    }
    let other = connect(&server).await;
    for _ in 0..50 {
        let row =
            other.query_one("select pg_try_advisory_lock($1)", &[&1i64]).await.expect("tries");
        assert!(!row.get::<_, bool>(0));
    }
    // A waiting session can be cancelled.
    let cancelled = connect(&server).await;
    let token = cancelled.cancel_token();
    let wait =
        tokio::spawn(
            async move { cancelled.query_one("select pg_advisory_lock($1)", &[&1i64]).await },
        );
    while !wait.is_finished() {
        token.cancel_query(NoTls).await.expect("asks");
    }
    let error = wait.await.expect("ends").expect_err("is cancelled");
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    assert!(waiting.iter().all(|waits| !waits.is_finished()));
    // The end of the session releases the lock. Then the waiters get it one after another.
    drop(holder);
    for waits in waiting {
        assert!(waits.await.expect("ends").get::<_, bool>(0));
    }
}

/// The server logs row waits and a deadlock, but no wait of a session without `log_lock_waits`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_waits_are_logged_only_if_enabled() {
    let settings = ["--set", "deadlock_timeout=10ms", "--set", "log_lock_waits=on"];
    let (server, log) = ServerProcess::logging(&settings);
    let read_log = || std::fs::read_to_string(&log).expect("log");
    let [first, second] = [connect(&server).await, connect(&server).await];
    first.batch_execute("create table t (a int primary key, b int)").await.expect("creates");
    first.batch_execute("insert into t values (1, 0), (2, 0)").await.expect("inserts");
    first.batch_execute("begin; update t set b = 1 where a = 1").await.expect("updates");
    // This wait, too, is longer than `deadlock_timeout`.
    second.batch_execute("set log_lock_waits = off; set lock_timeout = 50").await.expect("sets");
    let error = second.batch_execute("update t set b = 2 where a = 1").await;
    let code = error.expect_err("the lock is never released").code().cloned();
    assert_eq!(code, Some(SqlState::LOCK_NOT_AVAILABLE));
    assert!(!read_log().contains("waiting for"), "{}", read_log());
    second.batch_execute("reset all; begin; update t set b = 1 where a = 2").await.expect("sets");

    let waiter = tokio::spawn(async move {
        let waited = second.batch_execute("update t set b = 2 where a = 1").await;
        second.batch_execute("rollback").await.expect("rolls back");
        waited
    });
    while !read_log().contains("Wait queue: ") {
        tokio::task::yield_now().await;
    }
    let said = read_log();
    assert!(said.contains(" still waiting for ShareLock on transaction "), "{said}");
    assert!(said.contains("Process holding the lock: "), "{said}");
    // Now they wait for each other. One gets a deadlock error, the other one gets its lock.
    let waited = first.batch_execute("update t set b = 2 where a = 2").await;
    first.batch_execute("rollback").await.expect("rolls back");
    let results = [waited, waiter.await.expect("ends")];
    let codes = results.iter().filter_map(|result| result.as_ref().err()?.code());
    assert!(codes.eq([&SqlState::T_R_DEADLOCK_DETECTED]), "{results:?}");
    let said = read_log();
    assert_eq!(said.matches(" detected deadlock while waiting for ").count(), 1, "{said}");
    assert_eq!(said.matches(" acquired ShareLock on transaction ").count(), 1, "{said}");
    // Only that message has the statements of both sessions.
    assert_eq!(said.matches("deadlock detected").count(), 1, "{said}");
    for row in [1, 2] {
        assert!(said.contains(&format!(": update t set b = 2 where a = {row}")), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simple_queries_of_several_statements() {
    let server = ServerProcess::start();
    let client = connect(&server).await;
    let sql = "create table t (a int primary key); insert into t values (1), (2); select a from t where a = 2";
    let messages = client.simple_query(sql).await.expect("runs");
    let rows: Vec<_> = messages
        .iter()
        .filter_map(|m| match m {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(rows, ["2"]);
    // One statement fails, and the others are rolled back with it.
    client
        .simple_query("insert into t values (3); insert into t values (3)")
        .await
        .expect_err("fails");
    let messages = client.simple_query("select a from t where a = 3").await.expect("runs");
    assert!(!messages.iter().any(|m| matches!(m, SimpleQueryMessage::Row(_))));
}

fn psql(server: &ServerProcess, sql: &str) -> Option<(bool, String)> {
    let output = Command::new(installed("psql")?)
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"])
        .arg(&server.sockets)
        .args(["-p", &server.port.to_string(), "-U", "postgres", "-d", "postgres", "-c", sql])
        .output()
        .expect("psql runs");
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn psql_runs_statements_and_copies() {
    let server = ServerProcess::start();
    let Some((done, text)) = psql(&server, "create table t (a int primary key, b text)") else {
        return;
    };
    assert!(done, "{text}");
    let file = server.sockets.join("rows");
    std::fs::write(&file, "1\tone\n2\t\\N\n3\tthree\\tand more\n").expect("written");
    let (done, text) = psql(&server, &format!("\\copy t from '{}'", file.display())).expect("psql");
    assert!(done, "{text}");
    let (done, text) = psql(&server, "select b from t where a = 3").expect("psql");
    assert_eq!((done, text.as_str()), (true, "three\tand more\n"));
    let out = server.sockets.join("out");
    let (done, text) = psql(&server, &format!("\\copy t to '{}'", out.display())).expect("psql");
    assert!(done, "{text}");
    assert_eq!(std::fs::read(out).expect("read"), std::fs::read(file).expect("read"));
    let (done, text) = psql(&server, "selec").expect("psql");
    assert!(!done && text.contains("ERROR:") && text.contains("LINE 1: selec"), "{text}");
}

fn pgbench(server: &ServerProcess, args: &[&str]) -> Option<()> {
    let output = Command::new(installed("pgbench")?)
        .arg("-h")
        .arg(&server.sockets)
        .args(["-p", &server.port.to_string(), "-U", "postgres"])
        .args(args)
        .arg("postgres")
        .output()
        .expect("pgbench runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && !text.contains("ERROR"), "pgbench {args:?}: {text}");
    Some(())
}

#[test]
fn pgbench_runs_and_the_sums_agree() {
    let server = ServerProcess::start();
    if pgbench(&server, &["-i", "-s", "1", "-q"]).is_none() {
        return;
    }
    for mode in ["simple", "extended", "prepared"] {
        for script in [&["-S"][..], &["-N"], &[]] {
            let args = [&["-n", "-M", mode, "-c", "8", "-j", "2", "-t", "50"], script].concat();
            pgbench(&server, &args).expect("pgbench");
        }
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        // No sum(): this must also work in a build without DataFusion.
        let sum = async |sql: &str| -> i64 {
            let rows = client.query(sql, &[]).await.expect("reads");
            rows.iter().map(|r| i64::from(r.get::<_, i32>(0))).sum()
        };
        let accounts = sum("select abalance from pgbench_accounts where aid > 0").await;
        let tellers = sum("select tbalance from pgbench_tellers where tid > 0").await;
        let branches = sum("select bbalance from pgbench_branches where bid > 0").await;
        assert_eq!(tellers, branches);
        if let Ok(rows) = client.query("select delta from pgbench_history", &[]).await {
            let history: i64 = rows.iter().map(|r| i64::from(r.get::<_, i32>(0))).sum();
            assert_eq!(accounts, history);
        }
    });
}
