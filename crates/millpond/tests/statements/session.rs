//! What a session has: settings, prepared statements, portals.

use millpond::{Connection, DataType, Executed, Value};

use crate::common::{Transcript, fresh, fresh_with, run, run_copy, script};

/// The buffer pool is resized while it is in use, for all sessions, up to its maximum.
#[test]
fn the_buffer_pool_is_resized() {
    let settings = millpond::Settings::default().with("shared_buffers", "8MB").unwrap();
    let fresh = fresh_with(settings.with("max_shared_buffers", "16MB").unwrap());
    let mut c = fresh.database.connect().unwrap();
    let mut other = fresh.database.connect().unwrap();
    run(&mut other, "create table t (a int primary key, b text)");
    for row in 0..300 {
        run(&mut other, &format!("insert into t values ({row}, repeat('x', 3000))"));
    }
    script(
        &mut c,
        r#"
> set shared_buffers = '16MB'; show shared_buffers
SET
shared_buffers
16MB
SHOW

> set shared_buffers = '32MB'
ERROR: the pool can have 1 to 2048 pages, not 4096 [22023]

> begin; set shared_buffers = '1MB'
BEGIN
ERROR: SET shared_buffers cannot run inside a transaction block [25001]

> rollback
ROLLBACK

> set shared_buffers = '512kB'
SET
"#,
    );
    assert_eq!(run(&mut other, "show shared_buffers"), "shared_buffers\n512kB\nSHOW\n");
    for row in 0..300 {
        let found = run(&mut other, &format!("select length(b) from t where a = {row}"));
        assert_eq!(found, "length\n3000\nSELECT 1\n");
    }
    run(&mut c, "reset shared_buffers");
    assert_eq!(run(&mut c, "show shared_buffers"), "shared_buffers\n8MB\nSHOW\n");
}

/// `current_query` has all of a text, of which other sessions see the first 1023 bytes.
#[test]
fn current_query_has_the_whole_text() {
    let fresh = fresh();
    let (mut c, mut other) = (fresh.database.connect().unwrap(), fresh.database.connect().unwrap());
    let ask = "select current_query() as q";
    for filling in [0, 990, 995, 996, 997, 998, 1000, 100_000] {
        let text = format!("{ask} /*{}*/", "x".repeat(filling));
        assert_eq!(run(&mut c, &text), format!("q\n{text}\nSELECT 1\n"));
        let seen = "select query from pg_stat_activity where query like 'select current_query%'";
        let shown = &text[..text.len().min(1023)];
        assert_eq!(run(&mut other, seen), format!("query\n{shown}\nSELECT 1\n"));
    }
    // A short text after a long one.
    assert_eq!(run(&mut c, ask), format!("q\n{ask}\nSELECT 1\n"));
}

#[test]
fn settings() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> show work_mem
work_mem
4MB
SHOW

> set work_mem = '8MB'
SET

> show work_mem
work_mem
8MB
SHOW

> begin; set work_mem to '16MB'; rollback
BEGIN
SET
ROLLBACK

> show work_mem
work_mem
8MB
SHOW

> begin; set local work_mem = 64; show work_mem; commit; show work_mem
BEGIN
SET
work_mem
64kB
SHOW
COMMIT
work_mem
8MB
SHOW

> reset work_mem
RESET

> select current_setting('work_mem')
current_setting
4MB
SELECT 1

> set worg_mem = 1
ERROR: unrecognized configuration parameter "worg_mem" [42704]
HINT: Perhaps you meant "work_mem".

> set max_connections = 5
ERROR: parameter "max_connections" cannot be changed without restarting the server [55P02]

> set extra_float_digits = 3
SET

> set datestyle to 'ISO'
SET

> set client_encoding to 'latin1'
ERROR: invalid value for parameter "client_encoding": "latin1" [22023]
HINT: Only "UTF8" is supported.

> discard all
DISCARD ALL
"#,
    );
}

#[test]
fn prepared_by_sql() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table t (a int primary key, b text)
CREATE TABLE

> prepare ins (int, text) as insert into t values ($1, $2)
PREPARE

> execute ins (1, 'one')
INSERT 0 1

> execute ins (2, 'two')
INSERT 0 1

> prepare sel as select b from t where a = $1
PREPARE

