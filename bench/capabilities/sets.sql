-- union
select count(*) from (select customer from events union select id from customers) x
-- except
select count(*) from (select id from customers except select customer from events where kind = 'buy') x
-- cte_twice
with sums as (select customer, sum(amount) as s from events group by 1) select count(*) from sums where s > (select avg(s) from sums)
-- recursive_numbers
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select sum(i) from n
-- recursive_tree
with recursive t as (select id, 0 as depth from customers where id = 1 union all select c.id, t.depth + 1 from t join customers c on c.parent = t.id) select max(depth), count(*) from t
-- series
select sum(i) from generate_series(1, 200000) i
-- values_join
select sum(e.amount) from (values (1), (5), (17), (99)) v (c) join events e on e.customer = v.c
