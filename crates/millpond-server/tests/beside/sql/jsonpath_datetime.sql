-- Dates and times within paths of JSON, in a zone whose clock is put forward and back.
set timezone = 'Europe/Berlin';
create table moments (id int primary key, j text);
insert into moments values
  (1, '"2017-03-10"'), (2, '"2017-03-10 00:00:00"'), (3, '"2017-03-09 23:00:00+00"'),
  (4, '"2017-03-10T00:00:00+01:00"'), (5, '"2017-07-10 12:30:00.5"'), (6, '"2017-07-10 10:30:00.5Z"'),
  (7, '"2017-07-10 10:30:00.5+00"'), (8, '"12:34:56"'), (9, '"12:34:56-07:30"'), (10, '"x"'), (11, '12'),
  (12, '["2017-03-26 02:30:00", "2017-03-26 00:30:00+00", "2017-03-26 01:30:00+00"]'), (13, 'null');
select id, jsonb_path_query(j::jsonb, '$.datetime()', '{}', true) from moments order by id;
select id, jsonb_path_query(j::jsonb, '$.datetime().type()', '{}', true) from moments order by id;
select id, jsonb_path_query(j::jsonb, '$.datetime()') from moments order by id;
select a.id, b.id, jsonb_path_query_tz(jsonb_build_array(a.j::jsonb, b.j::jsonb),
    '$[0].datetime() < $[1].datetime()', '{}', true),
  jsonb_path_query_tz(jsonb_build_array(a.j::jsonb, b.j::jsonb),
    '$[0].datetime() == $[1].datetime()', '{}', true)
from moments a, moments b where a.id < 8 and b.id < 8 order by a.id, b.id;
select id, jsonb_path_query_array_tz(j::jsonb, '$[*] ? (@.datetime() >= "2017-03-26 01:00:00+00".datetime())')
from moments order by id;
select id, jsonb_path_query_array(j::jsonb, '$[*] ? (@.datetime() >= "2017-03-26 01:00:00+00".datetime())')
from moments where id = 1;
select id, jsonb_path_exists_tz(j::jsonb, '$.datetime() ? (@ > "2017-03-09 23:30:00+01".datetime())', '{}', true)
from moments order by id;
select id, jsonb_path_match_tz(j::jsonb, '$.datetime() == "2017-03-10".datetime()', '{}', true)
from moments where id < 5 order by id;
set datestyle = 'SQL, DMY';
select jsonb_path_query('"10.07.2017 4:05 pm +2"', '$.datetime("dd.mm.yyyy HH12:MI am TZH")');
select jsonb_path_query('"10.07.2017"', '$.datetime("dd.mm.yyyy")');
select jsonb_path_query('"2017-07-10"', '$.datetime("dd.mm.yyyy")');
select jsonb_path_query('"2017"', '$.datetime("yyyy_mm")');
select '["10.07.2017", "11.07.2017"]'::jsonb @? '$[*].datetime("dd.mm.yyyy") ? (@ > "2017-07-10".datetime())';
select '"10.07.2017"'::jsonb @@ '$.datetime("dd.mm.yyyy") == "2017-07-10T00:00:00".datetime()';
