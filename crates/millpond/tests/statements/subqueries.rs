//! Subqueries that aggregate the rows of a key, and the order of joins.

use crate::common::{fresh, run, script};

/// Keys with rows, without rows, and NULL; `parts.id` has an index, `lines.part` has none.
const TABLES: &str = "
    create table parts (id int primary key, size int, other int);
    insert into parts select g, g % 7, nullif(g % 5, 0) from generate_series(1, 60) g;
    create table lines (part int, kind int, amount int, price numeric(8,2));
    insert into lines select nullif(g % 40, 0), g % 3, g % 11, g * 1.5
        from generate_series(1, 400) g;
    create table indexed (part int, amount int);
    create index on indexed (part);
    insert into indexed select part, amount from lines;
";

/// Subqueries with `$` where a clause goes that keeps the query from being computed for all keys.
const QUERIES: [&str; 9] = [
    "select id from parts p where size < (select avg(amount) from lines where part = p.id $) order by 1",
    "select id from parts p where 10 > (select count(*) from lines where part = p.id $) order by 1",
    "select id from parts p where 3 <> (select count(amount) + 1 from lines where p.id = part and kind = 1 $) order by 1",
    "select id from parts p where (select sum(price) from lines where part = p.id $) is null order by 1",
    "select id from parts p where size * 2 > (select max(amount) - min(amount) from lines where part = p.other and kind = p.size % 3 $) order by 1",
    "select p.id, q.id from parts p, parts q where p.id = q.size and q.other < (select avg(amount) from lines where part = q.id and kind = p.other $) order by 1, 2",
    "select id from parts p where exists (select from parts q where q.size = p.other and q.id * 5 > (select sum(amount) from lines where part = q.id $)) order by 1",
    "select id from parts p where id in (select part from lines l where amount > (select 0.9 * avg(amount) from lines where kind = l.kind $)) order by 1",
    "select p.id, l.amount from parts p left join lines l on l.part = p.id where l.amount < (select avg(amount) from lines where kind = l.kind $) order by 1, 2",
];

#[test]
fn a_subquery_computed_for_all_keys_is_what_it_is_for_each() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(TABLES).unwrap();
    for query in QUERIES {
        let (joined, kept) = (query.replace('$', ""), query.replace('$', "limit 1"));
        let plan = |c: &mut _, query: &str| run(c, &format!("explain {query}"));
        assert!(!plan(&mut c, &joined).contains("SubPlan"), "{joined}");
        assert!(plan(&mut c, &kept).contains("SubPlan"), "{kept}");
        let expected = run(&mut c, &kept);
        let is_empty = expected.ends_with("SELECT 0\n");
        assert!(expected.contains("SELECT") && !is_empty, "{kept}: {expected}");
        assert_eq!(run(&mut c, &joined), expected, "{joined}");
    }
}

#[test]
fn a_subquery_stays_where_it_is_found_by_key_or_may_fail() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(TABLES).unwrap();
    let queries = [
        "select id from parts p where size < (select avg(amount) from indexed where part = p.id)",
        "select id from parts p where id = 3 and size < (select avg(amount) from lines where part = p.id)",
        "select id from parts p where size < (select sum(1 / amount) from lines where part = p.id)",
        "select id from parts p where size < (select avg(amount) from lines where part < p.id)",
        "select id from parts p where size = case when id > 3 then (select min(amount) from lines where part = p.id) end",
    ];
    for query in queries {
        assert!(run(&mut c, &format!("explain {query}")).contains("SubPlan"), "{query}");
    }
}

#[test]
fn conditions_of_all_sides_of_an_or_are_beside_it() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(TABLES).unwrap();
    script(
        &mut c,
        r#"
> explain select count(*) from lines l, parts p where (p.id = l.part and p.size = 1 and l.kind = 2) or (l.kind = 1 and p.id = l.part)
QUERY PLAN
Aggregate
  ->  Nested Loop
        ->  Seq Scan on lines l
              Filter: ((kind = 2) OR (kind = 1))
        ->  Index Scan using parts_pkey on parts p
              Index Cond: (id = l.part)
              Filter: (((size = 1) AND (l.kind = 2)) OR (l.kind = 1))
EXPLAIN

> select count(*) from lines l, parts p where (p.id = l.part and p.size = 1 and l.kind = 2) or (l.kind = 1 and p.id = l.part)
count
150
SELECT 1

> explain select count(*) from lines l, parts p where l.part = p.id and ((l.kind = 1 and p.size = 2) or (p.size > 4 and l.kind = 2 and l.amount > p.id))
QUERY PLAN
Aggregate
  ->  Nested Loop
        ->  Seq Scan on lines l
              Filter: ((kind = 1) OR (kind = 2))
        ->  Index Scan using parts_pkey on parts p
              Index Cond: (id = l.part)
              Filter: ((((l.kind = 1) AND (size = 2)) OR ((size > 4) AND (l.kind = 2) AND (l.amount > id))) AND ((size = 2) OR (size > 4)))
EXPLAIN

> select count(*) from lines l, parts p where l.part = p.id and ((l.kind = 1 and p.size = 2) or (p.size = 3 and l.kind = 2 and l.amount > p.id) or (p.size > 4 and p.id < 9 and l.kind = 0))
count
30
SELECT 1

> select count(*) from parts where (id = 4 and size > 1) or (size > 3 and id = 4) or id = 4
count
1
SELECT 1
"#,
    );
}

