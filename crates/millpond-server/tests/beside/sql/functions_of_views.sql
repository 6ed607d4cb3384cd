-- Functions that system views show the rows of, in FROM and in select lists.
select count(*) from (select pg_timezone_abbrevs()) x;
select * from pg_timezone_abbrevs where abbrev in ('EST', 'CEST', 'ACDT', 'ACST', 'UTC') order by 1;
select abbrev, utc_offset, is_dst from pg_timezone_abbrevs() where abbrev in ('EST', 'CEST') order by 1;
select pg_timezone_abbrevs() order by 1 limit 3;
select (pg_timezone_abbrevs()).abbrev order by 1 limit 2;
select (x).name from (select pg_timezone_names() as x) y where (x).name = 'Europe/Berlin';
select n.* from pg_timezone_names() with ordinality n order by name limit 0;
select count(*) from rows from (pg_timezone_abbrevs(), generate_series(1, 3)) r;
select pg_prepared_statement();
prepare one as select 1;
select (pg_prepared_statement()).name, (pg_prepared_statement()).from_sql;
select name, statement from pg_prepared_statement();
deallocate one;
select count(*) > 0, pg_typeof(pg_lock_status()) from pg_class group by 2 limit 1;
select (x).locktype, (x).mode from (select pg_lock_status() as x) y where (x).locktype = 'virtualxid' and (x).pid = pg_backend_pid();
select (s).name from (select pg_show_all_settings() as s) x where (s).name in ('work_mem', 'TimeZone') order by 1;
select pg_lock_status(1);
select * from pg_timezone_names(1);
select 1 where pg_lock_status() is null;
select oid, proname, provolatile, proretset, prorettype::regtype, pronargs from pg_proc where proname in ('pg_lock_status', 'pg_timezone_names', 'pg_timezone_abbrevs', 'pg_show_all_settings', 'pg_show_all_file_settings', 'pg_prepared_statement') order by 1;
select 'pg_lock_status()'::regprocedure, 'pg_timezone_names'::regproc;
select pg_sequence_parameters(1);
select * from pg_sequence_parameters(null);

-- They are no relations, and no aggregates.
select 2084::regclass, pg_table_is_visible(2084);
select count(*) from pg_class where oid in (1371, 2084, 2510, 2599, 2856, 3329);
select count(*) from pg_attribute where attrelid = 2084;
select pg_prepared_statement() filter (where false);
select pg_prepared_statement(*);
