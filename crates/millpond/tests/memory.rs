//! Queries within bounds of memory: they go on in temporary files, or end with 53200 or 53400, and
//! give everything back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::mpsc;
use std::thread;

use common::{Fresh, fresh_with};
use millpond::{Connection, Settings, SqlError, SqlState, Value};

/// A database whose queries have so much memory together.
fn limited(query_memory: &str) -> Fresh {
    let settings = Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("query_memory_limit", query_memory));
    fresh_with(settings.unwrap())
}

fn connect(fresh: &Fresh, work_mem: &str, temp_file_limit: &str) -> Connection {
    let options = millpond::ConnectOptions {
        settings: vec![("work_mem".into(), work_mem.into())],
        ..Default::default()
    };
    let mut connection = fresh.database.connect_as(options).unwrap();
    if temp_file_limit != "-1" {
        connection.batch(&format!("set temp_file_limit = '{temp_file_limit}'")).unwrap();
    }
    connection
}

/// The same, with 30,000 numbers in a table. The query engine reads a table of that size.
fn with_numbers(query_memory: &str) -> Fresh {
    let fresh = limited(query_memory);
    let mut c = connect(&fresh, "4MB", "-1");
    c.batch("create table n (g int); insert into n select g from generate_series(1, 30000) g(g)")
        .unwrap();
    fresh
}

/// Waits until all memory is back: what was abandoned goes when its threads come to it.
fn wait_until_unused(fresh: &Fresh) {
    while fresh.database.query_memory_used() != 0 {
        thread::yield_now();
    }
}

fn rows(connection: &mut Connection, sql: &str) -> Result<Vec<Vec<Value>>, SqlError> {
    connection.query(sql, &[]).map(|rows| rows.rows)
}

const SORT: &str = "select t, g from (select lpad((g * 7919 % 100003)::text, 32, '0') || repeat('x', 60) as t, g \
                    from n) x order by t";
const MANY_KEYS: &str = "select t, g from (select g % 7 as g, lpad((g * 7919 % 100003)::text, 32, '0') as t from n) x \
     order by g desc, t";
const AGGREGATE: &str = "select sum(n), count(*), sum(m) from (select t, count(*) as n, max(g) as m \
                         from (select lpad(((g % 15000) * 7919 % 100003)::text, 32, '0') as t, g from n) x \
                         group by t) y";
const DISTINCT: &str = "select count(*) from (select distinct g * 1000 from n) x";
const WINDOW: &str = "select sum(r), max(r) from (select row_number() over (partition by g % 3 order by t) as r \
                      from (select lpad((g * 7919 % 100003)::text, 32, '0') as t, g from n) x) y";
const WHOLE_WINDOW: &str = "select max(l), sum(r) from (select max(length(t)) over () as l, count(*) over () as r \
                            from (select repeat('x', 100) || g as t, g from n) x) y";
const HASH_JOIN: &str = "select count(*), sum(a.g) from \
                         (select lpad((g * 7919 % 100003)::text, 300, '0') as t, g from n) a \
                         join (select lpad((g * 7919 % 100003)::text, 300, '0') as t from n) b on a.t = b.t";
const CROSS_JOIN: &str = "select count(*) from (select repeat('x', 1000) || g as t \
                          from n) a, generate_series(1, 2) b(i) where a.t <> b.i::text";
const ARRAY: &str = "select length(string_agg(repeat('x', 1000), '')) from n";

#[test]
fn operators_spill_at_work_mem_and_answer_the_same() {
    let fresh = with_numbers("256MB");
    let mut ample = connect(&fresh, "64MB", "-1");
    let mut little = connect(&fresh, "64kB", "-1");
    // Nothing can be spilled here. Whether a repartitioning has to depends on how its threads run.
    let mut nothing = connect(&fresh, "64kB", "0");
    for (query, spills) in [
        (SORT, Some(true)),
        (MANY_KEYS, Some(true)),
        (AGGREGATE, Some(true)),
        (DISTINCT, Some(true)),
        (WINDOW, Some(true)),
        (WHOLE_WINDOW, Some(true)),
        (HASH_JOIN, None),
        (CROSS_JOIN, Some(false)),
        (ARRAY, Some(false)),
    ] {
        let expected = rows(&mut ample, query).unwrap();
        let found = rows(&mut little, query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        assert!(found == expected, "{query}: another answer");
        match rows(&mut nothing, query) {
            Err(error) => {
                assert_ne!(spills, Some(false), "{query}: {error}");
                assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED, "{error:?}");
                let message = "temporary file size exceeds \"temp_file_limit\" (0kB)";
                assert_eq!(error.message, message);
            }
            Ok(found) => assert!(spills != Some(true) && found == expected, "{query}"),
        }
        wait_until_unused(&fresh);
    }
}

