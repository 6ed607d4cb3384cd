//! A statement of thousands of subqueries. What each of them holds does not grow with the number of
//! the others. (A process of its own, whose memory nothing else changes.)
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::fresh_with;
use millpond::{Settings, Value};

/// The most megabytes that the process has had in the machine's memory.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn thousands_of_subqueries_take_little_memory() {
    const SUBQUERIES: usize = 3000;
    /// With a copy for each pair of subqueries it would be a thousand.
    const MOST_MB: u64 = 300;

    let settings = Settings::default().with("shared_buffers", "8MB");
    let fresh = fresh_with(settings.unwrap());
    let mut c = fresh.database.connect().unwrap();
    c.query("create table a (id int primary key, x int)", &[]).unwrap();
    c.query("insert into a values (1, 1), (2, 2)", &[]).unwrap();
    let before = peak_mb();
    let one = |n: usize| format!("x > 0 and x in (select x from a where id = -{n})");
    let all: Vec<String> = (1..=SUBQUERIES).map(one).collect();
    let sql = format!("select count(*) from a where {}", all.join(" or "));
    assert_eq!(c.query(&sql, &[]).unwrap().rows, [[Value::Int8(0)]]);
    let grown = peak_mb() - before;
    assert!(grown < MOST_MB, "{grown} MB");
}
