//! Aggregations by the second executor: which it gets, and that its answers are those of the first.
#![cfg(feature = "datafusion")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use common::{Fresh, fresh};
use millpond::{Connection, Value};

/// A table that is large enough.
fn with_table() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table t (k int primary key, g int, n numeric(12, 2), v text, d date); \
         insert into t select i, i % 7, i, 'x' || i, date '2000-01-01' + i \
             from generate_series(1, 5000) i; \
         analyze t",
    )
    .unwrap();
    (fresh, c)
}

fn is_accelerated(c: &mut Connection, query: &str) -> bool {
    let plan = c.query(&format!("explain {query}"), &[]).unwrap().rows;
    format!("{plan:?}").contains("Accelerated: true")
}

#[test]
fn aggregates_of_large_tables_are_accelerated() {
    let (_fresh, mut c) = with_table();
    for query in [
        "select g, count(*), sum(n), max(v) from t group by g order by g",
        "select count(*) from t a join t b on a.g = b.g where a.v like 'x1%' and b.k + 1 > 7",
        "select substring(v from 1 for 2), min(k) from t where g in (1, 2) group by 1",
        "select count(*) from t where d < date '2001-01-31' + interval '1 month'",
        "select sum(n * (1 - n) * (1 + n)) from t where d >= timestamptz '2001-01-01 00:00+00'",
        "select g, avg(n / 3) over (order by g) from (select g, sum(n) as n from t group by g) s",
        "with w as (select g, sum(k) s from t group by g) select * from w a, w b",
    ] {
        assert!(is_accelerated(&mut c, query), "{query}");
    }
}

#[test]
fn other_queries_are_not() {
    let (_fresh, mut c) = with_table();
    for query in [
        "select * from t order by v",
        "select a.k from t a join t b on a.v = b.v",
        "select max(length(regexp_replace(v, '(x|y)*q', ''))) from t",
        "select count(repeat(v, 10)) from t",
        "select count(*) from t where ctid < '(3,1)'",
        "select tableoid, sum(k) from t group by 1",
        "select array_agg(k) from t",
        "select count(*) from t, generate_series(1, 10) i",
        "select count(*) from pg_class a, t",
        "select count(*) from (select k from t union all select g from t) x",
        "select k, (select count(*) from t b where b.g > a.g) from t a where k < 3",
    ] {
        assert!(!is_accelerated(&mut c, query), "{query}");
    }
}

/// What the second executor has written to the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// A log of this thread's messages, as long as what is returned with it is there.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

/// Tables of values of all types, with extremes.
fn with_values() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table a (id int primary key, b bool, s smallint, i int, l bigint, r real, f float, \
            n numeric(15, 2), w numeric(38, 10), free numeric, t text, c char(6), d date, \
            ts timestamp, tz timestamptz, x bytea);
        insert into a select g, g % 3 = 0, g % 100 - 50, g * 7919 % 1000 - 500, \
            g::bigint * 1000003 % 100000, g / 3.0, g / 7.0, g / 4.0, g / 7.0, g / 7.0, \
            'text ' || g % 40, 'c' || g % 9, date '1999-12-01' + g, \
            timestamp '1999-12-31' + g * interval '1 hour', \
            timestamptz '2000-01-01 00:00+00' + g * interval '7 minutes', '\\x00' \
            from generate_series(1, 3000) g;
        insert into a values
            (-1, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
            (-2, true, 32767, 2147483647, 9223372036854775807, 'NaN', '-0', 9999999999999.99, \
             9999999999999999999999999999.9999999999, 1e30, 'Ünï', 'ä', 'infinity', 'infinity', \
             '-infinity', '\\xff'),
            (-3, false, -32768, -2147483648, -9223372036854775808, '-Infinity', 'NaN', \
             -9999999999999.99, -0.0000000001, -0.0, '', '', '-infinity', '-infinity', 'infinity', ''),
            (-4, false, 0, 0, 0, 0, 0, 0, 0, 0.000, 'TEXT 3', 'c1', '4713-01-01 BC', \
             '0001-01-01', '1900-06-15 12:00+00', '\\x');
        create table o (i int, n numeric(8, 3), t text);
        insert into o select g, g / 8.0, 'text ' || g % 50 from generate_series(-500, 500, 3) g;
        insert into o values (null, null, null);
        analyze a; analyze o",
    )
    .unwrap();
    (fresh, c)
}

