//! What a large statement held is given back to the system. (A process of its own, whose memory
//! nothing else changes.)
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::fresh_with;
use millpond::{Settings, SqlState, Value};

/// Megabytes of the process's own memory that are in the machine's.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn what_a_large_statement_held_goes_back_to_the_system() {
    let settings = Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("query_memory_limit", "120MB"));
    let fresh = fresh_with(settings.unwrap());
    let mut c = fresh.database.connect().unwrap();
    // Many short texts, of which each array has some: pieces of all ages.
    let query = "select count(*), max(cardinality(a)) from \
        (select array_agg('text ' || g) a from generate_series(1, $1) g group by g % 10000) x";
    let small = c.query(query, &[Value::Int4(10_000)]).unwrap();
    assert_eq!(small.rows, [[Value::Int8(10_000), Value::Int4(1)]]);
    let before = resident_mb();
    for _ in 0..2 {
        let error = c.query(query, &[Value::Int4(20_000_000)]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY, "{error:?}");
        let kept = resident_mb().saturating_sub(before);
        assert!(kept < 32, "{kept} MB are kept");
    }
}
