//! Statements and what they answer, as PostgreSQL would.

mod common;

use common::{fresh, run, run_copy, script};
use millpond::Value;

#[test]
fn tables_and_rows() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table t (id int primary key, name text not null default 'none', price numeric(8,2), seen timestamp)
CREATE TABLE

> create table t (id int)
ERROR: relation "t" already exists [42P07]

> create table if not exists t (id int)
NOTICE: relation "t" already exists, skipping
CREATE TABLE

> insert into t values (1, 'one', 1.5, '2024-01-02 03:04:05'), (2, 'two', 2.345, null), (3, default, null, null)
INSERT 0 3

> select * from t
id|name|price|seen
1|one|1.50|2024-01-02 03:04:05
2|two|2.35|NULL
3|none|NULL|NULL
SELECT 3

> select * from t where id = 2
id|name|price|seen
2|two|2.35|NULL
SELECT 1

> select name as n, price * 2, id + 1 from t where id between 1 and 2 order by id desc
n|?column?|?column?
two|4.70|3
one|3.00|2
SELECT 2

> select id from t where id in (3, 1, 7, 1) order by id
id
1
3
SELECT 2

> select id from t order by name limit 2
id
3
1
SELECT 2

> select id from t order by 1 desc offset 1
id
2
1
SELECT 2

> insert into t (id, name) values (1, 'again')
ERROR: duplicate key value violates unique constraint "t_pkey" [23505]
DETAIL: Key (id)=(1) already exists.

> insert into t (id, name) values (4, null)
ERROR: null value in column "name" of relation "t" violates not-null constraint [23502]
DETAIL: Failing row contains (4, null, null, null).

> insert into t (id) values (null)
ERROR: null value in column "id" of relation "t" violates not-null constraint [23502]
DETAIL: Failing row contains (null, none, null, null).

> insert into t values (5, 'five', 1234567.891)
ERROR: numeric field overflow [22003]
DETAIL: A field with precision 8, scale 2 must round to an absolute value less than 10^6.

> insert into t (id, name) values (10, 'ten') returning id, upper(name), price
id|upper|price
10|TEN|NULL
INSERT 0 1

> update t set price = coalesce(price, 0) + 1 where id >= 3 returning *
id|name|price|seen
3|none|1.00|NULL
10|ten|1.00|NULL
UPDATE 2

> update t set id = id + 100 where name = 'ten'
UPDATE 1

> select id from t where id > 100
id
110
SELECT 1

> update t set id = 1 where id = 2
ERROR: duplicate key value violates unique constraint "t_pkey" [23505]
DETAIL: Key (id)=(1) already exists.

> delete from t where id = 110 returning name
name
ten
DELETE 1

> delete from t where price is null
DELETE 0

> select count(*), sum(price), min(id), max(name), avg(id) from t
count|sum|min|max|avg
3|4.85|1|two|2.0000000000000000
SELECT 1

> truncate t
TRUNCATE TABLE

> select count(*) from t
count
0
SELECT 1

> drop table t
DROP TABLE

> select * from t
ERROR: relation "t" does not exist [42P01] at 15

> drop table if exists t, u
NOTICE: table "t" does not exist, skipping
NOTICE: table "u" does not exist, skipping
DROP TABLE

> drop table t
ERROR: table "t" does not exist [42P01]
"#,
    );
}

#[test]
fn without_tables() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> select 1
?column?
1
SELECT 1

> select 1, 'a', 2.50, null, true
?column?|?column?|?column?|?column?|bool
1|a|2.50|NULL|t
SELECT 1

> values (1, 'x')
column1|column2
1|x
SELECT 1

> select current_database(), current_user, 7/2 as half where 1 < 2
current_database|current_user|half
postgres|postgres|3
SELECT 1

> select 1 where false
?column?
SELECT 0

> select 1/0
?column?
ERROR: division by zero [22012]

> select 'it''s'::text || '!' as s
s
it's!
SELECT 1

> select nosuch
ERROR: column "nosuch" does not exist [42703] at 8

> selec 1
ERROR: syntax error at or near "selec" [42601] at 1

> 

> ;

> select $1
ERROR: there is no parameter $1 [42P02] at 8

