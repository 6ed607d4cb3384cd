-- group_few
select kind, count(*), avg(amount) from events group by kind order by kind
-- group_many
select customer, count(*) as n, max(at) from events group by customer order by n desc, customer limit 10
-- count_distinct
select count(distinct customer) from events
-- distinct_on
select count(*), sum(id) from (select distinct on (customer) customer, id from events order by customer, at desc) x
-- rollup
select kind, quantity, count(*) from events group by rollup (kind, quantity) order by 1, 2
-- having
select count(*) from (select customer from events group by customer having sum(amount) > 5000) x
-- top_by_sum
select customer, sum(amount) from events group by customer order by 2 desc, 1 limit 10