/// The filter of the small tables decides on few rows of the large one, so they come first. But no
/// two of them come without a condition that joins them.
#[test]
fn relations_without_a_condition_between_them_are_not_joined_first() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table regions (id int primary key, name text);
         insert into regions select g, 'region ' || g from generate_series(1, 5) g;
         create table nations (id int primary key, region int);
         insert into nations select g, g % 5 + 1 from generate_series(1, 25) g;
         create table sellers (id int primary key, nation int);
         insert into sellers select g, g % 25 + 1 from generate_series(1, 1000) g;
         create table buyers (id int primary key, nation int);
         insert into buyers select g, g % 25 + 1 from generate_series(1, 40000) g;
         create table sales (id int primary key, seller int, buyer int);
         insert into sales select g, g % 1000 + 1, g % 39999 + 1 from generate_series(1, 100000) g",
    )
    .unwrap();
    script(
        &mut c,
        r#"
> explain select s.id from buyers b, sales s, sellers e, nations n, regions r where b.id = s.buyer and s.seller = e.id and b.nation = e.nation and e.nation = n.id and n.region = r.id and r.name = 'region 2'
QUERY PLAN
Nested Loop
  ->  Hash Join
        Hash Cond: (s.seller = e.id)
        ->  Seq Scan on sales s
        ->  Hash
              ->  Hash Join
                    Hash Cond: (e.nation = n.id)
                    ->  Seq Scan on sellers e
                    ->  Hash
                          ->  Hash Join
                                Hash Cond: (n.region = r.id)
                                ->  Seq Scan on nations n
                                ->  Hash
                                      ->  Seq Scan on regions r
                                            Filter: (name = 'region 2')
  ->  Index Scan using buyers_pkey on buyers b
        Index Cond: (id = s.buyer)
        Filter: (nation = e.nation)
EXPLAIN
"#,
    );
}

/// What no row or no reader needs is not computed, so it does not fail. The answers are
/// PostgreSQL's.
#[test]
fn unused_columns_do_not_fail() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("unused_columns.txt"));
}

/// A row of the query around may stand in either side of an equality that a join goes by.
#[test]
fn equalities_with_rows_outside_are_hash_keys() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table n (k int)");
    run(&mut c, "create table o (i int)");
    run(&mut c, "insert into n select g from generate_series(1, 50) g(g)");
    run(&mut c, "insert into o values (0), (1), (49), (50), (null)");
    let expected = [
        ("join", "0 50, 1 49, 49 1, 50 0, ~ 0"),
        ("left join", "0 50, 1 50, 49 50, 50 50, ~ 50"),
        ("full join", "0 50, 1 51, 49 99, 50 100, ~ 100"),
    ];
    for (join, answer) in expected {
        for on in ["a.k = b.k + i", "b.k + i = a.k", "a.k - i = b.k"] {
            let count = format!("select count(*) from n a {join} n b on {on}");
            let sql = format!("select coalesce(i::text, '~') || ' ' || ({count}) from o");
            let plan = run(&mut c, &format!("explain {sql}"));
            assert!(plan.contains("Hash "), "{plan}");
            let rows = run(&mut c, &sql);
            let rows: Vec<&str> = rows.lines().skip(1).take(5).collect();
            assert_eq!(rows.join(", "), answer, "{sql}");
        }
    }
}

/// What a semi-join looks for may drive the join. Then the conditions that follow for its columns
/// hold for them, too.
#[test]
fn rows_that_drive_a_join_meet_what_follows_for_them() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table a (id int primary key, x int, y int)");
    run(&mut c, "insert into a select g, g % 10, g from generate_series(1, 20000) g(g)");
    run(&mut c, "create index on a (x, y)");
    run(&mut c, "create table q (x int, y int)");
    run(&mut c, "insert into q values (5, 15), (5, 25), (6, 15), (7, 15), (6, 26), (null, 15)");
    run(&mut c, "analyze");
    let queries = [
        "select distinct q.x, q.y from q",
        "select q.x, max(q.y) - 10 from q group by q.x",
        "select g, g + 10 from generate_series(1, 9) g(g)",
        "with w as materialized (select * from q) select x, y from w",
        "select 5, 15 union all select 6, 15",
    ];
    for query in queries {
        let sql = format!("select a.id from a where a.x = 5 and (a.x, a.y) in ({query})");
        let plan = run(&mut c, &format!("explain {sql}"));
        assert!(plan.contains("Index Scan using a_x_y_idx"), "{plan}");
        let slow = format!(
            "select a.id from a where a.x + 0 = 5 and (a.x + 0, a.y + 0) in ({query}) order by 1"
        );
        let expected = run(&mut c, &slow);
        assert_eq!(run(&mut c, &format!("{sql} order by 1")), expected, "{sql}\n{plan}");
    }
}
