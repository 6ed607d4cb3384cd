-- How JSON has values whose type does not show in what is stored of them.
create table kinds (n bigint, c char(4));
insert into kinds values (1, 'b'), (null, null), (4294967295, 'long');
select to_json(o), to_jsonb(o), to_json(c), to_jsonb(c), to_json(array[o, 2]), to_jsonb(array[[o], [2]]) from (select n::oid as o, c from kinds) k order by o;
select json_build_array(o, c, array[o]), jsonb_build_array(o, c, array[o]) from (select n::oid as o, c from kinds) k order by o;
select json_build_object('o', o, 'c', c), jsonb_build_object('l', array[o], c || 'k', o) from (select n::oid as o, c from kinds) k where o is not null order by o;
select json_agg(o order by o), jsonb_agg(o order by o), json_agg(c order by o), jsonb_agg(c order by o) from (select n::oid as o, c from kinds) k;
select json_object_agg(c, o order by o), jsonb_object_agg(o, c order by o) from (select n::oid as o, c from kinds) k where o is not null;
select row_to_json(x), to_jsonb(x), array_to_json(l) from (select o, array[o, 7] as l from (select n::oid as o, c from kinds) k) x order by o;
select json_agg(x order by o) from (select o, array[[o]] as l, 7 as n from (select n::oid as o, c from kinds) k) x;
-- Arguments by name.
select jsonb_path_query_array(target => '[1,2]', path => '$[*]');
select jsonb_path_exists('{"a": 2}', path => '$.a ? (@ > $x)', vars => '{"x": 1}');
select * from jsonb_path_query(path => '$[*] ? (@ > 1)', target => '[1, 2, 3]');
select jsonb_path_match(target => '{"a": "x"}', path => '$.a > 1', silent => true);
select jsonb_path_query_first(target => '[1]', path => 'strict $[7]');
select jsonb_path_query_first_tz(silent => true, target => '[1]', path => 'strict $[7]');
select jsonb_object_field(from_json => '{"a": 1}', field_name => 'a'), json_array_element_text(from_json => '[4, 5]', element_index => 1);
select jsonb_path_exists(target => '[1]');
select jsonb_path_exists(target => '[1]', way => '$');
-- A char(n) has its blanks in a record, and none where it is taken from one.
select kinds::text, row(c, n::oid)::text from kinds order by n;
select row_to_json(kinds), to_jsonb(kinds) from kinds order by n;
select (k).c || '|', length((k).c), (k).c = 'b', octet_length((k).c) from (select kinds as k from kinds) x order by (k).n;
select (x.r).* from (select kinds as r from kinds) x order by 1;
select k = row(1, 'b')::kinds, count(*) from (select kinds as k from kinds) x group by 1 order by 1;
select distinct k::text from (select distinct k from (select kinds as k from kinds union all select kinds from kinds) x) x order by 1;
select row(null::char(3), ''::char(2), 'äö'::char(4), 'abc'::char(3), 'x'::bpchar)::text;
select array_agg(kinds order by n) is not null from kinds;
select count(*) from kinds a join kinds b on a = b;
select (json_populate_record(null::kinds, '{"c": "q"}')).c || '|', (jsonb_populate_record(k, '{}')).c = k.c from kinds k;
select (select (k).c from (select kinds as k from kinds where n = 1) x) = 'b';
