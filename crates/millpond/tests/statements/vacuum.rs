//! VACUUM and ANALYZE beside sessions that drop tables.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{fresh, run};

/// Runs a text that comes to a table which another session is dropping, and waits for that session.
fn beside_a_drop(sql: &'static str) -> String {
    let fresh = fresh();
    let mut dropper = fresh.database.connect().unwrap();
    for table in ["kept", "gone", "also_kept"] {
        dropper.batch(&format!("create table {table} (a int)")).unwrap();
    }
    dropper.batch("begin; drop table gone").unwrap();
    let database = fresh.database.clone();
    let other = std::thread::spawn(move || run(&mut database.connect().unwrap(), sql));
    let locks = fresh.database.engine().locks();
    while locks.list().iter().all(|lock| lock.granted) && !other.is_finished() {
        std::thread::yield_now();
    }
    assert!(!other.is_finished(), "{sql} does not come to the table");
    dropper.batch("commit").unwrap();
    other.join().unwrap()
}

#[test]
fn a_table_that_is_gone_when_its_turn_comes_is_skipped() {
    assert_eq!(beside_a_drop("vacuum"), "VACUUM\n");
    assert_eq!(beside_a_drop("analyze"), "ANALYZE\n");
    assert_eq!(beside_a_drop("vacuum analyze"), "VACUUM\n");
}

#[test]
fn vacuum_and_analyze_warn_of_dropped_tables() {
    let skipped =
        |work| format!("WARNING: skipping {work} of \"gone\" --- relation no longer exists\n");
    assert_eq!(beside_a_drop("vacuum kept, gone"), skipped("vacuum") + "VACUUM\n");
    assert_eq!(beside_a_drop("analyze gone, kept"), skipped("analyze") + "ANALYZE\n");
    let both = skipped("vacuum") + &skipped("analyze") + "VACUUM\n";
    assert_eq!(beside_a_drop("vacuum analyze gone"), both);
}