#[test]
fn queries_beyond_the_bound_of_all_end_or_spill() {
    let fresh = with_numbers("4MB");
    // More than there is: the bound of all counts.
    let mut c = connect(&fresh, "1GB", "-1");
    let joined = rows(&mut c, HASH_JOIN).unwrap();
    assert_eq!(joined, [[Value::Int8(30_000), Value::Int8(450_015_000)]]);
    wait_until_unused(&fresh);
    // It keeps no more than the two rows of its inner side.
    rows(&mut c, CROSS_JOIN).unwrap();
    wait_until_unused(&fresh);
    for query in [ARRAY, WHOLE_WINDOW] {
        let error = rows(&mut c, query).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{query}: {error:?}");
        assert_eq!(error.message, "out of memory", "{query}: {error:?}");
        assert!(
            error.detail.as_ref().unwrap().starts_with("Failed on request of size"),
            "{error:?}"
        );
        wait_until_unused(&fresh);
    }
    assert_eq!(rows(&mut c, "select 1").unwrap().len(), 1, "the session goes on");
}

/// A table of 8000 rows, which take several times as much as `work_mem`.
fn with_large_table() -> (Fresh, Connection) {
    let fresh = limited("64MB");
    let mut c = connect(&fresh, "1MB", "-1");
    c.batch(
        "create table t (k int primary key, v text); \
         insert into t select g, repeat('x', 700) from generate_series(1, 8000) g(g)",
    )
    .unwrap();
    (fresh, c)
}

/// Rows are changed while the query runs: only a join's rows are kept, in a file if they are many.
#[test]
fn changes_by_a_query_keep_no_rows() {
    let (fresh, mut c) = with_large_table();
    let update = "update t set v = o.v || 'y' from t o where o.k = t.k";
    c.batch("set temp_file_limit = '0'").unwrap();
    c.batch("insert into t select k + 100000, v from t").unwrap();
    let error = c.batch(update).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED);
    c.batch("reset temp_file_limit").unwrap();
    for (statement, count) in
        [(update, 16_000), ("delete from t using t o where o.k = t.k + 100000", 8_000)]
    {
        c.batch(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        wait_until_unused(&fresh);
        assert_eq!(rows(&mut c, "select count(*) from t").unwrap(), [[Value::Int8(count)]]);
    }
    let sums = rows(&mut c, "select min(k), max(k), min(length(v)) from t").unwrap();
    assert_eq!(sums, [[Value::Int4(100_001), Value::Int4(108_000), Value::Int4(701)]]);
}

#[test]
fn sort_by_the_executor_goes_to_a_file() {
    let (fresh, mut c) = with_large_table();
    for sql in [
        "select k, v from t order by v, k desc",
        "select k, v from t order by v, k desc for update",
        "select k, v from t where k > 0 order by v, k desc",
        "select k, v from t where k > 0 order by v, k desc limit 5000 offset 3000",
    ] {
        c.batch("set temp_file_limit = '0'").unwrap();
        if !sql.ends_with("for update") {
            let error = rows(&mut c, sql).unwrap_err();
            assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED, "{sql}: {error:?}");
        }
        c.batch("reset temp_file_limit").unwrap();
        let found = rows(&mut c, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let mut wanted: Vec<i32> = (1..=8000).collect();
        wanted.reverse();
        let skipped = if sql.ends_with("3000") { 3000 } else { 0 };
        let keys: Vec<_> = found.iter().map(|row| row[0].clone()).collect();
        let wanted: Vec<_> = wanted[skipped..].iter().map(|k| Value::Int4(*k)).collect();
        assert!(keys == wanted, "{sql}: another order");
        drop(found);
        wait_until_unused(&fresh);
    }
}

#[test]
fn windows_have_the_results_of_one_row_at_a_time() {
    let fresh = limited("24MB");
    let mut c = connect(&fresh, "4MB", "-1");
    let mut number = |sql: &str| match rows(&mut c, sql).unwrap()[0][0] {
        Value::Int8(number) => number,
        ref other => panic!("{other:?}"),
    };
    // Peers have equal lists: those of all rows would take 105 MB.
    let lists = "select array_agg(g) over (partition by g % 2 order by g / 500) as l \
                 from generate_series(0, 9999) g(g)";
    let sum = number(&format!("select sum(cardinality(l)) from ({lists}) x"));
    assert_eq!(sum, 2 * 250 * 250 * (1..=20).sum::<i64>());
    // Each row has a list of its own. The memory of those before it is given back.
    let lists = "select array_agg(g) over (order by g rows 400 preceding) as l \
                 from generate_series(1, 10000) g(g)";
    let sum = number(&format!("select sum(cardinality(l)) from ({lists}) x"));
    assert_eq!(sum, (1..=10_000_i64).map(|row| row.min(401)).sum::<i64>());
    drop(c);
    wait_until_unused(&fresh);
}

