//! Time, memory and threads are bounded.

use std::time::{Duration, Instant};

use millpond::{Settings, SqlState};

use super::common::fresh_with;
use super::{alone, plan, rows, together, with_tables};

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
