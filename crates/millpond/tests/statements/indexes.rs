//! Indexes, the orders they give, and the plans that use them.

use crate::common::{fresh, run, script};
use millpond::Value;
use millpond_engine::check::check_engine;

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
fn indexes_are_built_again() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("reindex.txt"));
}

/// A snapshot that sees rows which the new index lacks does without it.
#[test]
fn an_older_snapshot_does_not_use_an_index_that_was_built_again() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let mut old = fresh.database.connect().unwrap();
    run(&mut c, "create table t (id int primary key)");
    run(&mut c, "insert into t select generate_series(1, 500)");
    run(&mut old, "begin isolation level repeatable read; select 1");
    run(&mut c, "delete from t where id > 100");
    assert_eq!(run(&mut c, "reindex table t"), "REINDEX\n");
    let count = "select count(*) from t where id = 300";
    assert_eq!(run(&mut c, count), "count\n0\nSELECT 1\n");
    assert_eq!(run(&mut old, count), "count\n1\nSELECT 1\n");
}

/// A table whose keys come in no order, and no two are the same.
fn scattered(c: &mut millpond::Connection, rows: i32) {
    c.batch("create table t (k int, v text)").expect("a table");
    for first in (0..rows).step_by(500) {
        let row = |n: i32| format!("({}, 'value {n}')", n.wrapping_mul(0x6487_2b15));
        let rows: Vec<_> = (first..first + 500).map(row).collect();
        c.batch(&format!("insert into t values {}", rows.join(", "))).expect("rows");
    }
}

#[test]
fn an_index_is_built_in_little_memory() {
    let fresh = fresh();
    let c = &mut fresh.database.connect().unwrap();
    scattered(c, 10_000);
    run(c, "set maintenance_work_mem = '64kB'");
    assert_eq!(run(c, "create unique index on t (k)"), "CREATE INDEX\n");
    assert_eq!(run(c, "create index on t (v, k)"), "CREATE INDEX\n");
    let keys = c.query("select k from t where k > -2147483648 order by k", &[]).unwrap().rows;
    let keys: Vec<i32> = keys
        .iter()
        .map(|row| match row[0] {
            Value::Int4(key) => key,
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert!(keys.is_sorted() && keys.len() == 10_000);
    let found = run(c, "select k from t where v = 'value 9999'");
    assert_eq!(found.lines().nth(1), Some(&*9999i32.wrapping_mul(0x6487_2b15).to_string()));
    let mut findings = Vec::new();
    check_engine(fresh.database.engine(), &mut |finding| findings.push(finding)).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    // Two rows of one key are far from each other.
    run(c, "drop index t_k_idx; insert into t values (0, 'again')");
    assert_eq!(
        run(c, "create unique index on t (k)"),
        "ERROR: could not create unique index \"t_k_idx\" [23505]\nDETAIL: Key (k)=(0) is duplicated.\n"
    );
    assert_eq!(run(c, "create index on t (k)"), "CREATE INDEX\n");
}

#[test]
fn an_index_build_can_be_cancelled() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    scattered(&mut c, 20_000);
    run(&mut c, "set maintenance_work_mem = '64kB'");
    let cancel = c.cancel_handle();
    let mut cancelled = false;
    // Wherever it is hit.
    for _ in 0..5 {
        std::thread::scope(|scope| {
            let builder = scope.spawn(|| run(&mut c, "create index on t (v)"));
            while !builder.is_finished() {
                cancel.cancel();
                std::thread::yield_now();
            }
            let told = builder.join().unwrap();
            cancelled |= told == "ERROR: canceling statement due to user request [57014]\n";
            assert!(cancelled || told == "CREATE INDEX\n", "{told}");
        });
        run(&mut c, "drop index if exists t_v_idx");
    }
    assert!(cancelled);
    assert_eq!(run(&mut c, "create index on t (v)"), "CREATE INDEX\n");
}
