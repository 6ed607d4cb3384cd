-- application_setting
select count(*) from events where customer = current_setting('app.customer')::int
-- coalesced_setting
select count(*) from events where kind = coalesce(nullif(current_setting('app.kind', true), ''), 'buy')
-- keyed_by_system_column
select count(distinct ctid) from customers where tableoid = 'customers'::regclass
