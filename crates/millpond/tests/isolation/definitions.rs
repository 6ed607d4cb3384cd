//! Prepared statements and cached texts over tables that other sessions drop, make again and alter.
//! They are planned again or fail with the right error. None answers from a table that is gone.

use std::sync::Arc;

use millpond::{Connection, Executed, Params, Prepared, Value, Wait};

use super::common::{Fresh, fresh};
use super::ground::{Keep, finish, simple};

/// Executes a prepared statement: its rows, how many rows it changed, or its error.
pub fn execute(connection: &mut Connection, prepared: &Arc<Prepared>, params: &[Value]) -> String {
    let mut keep = Keep::default();
    let result = (|| {
        keep.described(prepared.columns().map(|columns| &**columns));
        let mut portal = connection.bind(prepared, Params::from_iter(params.iter().cloned()))?;
        finish(connection, &mut portal, &mut keep)
    })();
    keep.told(result)
}

/// Runs a text of the simple protocol.
pub fn text(connection: &mut Connection, sql: &str) -> String {
    let mut keep = Keep::default();
    let result = simple(connection, sql, &mut keep);
    keep.told(result)
}

const TABLE: &str =
    "create table t (id int primary key, v int); insert into t values (1, 10), (2, 20)";

pub struct Scene {
    pub fresh: Fresh,
    pub reader: Connection,
    pub other: Connection,
}

/// A table of two rows, a session that reads it and one that changes it.
pub fn scene() -> Scene {
    let fresh = fresh();
    let [mut reader, other] = [(); 2].map(|()| fresh.database.connect().unwrap());
    reader.batch(TABLE).unwrap();
    Scene { fresh, reader, other }
}

pub const CHANGED: &str = "error 0A000: cached plan must not change result type";
const GONE: &str = "error 42P01: relation \"t\" does not exist";

/// Prepares statements, lets the other session change definitions, and executes them all: `before`
/// and after each change what each answers.
#[track_caller]
fn after(statements: &[&str], steps: &[(&str, &[&str])]) {
    for by_name in [false, true] {
        let Scene { mut reader, mut other, fresh: _fresh } = scene();
        let mut prepared = Vec::new();
        for (number, sql) in statements.iter().enumerate() {
            prepared.push(reader.prepare(sql, &[]).unwrap());
            reader.batch(&format!("prepare p{number} as {sql}")).unwrap();
        }
        for (change, answers) in steps {
            if !change.is_empty() {
                other.batch(change).unwrap();
            }
            for (number, answer) in answers.iter().enumerate() {
                let found = if by_name {
                    text(&mut reader, &format!("execute p{number}"))
                } else {
                    execute(&mut reader, &prepared[number], &[])
                };
                assert_eq!(found, *answer, "{} after {change}", statements[number]);
            }
        }
    }
}

#[test]
fn prepared_selects() {
    after(
        &[
            "select * from t where id = 1",
            "select v from t where id = 1",
            "select id from t where id between 1 and 2",
            "select max(id) from t",
        ],
        &[
            ("", &["(1, 10)", "(10)", "(1) (2)", "(2)"]),
            ("truncate t", &["", "", "", "(null)"]),
            ("insert into t values (1, 11)", &["(1, 11)", "(11)", "(1)", "(1)"]),
            ("drop table t", &[GONE, GONE, GONE, GONE]),
            // As it was: it is the same statement, whatever table it is.
            (TABLE, &["(1, 10)", "(10)", "(1) (2)", "(2)"]),
            // Another column behind, another type.
            (
                "drop table t; create table t (id int primary key, v int, w text); insert into t values (1, 12, 'w')",
                &[CHANGED, "(12)", "(1)", "(1)"],
            ),
            (
                "drop table t; create table t (v text, id bigint); insert into t values ('one', 1)",
                &[CHANGED, CHANGED, CHANGED, CHANGED],
            ),
            (
                "drop table t; create table t (id int, u int)",
                &[CHANGED, "error 42703: column \"v\" does not exist", "", "(null)"],
            ),
            ("drop table t", &[GONE]),
            (TABLE, &["(1, 10)", "(10)", "(1) (2)", "(2)"]),
        ],
    );
}

