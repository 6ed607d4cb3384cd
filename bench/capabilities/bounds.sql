-- since_a_time
select count(*) from visits where started >= timestamptz '2025-12-20 00:00+00'
-- days_since_a_time
select count(*) from visits where day >= timestamp '2025-12-25 00:00'
-- on_a_day
select count(*), min(started) from visits where started::date = date '2025-06-05'
-- begins_with
select id, page from visits where page like '/item/777%' order by id
-- contains
select count(*) from visits where page like '%77%'
-- two_states_of_a_page
select id, status from visits where status in ('new', 'open') and page = '/item/777' order by id
-- page_behind_a_row
select status, page from visits where (status, page) > ('done', '/item/7') order by status, page limit 10
-- long_visits
select count(*) from visits where seconds > 599.5
-- not_not_equal
select count(*) from visits where not (status <> 'failed' or page <> '/item/777')
-- all_but_a_range
select count(*) from visits where page not between '/item/10' and '/item/99'