/// The rows of a query in one order, or its error.
fn answer(c: &mut Connection, query: &str) -> String {
    match c.query(query, &[]) {
        Ok(rows) => {
            let mut lines: Vec<String> = rows.rows.iter().map(|row| line(row)).collect();
            lines.sort();
            lines.join("\n")
        }
        Err(error) => error.to_string(),
    }
}

fn line(row: &[Value]) -> String {
    let mut line = String::new();
    for value in row {
        // A number with its digits after the point.
        match value {
            Value::Numeric(number) => write!(line, "{}|", number.as_ref()).unwrap(),
            other => write!(line, "{other:?}|").unwrap(),
        }
    }
    line
}

/// The answers of the first and of the second executor, and what the second wrote to the log.
fn compared(c: &mut Connection, log: &Log, query: &str) -> (String, String, String) {
    c.batch("set accelerator = off").unwrap();
    let expected = answer(c, query);
    c.batch("set accelerator = force").unwrap();
    log.take();
    let found = answer(c, query);
    (expected, found, log.take())
}

/// Queries that the second executor answers.
const ANSWERED: &[&str] = &[
    "select count(*), count(i), count(distinct s), sum(s), sum(i), min(l), max(n), min(t), max(d) from a",
    "select b, count(*), min(ts), max(tz), min(w), max(c), bool_and(i > 0), bool_or(b) from a group by b",
    "select s, avg(s), avg(i), avg(n), sum(n) from a group by s",
    "select t, sum(n * (1 - 0.05)), avg(n + 1), sum(-n) from a where id > 0 group by t",
    "select t, sum(case when i > 400 then n * 1.005 else 0 end), avg(coalesce(n, 0)) from a group by t",
    "select c, count(*) filter (where i % 2 = 0), sum(s) filter (where b) from a group by c",
    "select extract(year from d), count(*) from a where id > 0 group by 1",
    "select date_trunc('day', ts), sum(i) from a where id > 0 group by 1",
    "select upper(substring(t from 1 for 6)), length(c), count(*) from a group by 1, 2",
    "select count(*) from a where f > 100 or r = 0 or f = 0 or f = 'NaN'",
    "select count(*) from a where t like '%t 1%' and t not like 'text 1_' and d between '2000-01-01' and '2003-01-01'",
    "select count(*), sum(o.n), avg(a.n * o.n) from a join o on a.i = o.i where a.id > 0",
    "select a.s, count(o.i), sum(o.n) from a left join o on a.i = o.i and o.n > 3 group by a.s",
    "select count(*), count(a.i), count(o.i) from a full join o on a.t = o.t and a.i = o.i",
    "select count(*) from a where exists (select 1 from o where o.i = a.i and o.t <> a.t)",
    "select count(*) from a where not exists (select 1 from o where o.i = a.i)",
    "select count(*) from a where i is distinct from s and (b is not true or n is null)",
    "select count(*) from a where i in (1, 2, null, 5) or s not in (3, 4)",
    "select s, max(total) from (select s, i, sum(n) as total from a group by s, i) x group by s",
    "select grouping(b), b, count(*) from a group by b",
    "select cast(n as int), count(*) from a where abs(n) < 1000 group by 1",
    "select avg(f), sum(f) from a where id between 1 and 64",
    "select sum(l) from a where id <> -2 and id <> -3",
    "select x, count(*) from a group by x",
    "select t, sum(n * (1 - n) * (1 + n)), avg(n * n * n) from a where id > 0 group by t",
    "select count(*) from a where d < date '2001-01-31' + interval '1 month' and d > ts",
    "select count(*) from a where d <= tz and d >= date '2000-03-01' - interval '90' day",
];

