//! NULL as a bound of an index: IS NULL and IS NOT NULL.

use millpond::Connection;

use crate::common::{Fresh, fresh, run};

/// Columns that are NULL in some rows, with indexes in all four orders; `u` is unique.
fn table(rows: u32) -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("one of few connections");
    run(
        &mut c,
        &format!(
            "create table t (id int primary key, a int, b text, u int, z int, few int, not_in int); \
             insert into t select i, case when i % 3 > 0 then i % 40 end, \
                 case when i % 7 > 0 then 'b' || i % 30 end, case when i % 5 > 0 then i end, \
                 case when i % 4 > 0 then i % 9 end, case when i % 100 = 0 then i end, \
                 case when i % 100 > 0 then i end from generate_series(1, {rows}) i; \
             create index on t (a, z desc); create index on t (b desc, a nulls first); \
             create unique index on t (u nulls first); create unique index on t (z, u); \
             create index on t (few); create index on t (not_in desc nulls last)"
        ),
    );
    (fresh, c)
}

/// The query beside the same one without any index.
fn check(c: &mut Connection, query: &str) {
    let slowly = query.replace(" t ", " (select * from t offset 0) t ");
    assert_ne!(slowly, query);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if !query.contains("order by") {
            lines.sort();
        }
        lines
    };
    let found = run(c, query);
    assert!(!found.contains("ERROR"), "{query}: {found}");
    assert_eq!(sorted(found), sorted(run(c, &slowly)), "{query}");
}

fn plan(c: &mut Connection, query: &str) -> String {
    run(c, &format!("explain {query}"))
}

#[test]
fn nulls_are_found_by_an_index() {
    let (_fresh, mut c) = table(3_000);
    for (condition, bounds) in [
        ("few is not null", "few IS NOT NULL"),
        ("not_in is null", "not_in IS NULL"),
        ("u is null and z = 3", "z = 3 AND u IS NULL"),
        ("z is null and u = 8", "u = 8"),
        ("a is null and z is null", "a IS NULL AND z IS NULL"),
        ("a = 7 and z is not null", "a = 7 AND z IS NOT NULL"),
        ("a = 7 and z is not null and z > 3", "a = 7 AND z > 3 AND z IS NOT NULL"),
        ("b = 'b4' and a is null", "b = b4 AND a IS NULL"),
        ("b is null and a in (3, null, 5)", "b IS NULL AND a IN (3, NULL, 5)"),
    ] {
        let query = format!("select * from t where {condition}");
        let shown = plan(&mut c, &query);
        let cond = format!("Index Cond: ({bounds})");
        assert!(shown.replace('\'', "").contains(&cond), "{condition}\n{shown}");
        check(&mut c, &format!("select * from t where {condition}"));
        check(&mut c, &format!("select count(*), sum(id) from t where {condition}"));
    }
    // What most rows are is no reason to look into an index.
    for condition in ["not_in is not null", "few is null", "a is not null"] {
        let query = format!("select * from t where {condition}");
        let shown = plan(&mut c, &query);
        assert!(shown.contains("Seq Scan"), "{condition}\n{shown}");
        check(&mut c, &query);
    }
}

/// NULLs may be at either end of an index; past them is the first value.
#[test]
fn extremes_pass_over_nulls_at_both_ends() {
    let (_fresh, mut c) = table(3_000);
    run(&mut c, "create table e (k int, n int); create index on e (k desc nulls last)");
    run(&mut c, "create index on e (n nulls first)");
    run(
        &mut c,
        "insert into e select case when i > 2000 then i end, nullif(i % 7, 0) \
                 from generate_series(1, 3000) i",
    );
    for (query, access) in [
        ("select max(not_in), min(not_in) from t ", "using t_not_in_idx"),
        ("select max(u), min(u) from t ", "Index Cond: (u IS NOT NULL)"),
        ("select min(few), max(few) from t where few > 500", "few > 500"),
    ] {
        let shown = plan(&mut c, query);
        assert!(shown.contains(access) && !shown.contains("Seq Scan"), "{query}\n{shown}");
        check(&mut c, query);
    }
    let shown = plan(&mut c, "select min(k), max(k), min(n), max(n) from e");
    assert_eq!(shown.matches("Index Scan").count(), 4, "{shown}");
    let extremes = run(&mut c, "select min(k), max(k), min(n), max(n) from e");
    assert_eq!(extremes, "min|max|min|max\n2001|3000|1|6\nSELECT 1\n");
}

