-- json_field
select count(*) from events where payload::jsonb ->> 'color' = 'red'
-- json_group
select payload::jsonb ->> 'color' as color, count(*) from events group by 1 order by 1
-- json_elements
select sum(t::int) from events, jsonb_array_elements_text(payload::jsonb -> 'tags') t where id <= 2000
-- json_build
select length(json_agg(json_build_object('id', id, 'kind', kind) order by id)::text) from events where id <= 20000
-- json_contains
select count(*) from events where payload::jsonb @> '{"color": "red"}'
-- json_path
select count(*) from events where jsonb_path_exists(payload::jsonb, '$.tags[*] ? (@ > 97)')
-- row_to_json
select max(length(row_to_json(c)::text)) from customers c