> execute sel (2)
b
two
SELECT 1

> execute sel
ERROR: wrong number of parameters for prepared statement "sel" [42601]

> prepare bad as select nosuch
ERROR: column "nosuch" does not exist [42703] at 23

> prepare bad(nosuch) as select 1
ERROR: type "nosuch" does not exist [42704] at 13

> create table d1 (a int default nosuch)
ERROR: cannot use column reference in DEFAULT expression [0A000] at 32

> create table d1 (a int default lower(1))
ERROR: function lower(integer) does not exist [42883] at 32
HINT: No function matches the given name and argument types. You might need to add explicit type casts.

> select name, statement, parameter_types, from_sql, generic_plans from pg_prepared_statements order by name
name|statement|parameter_types|from_sql|generic_plans
ins|prepare ins (int, text) as insert into t values ($1, $2)|{integer,text}|t|2
sel|prepare sel as select b from t where a = $1|{integer}|t|1
SELECT 2

> select count(*) from pg_prepared_statements where prepare_time <= now()
count
2
SELECT 1

> deallocate sel
DEALLOCATE

> select name from pg_prepared_statements
name
ins
SELECT 1

> execute sel (1)
ERROR: prepared statement "sel" does not exist [26000]

> deallocate all
DEALLOCATE ALL

> insert into t select a + 10, b || '!' from t
INSERT 0 2

> select * from t where a > 10
a|b
11|one!
12|two!
SELECT 2
"#,
    );
}

#[test]
fn definitions_change_under_prepared_statements() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let mut other = fresh.database.connect().unwrap();
    c.batch("create table t (a int, b int); insert into t values (1, 10), (2, 20)").unwrap();
    let prepared = c.prepare("select b from t where a = $1", &[]).unwrap();
    let get = |c: &mut millpond::Connection| {
        let mut portal = c.bind(&prepared, millpond::Params::from_iter([Value::Int4(2)])).unwrap();
        let mut sink = crate::common::Transcript::default();
        let result = c.execute_portal(&mut portal, 0, &mut sink).map(|_| sink.text);
        c.sync(&mut crate::common::Transcript::default()).unwrap();
        result
    };
    assert_eq!(get(&mut c).unwrap(), "20\nSELECT 1\n");
    other.batch("alter table t add primary key (a)").unwrap();
    assert_eq!(get(&mut c).unwrap(), "20\nSELECT 1\n");
    other.batch("truncate t").unwrap();
    assert_eq!(get(&mut c).unwrap(), "SELECT 0\n");
    other.batch("drop table t").unwrap();
    assert_eq!(get(&mut c).unwrap_err().sqlstate.as_str(), "42P01");
    other.batch("create table t (a int, b text); insert into t values (2, 'x')").unwrap();
    let error = get(&mut c).unwrap_err();
    assert_eq!(error.message, "cached plan must not change result type");
    other
        .batch("drop table t; create table t (b int, a int); insert into t values (7, 2)")
        .unwrap();
    assert_eq!(get(&mut c).unwrap(), "7\nSELECT 1\n");
    // The same text through the lexer's cache.
    assert_eq!(run(&mut c, "select b from t where a = 2"), "b\n7\nSELECT 1\n");
    other.batch("drop table t").unwrap();
    assert!(run(&mut c, "select b from t where a = 2").contains("42P01"));
}

#[test]
fn portals_give_rows_in_pieces() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key); insert into t values (1), (2), (3), (4), (5)")
        .unwrap();
    let prepared = c.prepare("select a from t order by a", &[]).unwrap();
    let mut portal = c.bind(&prepared, millpond::Params::new()).unwrap();
    let mut sink = crate::common::Transcript::default();
    assert_eq!(c.execute_portal(&mut portal, 2, &mut sink).unwrap(), millpond::Executed::Suspended);
    assert_eq!(c.execute_portal(&mut portal, 2, &mut sink).unwrap(), millpond::Executed::Suspended);
    assert_eq!(c.execute_portal(&mut portal, 2, &mut sink).unwrap(), millpond::Executed::Complete);
    assert_eq!(sink.text, "1\n2\n3\n4\n5\nSELECT 1\n");
}