> select 1; select 2
?column?
1
SELECT 1
?column?
2
SELECT 1

> savepoint a
ERROR: SAVEPOINT is not supported yet [0A000]

> create view v as select 1
ERROR: CREATE VIEW is not supported yet [0A000]

> values (1) fetch first 0 rows only
column1
SELECT 0

> select replace(1, 'a', 'b')
ERROR: function replace(integer, unknown, unknown) does not exist [42883] at 8
HINT: No function matches the given name and argument types. You might need to add explicit type casts.
"#,
    );
}

#[test]
fn transactions() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table t (a int primary key)
CREATE TABLE

> begin
BEGIN

> begin
WARNING: there is already a transaction in progress
BEGIN

> insert into t values (1)
INSERT 0 1

> select * from t
a
1
SELECT 1

> rollback
ROLLBACK

> select * from t
a
SELECT 0

> rollback
WARNING: there is no transaction in progress
ROLLBACK

> commit
WARNING: there is no transaction in progress
COMMIT

> start transaction
START TRANSACTION

> insert into t values (2)
INSERT 0 1

> insert into t values (2)
ERROR: duplicate key value violates unique constraint "t_pkey" [23505]
DETAIL: Key (a)=(2) already exists.

> select 1
ERROR: current transaction is aborted, commands ignored until end of transaction block [25P02]

> commit
ROLLBACK

> select * from t
a
SELECT 0

> insert into t values (3); insert into t values (3)
INSERT 0 1
ERROR: duplicate key value violates unique constraint "t_pkey" [23505]
DETAIL: Key (a)=(3) already exists.

> select * from t
a
SELECT 0

> insert into t values (4); begin; insert into t values (5)
INSERT 0 1
BEGIN
INSERT 0 1

> rollback
ROLLBACK

> select * from t
a
SELECT 0

> begin read only
BEGIN

> insert into t values (1)
ERROR: cannot execute INSERT in a read-only transaction [25006]

> end
ROLLBACK

> begin isolation level repeatable read
BEGIN

> show transaction_isolation
transaction_isolation
repeatable read
SHOW

> commit and chain
COMMIT

> show transaction isolation level
transaction_isolation
repeatable read
SHOW

> commit
COMMIT

> begin isolation level serializable
ERROR: isolation level SERIALIZABLE is not supported yet [0A000]
HINT: REPEATABLE READ is the strictest level that there is.

> begin; create table u (x int); insert into u values (1)
BEGIN
CREATE TABLE
INSERT 0 1

> select * from u
x
1
SELECT 1

> rollback
ROLLBACK

> select * from u
ERROR: relation "u" does not exist [42P01] at 15

> vacuum
VACUUM

> vacuum (buffer_usage_limit '256 kB', analyze)
VACUUM

> vacuum (buffer_usage_limit 0)
VACUUM

> analyze (buffer_usage_limit 128)
ANALYZE

> vacuum (buffer_usage_limit 100)
ERROR: BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB [22023]

> analyze (buffer_usage_limit '10 kb')
ERROR: BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB [22023]
HINT: Valid units for this parameter are "B", "kB", "MB", "GB", and "TB". Perhaps you meant "10kB".

> vacuum (buffer_usage_limit)
ERROR: buffer_usage_limit requires a parameter [42601]

> vacuum (full, buffer_usage_limit 256)
ERROR: BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL [0A000]

> begin; vacuum
BEGIN
ERROR: VACUUM cannot run inside a transaction block [25001]

> rollback
ROLLBACK

> checkpoint
CHECKPOINT
"#,
    );
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

> set shared_buffers = '1GB'
ERROR: parameter "shared_buffers" cannot be changed without restarting the server [55P02]

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
fn indexes_and_orders() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table t (a int, b text, c float8, primary key (a, b))
CREATE TABLE

