//! Functions that see or change the session.

use crate::common::{fresh, script};

#[test]
fn set_config_lasts_as_long_as_set() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> select set_config('work_mem', '5MB', false), current_setting('work_mem')
set_config|current_setting
5MB|5MB
SELECT 1

> show work_mem
work_mem
5MB
SHOW

> begin
BEGIN

> select set_config('work_mem', '6MB', true)
set_config
6MB
SELECT 1

> show work_mem
work_mem
6MB
SHOW

> commit
COMMIT

> show work_mem
work_mem
5MB
SHOW

> select set_config('work_mem', '7MB', false), 1 / 0
set_config|?column?
ERROR: division by zero [22012]

> show work_mem
work_mem
5MB
SHOW

> select set_config('work_mem', null, false)
set_config
4MB
SELECT 1

> select set_config('transaction_read_only', 'on', true)
set_config
ERROR: set_config of transaction_read_only is not supported yet [0A000]
"#,
    );
}

#[test]
fn a_seed_makes_random_numbers_repeat() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> select setseed(0.5) is null as none
none
f
SELECT 1

> select random(), random(), random()
random|random|random
0.9851677175347999|0.825301858027981|0.12974610012450416
SELECT 1

> select setseed(-1) is null as none
none
f
SELECT 1

> select random(), random()
random|random
0.725656831544149|0.21342431605981593
SELECT 1
"#,
    );
}

/// A `character(n)` is stored without the spaces at its end, but patterns and texts see them.
#[test]
fn padding_is_seen_where_postgresql_sees_it() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table t (id int primary key, c char(3))
CREATE TABLE

> insert into t values (1, 'a'), (2, 'abc')
INSERT 0 2

> select id, c like 'a', c like 'a%', c ~ 'a$', length(c), octet_length(c), concat(c, '|') from t order by id
id|?column?|?column?|?column?|length|octet_length|concat
1|f|t|f|1|3|a  |
2|f|t|f|3|3|abc|
SELECT 2
"#,
    );
}

#[test]
fn sizes_of_relations() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table sized (id int primary key, t text)
CREATE TABLE

> insert into sized select g, repeat('x', 90) from generate_series(1, 1000) g
INSERT 0 1000

> select pg_relation_size('sized') / 8192 between 12 and 20 as table, pg_relation_size('sized', 'main') = pg_relation_size('sized') as main, pg_relation_size('sized', 'vm') as vm, pg_indexes_size('sized') = pg_relation_size('sized_pkey') as indexes, pg_total_relation_size('sized') = pg_table_size('sized') + pg_indexes_size('sized') as total
table|main|vm|indexes|total
t|t|0|t|t
SELECT 1

> select relname, pg_size_pretty(pg_relation_size(oid)) <> '' as sized from pg_class where relname like 'sized%' order by 1
relname|sized
sized|t
sized_pkey|t
SELECT 2

> select pg_relation_size(1), pg_total_relation_size(null), pg_relation_filenode('sized') > 0 as file
pg_relation_size|pg_total_relation_size|file
NULL|NULL|t
SELECT 1

> select pg_relation_size('sized', 'side')
pg_relation_size
ERROR: invalid fork name [22023]
HINT: Valid fork names are "main", "fsm", "vm", and "init".

> select pg_relation_size('nothing')
pg_relation_size
ERROR: relation "nothing" does not exist [42P01]
"#,
    );
}

#[test]
fn operators_that_do_not_exist() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> select 1 === 2
ERROR: operator does not exist: integer === integer [42883] at 10
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

> select !! 3
ERROR: operator does not exist: !! integer [42883] at 8
HINT: No operator matches the given name and argument type. You might need to add an explicit type cast.

> select 1 @@ 2
ERROR: operator does not exist: integer @@ integer [42883] at 10
HINT: No operator matches the given name and argument types. You might need to add explicit type casts.

> select 'a' ~<~ 'b'
ERROR: the operator ~<~ is not supported yet [0A000] at 12

> select - 'a'::text
ERROR: operator does not exist: - text [42883] at 8
HINT: No operator matches the given name and argument type. You might need to add an explicit type cast.
"#,
    );
}
