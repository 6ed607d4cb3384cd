//! Plans for ranges of an index: what is read by index and what page by page, for values that a
//! text has and for those that come when it runs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use millpond::{Connection, Value};

use crate::common::{Fresh, fresh, run};

const ROWS: i32 = 20_000;

/// A table whose index has the rows in the opposite order, so that the order of a result shows how
/// it was found.
fn with_table() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(&format!(
        "create table t (k int primary key, v int, g int); \
         insert into t select i, {ROWS} - i, i % 1000 from generate_series(1, {ROWS}) i; \
         create index on t (v); create index on t (g, v); \
         create table few (k int primary key, g int); \
         insert into few select i, i from generate_series(1, 500) i; \
         analyze t; analyze few"
    ))
    .unwrap();
    (fresh, c)
}

fn plan(c: &mut Connection, query: &str) -> String {
    let lines = c.query(&format!("explain {query}"), &[]).unwrap().rows;
    lines.iter().map(|line| format!("{:?}\n", line[0])).collect()
}

/// Whether rows came by the index.
fn by_index(rows: &[Vec<Value>]) -> bool {
    let number = |row: &Vec<Value>| match row[0] {
        Value::Int4(number) => number,
        _ => panic!("a number was expected"),
    };
    let (first, last) = (number(&rows[0]), number(&rows[rows.len() - 1]));
    assert_ne!(first, last);
    first > last
}

#[test]
fn many_rows_are_read_page_by_page() {
    let (_fresh, mut c) = with_table();
    for (condition, index) in [
        ("v > 19000", true),
        ("v > 19000 and k > 0", true),
        ("v between 100 and 300", true),
        ("v < 10 or v > 19990", true),
        ("v = 7", true),
        ("g = 7 and v > 100", true),
        ("v > 5", false),
        ("v >= 0 and k <> 5", false),
        ("v between 100 and 19000", false),
        ("v < 9000 or v > 19990", false),
        ("v > -1 - 1", false),
    ] {
        for query in [
            format!("select k from t where {condition}"),
            format!("update t set g = 0 where {condition}"),
            format!("select g, count(*) from t where {condition} group by g"),
        ] {
            let plan = plan(&mut c, &query);
            assert_eq!(plan.contains("Index Scan"), index, "{query}: {plan}");
        }
    }
    // Where the order is wanted, too, the index gives it.
    assert!(plan(&mut c, "select k from t where v > 5 order by v limit 3").contains("Index Scan"));
    // The rows that are wanted may be the last of the table.
    for query in [
        "select k from t where v < 15000 limit 3",
        "select k, v from t where v < 15000 offset 5 limit 3",
        "select distinct on (k) k from (select k from t where v < 15000 limit 3) s",
        "select a.k from t a join t b on b.k = a.g where a.v < 15000 limit 3",
    ] {
        assert!(plan(&mut c, query).contains("Index Scan using t_v_idx"), "{query}");
    }
}

#[test]
fn a_prepared_statement_gets_the_plan_for_its_values() {
    let (_fresh, mut c) = with_table();
    for query in ["select k from t where v >= $1", "select k from t where v + 0 >= 0 and v >= $1"] {
        for (from, rows, index) in [
            (19_900, 100, true),
            (19_800, 200, true),
            (0, 20_000, false),
            (5, 19_995, false),
            (19_990, 10, true),
            (17_000, 3_000, true),
        ] {
            let found = c.query(query, &[Value::Int4(from)]).unwrap().rows;
            assert_eq!((found.len(), by_index(&found)), (rows, index), "{query} {from}");
        }
    }
    c.batch("prepare p (int) as select k from t where v >= $1").unwrap();
    for (from, index) in [(0, false), (19_000, true), (0, false)] {
        assert_eq!(by_index(&c.query(&format!("execute p({from})"), &[]).unwrap().rows), index);
        assert_eq!(plan(&mut c, &format!("execute p({from})")).contains("Index Scan"), index);
    }
}

#[test]
fn texts_that_differ_in_a_literal_do_too() {
    let (fresh, mut c) = with_table();
    let mut other = fresh.database.connect().unwrap();
    for (from, rows, index) in
        [(0, 20_000, false), (19_900, 100, true), (19_000, 1_000, true), (1, 19_999, false)]
    {
        for c in [&mut c, &mut other] {
            let found = run(c, &format!("select k from t where v >= {from}"));
            let numbers = found.lines().filter_map(|line| line.parse().ok());
            let found: Vec<_> = numbers.map(|number| vec![Value::Int4(number)]).collect();
            assert_eq!((found.len(), by_index(&found)), (rows, index), "{from}");
        }
        // A text between, with a plan of its own.
        assert!(run(&mut c, "select count(*) from t where g = 3 and v > 17").contains("20"));
    }
}

#[test]
fn joins_are_ordered_by_what_ranges_have() {
    let (_fresh, mut c) = with_table();
    let few = plan(&mut c, "select count(*) from t a join t b on b.k = a.g where a.v > 19950");
    assert!(few.contains("Nested Loop") && !few.contains("Seq Scan"), "{few}");
    let many = plan(&mut c, "select count(*) from t a join t b on b.k = a.g where a.v > 10");
    assert!(many.contains("Hash Join"), "{many}");
    // What another index says of a column behind the key of a join, or of one that is filtered.
    let query = "select count(*) from few join t on t.g = few.g where t.v >";
    let (all, none) =
        (plan(&mut c, &format!("{query} 10")), plan(&mut c, &format!("{query} 19990")));
    assert!(all.contains("Hash Join") && !none.contains("Seq Scan on t"), "{all}{none}");
}

