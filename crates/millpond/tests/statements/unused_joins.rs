//! Outer joins of which a query uses nothing.

use crate::common::{fresh, run};

/// Which tables the plan of a query reads, in the plan's order.
fn tables(plan: &str) -> String {
    let scans = plan.lines().filter_map(|line| line.split_once(" on "));
    let tables: Vec<&str> = scans.filter_map(|(_, table)| table.split(' ').next()).collect();
    tables.join(" ")
}

/// A left join to a unique key finds one row at most. Where nothing uses it, nothing reads it.
#[test]
fn left_joins_to_a_unique_key_are_dropped() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table a (id int primary key, b int, c int)");
    run(&mut c, "create table b (id int primary key, c int, code text unique, many int)");
    run(&mut c, "create table c (x int, y int, z int, primary key (x, y))");
    run(&mut c, "create index on b (many)");
    run(&mut c, "insert into a values (1, 1, 1), (2, 1, 2), (3, null, 3), (4, 9, 4)");
    run(&mut c, "insert into b values (1, 1, 'p', 1), (2, 2, 'q', 1), (3, 3, null, 1)");
    run(&mut c, "insert into c values (1, 1, 1), (1, 2, 1), (2, 1, 2)");
    let expected = [
        // Nothing is used.
        ("count(*) from a left join b on b.id = a.b", "a", 4),
        ("count(*) from b right join a on b.id = a.b", "a", 4),
        ("count(a.id) from a left join b on b.id = a.b and b.many > 7 where a.id > 1", "a", 3),
        ("count(*) from a left join b on b.code = 'p'", "a", 4),
        ("count(*) from a left join c on c.x = a.b and c.y = a.c", "a", 4),
        ("count(*) from a left join c on c.x = a.b and c.y = 1 and c.z = a.id", "a", 4),
        ("count(*) from (select a.id, b.code from a left join b on b.id = a.b) s", "a", 4),
        // The second join needed the first.
        ("count(*) from a left join b on b.id = a.b left join c on c.x = b.c and c.y = 1", "a", 4),
        (
            "sum(c.z) from a left join b on b.id = a.b left join c on c.x = a.b and c.y = 1",
            "a c",
            2,
        ),
        // Joins inside of the right side.
        (
            "count(*) from a left join (b left join c on c.x = b.c and c.y = 1) on b.id = a.b",
            "a",
            4,
        ),
        (
            "count(b.id) from a left join (b left join c on c.x = b.c and c.y = 1) on b.id = a.b",
            "a b",
            2,
        ),
        ("count(b.id) from a left join (b left join c on c.x = b.c) on b.id = a.b", "a b c", 4),
        (
            "count(b.id) from a left join (b left join c on c.x = b.c and c.y = 1) on b.id = a.b and c.z = 1",
            "a b c",
            2,
        ),
        (
            "count(*) from a where exists (select from b left join c on c.x = b.c and c.y = 1 where b.id = a.b)",
            "a b",
            2,
        ),
        // What is left uses the first.
        (
            "sum(c.z) from a left join b on b.id = a.b left join c on c.x = b.c and c.y = 1",
            "a b c",
            2,
        ),
        ("count(b.code) from a left join b on b.id = a.b", "a b", 2),
        ("count(*) from a left join b on b.id = a.b where b.id is null", "a b", 2),
        (
            "count(*) from a left join b on b.id = a.b group by b.id order by 1 desc limit 1",
            "a b",
            2,
        ),
        ("count(*) over () from a left join b on b.id = a.b order by b.many limit 1", "a b", 4),
        ("count(*) over (order by b.many) from a left join b on b.id = a.b limit 1", "a b", 2),
        ("count(*) filter (where k is null) from a left join b k on k.id = a.b", "a b", 2),
        (
            "count(*) from a left join b on b.id = a.b, lateral generate_series(1, b.many)",
            "a b generate_series",
            2,
        ),
        (
            "(select count(*) from c where c.x = b.id) from a left join b on b.id = a.b limit 1",
            "a b c",
            2,
        ),
        (
            "count(*) from a left join b on b.id = a.b where exists (select from c where c.x = b.id)",
            "a b c",
            2,
        ),
        // A query's groups are unique, too.
        ("count(*) from a left join (select c, count(*) from b group by c) g on g.c = a.b", "a", 4),
        ("count(*) from a left join (select 1 as k, max(c) from b) g on true", "a", 4),
        (
            "count(*) from a left join (select distinct c, many from b) g on g.c = a.b and g.many = 1",
            "a",
            4,
        ),
        (
            "count(*) from a left join (select many, c from b group by c, many) g on g.many = a.id",
            "a b",
            6,
        ),
        ("count(*) from a left join (select distinct c, many from b) g on g.many = a.id", "a b", 6),
        (
            "count(*) from a left join (select many, unnest(array[1, 2]) from b group by many) g on g.many = a.id",
            "a b unnest",
            5,
        ),
        (
            "count(*) from a left join (select many from b group by rollup (many)) g on g.many = a.id",
            "a b",
            4,
        ),
        (
            "count(*) from a left join (select c + 1 as c from b group by c) g on g.c = a.b",
            "a b",
            4,
        ),
        (
            "count(g.c) from a left join (select c, count(*) from b group by c) g on g.c = a.b",
            "a b",
            2,
        ),
        (
            "count(*) from a left join (select many, rank() over (order by generate_series(1, 2)) from b group by many) g on g.many = a.id",
            "a b generate_series",
            5,
        ),
        (
            "count(*) from a left join (select c from b group by c) g on g.c = a.b + (random() * 0)::int",
            "a b",
            4,
        ),
        // There may be several matches.
        ("count(*) from a left join b on b.many = a.id", "a b", 6),
        ("count(*) from a left join b on b.id in (a.b, 2)", "a b", 6),
        ("count(*) from a left join b on b.id >= a.b", "a b", 8),
        ("count(*) from a left join c on c.x = a.b", "a c", 6),
        ("count(*) from a left join b on b.code is null", "a b", 4),
        // A row without a match is dropped.
        ("count(*) from a join b on b.id = a.b", "a b", 2),
    ];
    for (query, reads, value) in expected {
        let plan = run(&mut c, &format!("explain select {query}"));
        let mut found: Vec<String> = tables(&plan).split(' ').map(str::to_owned).collect();
        found.sort();
        assert_eq!(found.join(" "), reads, "{query}\n{plan}");
        let rows = run(&mut c, &format!("select {query}"));
        assert_eq!(rows.lines().nth(1), Some(&*value.to_string()), "{query}\n{rows}");
    }
}