> insert into t values (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (2, 'z', null), (3, 'x', 0.5)
INSERT 0 5

> explain select * from t where a = 1 and b = 'y'
QUERY PLAN
Index Scan using t_pkey on t
  Index Cond: (a = 1 AND b = 'y')
EXPLAIN

> explain select * from t where a = 1 and b > 'x' and c > 0 order by b desc
QUERY PLAN
Index Scan Backward using t_pkey on t
  Index Cond: (a = 1 AND b > 'x')
  Filter: (c > 0)
EXPLAIN

> select * from t where a = 1 and b > 'x'
a|b|c
1|y|2
SELECT 1

> explain select b from t where a = 2 order by a, b desc limit 1
QUERY PLAN
Limit
  ->  Index Scan Backward using t_pkey on t
        Index Cond: (a = 2)
EXPLAIN

> select b from t where a = 2 order by b desc
b
z
x
SELECT 2

> select a, b from t where a > 1 and b = 'x'
a|b
2|x
3|x
SELECT 2

> select a, b from t where a in (3, 1) order by a, b
a|b
1|x
1|y
3|x
SELECT 3

> select a from t where a < 5000000000 and a > -5000000000
a
1
1
2
2
3
SELECT 5

> select a from t where a = 5000000000
a
SELECT 0

> select a from t where a > 5000000000
a
SELECT 0

> select a from t where a = null
a
SELECT 0

> create index t_c on t (c desc)
CREATE INDEX

> explain select max(a) from t
QUERY PLAN
Aggregate
  ->  Index Scan Backward using t_pkey on t
EXPLAIN

> select max(a) from t
max
3
SELECT 1

> select min(b), max(b) from t
min|max
x|z
SELECT 1

> select max(b) from t where a = 1
max
y
SELECT 1

> select min(a) from t where b = 'z'
min
2
SELECT 1

> select min(a) from t where b = 'nosuch'
min
NULL
SELECT 1

> explain select c from t order by c desc nulls first
QUERY PLAN
Index Scan using t_c on t
EXPLAIN

> select c from t order by c desc
c
NULL
3
2
1
0.5
SELECT 5

> select c from t order by c
c
0.5
1
2
3
NULL
SELECT 5

> create unique index on t (b)
ERROR: could not create unique index "t_b_idx" [23505]
DETAIL: Key (b)=(x) is duplicated.

> create index t_c on t (a)
ERROR: relation "t_c" already exists [42P07]

> drop index t_pkey
ERROR: cannot drop index "t_pkey" because constraint t_pkey on table t requires it [2BP01]
HINT: You can drop constraint t_pkey on table t instead.

> drop index t_c
DROP INDEX

> alter table t add primary key (a)
ERROR: multiple primary keys for table "t" are not allowed [42P16]

> alter table t add constraint u unique (c)
ALTER TABLE

> insert into t values (9, 'q', 3)
ERROR: duplicate key value violates unique constraint "u" [23505]
DETAIL: Key (c)=(3) already exists.

> alter table t drop constraint u
ALTER TABLE

> insert into t values (9, 'q', 3)
INSERT 0 1
"#,
    );
}

#[test]
fn every_type() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table v (b bool, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric, t text, vc varchar(5), ch char(5), by bytea, d date, ts timestamp, tz timestamptz)
CREATE TABLE

> insert into v values (true, 1, 2, 3, 1.5, 2.5, 12.340, 'text', 'vc', 'ch', '\xdeadbeef', '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56+02')
INSERT 0 1

> select * from v
b|i2|i4|i8|f4|f8|n|t|vc|ch|by|d|ts|tz
t|1|2|3|1.5|2.5|12.340|text|vc|ch   |\xdeadbeef|2024-02-29|2024-02-29 12:34:56.789|2024-02-29 10:34:56+00
SELECT 1

> insert into v (vc) values ('toolong')
ERROR: value too long for type character varying(5) [22001]

> insert into v (i2) values (40000)
ERROR: smallint out of range [22003]

> insert into v (i4) values ('x')
ERROR: invalid input syntax for type integer: "x" [22P02]

> insert into v (b) values (1)
ERROR: column "b" is of type boolean but expression is of type integer [42804]
HINT: You will need to rewrite or cast the expression.

> select ch = 'ch', length(ch), ch || '!' from v
?column?|length|?column?
t|2|ch!
SELECT 1

> select d + 1, d - date '2024-02-01', ts::date, tz::timestamp from v
?column?|?column?|ts|tz
2024-03-01|28|2024-02-29|2024-02-29 10:34:56
SELECT 1

> update v set i4 = i4 * 1000000000 * 10
ERROR: integer out of range [22003]

