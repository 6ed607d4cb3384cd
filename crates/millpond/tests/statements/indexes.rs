//! Indexes, the orders they give, and the plans that use them.

use crate::common::{fresh, script};

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
