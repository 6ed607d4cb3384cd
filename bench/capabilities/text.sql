-- like_contains
select count(*) from events where note like '%module 7%'
-- ilike
select count(*) from events where note ilike '%MODULE 7%'
-- regex
select count(*) from events where note ~ 'code [1-3]\d+ in'
-- regexp_replace
select max(regexp_replace(note, '\d+', '#', 'g')) from events
-- split_and_group
select split_part(note, ' ', 2) as code, count(*) from events group by 1 order by 2 desc, 1 limit 5
-- string_agg
select length(string_agg(kind, ',' order by id)) from events
-- lower_equals
select count(*) from customers where lower(name) = 'customer 17'
-- concat_length
select sum(length(kind || ':' || note)) from events
-- format
select count(format('%s/%s', kind, id)) from events