#[test]
fn values_that_no_key_has_and_errors_are_as_without_estimates() {
    let (_fresh, mut c) = with_table();
    let count = |c: &mut Connection, value| {
        c.query("select count(*) from t where v >= $1::bigint", &[value]).unwrap().rows[0][0]
            .clone()
    };
    for (value, rows) in [
        (Value::Int8(i64::MAX), 0),
        (Value::Int8(i64::MIN), i64::from(ROWS)),
        (Value::Null, 0),
        (Value::Int8(10), i64::from(ROWS) - 10),
    ] {
        assert_eq!(count(&mut c, value), Value::Int8(rows));
    }
    for (value, rows) in [(1, 19_899), (0, 0), (-1, 20_000)] {
        match c.query("select count(*) from t where v > 100 / $1", &[Value::Int4(value)]) {
            Ok(found) => assert_eq!(found.rows[0][0], Value::Int8(rows)),
            Err(error) => assert_eq!((value, error.sqlstate.as_str()), (0, "22012")),
        }
    }
    // The index goes while the plan is kept.
    for _ in 0..2 {
        c.query("select count(*) from t where v > $1", &[Value::Int4(7)]).unwrap();
        c.batch("drop index if exists t_v_idx").unwrap();
    }
}

/// Whether there is a row is known after the first, and so is what a LIMIT wants of UNION ALL.
#[test]
fn the_first_rows_are_found_by_index() {
    let (_fresh, mut c) = with_table();
    for query in [
        "select exists(select 1 from t where v < 15000)",
        "select k from few where k = 7 and not exists(select from t where v < 15000)",
        "(select k from t where v < 15000) union all (select k from few) limit 3",
    ] {
        assert!(plan(&mut c, query).contains("Index Scan using t_v_idx"), "{query}");
    }
    for query in [
        "select count(*) from t where v < 15000 limit 1",
        "(select k from t where v < 15000) union (select k from few) limit 3",
        "select exists(select count(*) from t where v < 15000)",
    ] {
        assert!(plan(&mut c, query).contains("Seq Scan on t"), "{query}");
    }
}

/// The clock is that of the transaction, also for the first statement of a connection.
#[test]
fn values_of_the_clock_are_those_of_the_statement() {
    let (fresh, mut c) = with_table();
    c.batch(
        "create table e (k int primary key, at timestamptz); \
         insert into e select i, now() - (20000 - i) * interval '1 minute' \
             from generate_series(1, 20000) i; \
         create index on e (at desc); analyze e",
    )
    .unwrap();
    let mut late = fresh.database.connect().unwrap();
    for (since, index) in [("1 day", true), ("12 days", false), ("1 day", true)] {
        let query = format!("select k from e where at > now() - interval '{since}'");
        let found = late.query(&query, &[]).unwrap().rows;
        assert_eq!(by_index(&found), index, "{since}");
        // With a comment it is no text for the lexer.
        let shown = run(&mut late, &format!("/* x */ {query}"));
        let numbers: Vec<i32> = shown.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(numbers.first() > numbers.last(), index, "{since}");
    }
}

/// A plan that was made while the table was small does not stay when it has grown.
#[test]
fn a_plan_goes_with_the_growth_of_its_table() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key, v int); create index on t (v)").unwrap();
    let query = "select k from t where v >= $1";
    assert!(c.query(query, &[Value::Int4(0)]).unwrap().rows.is_empty());
    c.batch("insert into t select i, 30000 - i from generate_series(1, 30000) i").unwrap();
    for (from, index) in [(0, false), (29_000, true)] {
        assert_eq!(by_index(&c.query(query, &[Value::Int4(from)]).unwrap().rows), index, "{from}");
    }
}

#[test]
fn a_value_that_a_column_cannot_have_leaves_the_next_column_alone() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table t (a int, b text, c int8, d int2); \
         insert into t select i, 'x' || i % 10, i, i % 100 from generate_series(1, 5000) i; \
         create index on t (a, b); create index on t (d, c); \
         create table o (a int8, b text, n int8); \
         insert into o values (7, 'x7', 7), (null, 'x7', 7), (3000000000, 'x7', 100000), (8, null, null); \
         analyze t; analyze o",
    )
    .unwrap();
    let mut count = |sql: &str, params: &[Value]| {
        let rows = c.query(sql, params).unwrap_or_else(|error| panic!("{sql}: {error}")).rows;
        rows.len()
    };
    let x7 = Value::Text("x7".into());
    let (null, beyond) = (Value::Null, Value::Int8(3_000_000_000));
    let one = "select 1 from t where a = $1 and b = $2";
    assert_eq!(count(one, &[Value::Int4(7), x7.clone()]), 1);
    assert_eq!(count(one, &[null.clone(), x7.clone()]), 0);
    assert_eq!(count(one, &[Value::Int4(7), null.clone()]), 0);
    let wide = "select 1 from t where a = $1::int8 and b = $2";
    assert_eq!(count(wide, &[beyond, x7]), 0);
    let narrow = "select 1 from t where d = $1::int8 and c = $2";
    assert_eq!(count(narrow, &[Value::Int8(7), Value::Int8(107)]), 1);
    assert_eq!(count(narrow, &[Value::Int8(70_000), Value::Int8(7)]), 0);
    assert_eq!(count(narrow, &[null, Value::Int8(7)]), 0);
    for join in ["o.a = t.a and o.b = t.b", "o.n = t.d and o.a = t.c"] {
        assert_eq!(count(&format!("select 1 from o join t on {join}"), &[]), 1, "{join}");
        assert_eq!(count(&format!("select 1 from o left join t on {join}"), &[]), 4, "{join}");
        let exists = format!("select 1 from o where not exists (select 1 from t where {join})");
        assert_eq!(count(&exists, &[]), 3, "{join}");
    }
}
