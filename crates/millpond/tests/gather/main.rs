//! Scans on several threads: the answers are those of one thread, in the same order, and a
//! statement that ends takes its threads along.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod limits;
mod others;
mod outer_joins;
mod parts;
mod sorts;

use common::{Fresh, fresh};
use millpond::{Connection, SqlState, Value};

/// Tables of some hundred pages; any scan may have help.
fn with_tables() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table item (id int, line int, part int, n numeric(15, 2), v text, d date, \
            primary key (id, line)); \
         insert into item select i / 4, i % 4, i * 7919 % 1000, i / 8.0, 'text ' || i % 50, \
            date '2000-01-01' + i % 700 from generate_series(1, 20000) i; \
         create table part (id int primary key, name char(10), size int); \
         insert into part select i, 'p' || i % 20, case when i % 9 = 0 then null else i % 50 end \
            from generate_series(0, 900) i; \
         create table ord (id int primary key, status char(1), total numeric(12, 2)); \
         insert into ord select i, case when i % 3 = 0 then 'F' else 'O' end, i * 1.5 \
            from generate_series(0, 5000, 2) i; \
         create table loose (part int, note text); \
         insert into loose select nullif(i % 40, 7) * 20, 'note ' || i \
            from generate_series(1, 200) i",
    )
    .unwrap();
    for table in ["item", "part", "ord", "loose"] {
        c.batch(&format!("vacuum {table}")).unwrap();
    }
    c.batch("set accelerator = off").unwrap();
    (fresh, c)
}

fn alone(c: &mut Connection) {
    c.batch("set max_parallel_workers_per_gather = 0").unwrap();
}

fn together(c: &mut Connection) {
    c.batch("set max_parallel_workers_per_gather = 3; set min_parallel_table_scan_size = 0")
        .unwrap();
}

fn rows(c: &mut Connection, query: &str) -> Vec<Vec<Value>> {
    c.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).rows
}

fn plan(c: &mut Connection, query: &str) -> String {
    let lines = rows(c, &format!("explain {query}"));
    lines.iter().map(|line| format!("{:?}\n", line[0])).collect()
}

const GATHERED: &[&str] = &[
    // Filters alone.
    "select id, line from item where n > 1000 and v like '%7' order by v, id, line",
    "select v, sum(n / 3) from item where part < 500 group by v having count(*) > 3 order by 1",
    "select line, count(*) from item where rtrim(v) = 'text 7' and n > 10 group by line order by 1",
    // Hash tables: one key each, many of a key, none of them.
    "select i.id, p.name from item i join part p on p.id + 0 = i.part where i.line = 2 order by 1, 2",
    "select i.id, l.note from item i, loose l where l.part = i.part and i.n > 100 order by 1, 2",
    "select count(*), count(l.part) from item i left join loose l on l.part = i.part and l.note <> v",
    "select count(*) from item i where part + 0 in (select part from loose) and line > 0",
    "select count(*) from item i where not exists (select 1 from loose l where l.part = i.part)",
    "select sum(size) from item i join part p on p.id + 0 = i.part join ord o on o.id + 0 = i.id \
        join loose l on l.part = p.id where o.status = 'F' and i.n > p.size",
    // The side whose rows are given is the smaller one.
    "select count(*), sum(l.part) from loose l where exists (select 1 from item i where i.part = l.part \
        and i.n > 5)",
    "select note from loose l where not exists (select 1 from item i where i.part = l.part \
        and i.line = 3 and i.v <> l.note and i.n < 900) order by 1",
    // One match is looked for from where the last one was.
    "select count(*), sum(i.n) from item i where exists (select 1 from item j where j.part = i.part \
        and j.line = i.line and j.n > i.n + 3)",
    "select i.id, i.line from item i where not exists (select 1 from item j where j.v = i.v \
        and j.n < i.n) order by 1, 2",
    // Rows found by an index.
    "select i.id, i.line, p.name from item i join part p on p.id = i.part where i.v = 'text 9' order by 1, 2",
    "select count(*), sum(i.n) from ord o join item i on i.id = o.id where o.status = 'F' and i.line <> 1",
    "select count(*), count(i.id), sum(i.n) from ord o left join item i on i.id = o.id and i.line = 1 \
        and i.n > 500 where o.total > 100",
    "select count(*) from ord o where status = 'O' and exists (select 1 from item i where i.id = o.id \
        and i.n > o.total)",
    "select count(*) from ord o where status = 'O' and not exists (select 1 from item i \
        where i.id = o.id and i.n < o.total and i.line > 1)",
    "select p.name, o.status, sum(i.n) from item i join ord o on o.id = i.id join part p on p.id = i.part \
        where p.size > 10 and i.line < 3 group by 1, 2 order by 1, 2",
    // Subqueries that are run once, and computed columns.
    "select count(*) from item where n > (select avg(n) from item where line = 1)",
    "select count(*), sum(x) from (select id * 2 as x, part from item where line = 3) s \
        join part p on p.id + 0 = s.part where x > 100",
    "with w as (select part, count(*) as c from item where n > 50 group by part) \
        select count(*), sum(c) from w join part p on p.id = w.part",
    // Where rows are, of rows that threads have found.
    "select i.ctid::text, p.ctid::text, i.tableoid = p.tableoid from item i \
        join part p on p.id + 0 = i.part where i.v = 'text 9' order by 1, 2",
    "select max(i.ctid)::text, min(o.ctid)::text from item i join ord o on o.id = i.id where i.line < 2",
    // Functions that only threads of the executor have.
    "select line, count(*) from item where ('{\"a\": ' || line || ', \"b\": [\"' || v || '\"]}')::jsonb ->> 'a' = '2' \
        and split_part(v, ' ', 2) > '3' group by line order by 1",
    "select id, line from item where ('{\"a\": [\"' || v || '\"]}')::jsonb #>> '{a,0}' = 'text 9' order by n, 1, 2",
    "select id from item where string_to_array(v, ' ') @> array['text', '7'] or round(n) = 17 order by n, id",
    "select id from item where to_char(d::timestamptz, 'YYYY OF') = '2001 +01' and initcap(v) = 'Text 5' \
        order by n, id",
    // Searches that may take long, if not here.
    "select id, line from item where v ~ '^t.*[37]$' and regexp_replace(v, '(t)ext', '\\1') = 't 7' order by n, 1, 2",
    "select id from item where substring(v from 't 9$') = 't 9' and line = 1 order by n, 1",
    "select id from item where ('{\"a\": [\"' || v || '\", 1]}')::jsonb @> '{\"a\": [\"text 9\"]}' and line = 1 \
        order by n, 1",
    "select id from item where ('{\"a\": ' || id || '}')::jsonb @? '$.a ? (@ > 4990)' order by n, 1",
    "select id from item where width_bucket(n, 0, 3000, 30) = 7 and power(line, 2) > 3 order by n, 1",
    // Sides of set operations.
    "select id from item where line = 1 and n > 1200 except select id from ord where status = 'F' order by 1",
];

