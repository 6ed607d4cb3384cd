//! Lists of keys whose rows are not in memory.

use millpond::{Connection, Database, Settings, Wait};

use crate::common::{Transcript, run};

const KEYS: i32 = 120;
const ROWS: i32 = 60_000;

/// A database that was just opened: no row of `t` is in memory.
fn cold() -> (tempfile::TempDir, std::sync::Arc<Database>) {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = || {
        let with = |settings: Settings, name, value| settings.with(name, value).expect("a setting");
        let settings = with(Settings::default(), "shared_buffers", "32MB");
        with(settings, "autovacuum", "off")
    };
    let database = Database::open(dir.path(), settings()).expect("a database");
    let mut c = database.connect().expect("a connection");
    run(&mut c, "create table t (id int primary key, k int, t text)");
    let rows = format!("generate_series(0, {}) g", ROWS - 1);
    run(&mut c, &format!("insert into t select g, g % 10, repeat('t', 300) from {rows}"));
    run(&mut c, "vacuum t");
    drop(c);
    database.shutdown().expect("a clean end");
    drop(database);
    let database = Database::open(dir.path(), settings()).expect("a database");
    (dir, database)
}

/// Keys of rows on different pages, from all over the table. Those of each set are on pages of
/// their own.
fn keys(set: i32) -> Vec<i32> {
    (0..KEYS).map(|key| key * (ROWS / KEYS) + 30 * set).collect()
}

/// A statement with the keys of a set for `LIST`.
fn with_keys(sql: &str, keys: &[i32]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    sql.replace("LIST", &keys.join(", "))
}

/// Runs a statement that may wait from its start. One that must not wait would read single pages
/// from the operating system's cache, and what is counted here would depend on that cache.
fn run_waiting(c: &mut Connection, sql: &str) -> String {
    let mut sink = Transcript::default();
    c.set_wait(Wait::Allowed);
    c.simple_query(sql, &mut sink).expect("an answer");
    sink.text
}

/// How many pages of the table are in memory.
fn pages(c: &mut Connection) -> i32 {
    let sql = "select count(*) from pg_buffercache join pg_class using (relfilenode) \
               where relname = 't' and relforknumber = 0";
    run(c, sql).lines().nth(1).and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn a_list_of_keys_is_read_ahead_in_growing_parts() {
    let (_dir, database) = cold();
    let mut c = database.connect().expect("a connection");
    // The executor of plans without nodes knows a LIMIT, the one of nodes does not. The first row
    // is read alone, then 16 and 32 are looked up together.
    let plain = [(1, 1), (2, 2), (10, 10), (18, 18), (60, 60)];
    let nodes = [(1, 1), (2, 17), (17, 17), (18, 49), (50, 113)];
    let mut set = 0;
    for (sql, expected) in [
        ("select id from t where id in (LIST) limit ", &plain[..]),
        ("select id from t where id = any (array[LIST]) order by id desc limit ", &plain),
        ("select id from t where id in (LIST) union all select 0 limit ", &nodes),
    ] {
        for &(limit, pages_read) in expected {
            set += 1;
            let sql = format!("{}{limit}", with_keys(sql, &keys(set)));
            let before = pages(&mut c);
            let answer = run_waiting(&mut c, &sql);
            let mut wanted = keys(set);
            if sql.contains("desc") {
                wanted.reverse();
            }
            let ids: Vec<i32> =
                answer.lines().skip(1).map_while(|line| line.parse().ok()).collect();
            assert_eq!(ids, wanted[..limit], "{sql}");
            assert_eq!(pages(&mut c) - before, pages_read, "{sql}");
        }
    }
}

#[test]
fn nothing_is_read_ahead_without_concurrent_reads() {
    let (_dir, database) = cold();
    let mut c = database.connect().unwrap();
    run(&mut c, "set effective_io_concurrency = 0");
    let sql = with_keys("select id from t where id in (LIST) union all select 0 limit 2", &keys(0));
    run_waiting(&mut c, &sql);
    assert_eq!(pages(&mut c), 2);
}

#[test]
fn rows_of_a_list_that_is_read_ahead_can_be_changed() {
    let (_dir, database) = cold();
    let mut c = database.connect().unwrap();
    let sum: i32 = keys(0).iter().sum();
    let sql = "select sum(id) from t where id in (LIST, 70000, 80000, null)";
    assert_eq!(run_waiting(&mut c, &with_keys(sql, &keys(0))), format!("sum\n{sum}\nSELECT 1\n"));
    let sql = with_keys("update t set k = 99, id = id + 100000 where id in (LIST)", &keys(1));
    assert_eq!(run_waiting(&mut c, &sql), format!("UPDATE {KEYS}\n"));
    let sql = with_keys("delete from t where id in (LIST)", &keys(2));
    assert_eq!(run_waiting(&mut c, &sql), format!("DELETE {KEYS}\n"));
    let sql = "select count(*), count(*) filter (where k = 99 and id >= 100000) from t";
    assert_eq!(run(&mut c, sql), format!("count|count\n{}|{KEYS}\nSELECT 1\n", ROWS - KEYS));
}
