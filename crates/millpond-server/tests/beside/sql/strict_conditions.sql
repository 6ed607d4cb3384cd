-- A condition that no row of NULLs meets makes an outer join an inner one, or a left one. A
-- function that returns NULL for a NULL is such a condition; others are not.
select a.id, b.id from a full join b on a.x = b.x where abs(a.y) = 20 order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where upper(a.s) = 'ONE' and length(b.s) = 3 order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.s ~ 'o' order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (a.y between 15 and 25) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (a.y = 10 or b.y = 20) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (a.y = 10 and b.y = 10) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (not (a.y = 10 and b.id > 1)) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10) is true order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10) is false order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10 or b.y = 10) is false order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10) is not true order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10) is not false order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.y = any (array[10, 20]) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (a.y = any ('{}'::int[])) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.y <> all ('{}'::int[]) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where 10 = any (array[a.y, b.y]) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.y = all (array[b.y]) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.s like any (array['o%', b.s]) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where concat(a.s, 'x') = 'x' order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where num_nulls(a.y, b.y) = 1 order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where coalesce(abs(a.y), 0) = 0 order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where greatest(a.y, 5) = 5 order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where format('%s', a.y) = '' order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where abs(a.y) is not null order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (abs(a.y) is null) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (abs(a.y) is not null) order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where to_char(a.y, '99') like '%1%' order by 1, 2;
select a.id, b.id from a left join b on a.x = b.x where lower(b.s) = 'two' order by 1, 2;
select a.id, b.id from a left join b on a.x = b.x where jsonb_build_array(b.y) = '[null]' order by 1, 2;
-- One of several columns of a table.
select a.id, b.id from a full join b on a.x = b.x where a.y = 10 or a.s = 'two' order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10 or a.s = 'two') and (b.y = 10 or b.s = 'two') order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.y = 10 or a.s = 'two' or b.y = 20 order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where a.y = 10 or a.s is null order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where not (a.y = 10 and a.s = 'two') order by 1, 2;
select a.id, b.id from a full join b on a.x = b.x where (a.y = 10 or a.s = 'two') is not true order by 1, 2;
select a.id, q.y, q.z from a left join (select b.x, b.y, c.y as z from b join a c on c.x = b.x) q on a.x = q.x where q.y = 10 or q.z = 20 order by 1, 2, 3;
select a.id, q.y, q.z from a left join (select b.x, b.y, c.y as z from b left join a c on c.id = b.id + 1) q on a.x = q.x where q.y = 10 or q.z = 20 order by 1, 2, 3;
-- Rows of many pairs cost something: none of these looks at each pair of rows that no key joins.
create table many (id int primary key, k int, v int);
insert into many select i, nullif(i % 5000, 0), i % 50 from generate_series(1, 20000) i;
create table few (id int primary key, k int, v int);
insert into few select i, i, i % 50 from generate_series(1, 3000) i;
select count(*) from many a left join many b on a.k = b.k join few s on s.k = coalesce(b.k, a.k) where s.v = 3;
select count(*) from many a left join many b on a.id = b.id join few s on s.k = coalesce(b.k, a.k) where s.v = 3;
drop table many, few;