/// Queries that it leaves to the first executor: what they compute may be something else there.
const DECLINED: &[&str] = &[
    "select sum(free), avg(free) from a",
    "select f, count(*) from a group by f",
    "select min(r), max(f) from a",
    "select sum(f) from a",
    "select sum(w * w * w) from a",
    "select sum(l * l) from a",
    "select sum(i / s) from a",
    "select sum(n / 3) from a",
    "select max(case when b then n else 0 end) from a",
    "select extract(second from ts), count(*) from a group by 1",
    "select extract(year from d), count(*) from a group by 1",
    "select count(distinct n), sum(distinct n), sum(n) from a",
    // 0 and -0 are one value.
    "select count(distinct f), count(*) from a",
    "select avg(distinct f), count(*) from a",
    "select count(distinct f), avg(distinct f) from a where id between 1 and 64",
    // No kernel compares the keys, so each pair of rows would be looked at.
    "select count(*) from a join o on a.f = o.i",
    "select count(*), count(o.i) from a left join o on a.n = o.n / 2",
    "select count(*), count(o.i) from a full join o on a.f = o.i::float",
    "select sum(r) from a",
];

/// Each query of WITH doubles what is below it; and planning of many joins can't be interrupted.
#[test]
fn chains_of_queries_are_not_accelerated() {
    let (_fresh, mut c) = with_table();
    let mut query = "with c0 as (select k from t limit 1)".to_owned();
    for i in 1..18 {
        query += &format!(", c{i} as (select a.k from c{0} a, c{0} b)", i - 1);
    }
    query += " select count(*) from c17";
    assert!(!is_accelerated(&mut c, &query));
    let chain = (1..70).map(|i| format!(" join t t{i} using (k)")).collect::<String>();
    assert!(!is_accelerated(&mut c, &format!("select count(*) from t{chain}")));
}

