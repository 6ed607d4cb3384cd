//! Hash tables that continue in files, by statements.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::mpsc;
use std::thread;

use millpond::{SqlState, Value};

use crate::common::{fresh, run};

/// What a hash table may have with the settings of these tests: then it continues in files.
const TABLE_BYTES: usize = 64 << 10;
const SETTINGS: &str = "set work_mem = '64kB'; set hash_mem_multiplier = 1";

/// A statement that keeps its hash table in files is cancelled, and nothing of it is left.
#[test]
fn cancelled_spills_give_everything_back() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table n (k int)").unwrap();
    c.batch("insert into n select g from generate_series(1, 5000) g(g)").unwrap();
    c.batch(SETTINGS).unwrap();
    let pairs = "(select a.k * 5000 + b.k as k from n a, n b)";
    for sql in [
        format!("select count(*) from {pairs} x join {pairs} y on x.k = y.k"),
        format!("select count(*) from (select distinct k from {pairs} x) y"),
        format!("select count(*) from (select k, count(*) from {pairs} x group by k) y"),
        format!("select count(*) from (select k from n except select k from {pairs} x) y"),
    ] {
        let (handle, database) = (c.cancel_handle(), &fresh.database);
        let (done, is_done) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                while is_done.try_recv().is_err() {
                    if database.query_memory_used() > TABLE_BYTES {
                        handle.cancel();
                    }
                    thread::yield_now();
                }
            });
            let error = c.query(&sql, &[]).unwrap_err();
            done.send(()).unwrap();
            assert_eq!(error.sqlstate, SqlState::QUERY_CANCELED, "{sql}: {error:?}");
        });
        // The query engine's tasks end after their statement.
        while fresh.database.query_memory_used() > 0 {
            thread::yield_now();
        }
    }
    // The session has all of its temporary files' room back.
    c.batch("set temp_file_limit = '4MB'").unwrap();
    let sql = "select count(*) from n a join n b on a.k = b.k";
    assert_eq!(c.query(sql, &[]).unwrap().rows, [[Value::Int8(5000)]]);
}

/// A join whose inner side continues in files is run again for each row outside of it.
#[test]
fn join_in_batches_is_run_again() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table n (k int, v text); create table o (i int)");
    run(&mut c, "insert into n select g, repeat('x', 100) from generate_series(1, 3000) g(g)");
    run(&mut c, "insert into o values (1), (10), (2999), (5000)");
    c.batch(SETTINGS).unwrap();
    let sql = "select i, (select count(*) from n a full join n b on a.k = b.k + i) from o";
    let expected = "i|count\n1|3001\n10|3010\n2999|5999\n5000|6000\nSELECT 4\n";
    assert_eq!(run(&mut c, sql), expected);
    c.batch("set work_mem = '64MB'").unwrap();
    assert_eq!(run(&mut c, sql), expected);
}
