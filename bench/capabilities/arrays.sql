-- array_agg
select max(cardinality(a)) from (select array_agg(id order by at) a from events group by customer) x
-- unnest
select count(*) from customers c, unnest(string_to_array(c.name, ' ')) with ordinality
-- any_thousand
select count(*) from events where customer = any (array(select g * 3 from generate_series(1, 1000) g))
-- array_contains
select count(*) from events where string_to_array(note, ' ') @> array['module', '7']