#[test]
fn answers_are_those_of_one_thread() {
    each_is_as_of_one_thread(GATHERED);
}

/// Runs queries with one thread and with several. The rows are the same, in the same order.
fn each_is_as_of_one_thread(queries: &[&str]) {
    let (_fresh, mut c) = with_tables();
    c.batch("set timezone = 'CET-1CEST'").unwrap();
    for query in queries {
        alone(&mut c);
        let expected = rows(&mut c, query);
        assert!(!plan(&mut c, query).contains("Gather"), "{query}");
        assert!(!expected.is_empty(), "{query}");
        together(&mut c);
        let shown = plan(&mut c, query);
        assert!(shown.contains("Parallel Seq Scan"), "{query}\n{shown}");
        for _ in 0..3 {
            assert_eq!(rows(&mut c, query), expected, "{query}\n{shown}");
        }
    }
}

/// Threads get the bytes of rows alone.
#[test]
fn conditions_on_the_place_of_a_row_stay_with_the_session() {
    let (_fresh, mut c) = with_tables();
    for query in [
        "select count(*) from item where ctid < '(3,1)'",
        "select count(*) from item i join part p on p.id + 0 = i.part and p.ctid > i.ctid",
    ] {
        alone(&mut c);
        let expected = rows(&mut c, query);
        assert_ne!(expected, [[Value::Int8(0)]], "{query}");
        together(&mut c);
        assert_eq!(rows(&mut c, query), expected, "{query}");
    }
}

#[test]
fn rows_come_in_the_order_of_the_table() {
    let (_fresh, mut c) = with_tables();
    let query = "select id, line, n from item where v < 'text 3' and part <> 17 union all \
        select i.id, i.line, o.total from item i join ord o on o.id = i.id where i.n > 7";
    alone(&mut c);
    let expected = rows(&mut c, query);
    together(&mut c);
    assert_eq!(rows(&mut c, query), expected);
}

#[test]
fn what_is_not_read_to_its_end_stays_with_the_session() {
    let (_fresh, mut c) = with_tables();
    together(&mut c);
    for query in [
        "select * from item where n > 10 and line = 1 limit 3",
        "select i.id from item i join part p on p.id + 0 = i.part limit 3",
        "select p.id, (select count(*) from item i where i.part = p.id) from part p where p.id < 3",
        "select * from item where v like 'x%' for update",
    ] {
        let shown = plan(&mut c, query);
        assert!(!shown.contains("Gather"), "{query}\n{shown}");
    }
    // A sort reads all of its rows.
    let shown = plan(&mut c, "select * from item where n > 10 order by v limit 3");
    assert!(shown.contains("Workers Planned: 3"), "{shown}");
}

