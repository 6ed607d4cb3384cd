//! Which statements the query engine gets, and which it does not get.
#![cfg(feature = "datafusion")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Fresh, fresh};
use millpond::{Connection, SqlState};

/// A table that is large enough for the engine.
fn with_table() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table t (k int primary key, g int, n numeric(12, 2), v text); \
         insert into t select i, i % 7, i, 'x' || i from generate_series(1, 5000) i; analyze t",
    )
    .unwrap();
    (fresh, c)
}

/// Whether the engine runs a query. Its plan has other names for nodes.
fn is_for_engine(c: &mut Connection, query: &str) -> bool {
    let plan = c.query(&format!("explain {query}"), &[]).unwrap().rows;
    format!("{plan:?}").contains("AggregateExec")
}

#[test]
fn aggregates_of_large_tables_are_for_the_engine() {
    let (_fresh, mut c) = with_table();
    for query in [
        "select g, count(*), sum(n), max(v) from t group by g order by g",
        "select count(*) from t a join t b on a.g = b.g where a.v like 'x1%' and b.k + 1 > 7",
        "select substring(v from 1 for 2), min(k) from t where g in (1, 2) group by 1",
    ] {
        assert!(is_for_engine(&mut c, query), "{query}");
    }
}

#[test]
fn other_queries_are_not_for_the_engine() {
    let (_fresh, mut c) = with_table();
    for query in [
        "select * from t order by v",
        "select a.k from t a join t b on a.v = b.v",
        "select max(length(regexp_replace(v, '(x|y)*q', ''))) from t",
        "select count(repeat(v, 10)) from t",
        "select array_agg(k) from t",
        "select count(*) from t, generate_series(1, 10) i",
        "select sum(g::bigint) from t",
        "select count(*) from pg_class a, t",
        "select sum(n) / sum(k) from t",
        "select g, max(n / 3) from t group by g",
        "select count(*) from (select k from t union all select g from t) x",
    ] {
        assert!(!is_for_engine(&mut c, query), "{query}");
    }
}

/// Each query of WITH doubles what is below it, and the engine copies what it reads.
#[test]
fn chains_of_queries_of_with_are_not_for_the_engine() {
    let (_fresh, mut c) = with_table();
    let mut query = "with c0 as (select k from t limit 1)".to_owned();
    for i in 1..18 {
        query += &format!(", c{i} as (select a.k from c{0} a, c{0} b)", i - 1);
    }
    query += " select count(*) from c17";
    assert!(!is_for_engine(&mut c, &query));
    let chain = (1..70).map(|i| format!(" join t t{i} using (k)")).collect::<String>();
    assert!(!is_for_engine(&mut c, &format!("select count(*) from t{chain}")));
}

#[test]
fn functions_of_extensions_do_not_exist() {
    let (_fresh, mut c) = with_table();
    let error = c.query("select levenshtein(v, 'x') from t", &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::UNDEFINED_FUNCTION);
}
