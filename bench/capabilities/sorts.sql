-- order_limit
select id, amount from events order by amount desc, id limit 10
-- order_text
select count(*) from (select note from events order by note offset 10) x
-- page_by_index
select id from events order by at, id offset 10000 limit 10
-- page_by_key
select id, at from events where (customer, at) > (17, '2025-01-01') order by customer, at limit 20
-- sort_all
select max(id) from (select id from events order by score, id offset 5) x