#[test]
fn long_results_of_functions_are_refused_before_they_are_made() {
    let fresh = limited("64MB");
    let mut c = connect(&fresh, "4MB", "-1");
    let of_series = |expression: &str| {
        format!("select max(length({expression})) from generate_series(1, 8) g(i)")
    };
    for (expression, state) in [
        ("lpad('x', 2000000000 + i, 'ab')", SqlState::PROGRAM_LIMIT_EXCEEDED),
        ("rpad(i::text, 1000000000 + i)", SqlState::OUT_OF_MEMORY),
        ("repeat('x', 1000000000 + i)", SqlState::OUT_OF_MEMORY),
        ("replace(repeat('a', 600000 + i), 'a', repeat('b', 100))", SqlState::OUT_OF_MEMORY),
        (
            "regexp_replace(repeat('a', 600000 + i), 'a', repeat('b', 100), 'g')",
            SqlState::OUT_OF_MEMORY,
        ),
        ("repeat('x', 30000000 + i) || repeat('y', 30000000)", SqlState::OUT_OF_MEMORY),
        ("concat(repeat('x', 30000000 + i), repeat('y', 30000000))", SqlState::OUT_OF_MEMORY),
    ] {
        let error = rows(&mut c, &of_series(expression)).unwrap_err();
        assert_eq!(error.sqlstate, state, "{expression}: {error:?}");
    }
    for (expression, length) in [
        ("lpad(i::text, 9, 'ä')", 9),
        ("repeat('xy', 100 + i)", 216),
        // The worst that the lengths allow does not happen.
        ("replace(repeat('a', 200000 + i), 'z', repeat('b', 100))", 200_008),
        ("regexp_replace(repeat('a', 20000 + i), 'z', repeat('b', 100), 'g')", 20_008),
        ("'x' || i || null::text || 'y'", 0),
        ("concat('x', i, null, 'y')", 3),
        ("concat_ws('--', 'x', i, null, 'y')", 7),
        ("lpad('x', 2000000000 + i, null)", 0),
    ] {
        let found = rows(&mut c, &of_series(expression)).unwrap();
        let length = if length == 0 { Value::Null } else { Value::Int4(length) };
        assert_eq!(found, [[length]], "{expression}");
    }
    wait_until_unused(&fresh);
}

#[test]
fn rows_of_a_portal_are_held_until_it_is_gone() {
    let (fresh, mut c) = with_large_table();
    let prepared = c.prepare("select k, v from t", &[]).unwrap();
    let mut portal = c.bind(&prepared, Default::default()).unwrap();
    c.execute_portal(&mut portal, 1, &mut common::Transcript::default()).unwrap();
    assert!(fresh.database.query_memory_used() > 0);
    let mut rest = common::Transcript::default();
    c.execute_portal(&mut portal, 0, &mut rest).unwrap();
    assert_eq!(rest.text.matches('x').count(), 7999 * 700);
    drop(portal);
    assert_eq!(fresh.database.query_memory_used(), 0);
}

#[test]
fn cancelled_query_gives_its_memory_back() {
    let fresh = limited("256MB");
    let mut c = connect(&fresh, "1MB", "-1");
    let handle = c.cancel_handle();
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        let database = &fresh.database;
        scope.spawn(move || {
            // As soon as it holds something, and again in case it had not begun.
            while is_done.try_recv().is_err() {
                if database.query_memory_used() > 0 {
                    handle.cancel();
                }
                thread::yield_now();
            }
        });
        let endless = "select count(*) from (select distinct a.i * 100000 + b.i \
                       from generate_series(1, 20000) a(i), generate_series(1, 20000) b(i)) x";
        let error = rows(&mut c, endless).unwrap_err();
        done.send(()).unwrap();
        assert_eq!(error.sqlstate, SqlState::QUERY_CANCELED, "{error:?}");
    });
    wait_until_unused(&fresh);
}

#[test]
fn index_builds_stay_within_temp_file_limit() {
    let fresh = limited("64MB");
    let mut c = connect(&fresh, "4MB", "128kB");
    c.batch("set maintenance_work_mem = '64kB'; create table t (k int, v text)").unwrap();
    c.batch("insert into t select g, lpad((g * 7919 % 100003)::text, 32, '0') from generate_series(1, 20000) g(g)").unwrap();
    let error = c.batch("create index on t (v)").unwrap_err();
    assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED);
    assert_eq!(error.message, "temporary file size exceeds \"temp_file_limit\" (128kB)");
    c.batch("set temp_file_limit = -1; create index on t (v)").unwrap();
}