> update v set i8 = i4 * 1000000000::bigint * 10, t = null
UPDATE 1

> select i8, t is null from v where i8 = 20000000000
i8|?column?
20000000000|t
SELECT 1
"#,
    );
}

#[test]
fn copy_in_and_out() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    assert_eq!(
        run(&mut c, "create table t (a int primary key, b text default 'd', c numeric)"),
        "CREATE TABLE\n"
    );
    assert_eq!(
        run_copy(
            &mut c,
            "copy t from stdin",
            &["1\tone\t1.", "0\n2\t\\N\t\\N\n3\ta\\tb\t3\n\\.\n"]
        ),
        "COPY 3\n"
    );
    assert_eq!(
        run_copy(
            &mut c,
            "copy t (a, c) from stdin with (format csv, header)",
            &["a,c\n4,4.5\n5,\n"]
        ),
        "COPY 2\n"
    );
    assert_eq!(
        run(&mut c, "copy t to stdout"),
        "1\tone\t1.0\n2\t\\N\t\\N\n3\ta\\tb\t3\n4\td\t4.5\n5\td\t\\N\nCOPY 5\n"
    );
    assert_eq!(
        run(
            &mut c,
            "copy (select b, a from t where a > 2 order by a desc) to stdout with csv header"
        ),
        "b,a\nd,5\nd,4\na\tb,3\nCOPY 3\n"
    );
    let found = run_copy(&mut c, "copy t from stdin", &["6\tsix\t6\nx\ty\tz\n"]);
    assert!(
        found.starts_with("ERROR: invalid input syntax for type integer: \"x\" [22P02]"),
        "{found}"
    );
    let found = run_copy(&mut c, "copy t from stdin", &["6\tsix\n"]);
    assert!(found.contains("missing data for column \"c\""), "{found}");
    let found = run_copy(&mut c, "copy t from stdin", &["7\ta\t1\n1\tb\t1\n"]);
    assert!(found.contains("duplicate key value violates unique constraint \"t_pkey\""), "{found}");
    assert_eq!(run(&mut c, "select count(*) from t"), "count\n5\nSELECT 1\n");
    assert!(run(&mut c, "copy t from '/etc/passwd'").contains("0A000"));
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

> deallocate sel
DEALLOCATE

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
        let mut sink = common::Transcript::default();
        let result = c.execute_portal(&mut portal, 0, &mut sink).map(|_| sink.text);
        c.sync(&mut common::Transcript::default()).unwrap();
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

#[cfg(feature = "datafusion")]
#[test]
fn event_loops_leave_long_planning_to_others() {
    use millpond::{Executed, Params, Wait};
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int, b int); insert into t values (1, 10), (2, 20)").unwrap();
    let text = "select b, count(*) from t where a = $1 group by b";
    c.set_wait(Wait::Never);
    c.simple_query("begin", &mut common::Transcript::default()).unwrap();
    assert!(c.try_prepare(text, &[]).unwrap().is_none());
    assert_eq!(c.transaction_status(), millpond::TransactionStatus::InTransaction);
    c.set_wait(Wait::Allowed);
    let prepared = c.try_prepare(text, &[]).unwrap().expect("prepared");
    // From then on it is known; and what needs no query engine never has to wait.
    c.set_wait(Wait::Never);
    assert!(c.try_prepare(text, &[]).unwrap().is_some());
    assert!(c.try_prepare("select b from t where a = $1", &[]).unwrap().is_some());
    assert!(c.try_prepare("select nonsense from t", &[]).is_err());
    c.simple_query("rollback", &mut common::Transcript::default()).unwrap();
    // To plan it again takes as long.
    let mut portal = c.bind(&prepared, Params::from_iter([Value::Int4(2)])).unwrap();
    fresh.database.connect().unwrap().batch("alter table t add primary key (a)").unwrap();
    let mut sink = common::Transcript::default();
    assert_eq!(c.execute_portal(&mut portal, 0, &mut sink).unwrap(), Executed::WouldBlock);
    c.set_wait(Wait::Allowed);
    assert_eq!(c.execute_portal(&mut portal, 0, &mut sink).unwrap(), Executed::Complete);
    assert_eq!(sink.text, "20|1\nSELECT 1\n");
}

