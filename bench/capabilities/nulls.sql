-- jobs_waiting
select count(*) from jobs where done_at is null
-- next_jobs
select id, attempts from jobs where done_at is null order by id limit 10
-- jobs_of_event
select count(*) from events e join jobs j on j.event = e.id and j.failed_at is null where e.id between 100 and 300
-- failed
select id, event from jobs where failed_at is not null order by failed_at desc limit 20
-- last_failure
select max(failed_at) from jobs
-- first_and_last
select min(at), max(at), min(id), max(id) from events
