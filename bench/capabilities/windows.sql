-- row_number
select count(*) from (select row_number() over (partition by customer order by at desc) as r from events) x where r = 1
-- running_sum
select max(s) from (select sum(amount) over (partition by customer order by at, id) as s from events) x
-- lag
select max(gap) from (select at - lag(at) over (partition by customer order by at) as gap from events) x
-- rank_of_groups
select count(*) from (select rank() over (order by sum(amount) desc) as r from events group by customer) x where r <= 10
-- moving_average
select round(max(m), 4) from (select avg(amount) over (order by id rows between 6 preceding and current row) as m from events) x