#[test]
fn portals_give_rows_in_pieces() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key); insert into t values (1), (2), (3), (4), (5)")
        .unwrap();
    let prepared = c.prepare("select a from t order by a", &[]).unwrap();
    let mut portal = c.bind(&prepared, millpond::Params::new()).unwrap();
    let mut sink = common::Transcript::default();
    assert_eq!(c.execute_portal(&mut portal, 2, &mut sink).unwrap(), millpond::Executed::Suspended);
    assert_eq!(c.execute_portal(&mut portal, 2, &mut sink).unwrap(), millpond::Executed::Suspended);
    assert_eq!(c.execute_portal(&mut portal, 2, &mut sink).unwrap(), millpond::Executed::Complete);
    assert_eq!(sink.text, "1\n2\n3\n4\n5\nSELECT 1\n");
}

#[test]
fn timeouts_and_cancellation() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let mut other = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b int); insert into t values (1, 0)").unwrap();
    other.batch("begin; update t set b = 1 where a = 1").unwrap();
    c.batch("set statement_timeout = '50ms'").unwrap();
    let error = c.execute("update t set b = 2 where a = 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "57014");
    assert_eq!(error.message, "canceling statement due to statement timeout");
    c.batch("set statement_timeout = 0; set lock_timeout = '50ms'").unwrap();
    let error = c.execute("update t set b = 2 where a = 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "55P03", "{error}");
    c.batch("reset lock_timeout").unwrap();
    let cancel = c.cancel_handle();
    let waiting = std::thread::spawn(move || {
        let result = c.execute("update t set b = 2 where a = 1", &[]);
        (c, result)
    });
    // Asked until it is heard: a request before the statement begins is not for it.
    let error = loop {
        cancel.cancel();
        if waiting.is_finished() {
            let (c, result) = waiting.join().unwrap();
            drop(c);
            break result.unwrap_err();
        }
        std::thread::yield_now();
    };
    assert_eq!(error.message, "canceling statement due to user request");
    other.batch("commit").unwrap();
    let mut c = fresh.database.connect().unwrap();
    assert_eq!(c.query("select b from t", &[]).unwrap().rows, [[Value::Int4(1)]]);
}

#[test]
fn concurrent_updates() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key, v int); insert into t values (1, 0)").unwrap();
    // READ COMMITTED waits, and looks at the row again.
    a.batch("begin; update t set v = v + 1 where k = 1").unwrap();
    let waiting = std::thread::spawn(move || {
        let count = b.execute("update t set v = v + 10 where k = 1 and v < 100", &[]);
        (b, count)
    });
    a.batch("commit").unwrap();
    let (mut b, count) = waiting.join().unwrap();
    assert_eq!(count.unwrap(), 1);
    assert_eq!(a.query("select v from t", &[]).unwrap().rows, [[Value::Int4(11)]]);
    // REPEATABLE READ fails instead.
    b.batch("begin isolation level repeatable read").unwrap();
    assert_eq!(b.query("select v from t", &[]).unwrap().rows, [[Value::Int4(11)]]);
    a.batch("update t set v = 12").unwrap();
    let error = b.execute("update t set v = 13 where k = 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "40001");
    assert_eq!(error.message, "could not serialize access due to concurrent update");
    b.batch("rollback").unwrap();
    // Where it must not wait, a locked row is another lane's.
    a.batch("begin; select * from t where k = 1 for update").unwrap();
    b.set_wait(millpond::Wait::Never);
    let mut sink = common::Transcript::default();
    let executed = b.simple_query("update t set v = 14 where k = 1", &mut sink).unwrap();
    assert_eq!(executed, millpond::Executed::WouldBlock);
    a.batch("commit").unwrap();
    b.set_wait(millpond::Wait::Allowed);
    assert_eq!(b.resume(&mut sink).unwrap(), millpond::Executed::Complete);
    assert_eq!(sink.text, "UPDATE 1\n");
}

