-- sum_avg_numeric
select sum(amount), avg(amount), min(amount), max(amount) from events
-- round_product
select sum(round(amount * 1.19, 2)) from events
-- percentile
select percentile_cont(array[0.5, 0.95]) within group (order by score) from events
-- stddev
select round(stddev(score)::numeric, 6), round(variance(quantity), 6) from events
-- width_bucket
select width_bucket(score, 0, 1000, 10) as bucket, count(*) from events group by 1 order by 1
-- case_sum
select sum(case when kind = 'buy' then amount else 0 end), count(*) filter (where kind = 'view') from events
