-- Whole rows of items of which an outer join may have none.
select a.id, to_jsonb(s) from a left join (select x, y from b where y > 10) s on s.x = a.x order by 1, 2;
select a.id, s is null as none, s is not null as whole from a left join (select x, y from b) s on s.x = a.x order by 1, 2, 3;
select count(s), count(*) from a left join (select x, y from b where y > 10) s on s.x = a.x;
select count(c), count(*) from a left join c on c.x = a.x;
select a.id, to_json(c) from a left join c on c.x = a.x order by a.id, c.z, c.t;
select b.id, json_agg(s order by s.y) from (select x, y from a where y > 10) s right join b on b.x = s.x group by b.id order by 1;
select b.id, json_agg(s order by s.y) filter (where s is not null) from (select x, y from a where y > 10) s right join b on b.x = s.x group by b.id order by 1;
select s, t from (select x, s from a) s full join (select x, s from b) t on t.x = s.x order by s.x, s.s, t.x, t.s;
select a.id, to_json(s) from a left join lateral (select b.s, b.y from b where b.x = a.x order by b.id limit 1) s on true order by 1;
select a.id, (select count(n) from (values (1), (2)) v (k) left join (select a.x as k) n on n.k = v.k) from a order by 1;
select a.id, to_json(f) from a left join generate_series(1, 3) with ordinality f (n, o) on f.n = a.id order by 1;
select a.id, to_json(f) from a left join unnest(array[1, null, 3], array['p', 'q', 'r']) f (n, t) on f.n = a.id order by 1;
select a.id, to_json(v) from a left join (values (1, null), (2, 'two')) v (k, t) on v.k = a.id order by 1;
with w as (select x, y from b where y > 10) select a.id, to_json(w) from a left join w on w.x = a.x order by 1, w.y;
with w as materialized (select x, y from b where y > 10) select a.id, to_json(w) from a left join w on w.x = a.x order by 1, w.y;
select a.id, to_json(u) from a left join (select x from b union select y from b) u on u.x = a.x order by 1;
-- A column that is never NULL in its table may be NULL in a row that is there.
select v.k, to_json(s) from (values (1), (2), (100)) v (k) left join (select a.id as k, b.id from a left join b on b.id = a.id and b.x > 3) s on s.k = v.k order by 1;
select v.k, s is null as none, count(s) from (values (1), (100)) v (k) left join (select a.id as k, b.id from a left join b on false) s on s.k = v.k group by 1, 2 order by 1;
-- Joins inside joins, and with names.
select to_json(s) from a left join ((select x, y from b) s left join c on c.x = s.x) on s.x = a.x order by a.id, s.y, c.z, c.t;
select a.id, to_json(j) from a left join (b join c using (x)) j on j.id = a.id order by 1, j.z, j.t;
select a.id, j is null as none from a left join (b join c using (x)) j on j.id = a.id order by 1, 2;
select count(j), count(*) from a left join (b join c using (x)) j on j.id = a.id;
select to_json(l), to_json(r) from (select id from a where id < 3) l left join (select id + 1 as id from a where id < 3) r on r.id = l.id order by l.id;
select l.id from (select id from a) l left join (select x, y from b) r on r.x = l.id where r is null order by 1;
select l.id from (select id from a) l left join (select x, y from b) r on r.x = l.id where r is not null order by 1;
select r from (select id from a) l left join (select x, y from b) r on r.x = l.id group by r order by r;
select l.id, count(r) from (select id from a) l left join (select x, y from b) r on r.x = l.id group by l.id order by 1;
select r from (select id from a) l left join (select x, y from b) r on r.x = l.id group by l.id;
select distinct r from (select id from a) l left join (select x, y from b) r on r.x = l.id order by 1;
select l.id from a l left join (select x, y from b) r on r.x = l.id order by r, l.id;
select l.id, r, row_number() over (order by r, l.id) from a l left join (select x, y from b) r on r.x = l.id order by 3;
select exists (select 1 from a left join (select x, y from b) r on r.x = a.id where r is null);
-- Locks.
with w as (select 1 as x) select a.id, to_json(w) from a left join w on w.x = a.id where a.id < 3 order by 1 for update;
with w as (select 1 as x) select a.id, to_json(w) from a left join w on w.x = a.id order by 1 for update of w;
select a.id, to_json(s) from a left join (select x from b) s on s.x = a.id order by 1 for update of s;
select a.id, to_json(s) from a left join (select x from b) s on s.x = a.id order by 1 for update of a;
-- A name behind a star says nothing.
select * from (select c.* as e from c) q order by 1, 2, 3;
select * from (select (c).* as e from c) q order by 1, 2, 3;
-- Rows of two shapes.
select r = s as same from (values (1, 2)) r (a, b) left join (values (1, 2, 3)) s (c, d, e) on true;
select r < s as less from (values (1, 2)) r (a, b) left join (values (1, 'x')) s (c, d) on true;
select r = s as same, r <> s as other from (values (1, 2)) r (a, b) left join (values (1, 2)) s (c, d) on true;
select r = s as same from (values (1, 2)) r (a, b) left join (values (1, 2, 3)) s (c, d, e) on false;
select r in (s, r) as found from (values (1, 2)) r (a, b) left join (values (1, 2, 3)) s (c, d, e) on true;
select r.a from (values (1, 2)) r (a, b) join (values (1, 2), (3, 4)) s (c, d) on r = s;

-- A column of a row of which it has two.
select (u).x from (a join b using (id)) u;
select (u).id from (a join b using (id)) u order by 1;
select (s).x from (select 1 as x, 2 as x) s;
select (q.s).x from (select s from (select 1 as x, 2 as x) s) q;