#[test]
fn conditions_with_nulls_agree_in_any_order() {
    let (_fresh, mut c) = table(700);
    let bounds = ["is null", "is not null", "= 5", "> 5", "in (3, 8)", "<= 20"];
    for first in bounds {
        for second in bounds {
            for (a, b) in [("a", "z"), ("z", "u"), ("z", "a"), ("u", "few")] {
                let condition = format!("{a} {first} and {b} {second}");
                check(&mut c, &format!("select * from t where {condition}"));
                check(
                    &mut c,
                    &format!(
                        "select id, {a}, {b} from t where {condition} \
                         order by {a}, {b} desc, id limit 9"
                    ),
                );
                check(&mut c, &format!("select * from t where {a} {first} or {b} {second}"));
            }
        }
    }
    for order in ["a, z desc", "a desc, z", "z, u", "u nulls first", "b desc, a nulls first"] {
        for condition in ["a is null", "z is null", "z is not null", "u is null", "b is null"] {
            // Rows that are equal in the order may come in any: only its columns are asked for.
            let columns = order.replace(" desc", "").replace(" nulls first", "");
            let query = format!("select {columns} from t where {condition} order by {order}");
            check(&mut c, &query);
            check(&mut c, &format!("{query} limit 12"));
        }
    }
}

#[test]
fn rows_without_a_value_are_not_a_key() {
    let (_fresh, mut c) = table(700);
    // Of a unique index NULL has many rows.
    run(&mut c, "create table n (k int unique, v int)");
    run(&mut c, "insert into n values (null, 1), (null, 2), (3, 3), (null, 4)");
    assert_eq!(run(&mut c, "select v from n where k is null order by v"), "v\n1\n2\n4\nSELECT 3\n");
    let joined = "select n.v, t.id from n join t on t.u = n.v where n.k is null order by 1";
    assert_eq!(run(&mut c, joined), "v|id\n1|1\n2|2\n4|4\nSELECT 3\n");
    let in_loop = "select count(*) from n left join t on t.z = n.v and t.u is null";
    assert_eq!(run(&mut c, in_loop), run(&mut c, &in_loop.replace("t.z =", "t.z + 0 =")));
    assert_eq!(
        run(&mut c, "update n set v = v + 10 where k is null returning v").lines().count(),
        5
    );
    assert_eq!(run(&mut c, "select k from n where k is null for update").lines().count(), 5);
    assert_eq!(run(&mut c, "delete from n where k is null"), "DELETE 3\n");
    assert_eq!(run(&mut c, "select v from n"), "v\n3\nSELECT 1\n");
    // A key that is not NULL by its declaration.
    assert_eq!(run(&mut c, "select id from t where id is null"), "id\nSELECT 0\n");
    // A NULL that comes as a value is none of IS NULL.
    run(&mut c, "prepare p as select count(*) from t where z = $1 and u is null");
    assert_eq!(run(&mut c, "execute p(null)"), "count\n0\nSELECT 1\n");
    // What computed relations have.
    let query = "select count(*) from pg_class where relname is null";
    assert_eq!(run(&mut c, query), "count\n0\nSELECT 1\n");
    let query = "select count(*) > 50 from pg_class where relname is not null and oid is not null";
    assert_eq!(run(&mut c, query), "?column?\nt\nSELECT 1\n");
}

/// A kept plan looks again: rows that wait are many at first and few in the end.
#[test]
fn the_end_of_a_queue_is_found_by_its_index() {
    let (_fresh, mut c) = table(100);
    run(&mut c, "create table q (id int primary key, done_at int)");
    run(&mut c, "create index on q (done_at)");
    run(&mut c, "insert into q select i from generate_series(20000, 1, -1) i");
    run(&mut c, "prepare next as select id from q where done_at is null");
    let first = |c: &mut Connection| {
        let found = run(c, "execute next");
        found.lines().nth(1).expect("a row").to_owned()
    };
    assert_eq!(first(&mut c), "20000");
    let shown = plan(&mut c, "execute next");
    assert!(shown.contains("Seq Scan"), "{shown}");
    run(&mut c, "update q set done_at = 1 where id not in (3, 19000)");
    run(&mut c, "vacuum q");
    run(&mut c, "update q set done_at = null where id = 5");
    let shown = plan(&mut c, "execute next");
    assert!(shown.contains("Index Cond: (done_at IS NULL)"), "{shown}");
    assert_eq!(run(&mut c, "execute next").lines().count(), 5);
}

/// The order of an index whose NULLs are left out is followed, if no other index has fewer rows.
#[test]
fn an_order_without_nulls_is_weighed() {
    let (_fresh, mut c) = table(20_000);
    for (query, index) in [
        ("select not_in from t where not_in is not null order by not_in limit 5", "t_not_in_idx"),
        ("select id from t where few is not null order by id limit 1000", "t_few_idx"),
        ("select id from t where not_in is not null order by id limit 5", "t_pkey"),
        ("select few from t where few is not null order by few desc limit 3", "t_few_idx"),
        // Where a condition leaves out NULLs, the end at which they are does not matter.
        ("select few from t where few > 500 order by few desc nulls last limit 3", "t_few_idx"),
        ("select z, u from t where z = 3 and u < 90 order by u nulls first limit 3", "t_z_u_idx"),
    ] {
        let shown = plan(&mut c, query);
        assert!(shown.contains(&format!("using {index}")), "{query}\n{shown}");
        check(&mut c, query);
    }
}
