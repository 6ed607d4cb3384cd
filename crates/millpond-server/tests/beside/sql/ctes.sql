-- WITH, plain and recursive.
with q as (select id, x from a where x > 1) select * from q order by id;
with q as (select 1 as k) select k from q;
with q (k, v) as (select id, s from a) select k, v from q where k < 3 order by k;
with q as (select x, count(*) as n from a group by x) select a.id, q.n from a join q on q.x = a.x order by a.id;
with q as (select id from a), r as (select id from q where id > 4) select * from r order by id;
with q as (select id from a) select q1.id, q2.id from q q1 join q q2 on q1.id + 1 = q2.id order by 1;
with q as materialized (select id, x from a) select * from q where id = 3;
with q as not materialized (select id, x from a) select * from q where id = 3;
with a as (select 42 as id) select id from a;
with q as (select * from a) select count(*) from q, q q2;
with q as (select x from a), r as (select x from q union all select x from q) select count(*), count(x) from r;
with q as (select x from a) select id from b where x in (select x from q) order by id;
with q as (select x from a) select id from b where not exists (select 1 from q where q.x = b.x) order by id;
with q as (select id from a order by y desc nulls last, id limit 3) select id from q order by id;
with q as (with r as (select 1 as k union select 2) select k + 10 as k from r) select * from q order by k;
select * from (with q as (select id from a where id < 3) select * from q) z order by id;
select id, (with q as (select b.s from b where b.id = a.id) select s from q) from a order by id;
select id from a where x in (with q as (select x from b) select x from q) order by id;
with q as (select 1 as k) (with q as (select 2 as k) select k from q) union all select k from q order by k;
with q as (values (1, 'x'), (2, 'y')) select column1, column2 from q order by 1;
with q as (select id from a), q2 as (select id from b) select id from q union select id from q2 order by id;
with unused as (select 1 / 0) select 1;
with recursive r (i) as (select 1 union all select i + 1 from r where i < 10) select i from r order by i;
with recursive r (i) as (values (1) union all select i + 1 from r where i < 5) select sum(i), count(*) from r;
with recursive r (i) as (select 1 union select (i + 1) % 4 from r) select i from r order by i;
with recursive r (i, j) as (select 0, 1 union all select j, i + j from r where j < 100) select i from r order by i;
with recursive r as (select id, parent, name, 0 as depth from tree where parent is null
  union all select t.id, t.parent, t.name, r.depth + 1 from tree t join r on t.parent = r.id)
  select id, name, depth from r order by depth, id;
with recursive r (id, path) as (select id, name from tree where parent is null
  union all select t.id, r.path || '/' || t.name from tree t, r where t.parent = r.id)
  select path from r order by path;
with recursive r as (select id, parent from tree where id = 7
  union all select t.id, t.parent from tree t join r on t.id = r.parent) select id from r order by id;
with recursive r (i) as (select 1 union all select i + 1 from r) select i from r limit 5;
with recursive r (i) as (select 1 union all select i * 2 from r where i < 1000) select i from r where i > 100 order by i;
with recursive r (n) as (select 1 union all select n + 1 from r where n < 3), s as (select n * 10 as m from r) select * from r, s order by 1, 2;
with recursive r (x) as (select x from a union select x + 1 from r where x < 8) select x from r order by x;
with recursive r (x) as (select x from a union all select x + 1 from r where x < 8) select x, count(*) from r group by x order by x;
with recursive r (t) as (select 'a' union all select t || 'b' from r where length(t) < 4) select t from r order by t;
with recursive r (d) as (select 1::numeric union all select d / 3 from r where d > 0.05) select d from r order by d;
with recursive q as (select 1 as k) select * from q;
with recursive e1 (i) as (select 0 union all select i + 1 from e1 where i < 3), e2 (i, j) as (select i, 0 from e1 union all select i, j + 1 from e2 where j < i) select * from e2 order by 1, 2;
with recursive r (id) as (select 1 union all select t.id from tree t where t.parent in (select id from r)) select id from r order by id;
select c.name, (with recursive r (id, n) as (select c.id, 1 union all select id, n + 1 from r where n < 3) select max(n) from r) from customers c order by c.id;
with recursive r (i) as (select 1 union all select i + 1 from r where i < 3) select r1.i, r2.i from r r1, r r2 where r1.i < r2.i order by 1, 2;
with q as (select id from a), q as (select id from b) select 1;
with q as (select id from nosuch) select * from q;
with q (a, b, c) as (select 1, 2) select * from q;
with q as (select k from q) select * from q;
with recursive r (i) as (select i + 1 from r) select * from r;
with recursive r (i) as (select 1 union all select 'x' from r) select * from r;
with recursive r (i) as (select 1 union all select i + 0.5 from r where i < 2) select * from r;
with recursive r (i) as (select 1 union all select count(*)::int from r) select * from r;
with recursive r (i) as (select i from r union all select 1) select * from r;
with recursive r (i) as (select 1 union all select r1.i + r2.i from r r1, r r2) select * from r;
with recursive r (i) as (select 1 except select i from r) select * from r;
with recursive r (i) as (select 1 union all select a.id from a left join r on r.i = a.id) select * from r;
with recursive r (i) as (select 1 union all select i + 1 from r where i < 3 order by 1) select * from r;
