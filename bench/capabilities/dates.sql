-- by_month
select date_trunc('month', at) as month, count(*), sum(amount) from events group by 1 order by 1
-- by_weekday
select extract(dow from at) as day, count(*) from events group by 1 order by 1
-- to_char
select to_char(at, 'YYYY-MM') as month, count(*) from events group by 1 order by 1
-- last_week
select count(*), sum(amount) from events where at >= timestamptz '2025-06-01' - interval '7 days' and at < timestamptz '2025-06-01'
-- every_day
select d::date, count(e.id) from generate_series(timestamptz '2025-05-01', '2025-05-31', '1 day') d left join events e on e.at >= d and e.at < d + interval '1 day' group by 1 order by 1
-- age
select max(age(timestamptz '2026-01-01', at)) from events
