//! Groups, different rows, extremes, and rows of a UNION, of which an index has the first ones.

use millpond::Connection;

use crate::common::{Fresh, fresh, run};

/// Of 20,000 rows, ten are equal in `fine` and a third in `coarse`. `late` is NULL but for some
/// rows, `partly` but for half.
fn table() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("one of few connections");
    run(
        &mut c,
        "create table t (id int primary key, fine int not null, coarse int, late int, partly int); \
         insert into t select i, i / 10, i % 3, case when i % 4000 = 7 then i end, \
             case when i % 2 = 0 then i * 7919 % 20000 end from generate_series(1, 20000) i; \
         create index on t (fine, id); create index on t (coarse); create index on t (late); \
         create index on t (partly)",
    );
    (fresh, c)
}

/// The same answer as without an index, by this plan.
fn check(c: &mut Connection, query: &str, access: &str) {
    let plan = run(c, &format!("explain {query}"));
    assert!(plan.contains(access), "{query}\n{plan}");
    let found = run(c, query);
    // Conditions that hold for all rows, and that no index serves.
    let slowly = query.replace(
        " from t",
        " from (select id + 0 as id, fine + 0 as fine, \
        coarse + 0 as coarse, late + 0 as late, partly + 0 as partly from t offset 0) t",
    );
    assert_eq!(run(c, &slowly).replace("::", ""), found.replace("::", ""), "{query}");
}

#[test]
fn a_limit_of_groups_reads_the_first_ones() {
    let (_fresh, mut c) = table();
    let of = |name: &str| format!("Index Scan using {name} on t");
    let back = |name: &str| format!("Index Scan Backward using {name} on t");
    for (query, access) in [
        ("select fine, count(*) from t group by fine order by fine limit 5", of("t_fine_id_idx")),
        (
            "select fine, max(id) from t group by fine order by fine desc limit 5",
            back("t_fine_id_idx"),
        ),
        (
            "select fine, sum(id) from t where id % 2 = 0 group by fine order by fine limit 5",
            of("t_fine_id_idx"),
        ),
        ("select distinct fine from t order by fine limit 7 offset 3", of("t_fine_id_idx")),
        (
            "select distinct fine, id from t order by fine desc, id desc limit 3",
            back("t_fine_id_idx"),
        ),
        ("select distinct id, fine from t order by fine, id limit 25", of("t_fine_id_idx")),
        // Few groups are all rows.
        (
            "select coarse, count(*) from t group by coarse order by coarse limit 10",
            "Seq Scan on t".to_owned(),
        ),
        ("select distinct coarse from t order by coarse limit 10", "Seq Scan on t".to_owned()),
        // What is left of the groups is not known.
        (
            "select fine, count(*) from t group by fine having count(*) < 10 order by fine limit 5",
            "Seq Scan on t".to_owned(),
        ),
    ] {
        check(&mut c, query, &access);
    }
    // Without an order, any groups are right.
    let plan = run(&mut c, "explain select fine, count(*) from t group by fine limit 5");
    assert!(plan.contains(&of("t_fine_id_idx")), "{plan}");
}

#[test]
fn the_last_value_of_a_column_with_nulls() {
    let (_fresh, mut c) = table();
    check(&mut c, "select max(id) from t", "Index Scan Backward using t_pkey on t");
    check(&mut c, "select max(coarse) from t where coarse < 0", "t_coarse_idx");
    check(&mut c, "select min(partly) from t", "Index Scan using t_partly_idx on t");
    // NULLs are behind the values, and are passed over.
    check(&mut c, "select max(late) from t", "Index Cond: (late IS NOT NULL)");
    check(&mut c, "select max(partly) from t", "Index Cond: (partly IS NOT NULL)");
    run(&mut c, "update t set partly = id where partly is null and id <> 5001");
    run(&mut c, "vacuum t");
    check(&mut c, "select max(partly) from t", "Index Scan Backward using t_partly_idx on t");
    let of_each =
        "select fine, (select max(id) from t u where u.fine = t.fine) from t where id < 4";
    assert_eq!(run(&mut c, of_each).lines().filter(|line| line.starts_with("0|9")).count(), 3);
}