#[test]
fn errors_are_those_of_one_thread() {
    let (_fresh, mut c) = with_tables();
    let query = "select count(*) from item where 10 / (id - 3000) > 0 or n / (n - 77) > 2";
    alone(&mut c);
    let expected = c.query(query, &[]).unwrap_err();
    together(&mut c);
    for _ in 0..5 {
        let error = c.query(query, &[]).unwrap_err();
        assert_eq!((error.sqlstate, &error.message), (expected.sqlstate, &expected.message));
    }
}

#[test]
fn own_changes_and_old_snapshots_are_seen() {
    let (fresh, mut c) = with_tables();
    together(&mut c);
    let mut other = fresh.database.connect().unwrap();
    let query = "select count(*), sum(n) from item where line = 1";
    c.batch("begin isolation level repeatable read").unwrap();
    let before = rows(&mut c, query);
    other.batch("delete from item where id < 100; update item set n = 0 where id = 200").unwrap();
    assert_eq!(rows(&mut c, query), before);
    c.batch("update item set n = n + 1 where line = 1 and id > 4000").unwrap();
    let own = rows(&mut c, query);
    assert_ne!(own, before);
    alone(&mut c);
    assert_eq!(rows(&mut c, query), own);
    c.batch("rollback").unwrap();
}

#[test]
fn a_key_that_a_snapshot_sees_twice_gives_both_rows() {
    let (fresh, mut c) = with_tables();
    together(&mut c);
    let query = "select count(*) from item i join part p on p.id = i.part where i.v <> 'x'";
    let mut other = fresh.database.connect().unwrap();
    c.batch("begin isolation level repeatable read").unwrap();
    let before = rows(&mut c, query);
    other.batch("delete from part where id = 3").unwrap();
    c.batch("insert into part values (3, 'again', 1)").unwrap();
    let together = rows(&mut c, query);
    assert_ne!(before, together);
    alone(&mut c);
    assert_eq!(rows(&mut c, query), together);
    c.batch("rollback").unwrap();
}

#[test]
fn error_of_first_failing_row_comes_although_lookups_are_put_off() {
    let (_fresh, mut c) = with_tables();
    // Rows of the id 25 fail when their inner rows are there, those of 26 already in the filter.
    let query = "select count(*) from item i join part p on p.id = i.part \
        and 1 / (i.id - 25 + p.id - i.part) < 5 where i.v in ('text 2', 'text 5') \
        and case when i.id = 26 then i.v::int else 1 end = 1";
    alone(&mut c);
    assert_eq!(c.query(query, &[]).unwrap_err().sqlstate, SqlState::DIVISION_BY_ZERO);
    together(&mut c);
    let shown = plan(&mut c, query);
    assert!(shown.contains("Gather") && shown.contains("Index Scan"), "{shown}");
    for _ in 0..3 {
        assert_eq!(c.query(query, &[]).unwrap_err().sqlstate, SqlState::DIVISION_BY_ZERO);
    }
}

#[test]
fn subquery_that_no_row_asks_for_does_not_fail() {
    let (_fresh, mut c) = with_tables();
    for query in [
        "select count(*) from item where n >= 0 or n > (select 1 / (count(*) - 901) from part)",
        "select count(*) from item i join part p on p.id = i.part \
            where i.n >= 0 or i.n > (select 1 / (count(*) - 901) from part)",
        "select count(*) from item i join part p on p.id + 0 = i.part \
            and (i.n >= 0 or i.n > (select id from part where id < 5)) where i.line = 1",
    ] {
        alone(&mut c);
        let expected = rows(&mut c, query);
        together(&mut c);
        assert_eq!(rows(&mut c, query), expected, "{query}");
    }
    let query = "select count(*) from item where n > (select 1 / (count(*) - 901) from part)";
    assert_eq!(c.query(query, &[]).unwrap_err().sqlstate, SqlState::DIVISION_BY_ZERO);
}

/// It may be another for each row of the table.
#[test]
fn subqueries_with_a_left_side_are_computed_for_each_row() {
    let (_fresh, mut c) = with_tables();
    for query in [
        "select count(*) from item where part not in (select part from loose where part is not null) \
            and n > 3",
        "select count(*) from item i join part p on p.id + 0 = i.part and i.n > all \
            (select size from part where size < 40) where i.id < 100",
        "select count(*) from item i where (i.part, i.line) not in (select id, 1 from part where id < 9) \
            or i.n < any (select total from ord where id < 3)",
    ] {
        alone(&mut c);
        let expected = rows(&mut c, query);
        assert_ne!(expected[0][0], Value::Int8(0), "{query}");
        together(&mut c);
        assert_eq!(rows(&mut c, query), expected, "{query}");
    }
}
