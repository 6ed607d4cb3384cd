//! Statements of every kind that PostgreSQL 15 accepts.

use millpond_syntax::parse;

const ACCEPTED: &str = r#"
select
select distinct on (a, b) *, t.*, a as select, b bare from only t as x (c, d), u *
select 1 from a join b join c on a.x = b.x on true natural left join d cross join e
select 1 from (a full outer join b using (x, y) as j) k, lateral (select a.b) l, lateral f(k.x) m
select 1 from ((select 1) union all (select 2) order by 1) u, ((select 3)) v
select 1 from rows from (f(1) as (a int, b text), g(2)) with ordinality as r (x, y, z)
select 1 from f(1) as (a int, b text collate "C"), g() h (a int), pg_catalog.now() n, current_date
select 1 from t tablesample bernoulli (10) repeatable (1)
select 1 from t where a in (1, 2) and b not in (select 1) or not c like 'x%' escape '!' is true
select 1 where (a, b) = any (array[1, 2]) and (select 1) < all (select 2) and ((select 1) + 1) > 0
select a between symmetric 1 and 2 and b not between 3 and 4 and c similar to 'x' and d ilike any (e)
select a::int[][3]::pg_catalog.text, cast(a as double precision array[4]), interval '1' year to month
select numeric(3,1) '1.5', time with time zone '10:00', interval(3) '1 s', char 'x', pg_catalog.int4 '1'
select (a).b[1].c, (f(x)).*, $1.y, $2[1:2], $3[:], ($4)[:3], array[[1, 2], [3, 4]], array(select 1)
select case a when 1 then 2 else 3 end, case when true then 1 end, coalesce(a, b), nullif(a, b)
select greatest(1, 2), least(3, 4), row(), row(1), (1, 2), exists (select), grouping(a, b)
select extract(year from a), extract('x' from a), position('a' in b), overlay(a placing b from 1 for 2)
select substring(a from 1 for 2), substring(a for 2), substring(a similar b escape c), substring(a, 1)
select trim(both 'x' from y), trim(leading from y), trim(a, b), normalize(a, nfkd), a is nfc normalized
select treat(a as text), collation for (a), a collate "C", a at time zone 'utc', (a, b) overlaps (c, d)
select count(*) filter (where a > 1) over (partition by b order by c rows between 1 preceding and current row)
select sum(a) over w, f(variadic x), f(a => 1, b := 2), string_agg(distinct a, ',' order by b desc nulls last)
select rank() over (w range unbounded preceding exclude ties) from t window w as (order by a using <)
select percentile_cont(0.5) within group (order by a), current_schema, current_schema(), user, localtime(3)
select a @@ b, @ c, - - d, a operator(pg_catalog.+) b, operator(pg_catalog.-) c, a <-> b || c
select not a is null, b isnull, c notnull, d is not distinct from e, f is document, true is unknown
select xmlelement(name a, xmlattributes(b as c), d), xmlforest(a, b as c), xmlparse(document a strip whitespace)
select xmlpi(name a, 'b'), xmlroot(a, version no value, standalone yes), xmlserialize(content a as text)
select * from xmltable(xmlnamespaces('u' as n), '/r' passing d columns a int path 'x' default 1, b for ordinality)
select a from t group by distinct rollup (a, b), cube (c), grouping sets ((), (a), rollup (b)), d having true
select 1 union select 2 intersect all select 3 except distinct select 4 order by 1 offset 1 row fetch next 2 rows only
select 1 for update of a, b nowait for no key update skip locked for key share limit 1
(select 1) limit all
values (1, default), (2, 3) order by 1
table only t
with recursive a (x) as materialized (select 1), b as not materialized (delete from t returning *) select 1
with a as (select 1) search depth first by x set y cycle x set c to 1 default 2 using p (select 1)
select into temp u from t
select between.left.isnull from t as between
insert into t default values
insert into a.b.t as x (a, b[1], c.d) overriding user value select 1 on conflict do nothing returning *, a b
insert into t (select 1) on conflict (a, (b + 1) collate "C" text_ops desc) where c do update set a = excluded.a where d
insert into t values (1) on conflict on constraint c do update set (a, b) = (select 1, 2)
with a as (select 1) update only t as x set a = default, (b, c) = row(1, 2), d[1] = 3 from u where current of c
update t set set = 1 returning *
delete from only (t) x using u, v where x.a = u.a returning x.*
merge into t using s on t.a = s.a when matched and s.b > 1 then update set b = 1 when not matched then insert (a) values (1)
merge into t using (select 1) s on true when matched then delete when not matched then do nothing
explain select 1
explain (analyze, costs off, format json) with a as (select 1) table a
explain analyze verbose create table x as select 1
copy t (a, b) from stdin with (format csv, header, force_null (a, b), null '') where a > 1
copy binary t to program 'cat' using delimiters ',' with null as '' csv force quote *
copy (select 1 union select 2) to stdout
prepare p (int, text) as select $1
execute p (1, 'x')
deallocate prepare all
declare c insensitive no scroll cursor with hold for select 1
fetch backward all in c
fetch next
move absolute -3 from c
close all
begin isolation level serializable, read only not deferrable
start transaction read write
commit and no chain
rollback work to savepoint s
release s
savepoint s
prepare transaction 'x'
rollback prepared 'x'
abort
end transaction
set local a.b to 'x', 1, on
set session characteristics as transaction isolation level read committed
set time zone interval '1' hour to minute
set session = default
set names 'utf8'
set session authorization default
set x from current
set constraints all deferred
reset all
reset session authorization
show transaction isolation level
show a.b
lock table only a, b in share row exclusive mode nowait
truncate a, only b restart identity cascade
vacuum (full, parallel 2) a (x, y), b
analyze verbose
checkpoint
discard temp
listen a; notify a, 'x'; unlisten *
create unlogged table if not exists a.t (a int4 primary key deferrable initially deferred, b text collate "C" not null default 'x' || 'y' check (b <> '') no inherit, c int generated by default as identity (start 1 increment by 2), d int generated always as (a + 1) stored, e int constraint n references u (x) match full on delete set null (e) on update cascade, unique nulls not distinct (a, b) include (c) with (fillfactor = 70) using index tablespace s, constraint k foreign key (a) references u not valid, exclude using gist (a with =, (b) with pg_catalog.&&) where (a > 1), like u including all excluding defaults) inherits (x, y) partition by range (a, (b + 1), f(c) collate "C" o) using heap with (fillfactor = 10, toast.a) on commit delete rows tablespace s
create table p partition of t (a with options default 1, check (b > 0)) for values from (1, minvalue) to (2, maxvalue)
create table p partition of t for values with (modulus 4, remainder 1)
create table p partition of t default partition by list (a)
create table t of a.b (c primary key)
create temp table t (a, b) with (x = 1) on commit drop as execute p (1) with no data
create table t ()
create unique index concurrently if not exists i on only t using btree (a collate "C" text_ops (x = 1) desc nulls first, lower(b), (c + 1)) include (d) nulls not distinct with (fillfactor = 1) tablespace s where a > 0
create index on t (a)
create or replace temp recursive view v (a, b) with (security_barrier) as select 1
create view v as table t with local check option
create materialized view if not exists v as select 1 with data
create schema if not exists s authorization current_user
create schema authorization joe create table t (a int) create view v as select 1 create index on t (a)
create temp sequence if not exists s as bigint increment by -1 no maxvalue start 5 cache 2 no cycle owned by a.b
drop table if exists a, b.c cascade
drop index concurrently i
drop schema a, b restrict
drop type double precision
drop materialized view v
create function f(a int default 1, out b text) returns record language plpgsql as $$ begin; end $$
create function f() returns int language sql as 'what a body says is not the grammar''s'
create function f() returns int begin atomic select case when true then 1 end; select 2; end
create trigger t before insert or update of a on b for each row when (new.a > 1) execute function f()
create rule r as on insert to t do also (select 1; select 2)
alter table only t add column if not exists a int, drop b cascade, alter c type text using c::text
grant select (a, b), insert on t to joe with grant option
comment on column a.b is 'x'
do $$ begin end $$
call p(1)
create type mood as enum ('a', 'b')
create domain d as int check (value > 0)
"#;

#[test]
fn statements_of_postgresql_are_accepted() {
    for text in ACCEPTED.lines().filter(|line| !line.is_empty()) {
        if let Err(error) = parse(text) {
            panic!("{error} at {}: {text}", error.position(text));
        }
    }
}

#[test]
fn a_text_has_any_number_of_statements() {
    assert_eq!(parse("").unwrap(), []);
    assert_eq!(parse(" ;; -- nothing\n ; ").unwrap(), []);
    let text = " select 1 ;commit; create function f() returns int begin atomic select 1; end";
    let list = parse(text).unwrap();
    let texts: Vec<&str> = list
        .iter()
        .map(|raw| &text[raw.location as usize..(raw.location + raw.length) as usize])
        .collect();
    assert_eq!(
        texts,
        ["select 1", "commit", "create function f() returns int begin atomic select 1; end"]
    );
}
