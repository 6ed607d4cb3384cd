-- insert_select
insert into copies select id, customer, at, kind, amount from events where id <= 20000
-- insert_values
insert into copies values (1, 1, '2025-01-01', 'buy', 1.5), (2, 2, '2025-01-01', 'buy', 2.5), (3, 3, '2025-01-01', 'buy', 3.5)
-- update_range
update events set quantity = quantity + 1 where id between 1000 and 3000
-- update_join
update events e set score = score + c.city from customers c where c.id = e.customer and c.city = 17
-- delete_using
delete from events e using customers c where c.id = e.customer and c.id <= 50
-- delete_range
delete from events where at < '2024-01-20'
-- update_returning
update customers set balance = balance - 1 where id = 17 returning balance
-- queue
select id from events where kind = 'buy' order by id limit 10 for update skip locked
-- duplicates
delete from events a using events b where a.customer = b.customer and a.at = b.at and a.id > b.id and a.customer <= 20
-- ctid_batch
delete from events where ctid in (select ctid from events where kind = 'refund' limit 1000)