#[test]
fn what_would_be_misread_is_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b bytea); insert into t values (1, '\\x61ff')")
        .unwrap();
    for sql in [
        "select * from t x join t y on x.a = y.a for update",
        "select * from t for update skip locked",
        "select * from (select * from t for update) x",
        "select to_char(now(), 'YYYY') from t group by 1",
        "select 'a' collate \"de_DE\"",
    ] {
        assert!(
            run(&mut c, sql).contains("[0A000]") || run(&mut c, sql).contains("[42883]"),
            "{sql}: {}",
            run(&mut c, sql)
        );
    }
    assert_eq!(run(&mut c, "select 'a' collate \"C\" as x"), "x\na\nSELECT 1\n");
    assert_eq!(
        run(&mut c, "set bytea_output = 'escape'; copy t to stdout"),
        "SET\n1\ta\\\\377\nCOPY 1\n"
    );
    assert!(c.format_options().bytea_escape);
}

#[test]
fn row_locks() {
    let fresh = fresh();
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key, v int); insert into t values (1, 0), (2, 0)")
        .unwrap();
    a.batch("begin").unwrap();
    assert_eq!(run(&mut a, "select v from t where k = 1 for update"), "v\n0\nSELECT 1\n");
    assert!(run(&mut b, "select v from t where k = 1 for update nowait").contains("[55P03]"));
    assert_eq!(run(&mut b, "select v from t where k = 2 for update nowait"), "v\n0\nSELECT 1\n");
    assert!(
        run(&mut b, "begin read only; select v from t where k = 2 for update").contains("[25006]")
    );
    assert_eq!(run(&mut b, "rollback"), "ROLLBACK\n");
    assert!(run(&mut b, "lock table t").contains("[25P01]"));
    assert!(run(&mut b, "begin; lock table t nowait").contains("[55P03]"));
    a.batch("commit").unwrap();
    assert_eq!(
        run(&mut b, "rollback; begin; lock table t nowait"),
        "ROLLBACK\nBEGIN\nLOCK TABLE\n"
    );
}

#[test]
fn a_failing_statement_takes_back_everything() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key, v int)").unwrap();
    let rows: Vec<String> = (1..=3000).map(|k| format!("({k}, {k})")).collect();
    c.batch(&format!("insert into t values {}", rows.join(", "))).unwrap();
    // The last row divides by zero.
    assert!(run(&mut c, "update t set v = 1 / (3000 - k)").contains("[22012]"));
    assert_eq!(
        run(&mut c, "select count(*), sum(v) from t"),
        "count|sum\n3000|4501500\nSELECT 1\n"
    );
    assert!(
        run(&mut c, &format!("insert into t values {}, (3000, 0)", "(4000, 0)"))
            .contains("[23505]")
    );
    assert_eq!(run(&mut c, "select count(*) from t where k > 3000"), "count\n0\nSELECT 1\n");
    assert_eq!(run(&mut c, "update t set v = v + 1"), "UPDATE 3000\n");
    assert_eq!(run(&mut c, "update t set k = k + 3000 where k <= 10"), "UPDATE 10\n");
    assert_eq!(run(&mut c, "delete from t where k between 11 and 2999"), "DELETE 2989\n");
    assert_eq!(
        run(&mut c, "select count(*), min(k), max(k), sum(v) from t"),
        "count|min|max|sum\n11|3000|3010|3066\nSELECT 1\n"
    );
}

