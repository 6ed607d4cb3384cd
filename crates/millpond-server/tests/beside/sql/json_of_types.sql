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
select jsonb_agg(distinct o order by o) is not null from (select n::oid as o, c from kinds) k;
select json_agg(distinct x order by x) from (values (1), (10), (2)) v(x);
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
