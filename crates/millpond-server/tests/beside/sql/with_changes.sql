-- INSERT, UPDATE and DELETE in WITH.

with d as (delete from a where id <= 2 returning *) insert into e select id, x, s from d;
select * from e order by id;
with d as (delete from a where id = 3) select count(*) from a;
select count(*) from a;
with d as (update b set x = x + 1 where id < 10 returning id, x) select * from d order by id limit 2;
select id, x from b order by id;
with d(k) as (insert into e values (50, 1, 'n'), (51, 2, 'm') returning id) select sum(k), count(*), (select count(*) from e) from d;
with d as (delete from c returning x) select 1 limit 0;
select count(*) from c;
with i as (insert into e select id + 100, x, s from a returning *), u as (update a set y = -i.id from i where i.id = a.id + 100 returning a.id, a.y), d as (delete from b returning id) select (select count(*) from i), (select sum(y) from u), (select count(*) from d), (select count(*) from b);
select id, y from a order by id;
with d as (update a set y = 5 where id = 4 returning *) update a set y = 6 where id = 4 returning id, y;
with d as (delete from a where id = 5 returning *) insert into a select * from d returning *;
with d as (insert into e values (900, 1, 'q') returning *), f as (insert into e select id + 1, x, s from d returning *) insert into e select id + 1, x, s from f returning *;
with recursive d as (insert into e values (950, 1, 'r') returning id), n as (select 1 as n union all select n + 1 from n where n < 3) select * from d, n order by n;
with d as (insert into e values (1), (1000), (1000)) select 1;
with d as (delete from a) select * from d;
with d(k) as (delete from a) select 1;
with d as (delete from a returning id), d as (select 1) select 1;
with d as (delete from missing returning *) select * from d;
with d as (update a set missing = 1 returning *) select * from d;
with recursive d as (delete from a where id in (select id from d) returning id) select * from d;
with d as (merge into a using e on a.id = e.id when matched then delete) select 1;
select * from (with d as (delete from a returning *) select * from d) q;
insert into e with d as (delete from a returning *) select id, x, s from d;
select 1 union all (with d as (delete from a returning *) select id from d);
with q as (with d as (delete from a returning *) select id from d) select * from q;