#[test]
fn deep_statements_need_little_stack() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let chain = format!("select {}1", "1+".repeat(190));
        assert_eq!(run(&mut c, &chain), "?column?\n191\nSELECT 1\n");
        c.batch("create table t (a int primary key)").unwrap();
        let ors = format!("select a from t where {}a = 1", "a = 2 or ".repeat(590));
        assert_eq!(run(&mut c, &ors), "a\nSELECT 0\n");
        let cases = format!("select {}1{}", "case when true then ".repeat(40), " end".repeat(40));
        assert_eq!(run(&mut c, &cases), "case\n1\nSELECT 1\n");
        let arms = format!("select case 7 {}end", "when 1 + 1 then 2 * 3 ".repeat(500));
        assert_eq!(run(&mut c, &arms), "case\nNULL\nSELECT 1\n");
        let nested = format!("select {}1{}", "(".repeat(70), ")".repeat(70));
        assert_eq!(run(&mut c, &nested), "?column?\n1\nSELECT 1\n");
        for (open, close) in
            [("(", ")"), ("not ", ""), ("-", ""), ("coalesce(", ")"), ("case when ", "")]
        {
            let deep = format!("select {}1{}", open.repeat(20_000), close.repeat(20_000));
            let found = run(&mut c, &deep);
            assert!(
                found.contains("[54001]") || found.contains("[42601]"),
                "{open}: {}",
                &found[..100.min(found.len())]
            );
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn deadlocks_are_found() {
    let settings = millpond::Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("deadlock_timeout", "20ms"))
        .unwrap();
    let fresh = common::fresh_with(settings);
    let mut a = fresh.database.connect().unwrap();
    let mut b = fresh.database.connect().unwrap();
    a.batch("create table t (k int primary key, v int); insert into t values (1, 0), (2, 0)")
        .unwrap();
    a.batch("begin; update t set v = 1 where k = 1").unwrap();
    b.batch("begin; update t set v = 2 where k = 2").unwrap();
    let other = std::thread::spawn(move || {
        let result = b.execute("update t set v = 2 where k = 1", &[]);
        let _ = b.batch("rollback");
        result
    });
    let mine = a.execute("update t set v = 1 where k = 2", &[]);
    let _ = a.batch("rollback");
    let theirs = other.join().unwrap();
    let errors: Vec<_> = [mine, theirs].into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].sqlstate.as_str(), "40P01");
    assert_eq!(errors[0].message, "deadlock detected");
}

#[test]
fn a_terminated_session_runs_nothing_more() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.cancel_handle().terminate();
    for _ in 0..2 {
        let error = c.execute("select pg_sleep(30)", &[]).unwrap_err();
        assert_eq!(error.sqlstate.as_str(), "57P01", "{error}");
    }
}

#[test]
fn who_waits_for_a_table_gets_it_as_it_is_then() {
    let fresh = fresh();
    let mut first = fresh.database.connect().unwrap();
    first.batch("create table t (a int primary key); insert into t values (1)").unwrap();
    for waits in ["begin; lock table t; commit", "copy t to stdout"] {
        first.batch("begin; truncate t; insert into t values (2)").unwrap();
        let database = fresh.database.clone();
        let second = std::thread::spawn(move || {
            let mut c = database.connect().unwrap();
            let mut sink = common::Transcript::default();
            c.simple_query(waits, &mut sink).map(|_| sink.text)
        });
        let locks = fresh.database.engine().locks();
        while locks.list().iter().all(|lock| lock.granted) && !second.is_finished() {
            std::thread::yield_now();
        }
        first.batch("commit").unwrap();
        let text = second.join().unwrap().unwrap();
        assert!(!waits.starts_with("copy") || text.contains('2'), "{text}");
    }
}

#[test]
fn what_sleeps_goes_where_it_may_wait() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b text); insert into t values (1, '')").unwrap();
    for (statement, rows) in [
        ("select pg_sleep(0.001)", 1),
        ("select a from t where pg_sleep(0.001) is not null", 1),
        ("insert into t values (2, pg_sleep(0.001))", 2),
        ("insert into t values (3, '') returning pg_sleep(0.001)", 3),
        ("update t set b = '' where a = 1 returning pg_sleep(0.001)", 3),
        ("delete from t where a = 1 returning pg_sleep(0.001)", 2),
    ] {
        let mut sink = common::Transcript::default();
        c.set_wait(millpond::Wait::Never);
        let executed = c.simple_query(statement, &mut sink).unwrap();
        assert_eq!(executed, millpond::Executed::WouldBlock, "{statement}");
        c.set_wait(millpond::Wait::Allowed);
        assert_eq!(c.resume(&mut sink).unwrap(), millpond::Executed::Complete, "{statement}");
        assert!(sink.text.ends_with(" 1\n"), "{statement}: {}", sink.text);
        let count = c.query("select a from t", &[]).unwrap().rows.len();
        assert_eq!(count, if statement.starts_with("select") { 1 } else { rows }, "{statement}");
    }
}

#[test]
fn values_beyond_all_memory_are_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let error = c
        .query("select replace(repeat('a', 60000000), 'a', repeat('b', 60000000))", &[])
        .unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "54000", "{error}");
}