#[cfg(feature = "datafusion")]
#[test]
fn event_loops_leave_long_aggregations_to_others() {
    use crate::common::Transcript;
    use millpond::{Executed, Params, Wait};
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int, b int, c int)").unwrap();
    c.batch("insert into t values (1, 10, 1), (2, 20, 2)").unwrap();
    c.batch("insert into t select g, 30, g from generate_series(3, 5000) g; analyze t").unwrap();
    let text = "select b, count(*) from t where a <= $1 group by b order by b desc limit 1";
    c.set_wait(Wait::Never);
    let prepared = c.prepare(text, &[]).unwrap();
    let mut portal = c.bind(&prepared, Params::from_iter([Value::Int4(2)])).unwrap();
    let mut sink = Transcript::default();
    assert_eq!(c.execute_portal(&mut portal, 0, &mut sink).unwrap(), Executed::WouldBlock);
    c.set_wait(Wait::Allowed);
    assert_eq!(c.execute_portal(&mut portal, 0, &mut sink).unwrap(), Executed::Complete);
    assert_eq!(sink.text, "20|1\nSELECT 1\n");
}

#[test]
fn backslashes_in_strings_are_what_the_session_says() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("strings.txt"));
}

/// Frozen rows are visible to all at once, so that no other session may see the table.
#[test]
fn only_new_tables_get_frozen_rows() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let copy = "copy t from stdin with (freeze)";
    run(&mut c, "create table t (a int)");
    let refused = run_copy(&mut c, copy, &["1\n"]);
    assert!(refused.contains("cannot perform COPY FREEZE"), "{refused}");
    run(&mut c, "begin; truncate t");
    assert_eq!(run_copy(&mut c, copy, &["1\n"]), "COPY 1\n");
    assert_eq!(run(&mut c, "commit"), "COMMIT\n");
}

#[test]
fn explain_shows_what_would_run() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("explain.txt"));
    let analyzed = run(&mut c, "explain analyze execute by_id(2)");
    assert!(analyzed.contains("on t (actual rows=1 "), "{analyzed}");
    for (options, times) in
        [("analyze", 2), ("analyze, summary off", 0), ("summary", 1), ("costs off", 0)]
    {
        let shown = run(&mut c, &format!("explain ({options}) select * from t"));
        assert_eq!(shown.matches(" Time: ").count(), times, "{options}: {shown}");
    }
}

/// EXPLAIN gets its parameters, and their types, from the statement that it explains.
#[test]
fn explain_takes_parameters() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table t (id int primary key, a int)");
    run(&mut c, "insert into t values (1, 10), (2, 20)");
    let prepared = c.prepare("explain analyze update t set a = $2 where id = $1", &[]).unwrap();
    assert_eq!(prepared.params(), [DataType::Int4, DataType::Int4]);
    let params = [Value::Int4(2), Value::Int4(25)].into_iter().collect();
    let mut portal = c.bind(&prepared, params).unwrap();
    let mut shown = Transcript::default();
    assert_eq!(c.execute_portal(&mut portal, 0, &mut shown).unwrap(), Executed::Complete);
    assert!(shown.text.contains("(id = $1)"), "{}", shown.text);
    assert_eq!(run(&mut c, "select a from t where id = 2"), "a\n25\nSELECT 1\n");
}

/// The statements of a text are one transaction, and what they set is a part of it.
#[test]
fn settings_of_a_text_that_fails_are_taken_back() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let shown = |c: &mut Connection| run(c, "show work_mem").lines().nth(1).map(str::to_owned);
    let before = shown(&mut c);
    for text in [
        "set work_mem = '7MB'; select 1 / 0",
        "set work_mem = '7MB'; select nosuch",
        "set work_mem = '7MB'; rollback",
        "reset work_mem; set work_mem = '7MB'; set nosuch = 1",
    ] {
        run(&mut c, text);
        assert_eq!(shown(&mut c), before, "{text}");
    }
    let text = "set local work_mem = '7MB'; select current_setting('work_mem')";
    let answer = run(&mut c, text);
    assert!(answer.contains("7MB") && !answer.contains("WARNING"), "{answer}");
    assert_eq!(shown(&mut c), before);
    run(&mut c, "set work_mem = '7MB'; select 1");
    assert_eq!(shown(&mut c).as_deref(), Some("7MB"));
}
