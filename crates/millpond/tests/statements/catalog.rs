//! System relations: what they say of tables, and that keys lead to their rows.

use crate::common::{fresh, script};

const TABLES: &str = r#"
> create table t (id int primary key, name varchar(20) not null default 'x', v numeric(10,2))
CREATE TABLE

> create index t_name on t (name, v desc)
CREATE INDEX

> create table u (a int)
CREATE TABLE
"#;

#[test]
fn names_of_pg_catalog_are_found_with_and_without_the_schema() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, TABLES);
    script(
        &mut c,
        r#"
> select relname, relkind from pg_class where relnamespace = 2200 order by relname
relname|relkind
t|r
t_name|i
t_pkey|i
u|r
SELECT 4

> select c.relname from pg_catalog.pg_class c where c.oid = 'pg_class'::regclass
relname
pg_class
SELECT 1

> select table_name from information_schema.tables where table_schema = 'public' order by 1
table_name
t
u
SELECT 2

> select count(*) from public.pg_class
ERROR: relation "public.pg_class" does not exist [42P01] at 22

> select count(*) from tables
ERROR: relation "tables" does not exist [42P01] at 22
"#,
    );
}

#[test]
fn keys_of_system_relations_are_used_on_the_inner_side_of_a_nested_loop() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, TABLES);
    script(
        &mut c,
        r#"
> explain (costs off) select a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relname = 't'
QUERY PLAN
Nested Loop
  ->  Index Scan using pg_class_relname_nsp_index on pg_class c
        Index Cond: (relname = 't')
  ->  Index Scan using pg_attribute_relid_attnam_index on pg_attribute a
        Index Cond: (attrelid = c.oid)
EXPLAIN

> select a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relname = 't' order by a.attnum
attname|attnum|format_type
id|1|integer
name|2|character varying(20)
v|3|numeric(10,2)
SELECT 3

> select relname from pg_class where oid in ('t'::regclass, 'u'::regclass, 0, null) order by oid
relname
t
u
SELECT 2

> select attname from pg_attribute where attrelid = 't'::regclass and attnum > 1 and attnum <= 3 order by attnum desc
attname
v
name
SELECT 2

> select count(*) from pg_class where oid = -1 or oid is null
count
0
SELECT 1
"#,
    );
}

#[test]
fn definitions_are_shown_as_sql() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, TABLES);
    script(
        &mut c,
        r#"
> select pg_get_indexdef(indexrelid), indkey[0], indnatts from pg_index where indrelid = 't'::regclass order by indexrelid
pg_get_indexdef|indkey|indnatts
CREATE UNIQUE INDEX t_pkey ON public.t USING btree (id)|1|1
CREATE INDEX t_name ON public.t USING btree (name, v DESC)|2|2
SELECT 2

> select conname, contype, conkey, pg_get_constraintdef(oid), conrelid::regclass from pg_constraint where conrelid = 't'::regclass
conname|contype|conkey|pg_get_constraintdef|conrelid
t_pkey|p|{1}|PRIMARY KEY (id)|t
SELECT 1

> select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass and adnum = 2
pg_get_expr
'x'
SELECT 1

> select array(select relname::text from pg_class where relnamespace = 2200 and relkind = 'r' order by 1)
array
{t,u}
SELECT 1

> select 'nowhere'::regclass
regclass
ERROR: relation "nowhere" does not exist [42P01]

> select to_regclass('nowhere') is null, pg_table_is_visible('t'::regclass)
?column?|pg_table_is_visible
t|t
SELECT 1
"#,
    );
}

#[test]
fn a_system_relation_sees_definitions_of_its_own_transaction() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> begin
BEGIN

> create table inside (a int)
CREATE TABLE

> select relname from pg_class where relname = 'inside'
relname
inside
SELECT 1

> rollback
ROLLBACK

> select relname from pg_class where relname = 'inside'
relname
SELECT 0
"#,
    );
}

#[test]
fn functions_are_in_pg_proc() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> select oid, proname, pg_get_function_arguments(oid), pg_get_function_result(oid), provolatile from pg_proc where proname = 'lower'
oid|proname|pg_get_function_arguments|pg_get_function_result|provolatile
870|lower|text|text|i
SELECT 1

> select proname, 'pg_backend_pid'::regproc = oid from pg_proc where oid = 2026
proname|?column?
pg_backend_pid|t
SELECT 1

> select pg_get_function_result(oid), pg_get_function_arguments(oid) from pg_proc where proname = 'generate_series' and prorettype = 23 and pronargs = 3
pg_get_function_result|pg_get_function_arguments
SETOF integer|integer, integer, integer
SELECT 1

> select pg_get_function_result(p.oid), pg_get_function_arguments(p.oid), prokind, aggkind, oprname from pg_proc p join pg_aggregate on aggfnoid = p.oid join pg_operator o on o.oid = aggsortop where p.oid = 'max(int4)'::regprocedure
pg_get_function_result|pg_get_function_arguments|prokind|aggkind|oprname
integer|integer|a|n|>
SELECT 1
"#,
    );
}

#[test]
fn sizes_stand_beside_rows_of_catalogs() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, TABLES);
    script(
        &mut c,
        r#"
> select proname, proretset, pg_table_size('u') >= 0 as known from pg_proc where oid = 2079
proname|proretset|known
pg_table_is_visible|f|t
SELECT 1

> select polname, pg_table_size('u') from pg_policy
polname|pg_table_size
SELECT 0
"#,
    );
}

#[test]
fn pg_proc_tells_which_functions_return_rows() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> select proname, proretset from pg_proc where proname in ('regexp_match', 'regexp_matches') group by 1, 2 order by 1
proname|proretset
regexp_match|f
regexp_matches|t
SELECT 2
"#,
    );
}
