//! Definitions that change all the time while sessions use the table.

use millpond::Connection;

use super::common::fresh;
use super::definitions::{CHANGED, execute, text};

/// Rows of each table, whose `v` is the table's number times a thousand and the row's id.
const ROWS: i32 = 20;

/// One session redefines a table that others use all the time. To them it is always there, and
/// whole.
#[test]
fn definitions_change_all_the_time() {
    let fresh = fresh();
    let mut maker = fresh.database.connect().unwrap();
    maker.batch(&table(0, "")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let done = &done;
    std::thread::scope(|scope| {
        let users = Vec::from_iter((0..3).map(|number| {
            let connection = fresh.database.connect().unwrap();
            scope.spawn(move || use_table(connection, number, done))
        }));
        for round in 1..=40 {
            let change = match round % 8 {
                0 | 3 => format!("begin; drop table t; {}; commit", table(round, "")),
                1 => {
                    format!("begin; drop table t; {}; commit", table(round, ", w text default 'w'"))
                }
                2 => "create index t_v on t (v)".to_owned(),
                4 => format!("begin; truncate t; {}; commit", rows(round)),
                5 => "alter table t drop constraint t_pkey".to_owned(),
                6 => "alter table t add primary key (id)".to_owned(),
                _ => "begin; create unique index t_u on t (v); drop index t_u; commit".to_owned(),
            };
            if let Err(error) = maker.batch(&change) {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                panic!("{change}: {error}");
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let uses = users.into_iter().map(|user| user.join().unwrap());
        assert!(uses.sum::<u32>() > 0);
    });
}

fn rows(number: i32) -> String {
    let row = |id| format!("({id}, {})", number * 1000 + id);
    format!("insert into t (id, v) values {}", Vec::from_iter((1..=ROWS).map(row)).join(", "))
}

fn table(number: i32, more: &str) -> String {
    format!("create table t (id int primary key, v int{more}); {}", rows(number))
}

fn use_table(
    mut connection: Connection,
    number: usize,
    done: &std::sync::atomic::AtomicBool,
) -> u32 {
    const STATEMENTS: &[&str] = &[
        "select v from t",
        "select v from t where id = 7",
        "select v from t where v > 0 and id <> 0 order by v",
        "select * from t where id = 7",
        "select count(*), min(v), max(v) from t",
        "update t set v = v where id = 7 returning v",
        "select v from t where id between 1 and 20",
        "select a.v from t a join t b on a.id = b.id",
    ];
    let prepared =
        Vec::from_iter(STATEMENTS.iter().map(|sql| connection.prepare(sql, &[]).unwrap()));
    let mut uses = 0;
    while !done.load(std::sync::atomic::Ordering::Relaxed) {
        for (place, sql) in STATEMENTS.iter().enumerate() {
            let told = match number {
                0 => text(&mut connection, sql),
                _ => execute(&mut connection, &prepared[place], &[]),
            };
            if !(number > 0 && told == CHANGED && sql.contains('*') && !sql.contains("count")) {
                check_answer(sql, &told);
            }
            uses += 1;
        }
        // Room for the session that redefines: it waits for a moment without users.
        std::thread::yield_now();
    }
    uses
}

#[track_caller]
fn check_answer(sql: &str, told: &str) {
    let numbers = |row: &str| -> Vec<i32> {
        row.trim_matches(['(', ')']).split(", ").filter_map(|n| n.parse().ok()).collect()
    };
    let rows = Vec::from_iter(told.split(") (").map(numbers));
    if sql.contains("count") {
        let [row] = rows.as_slice() else { panic!("{sql}: {told}") };
        assert_eq!(row[0], ROWS, "{told}");
        assert_eq!(row[2] - row[1], ROWS - 1, "{told}");
        return;
    }
    let one = sql.contains("id = 7");
    assert_eq!(rows.len(), if one { 1 } else { ROWS as usize }, "{sql}: {told}");
    for row in &rows {
        let v = if sql.contains('*') { row[1] } else { row[0] };
        let first = if sql.contains('*') { rows[0][1] } else { rows[0][0] };
        assert_eq!(v / 1000, first / 1000, "{sql}: {told}");
        assert!(!one || v % 1000 == 7, "{sql}: {told}");
    }
}