#[test]
fn prepared_changes() {
    after(
        &[
            "insert into t values (3, 30)",
            "update t set v = v + 1 where id = 3",
            "delete from t where id = 3",
            "update t set v = v + 1 where id = 1 returning *",
        ],
        &[
            ("", &["1", "1", "1", "(1, 11)"]),
            ("truncate t", &["1", "1", "1", ""]),
            ("drop table t", &[GONE, GONE, GONE, GONE]),
            (TABLE, &["1", "1", "1", "(1, 11)"]),
            (
                "drop table t; create table t (id int primary key, v int, w text); insert into t values (1, 12, 'w')",
                &["1", "1", "1", CHANGED],
            ),
            (
                "drop table t; create table t (id int)",
                &[
                    "error 42601: INSERT has more expressions than target columns",
                    "error 42703: column \"v\" of relation \"t\" does not exist",
                    "0",
                ],
            ),
            (
                "drop table t; create table t (id int primary key, v int not null, w int not null)",
                &[
                    "error 23502: null value in column \"w\" of relation \"t\" violates not-null constraint",
                    "0",
                    "0",
                ],
            ),
        ],
    );
}

/// Plans of joins and groups hold definitions, too.
#[test]
fn prepared_joins_and_groups() {
    after(
        &[
            "select a.v from t a join t b on a.id = b.id order by a.v",
            "select v, count(*) from t group by v order by v",
            "update t set v = v + 1 where id in (select max(id) from t)",
        ],
        &[
            ("", &["(10) (20)", "(10, 1) (20, 1)", "1"]),
            ("create index t_v on t (v)", &["(10) (21)", "(10, 1) (21, 1)", "1"]),
            ("truncate t", &["", "", "0"]),
            ("insert into t values (1, 11)", &["(11)", "(11, 1)", "1"]),
            ("drop table t", &[GONE, GONE, GONE]),
            (TABLE, &["(10) (20)", "(10, 1) (20, 1)", "1"]),
            (
                "drop table t; create table t (id int, v int, w text); insert into t values (1, 12, 'w')",
                &["(12)", "(12, 1)", "1"],
            ),
            (
                "drop table t; create table t (v text, id bigint); insert into t values ('one', 1)",
                &[CHANGED, CHANGED],
            ),
            ("drop table t", &[GONE, GONE, GONE]),
            (TABLE, &["(10) (20)", "(10, 1) (20, 1)", "1"]),
        ],
    );
}

#[test]
fn indexes_and_keys_come_and_go() {
    after(
        &[
            "select id from t where v = 20",
            "select v from t where id = 1",
            "select id from t order by v desc",
            "select min(v) from t",
            "update t set v = v where id = 1",
        ],
        &[
            ("", &["(2)", "(10)", "(2) (1)", "(10)", "1"]),
            ("create index t_v on t (v)", &["(2)", "(10)", "(2) (1)", "(10)", "1"]),
            ("insert into t values (3, 5)", &["(2)", "(10)", "(2) (1) (3)", "(5)", "1"]),
            ("drop index t_v", &["(2)", "(10)", "(2) (1) (3)", "(5)", "1"]),
            // A key that is none any more may be there twice.
            (
                "alter table t drop constraint t_pkey; insert into t values (1, 15)",
                &["(2)", "(10) (15)", "(2) (1) (1) (3)", "(5)", "2"],
            ),
            ("delete from t where v = 10; alter table t add primary key (id)", &["(2)", "(15)"]),
            ("create unique index t_u on t (v); drop index t_u", &["(2)", "(15)"]),
        ],
    );
}

#[test]
fn parameters_keep_their_types() {
    let Scene { mut reader, mut other, fresh: _fresh } = scene();
    let insert = reader.prepare("insert into t values ($1, $2)", &[]).unwrap();
    let select = reader.prepare("select id from t where v = $1", &[]).unwrap();
    let values = [Value::Int4(3), Value::Int4(30)];
    assert_eq!(execute(&mut reader, &insert, &values), "1");
    assert_eq!(execute(&mut reader, &select, &values[1..]), "(3)");
    other.batch("drop table t; create table t (id int primary key, v bigint)").unwrap();
    assert_eq!(execute(&mut reader, &insert, &values), "1");
    assert_eq!(execute(&mut reader, &select, &values[1..]), "(3)");
    other.batch("drop table t; create table t (id int primary key, v text)").unwrap();
    assert_eq!(execute(&mut reader, &insert, &values), "1");
    let unlike = "error 42883: operator does not exist: text = integer";
    assert_eq!(execute(&mut reader, &select, &values[1..]), unlike);
    other.batch("drop table t; create table t (id int primary key, v bool)").unwrap();
    let wrong = "error 42804: column \"v\" is of type boolean but expression is of type integer";
    assert_eq!(execute(&mut reader, &insert, &values), wrong);
}