#[test]
fn answers_are_the_same() {
    let (_fresh, mut c) = with_values();
    let (log, _guard) = Log::begin();
    let mut wrong = String::new();
    let queries = ANSWERED.iter().map(|query| (query, false));
    for (query, declined) in queries.chain(DECLINED.iter().map(|query| (query, true))) {
        let (expected, found, lines) = compared(&mut c, &log, query);
        if lines.contains("is declined") != declined {
            writeln!(wrong, "{query}\nis declined: {}\n{lines}", !declined).unwrap();
        }
        if found != expected {
            writeln!(wrong, "{query}\n{found}\ninstead of\n{expected}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Tables that are read in several parts, if there are several processors. `l` has many rows, and
/// `w` is large enough that a join hashes it in parts.
fn with_large_tables() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table l (id int primary key, k int, n numeric(12, 2), t text, filler text);
        insert into l select g, nullif(g % 2000, 7), g / 4.0, 'text ' || g % 13, repeat('x', 200) \
            from generate_series(1, 12000) g;
        create table w (k int, s smallint, n numeric(12, 2), f1 text, f2 text, f3 text);
        insert into w select nullif(g % 3000, 11), g % 50, g / 8.0, repeat('y', 1900), \
            repeat('y', 1900), repeat('y', 1900) from generate_series(1, 6000) g;
        create table f (k int, n numeric(12, 2), t text);
        insert into f select nullif(g, 900) * 3, g, 'text ' || g % 17 from generate_series(1, 1000) g;
        create table u (k int unique, n numeric(12, 2), t text);
        insert into u select * from f;
        analyze l; analyze w; analyze f; analyze u",
    )
    .unwrap();
    (fresh, c)
}

/// Queries, and what operators they are to have.
const IN_PARTS: &[(&str, &[&str])] = &[
    ("select count(*), sum(n), min(t), avg(k) from l", &["mode=Final,"]),
    ("select t, count(*), sum(n) from l group by t", &["mode=FinalPartitioned", "Hash([k0"]),
    (
        "select t, count(distinct k), sum(distinct k), max(distinct k) from l group by t",
        &["mode=FinalPartitioned", "gby=[k0@0 as k0, k1@1 as k1]"],
    ),
    ("select count(distinct k), sum(distinct k), avg(distinct k) from l", &["mode=Final,", "k0"]),
    ("select t, sum(distinct n), avg(distinct n) from l group by t", &["k1@1 as k1"]),
    ("select sum(distinct k::bigint), count(distinct k::bigint) from l", &["k0"]),
    (
        "select t, count(distinct k) filter (where id > 50) from l group by t",
        &["mode=FinalPartitioned", "gby=[k0@0 as k0]"],
    ),
    (
        "select t, count(distinct k), count(*) from l group by t",
        &["mode=FinalPartitioned", "gby=[k0@0 as k0]"],
    ),
    // What has a part in common computes it once.
    (
        "select sum(n * (1 - n)), sum(n * (1 - n) * (1 + n)), count(*) filter (where n * (1 - n) < -100) from l",
        &["as s0"],
    ),
    // But not what a condition may prevent.
    (
        "select sum(case when k > 0 then k * k else 0 end), sum(k * k) from l",
        &["AggregateExec: mode=Partial, gby=[], aggr=[a0, a1]\n      StreamingTableExec"],
    ),
    ("select count(*), sum(l.n), sum(f.n) from l join f on l.k = f.k", &["mode=CollectLeft"]),
    (
        "select count(*), sum(l.n), count(f.k), sum(f.n) from l left join f on l.k = f.k and f.n > 30",
        &["mode=CollectLeft"],
    ),
    (
        "select count(*), sum(l.n), count(l.k), count(f.k) from l full join f on l.k = f.k and l.t < f.t",
        &["mode=CollectLeft", "Full"],
    ),
    (
        "select count(*), sum(f.n), count(l.id) from f left join l on l.k = f.k and l.id > 100",
        &["mode=CollectLeft, join_type=Left,"],
    ),
    (
        "select count(*), sum(n) from l where exists (select 1 from f where f.k = l.k and f.t <> l.t)",
        &["mode=CollectLeft, join_type=RightSemi,"],
    ),
    (
        "select count(*), sum(n) from l where not exists (select 1 from f where f.k = l.k and f.t <> l.t)",
        &["mode=CollectLeft, join_type=RightAnti,"],
    ),
    (
        "select count(*), sum(n) from u where exists (select 1 from l where u.k = l.k and u.t <> l.t)",
        &["mode=CollectLeft, join_type=LeftSemi,"],
    ),
    (
        "select count(*), sum(n) from u where not exists (select 1 from l where u.k = l.k and u.t <> l.t)",
        &["mode=CollectLeft, join_type=LeftAnti,"],
    ),
    (
        "select f.t, count(*), sum(l.n) from f, l where f.k < l.k and l.id < 40 group by f.t",
        &["NestedLoopJoinExec"],
    ),
    (
        "select f.t, count(*), count(l.id) from f left join l on f.k < l.k and l.id < 40 group by f.t",
        &["NestedLoopJoinExec: join_type=Left"],
    ),
    (
        "select count(*), count(l.id) from f full join (select * from l where id < 200) l on f.k > l.k + 990 and f.t < l.t",
        &["NestedLoopJoinExec: join_type=Full"],
    ),
    (
        "select count(*), sum(n) from f where exists (select 1 from l where f.k > l.k + 990 and id < 200)",
        &["NestedLoopJoinExec: join_type=LeftSemi"],
    ),
    (
        "select count(*), sum(n) from f where not exists (select 1 from l where f.k > l.k + 990 and id < 200)",
        &["NestedLoopJoinExec: join_type=LeftAnti"],
    ),
    ("select count(*), sum(f.n) from f, (select count(*) as c from l) x", &["CrossJoinExec"]),
    ("select count(*), sum(a.n), sum(b.n) from w a join w b on a.k = b.k", &["mode=Partitioned"]),
    (
        "select count(*), count(a.k), count(b.k), sum(b.n) from w a full join w b on a.k = b.k and a.s < b.s",
        &["mode=Partitioned", "Full"],
    ),
    (
        "select a.s, count(*) from w a left join w b on a.k = b.k + 1500 group by a.s",
        &["mode=Partitioned"],
    ),
    (
        "select count(*), sum(n) from w a where not exists (select 1 from w b where a.k = b.k + 700)",
        &["mode=Partitioned"],
    ),
    (
        "select s, sum(total), count(*) from (select w.s, l.t, sum(l.n) as total from w join l using (k) group by 1, 2) x group by s",
        &["HashJoinExec"],
    ),
];

#[test]
fn answers_in_parts_are_the_same() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: there is one processor");
        return;
    }
    let (_fresh, mut c) = with_large_tables();
    let (log, _guard) = Log::begin();
    let mut wrong = String::new();
    for (query, operators) in IN_PARTS {
        let (expected, found, lines) = compared(&mut c, &log, query);
        let missing = operators.iter().any(|operator| !lines.contains(operator));
        if lines.contains("is declined") || missing {
            writeln!(wrong, "{query}\nnot {operators:?}\n{lines}").unwrap();
        }
        if found != expected {
            writeln!(wrong, "{query}\n{found}\ninstead of\n{expected}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
