//! Rows in and out: tables, expressions, types, COPY.

use crate::common::{fresh, run, run_copy, script};

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
?column?|?column?|?column?|?column?|?column?
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
ERROR: invalid input syntax for type integer: "x" [22P02] at 28

> insert into v (b) values (1)
ERROR: column "b" is of type boolean but expression is of type integer [42804] at 27
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
fn copy_errors_name_line_and_value() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table t (a int primary key, b text not null)");
    let mut context = |data: &str| {
        let found = run_copy(&mut c, "copy t from stdin", &[data]);
        found.split_once("CONTEXT: ").unwrap_or_default().1.trim_end().to_owned()
    };
    assert_eq!(context("1\ta\n2\n"), "COPY t, line 2: \"2\"");
    assert_eq!(context("1\ta\n2\tb\tc\n"), "COPY t, line 2: \"2\tb\tc\"");
    assert_eq!(context("1\ta\nx\n"), "COPY t, line 2, column a: \"x\"");
    assert_eq!(context("1\ta\n2\t\\N\n"), "COPY t, line 2: \"2\t\\N\"");
    assert_eq!(context("1\ta\n2\tb\r\n"), "COPY t, line 2");
    assert_eq!(context("1\ta\n2\tb\0\n"), "COPY t, line 2");
    assert_eq!(context("1\ta\n1\tb\n"), "COPY t, line 2");
    let long = format!("{}\ta\n", "9".repeat(101));
    assert_eq!(context(&long), format!("COPY t, line 1, column a: \"{}...\"", "9".repeat(100)));
}
