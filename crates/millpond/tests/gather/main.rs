//! Scans on several threads: the answers are those of one thread, in the same order, and a
//! statement that ends takes its threads along.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod outer_joins;
mod parts;
mod sorts;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Fresh, fresh, fresh_with};
use millpond::{Connection, Settings, SqlState, Value};

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

/// Each row of a table is joined with many others, and none of them passes.
const LONG: &str = "select count(*) from loose a join loose b on b.part = a.part \
    join loose c on c.part = b.part join loose d on d.part = c.part join loose e on e.part = d.part \
    join loose f on f.part = e.part join loose g on g.part = f.part \
    where length(a.note) + length(g.note) < 0";

#[test]
fn statements_end_at_once_when_they_are_told_to() {
    let (fresh, mut c) = with_tables();
    together(&mut c);
    c.batch("insert into loose select 20, 'more' from generate_series(1, 3000)").unwrap();
    let shown = plan(&mut c, LONG);
    assert!(shown.contains("Gather"), "{shown}");
    c.batch("set statement_timeout = '500ms'").unwrap();
    let begun = Instant::now();
    let error = c.query(LONG, &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::QUERY_CANCELED);
    // Far more than it takes, and far less than the query would.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // Nothing is left of it.
    assert_eq!(fresh.database.query_memory_used(), 0);
    c.batch("set statement_timeout = 0").unwrap();
    assert_eq!(rows(&mut c, "select count(*) from item where line = 1").len(), 1);
}

#[test]
fn work_on_one_row_ends_when_it_is_told_to() {
    let (fresh, mut c) = with_tables();
    together(&mut c);
    let searches = [
        r"repeat('a', 5000 + line) ~ '^(a*)(a*)(a*)\1\2\3x'",
        "factorial(32000 + line) = 0",
        // Each row is short work, but not some hundred of them.
        "md5(repeat(v, 1000000)) = 'x'",
        "jsonb_path_exists(('[' || repeat('1,', 9000) || line || ']')::jsonb, '$[*] ? (@ < $[*]) ? (@ > 7)')",
    ];
    for search in searches {
        let query = format!("select id from item where {search} order by n");
        let shown = plan(&mut c, &query);
        assert!(shown.contains("Gather"), "{shown}");
        c.batch("set statement_timeout = '200ms'").unwrap();
        let begun = Instant::now();
        let error = c.query(&query, &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::QUERY_CANCELED, "{search}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{search}: {:?}", begun.elapsed());
        assert_eq!(fresh.database.query_memory_used(), 0);
        c.batch("set statement_timeout = 0").unwrap();
    }
}

#[test]
fn rows_that_are_not_taken_end_with_the_statement() {
    let (fresh, mut c) = with_tables();
    together(&mut c);
    // The first row fails in the session, while threads have more.
    let query = "select 1 / (count(*) - count(*)) from item where n > 0 group by id, line";
    for _ in 0..20 {
        let error = c.query(query, &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::DIVISION_BY_ZERO);
        let error =
            c.query("select i.id / (line - line) from item i where n > 0", &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::DIVISION_BY_ZERO);
    }
    assert_eq!(fresh.database.query_memory_used(), 0);
}

#[test]
fn little_memory_is_enough() {
    let (fresh, mut c) = with_tables();
    let query = "select count(*), sum(i.n), min(j.v) from item i join item j on j.part = i.part \
        and j.n > i.n where i.line = 0 and j.line = 1";
    alone(&mut c);
    let expected = rows(&mut c, query);
    c.batch("set work_mem = '64kB'; set hash_mem_multiplier = 1").unwrap();
    assert_eq!(rows(&mut c, query), expected);
    together(&mut c);
    assert_eq!(rows(&mut c, query), expected);
    assert_eq!(fresh.database.query_memory_used(), 0);
}