#[test]
fn several_extremes_have_a_row_each() {
    let (_fresh, mut c) = table();
    let back = "Index Scan Backward using t_pkey on t";
    for (query, access) in [
        ("select min(id), max(id) from t", back),
        ("select min(id), max(id), max(id) - min(id), min(late), max(late) from t", back),
        ("select max(id), min(fine) from t where coarse >= 0", back),
        ("select max(late), min(late) from t where late > 30000", "late > 30000"),
        ("select max(partly), min(coarse) from t having min(coarse) < 1", "Append"),
        ("select min(fine), max(id) from t where fine = 77", "fine = 77"),
        // These need all rows.
        ("select min(id), max(id), count(*) from t", "Seq Scan"),
        ("select min(id), max(-id) from t", "Seq Scan"),
        ("select min(id), max(id) filter (where coarse = 1) from t", "Seq Scan"),
        ("select coarse, min(id), max(id) from t group by coarse order by 1", "Seq Scan"),
    ] {
        check(&mut c, query, access);
    }
    let plan = run(&mut c, "explain select min(id), max(id) from t where random() < 2");
    assert!(plan.contains("Seq Scan"), "{plan}");
    let of_each = "select u.fine, v.* from t u, lateral \
                   (select min(id), max(id) from t where t.fine = u.fine) v where u.id < 3";
    assert_eq!(run(&mut c, of_each), "fine|min|max\n0|1|9\n0|1|9\nSELECT 2\n");
    run(&mut c, "delete from t");
    assert_eq!(run(&mut c, "select min(id), max(id) from t"), "min|max\nNULL|NULL\nSELECT 1\n");
}

#[test]
fn the_first_rows_of_a_union_are_those_of_its_sides() {
    let (_fresh, mut c) = table();
    let both = |more: &str| {
        format!(
            "select id, fine from t where id % 3 = 0 union all select id, coarse from t \
             union all select late, 7 from t where late > 100 {more}"
        )
    };
    for more in [
        "order by id limit 5",
        "order by id desc limit 3",
        "order by 1 limit 7 offset 12",
        "order by id nulls first, 2 limit 2",
        "order by fine desc, id limit 9",
        "order by id limit all",
        "order by id offset 40000",
        "order by id limit 9223372036854775807 offset 40001",
        "order by id fetch first 2 rows with ties",
    ] {
        let query = both(more);
        let counted = format!("select * from ({query}) u");
        let found = run(&mut c, &counted);
        let sides = [("fine", "id % 3 = 0"), ("coarse", "true"), ("7", "late > 100")];
        let all = sides.map(|(value, condition)| {
            let id = if value == "7" { "late" } else { "id" };
            format!("select {id} as id, {value} as fine from t where {condition}")
        });
        // Another query around keeps the end away from the sides.
        let slowly = format!(
            "select * from (select * from ({}) v offset 0) u {more}",
            all.join(" union all ")
        );
        assert_eq!(run(&mut c, &slowly), found, "{more}");
        assert_eq!(run(&mut c, &query), found, "{more}");
    }
    let plan = run(&mut c, &format!("explain {}", both("order by id limit 5")));
    assert!(plan.contains("Index Scan using t_pkey on t"), "{plan}");
    let plan = run(&mut c, &format!("explain {}", both("order by id limit 5 offset 2")));
    assert!(plan.contains("Index Scan using t_late_idx on t"), "{plan}");
    // No row beyond the first ones is computed, as 0 of the last row would fail.
    let query = "select id, 1 / (20000 - id) from t union all select 3, 4 order by id limit 2";
    assert_eq!(run(&mut c, query).lines().count(), 4);
    run(
        &mut c,
        "prepare p as select id from t union all select late from t order by 1 limit $1 offset $2",
    );
    assert!(run(&mut c, "execute p(2, 3)").starts_with("id\n4\n5\n"));
    assert!(run(&mut c, "execute p(null, 40003)").starts_with("id\n"));
    let refused = run(&mut c, "execute p(-1, 3)");
    assert!(refused.contains("LIMIT must not be negative"), "{refused}");
}
