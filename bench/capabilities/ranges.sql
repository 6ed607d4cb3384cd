-- half_by_time
select count(*), sum(quantity) from events where at >= '2025-01-01 00:00+00'
-- most_by_number
select count(*), sum(quantity) from events where customer > 10
-- month_joined
select c.name, sum(e.amount) from events e join customers c on c.id = e.customer where e.at between '2024-03-01 00:00+00' and '2024-03-31 00:00+00' group by c.name order by 2 desc, 1 limit 10
-- half_joined
select count(*) from events e join customers c on c.id = e.customer where e.at < '2025-01-01 00:00+00' and c.balance > 50000
-- few_joined
select count(*), sum(b.quantity) from events a join events b on a.customer = b.customer and a.id < b.id where a.customer <= 20
-- any_of_half
select exists(select from events where at >= '2025-01-01 00:00+00')
-- two_indexes
select count(*) from events where customer > 10 and id > 19990 and id <= 20000
-- not_empty
select count(*) from events where note <> ''
