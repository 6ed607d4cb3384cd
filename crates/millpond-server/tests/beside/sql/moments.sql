-- Dates and time stamps beside those of another type, by an index, around changes of clocks.
-- PostgreSQL reads all rows: its indexes miss some where a day is skipped, because they take the
-- time stamps to be in one order with and without a zone.
set enable_indexscan = off;
set enable_indexonlyscan = off;
set enable_bitmapscan = off;
create table moment_rows (id int primary key, d date, ts timestamp, tz timestamptz);
insert into moment_rows select i, date '2011-12-20' + i % 30, timestamp '2011-12-28' + i % 300 * interval '30 minutes', timestamptz '2011-12-28Z' + i % 300 * interval '30 minutes' from generate_series(1, 1500) i;
insert into moment_rows values (-1, 'infinity', 'infinity', 'infinity'), (-2, '-infinity', '-infinity', '-infinity'), (-3, null, null, null);
create index on moment_rows (d);
create index on moment_rows (ts);
create index on moment_rows (tz);
create table moment_values (v timestamptz, t timestamp, day date);
insert into moment_values select timestamptz '2011-12-29Z' + i * interval '7 hours', timestamp '2011-12-29' + i * interval '7 hours', date '2011-12-28' + i from generate_series(0, 12) i;
set time zone 'Pacific/Apia';
select v, (select count(*) from moment_rows where d >= v), (select count(*) from moment_rows where d < v), (select count(*) from moment_rows where d = v) from moment_values order by 1;
select v, (select count(*) from moment_rows where ts >= v), (select count(*) from moment_rows where ts < v), (select count(*) from moment_rows where ts = v) from moment_values order by 1;
select t, (select count(*) from moment_rows where d >= t), (select count(*) from moment_rows where d < t), (select count(*) from moment_rows where d = t) from moment_values order by 1;
select t, (select count(*) from moment_rows where tz >= t), (select count(*) from moment_rows where tz < t), (select count(*) from moment_rows where tz = t) from moment_values order by 1;
select day, (select count(*) from moment_rows where ts::date >= day), (select count(*) from moment_rows where ts::date < day), (select count(*) from moment_rows where ts::date = day) from moment_values order by 1;
select day, (select count(*) from moment_rows where tz::date >= day), (select count(*) from moment_rows where tz::date < day), (select count(*) from moment_rows where tz::date = day) from moment_values order by 1;
select day, (select count(*) from moment_rows where tz >= day), (select count(*) from moment_rows where ts < day), (select count(*) from moment_rows where tz = day) from moment_values order by 1;
select count(*) from moment_rows where d between timestamptz '2011-12-30 09:00Z' and timestamptz '2011-12-30 11:00Z';
select count(*) from moment_rows where ts between timestamptz '2011-12-30 09:00Z' and timestamptz '2011-12-30 11:00Z';
select count(*) from moment_rows where ts > timestamptz 'infinity' or ts >= timestamptz 'infinity' or d <= timestamp '-infinity';
set time zone 'Europe/Berlin';
select v, (select count(*) from moment_rows where d >= v), (select count(*) from moment_rows where ts < v), (select count(*) from moment_rows where tz::date = v::date) from moment_values order by 1;
delete from moment_rows where ts >= timestamptz '2012-01-01 00:00Z' and ts::date < date '2012-01-02';
select count(*), sum(id) from moment_rows;
update moment_rows set id = id + 10000 where d = timestamp '2011-12-25' or tz::date = date '2011-12-31';
select count(*), sum(id) from moment_rows;
