//! What could escape the count of memory: rows of a function, the trees of a text, greatest values.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Fresh, fresh_with};
use millpond::{Connection, Settings, SqlState, Value};

/// A database whose sessions may have three megabytes each.
fn limited() -> (Fresh, Connection) {
    let settings = Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("query_memory_limit", "4MB"));
    let fresh = fresh_with(settings.unwrap());
    let c = fresh.database.connect().unwrap();
    (fresh, c)
}

/// Functions that return rows, of a number of short elements. The arguments fit in any case.
const FUNCTIONS: [&str; 9] = [
    "unnest(array_fill(1, array[$]))",
    "string_to_table(repeat('a,', $), ',')",
    "string_to_table(repeat('a', $), null)",
    "regexp_matches(repeat('a', $), 'a', 'g')",
    "regexp_split_to_table(repeat('a,', $), ',')",
    "json_array_elements(('[1' || repeat(',1', $) || ']')::json)",
    "jsonb_array_elements_text(('[1' || repeat(',1', $) || ']')::jsonb)",
    "json_each_text(('{\"a\":1' || repeat(',\"a\":1', $) || '}')::json)",
    "json_object_keys(('{\"a\":1' || repeat(',\"a\":1', $) || '}')::json)",
];

fn calls(count: usize) -> impl Iterator<Item = String> {
    FUNCTIONS.into_iter().map(move |call| call.replace('$', &count.to_string()))
}

#[test]
fn more_rows_than_a_session_may_have_end_the_statement() {
    let (fresh, mut c) = limited();
    for call in calls(100_000) {
        let sql = format!("select count(*) from {call}");
        let error = c.query(&sql, &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{sql}: {error:?}");
        assert_eq!(fresh.database.query_memory_used(), 0, "{sql}");
    }
    for call in calls(1000) {
        let sql = format!("select count(*) >= 1000 from {call}");
        assert_eq!(c.query(&sql, &[]).unwrap().rows, [[Value::Bool(true)]], "{sql}");
        assert_eq!(fresh.database.query_memory_used(), 0, "{sql}");
    }
}

#[test]
fn rows_of_all_functions_of_a_statement_count_together() {
    let (_fresh, mut c) = limited();
    let sql = |calls: &str| format!("select count(*) from rows from ({calls})");
    let one = "unnest(array_fill(1, array[30000]))";
    assert_eq!(c.query(&sql(one), &[]).unwrap().rows, [[Value::Int8(30_000)]]);
    let error = c.query(&sql(&format!("{one}, {one}")), &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{error:?}");
    let detail = error.detail.as_deref().unwrap_or_default();
    assert!(detail.contains("in operator \"Function Scan\""), "{detail}");
}

#[test]
fn a_text_whose_tree_would_not_fit_is_refused() {
    let (fresh, mut c) = limited();
    let values = |count: usize| {
        let rows: Vec<String> = (0..count).map(|i| format!("({i}, 'abc')")).collect();
        format!("select count(*) from (values {}) x (a, b)", rows.join(", "))
    };
    assert_eq!(c.query(&values(500), &[]).unwrap().rows, [[Value::Int8(500)]]);
    for error in [
        c.query(&values(20_000), &[]).unwrap_err(),
        c.batch(&values(20_000)).unwrap_err(),
        c.prepare(&values(20_000), &[]).unwrap_err(),
    ] {
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{error:?}");
        let detail = error.detail.as_deref().unwrap_or_default();
        assert!(detail.contains("in operator \"parser\""), "{detail}");
    }
    // A long literal is one token.
    let literal = format!("select length('{}')", "x".repeat(1_000_000));
    assert_eq!(c.query(&literal, &[]).unwrap().rows, [[Value::Int4(1_000_000)]]);
    assert_eq!(fresh.database.query_memory_used(), 0);
}

#[test]
fn the_greatest_text_of_each_group_counts() {
    let (fresh, mut c) = limited();
    let sql = |groups: usize| {
        format!(
            "select count(m) from (select g, max(repeat('x', 2000)) as m \
             from generate_series(1, {groups}) g group by g) x"
        )
    };
    assert_eq!(c.query(&sql(200), &[]).unwrap().rows, [[Value::Int8(200)]]);
    let error = c.query(&sql(4000), &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{error:?}");
    assert_eq!(fresh.database.query_memory_used(), 0);
}

#[test]
fn more_than_a_session_may_have_ends_the_search_of_a_path() {
    let (fresh, mut c) = limited();
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let wide = format!("[1{}]", ",1".repeat(1999));
    for (document, path) in [(&deep, "$.**".to_owned()), (&wide, "$[*]".to_owned())] {
        let sql = format!("select jsonb_path_query_array('{document}', '{path}') is not null");
        assert_eq!(c.query(&sql, &[]).unwrap().rows, [[Value::Bool(true)]], "{path}");
    }
    let many = format!("$[0 to last{}]", ", 0 to last".repeat(400));
    for (document, path) in [(&deep, format!("${}", ".**".repeat(190))), (&wide, many)] {
        for call in ["_query_array", "_query_first", "_exists", "_match"] {
            // The lax mode of `exists` stops at the first item.
            let sql = format!("select jsonb_path{call}('{document}', 'strict {path}')");
            let error = c.query(&sql, &[]).unwrap_err();
            assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{sql:.100}: {error:?}");
            assert_eq!(fresh.database.query_memory_used(), 0, "{sql:.100}");
        }
    }
}