#[test]
fn texts_in_the_cache() {
    let Scene { mut reader, mut other, fresh: _fresh } = scene();
    let all = "select * from t where id = 1";
    for _ in 0..2 {
        assert_eq!(text(&mut reader, all), "(1, 10)");
    }
    for (change, answer) in [
        ("truncate t", ""),
        ("insert into t values (1, 11)", "(1, 11)"),
        ("drop table t", GONE),
        (TABLE, "(1, 10)"),
        ("drop table t; create table t (v text, id int); insert into t values ('x', 1)", "(x, 1)"),
        ("insert into t values ('y', 1)", "(x, 1) (y, 1)"),
        ("create index t_id on t (id)", "(x, 1) (y, 1)"),
        ("drop table t; create table t (v int)", "error 42703: column \"id\" does not exist"),
        ("drop table t; create table t (id numeric); insert into t values (1.0)", "(1.0)"),
    ] {
        other.batch(change).unwrap();
        for _ in 0..2 {
            assert_eq!(text(&mut reader, all), answer, "after {change}");
        }
    }
}

#[test]
fn own_definitions_and_their_rollback() {
    let Scene { mut reader, mut other, fresh: _fresh } = scene();
    let all = reader.prepare("select * from t", &[]).unwrap();
    let sql = "select v from t where id = 1";
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 10) (2, 20)");
    reader.batch("begin; drop table t").unwrap();
    assert_eq!(text(&mut reader, sql), GONE);
    reader.batch("rollback").unwrap();
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 10) (2, 20)");
    assert_eq!(text(&mut reader, sql), "(10)");
    reader
        .batch("begin; drop table t; create table t (id int, v int); insert into t values (1, 99)")
        .unwrap();
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 99)");
    assert_eq!(text(&mut reader, sql), "(99)");
    reader.batch("rollback").unwrap();
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 10) (2, 20)");
    assert_eq!(text(&mut reader, sql), "(10)");
    reader.batch("begin; truncate t; create index on t (v); insert into t values (1, 98)").unwrap();
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 98)");
    assert_eq!(text(&mut reader, sql), "(98)");
    assert_eq!(text(&mut reader, "select id from t where v = 98"), "(1)");
    // Another session's definitions in the middle of this session's transaction.
    other.batch("create table unrelated (a int)").unwrap();
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 98)");
    reader.batch("rollback").unwrap();
    assert_eq!(execute(&mut reader, &all, &[]), "(1, 10) (2, 20)");
    assert_eq!(text(&mut reader, "select id from t where v = 98"), "");
    assert_eq!(text(&mut reader, sql), "(10)");
}

#[test]
fn what_may_not_wait_is_planned_again_too() {
    let Scene { mut reader, mut other, fresh: _fresh } = scene();
    let prepared = reader.prepare("select v from t where id = 1", &[]).unwrap();
    // It would block on the other's lock; when it has got it, the table is another.
    other
        .batch("begin; drop table t; create table t (v int, id int); insert into t values (7, 1)")
        .unwrap();
    let mut keep = Keep::default();
    keep.described(prepared.columns().map(|columns| &**columns));
    let mut portal = reader.bind(&prepared, Params::new()).unwrap();
    reader.set_wait(Wait::Never);
    assert_eq!(reader.execute_portal(&mut portal, 0, &mut keep).unwrap(), Executed::WouldBlock);
    other.batch("commit").unwrap();
    assert_eq!(reader.execute_portal(&mut portal, 0, &mut keep).unwrap(), Executed::Complete);
    reader.set_wait(Wait::Allowed);
    let mut executed = reader.sync(&mut keep).unwrap();
    while executed != Executed::Complete {
        executed = reader.finish_commit(&mut keep).unwrap();
    }
    assert_eq!(keep.told(Ok(())), "(7)");
}

/// Statements that have to be planned again after they have waited, and have no plan to keep.
#[test]
fn what_waits_for_a_table_is_planned_again() {
    for sql in ["copy (select v from t where id = 1) to stdout", "explain analyze select v from t"]
    {
        let Scene { mut reader, mut other, fresh } = scene();
        other
            .batch(
                "begin; drop table t; create table t (v int, id int); insert into t values (7, 1)",
            )
            .unwrap();
        let waiting = std::thread::spawn(move || super::common::run(&mut reader, sql));
        let locks = fresh.database.engine().locks();
        while locks.list().iter().all(|lock| lock.granted) && !waiting.is_finished() {
            std::thread::yield_now();
        }
        other.batch("commit").unwrap();
        let told = waiting.join().unwrap();
        assert!(told.contains('7') || told.contains("rows=1"), "{sql}: {told}");
        assert!(!told.contains("ERROR"), "{sql}: {told}");
    }
}