#[test]
fn without_threads_left_the_session_scans_alone() {
    let (_fresh, mut c) = with_tables();
    let query = "select count(*), sum(n) from item where line = 2";
    alone(&mut c);
    let expected = rows(&mut c, query);
    together(&mut c);
    c.batch("set max_parallel_workers = 0").unwrap();
    assert_eq!(rows(&mut c, query), expected);
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

/// Both hash tables of a fragment are in memory at a time. Rows of one key can't go to a file.
#[test]
fn all_hash_tables_of_a_fragment_count_as_memory() {
    let settings = Settings::default().with("shared_buffers", "16MB").unwrap();
    let fresh = fresh_with(settings.with("query_memory_limit", "16MB").unwrap());
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "set accelerator = off; set work_mem = '100MB'; \
         create table many (id int, t text); \
         insert into many select 1, repeat('x', 1000) from generate_series(1, 9000) i; \
         create table driving (a int, b int); \
         insert into driving select 2, 2 from generate_series(1, 60000) i",
    )
    .unwrap();
    c.batch("vacuum many").unwrap();
    c.batch("vacuum driving").unwrap();
    let query = "select count(*), max(length(x.t) + length(y.t)) from driving d \
        join many x on x.id + 0 = d.a join many y on y.id + 0 = d.b where d.a > 0";
    for both in [alone, together] {
        both(&mut c);
        let error = c.query(query, &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{}", plan(&mut c, query));
        assert_eq!(fresh.database.query_memory_used(), 0);
    }
}

/// A piece of rows is handed over in the middle of a row of the table.
#[test]
fn row_that_joins_with_many_needs_little_memory() {
    let settings = Settings::default().with("shared_buffers", "16MB").unwrap();
    let fresh = fresh_with(settings.with("query_memory_limit", "8MB").unwrap());
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "set accelerator = off; set work_mem = '1MB'; set enable_nestloop = off; \
         create table driving (a int, t text); \
         insert into driving select 1, repeat('x', 2000) from generate_series(1, 40) i; \
         create table inner_rows (a int, n int); \
         insert into inner_rows select 1, i from generate_series(1, 10000) i",
    )
    .unwrap();
    c.batch("vacuum driving").unwrap();
    c.batch("vacuum inner_rows").unwrap();
    let query = "select count(*), max(d.t), sum(i.n) from driving d join inner_rows i on i.a = d.a \
        where length(d.t) > 10";
    alone(&mut c);
    let expected = rows(&mut c, query);
    together(&mut c);
    let shown = plan(&mut c, query);
    assert!(shown.contains("Gather"), "{shown}");
    for most in [0, 1, 3] {
        c.batch(&format!("set max_parallel_workers = {most}")).unwrap();
        assert_eq!(rows(&mut c, query), expected, "{most} workers");
    }
}

/// More parts of one statement than there may be workers, one after the other and side by side.
#[test]
fn statements_may_have_many_fragments() {
    let settings = Settings::default().with("shared_buffers", "16MB").unwrap();
    let settings = settings.with("max_connections", "4").unwrap();
    let fresh = fresh_with(settings.with("max_parallel_workers", "2").unwrap());
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "set accelerator = off; create table parts (id int, t text); \
         insert into parts select i, 'text ' || i % 10 from generate_series(1, 5000) i",
    )
    .unwrap();
    c.batch("vacuum parts").unwrap();
    let parts: Vec<_> = (0..40)
        .map(|number| format!("select id from parts where t = 'text {}' and id > 0", number % 10))
        .collect();
    let one_by_one = format!("select count(*), sum(id) from ({}) s", parts.join(" union all "));
    let joined: Vec<_> = (1..16)
        .map(|number| {
            format!("join (select id from parts where id % {number} = 0) s{number} using (id)")
        })
        .collect();
    let at_once =
        format!("select count(*), sum(id) from parts s0 {} where t <> 'x'", joined.join(" "));
    for query in [one_by_one, at_once] {
        alone(&mut c);
        let expected = rows(&mut c, &query);
        together(&mut c);
        assert!(plan(&mut c, &query).contains("Gather"), "{query}");
        // The setting of a session may be above that of the server.
        for most in [2, 1000] {
            c.batch(&format!("set max_parallel_workers = {most}")).unwrap();
            assert_eq!(rows(&mut c, &query), expected, "{query}");
        }
    }
}

