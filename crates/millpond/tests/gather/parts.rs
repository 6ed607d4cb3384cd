//! Aggregation in parts.

use millpond::{Connection, SqlState};

use super::{alone, each_is_as_of_one_thread, plan, rows, together, with_tables};

/// Rows come in the order of the groups' first rows.
const IN_PARTS: &[&str] = &[
    "select v, count(*), sum(n), avg(n), min(n), max(d) from item group by v",
    "select part, line, count(*), sum(id), avg(id), max(v) from item group by part, line",
    "select nullif(part % 7, 3), bool_and(n > 10), bool_or(line = 3), bit_or(id), bit_and(line), bit_xor(part) \
        from item group by 1",
    "select count(*), count(nullif(part, 7)), sum(id::bigint * 1000000007), avg(part), min(v), max(n), \
        count(*) filter (where line = 2), sum(n) filter (where v < 'text 3') from item",
    "select count(*), sum(n), avg(n), max(v), bool_and(n > 1), bit_or(id) from item where n < 0 and line > 1",
    "select sum(case when line = 1 then 'NaN' when part = 999 then 'Infinity' else n end), bool_or(line = 2) from item",
    "select part % 3, sum(case when id % 2 = 0 then 'Infinity' else '-Infinity' end::numeric), \
        max(case when id % 2 = 0 then 1.0 else 1.00 end), min(case when id % 2 = 0 then 1.0 else 1.00 end) \
        from item group by 1",
    "select line, stddev(n), var_pop(part), variance(id::bigint * 3000000000), stddev_samp(nullif(n, n)), \
        var_samp(case when line = 2 then 'NaN' else n end) from item group by line",
    "select line, sum(part::float8), avg(part::real), round(stddev(part::float8)::numeric, 6), \
        sum(null::float8), variance(null::real), max(part::real) from item group by line",
    "select p.name, count(*), sum(i.n), avg(p.size) from item i join part p on p.id + 0 = i.part group by 1",
    "select o.status, count(i.id), sum(i.n) from ord o left join item i on i.id = o.id and i.line = 1 \
        where o.total > 100 group by 1",
    "select s.x, count(*), sum(s.n) from (select part % 5 as x, n from item where line > 0) s group by 1 having sum(s.n) > 7",
    "select line, sum(n) + 1, sum(n) / count(*) from item group by line order by 2 desc",
    "select part % 10, count(*) from item where n > (select avg(n) from item) group by 1",
];

#[test]
fn groups_are_those_of_one_thread() {
    each_is_as_of_one_thread(IN_PARTS);
}

#[test]
fn threads_aggregate_what_has_parts() {
    let (_fresh, mut c) = with_tables();
    together(&mut c);
    let has_parts = |c: &mut Connection, select: &str| {
        let shown = plan(c, &format!("{select} from item group by line"));
        shown.contains("Partial HashAggregate") && shown.contains("Finalize HashAggregate")
    };
    for select in [
        "select line, count(*)",
        "select sum(n), min(v)",
        "select avg(id), bit_or(part)",
        "select sum(n::float8), avg(n::real)",
        "select stddev(n::float8), var_pop(n::real)",
        "select stddev(n), variance(id)",
    ] {
        assert!(has_parts(&mut c, select), "{select}");
    }
    // Their results depend on the order of all rows, or on all values.
    for select in [
        "select string_agg(v, ',')",
        "select array_agg(id)",
        "select count(distinct v)",
        "select line, max(ctid)",
        "select sum(make_interval(secs => 1))",
    ] {
        assert!(!has_parts(&mut c, select), "{select}");
    }
}

/// The session begins anew alone if there is no room for all groups, or if nearly each row is one.
#[test]
fn many_groups_come_as_from_one_thread() {
    let (fresh, mut c) = with_tables();
    // What continues in files comes in another order each time.
    for (work_mem, order) in [("64kB", " order by 1, 2"), ("64MB", "")] {
        c.batch(&format!("set work_mem = '{work_mem}'")).unwrap();
        for query in [
            "select id, line, count(*), sum(n), max(v) from item where n > 1 group by id, line",
            "select i.id, p.name, count(*), sum(n) from item i join part p on p.id + 0 = i.part \
                group by i.id, p.name",
            "select part, max(repeat(v, 100)), count(*) from item group by part",
        ] {
            let query = format!("{query}{order}");
            alone(&mut c);
            let expected = rows(&mut c, &query);
            together(&mut c);
            assert!(plan(&mut c, &query).contains("Partial HashAggregate"));
            assert!(rows(&mut c, &query) == expected, "{query}");
            assert_eq!(fresh.database.query_memory_used(), 0);
        }
    }
}

#[test]
fn an_error_in_a_part_is_the_statements() {
    let (fresh, mut c) = with_tables();
    together(&mut c);
    for query in [
        "select sum(n / (line - 2)) from item",
        "select part, count(*) from item group by part, 1 / (id - 4000)",
        "select line, sum(n) filter (where 1 / (id - 3) > 0) from item group by line",
    ] {
        let error = c.query(query, &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::DIVISION_BY_ZERO, "{query}");
    }
    assert_eq!(fresh.database.query_memory_used(), 0);
}
