-- join_group
select c.city, count(*), sum(e.amount) from events e join customers c on c.id = e.customer group by 1 order by 1
-- join_selective
select count(*) from events e join customers c on c.id = e.customer where c.city = 17
-- left_join_missing
select count(*) from customers c left join events e on e.customer = c.id and e.kind = 'refund' where e.id is null
-- not_exists
select count(*) from customers c where not exists (select 1 from events e where e.customer = c.id and e.quantity = 9)
-- in_subquery
select sum(amount) from events where customer in (select id from customers where city < 10)
-- lateral_latest
select sum(x.amount) from customers c cross join lateral (select amount from events e where e.customer = c.id order by at desc limit 3) x
-- self_join
select count(*) from events a join events b on b.customer = a.customer and b.id = a.id + 1
-- three_tables
select r.name, count(*), sum(e.amount) from events e join customers c on c.id = e.customer join cities r on r.id = c.city group by 1 order by 3 desc limit 5