/// Threads have a smaller stack than sessions.
#[test]
fn deep_expressions_are_evaluated_in_threads() {
    let (_fresh, mut c) = with_tables();
    let mut gathered = 0;
    for depth in [20, 100, 1000] {
        for expr in [
            format!("id{}", " + 1".repeat(depth)),
            format!("{}id{}", "abs(".repeat(depth), ")".repeat(depth)),
            format!("{}id{}", "case when line < 9 then ".repeat(depth), " end".repeat(depth)),
        ] {
            let query =
                format!("select v, max(line) from item where {expr} > 5 group by v order by v");
            alone(&mut c);
            let Ok(expected) = c.query(&query, &[]) else { continue };
            together(&mut c);
            gathered += usize::from(plan(&mut c, &query).contains("Gather"));
            assert_eq!(rows(&mut c, &query), expected.rows);
        }
    }
    assert!(gathered > 0);
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

/// What another session does, with the number of its round.
type Step<'a> = dyn Fn(&mut Connection, u64) + Sync + 'a;

/// Runs `act` again and again on other sessions while `read` runs.
fn beside(fresh: &Fresh, others: &[&Step<'_>], read: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for act in others {
            let mut c = fresh.database.connect().unwrap();
            let is_over = &is_over;
            scope.spawn(move || {
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    act(&mut c, round);
                }
            });
        }
        // Also when it panics.
        let _over = OnDrop(|| is_over.store(true, Ordering::Relaxed));
        read();
    });
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn sums_stay_while_others_transfer() {
    let (fresh, mut c) = with_tables();
    c.batch(
        "create table account (id int primary key, owner int, amount numeric(12, 2), note text); \
         insert into account select i, i % 10, 100, repeat('x', 300) from generate_series(1, 3000) i; \
         create table owner (id int primary key, name text); \
         insert into owner select i, 'n' || i from generate_series(0, 9) i",
    )
    .unwrap();
    c.batch("vacuum account").unwrap();
    c.batch("vacuum owner").unwrap();
    let transfer = |c: &mut Connection, round: u64| {
        let (from, to) = (round * 7919 % 3000 + 1, round * 104_729 % 3000 + 1);
        let moved = format!(
            "begin; update account set amount = amount - 7 where id = {from}; \
             update account set amount = amount + 7, note = note || 'y' where id = {to}; {}",
            if round.is_multiple_of(5) { "rollback" } else { "commit" }
        );
        match c.batch(&moved) {
            Ok(_) => {}
            Err(error) => {
                // Two transfers the other way round.
                assert_eq!(error.sqlstate, SqlState::DEADLOCK_DETECTED, "{error:?}");
                c.batch("rollback").unwrap();
            }
        }
        if round.is_multiple_of(50) {
            c.batch("vacuum account").unwrap();
        }
    };
    together(&mut c);
    let queries = [
        "select count(*), sum(amount) from account where note like 'x%'",
        "select count(*), sum(amount) from account a join owner o on o.id + 0 = a.owner \
            where length(note) > 1",
        "select count(*), sum(a.amount) from account b join account a on a.id = b.id \
            where length(b.note) > 1",
    ];
    let expected = rows(&mut c, queries[0]);
    beside(&fresh, &[&transfer, &transfer], || {
        for level in ["read committed", "repeatable read"] {
            for _ in 0..15 {
                c.batch(&format!("begin isolation level {level}")).unwrap();
                // The transaction's own transfer is part of it.
                let own = c.batch(
                    "update account set amount = amount - 1 where id = 5; \
                     update account set amount = amount + 1 where id = 2995",
                );
                if own.is_ok() {
                    for query in queries {
                        assert_eq!(rows(&mut c, query), expected, "{level}: {query}");
                    }
                }
                c.batch("rollback").unwrap();
            }
        }
    });
}

#[test]
fn definitions_change_beside_fragments() {
    let (fresh, mut c) = with_tables();
    let fill = "insert into changing select i, 'text ' || i % 7, repeat('x', 200) \
        from generate_series(1, 3000) i";
    c.batch(&format!("create table changing (id int, t text, pad text); {fill}")).unwrap();
    let change = |c: &mut Connection, round: u64| {
        let done = match round % 4 {
            0 => c.batch(&format!("begin; truncate changing; {fill}; commit")),
            1 => c.batch("vacuum changing"),
            2 => c.batch(&format!(
                "begin; drop table changing; create table changing (id int, t text, pad text); \
                 {fill}; commit"
            )),
            _ => c.batch("create index on changing (id)"),
        };
        done.unwrap();
    };
    together(&mut c);
    beside(&fresh, &[&change], || {
        for _ in 0..100 {
            let query = "select count(*), sum(id) from changing where t <> 'x'";
            match c.query(query, &[]) {
                Ok(found) => {
                    let Value::Int8(count) = found.rows[0][0] else { panic!("{found:?}") };
                    // TRUNCATE takes rows from snapshots that are older.
                    assert!([0, 3000].contains(&count), "{count} rows");
                }
                Err(error) => assert_eq!(error.sqlstate, SqlState::UNDEFINED_TABLE, "{error:?}"),
            }
        }
    });
    assert_eq!(fresh.database.query_memory_used(), 0);
}
