//! ORs whose sides are found by different indexes, and orders that are weighed against conditions.

use millpond::Connection;

use crate::common::{Fresh, fresh, run};

/// Columns with an index each, with NULLs and with repeated values; `z` has none.
fn table(rows: u32) -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("one of few connections");
    run(
        &mut c,
        &format!(
            "create table t (id int primary key, a int, b int, c text, z int); \
             insert into t select i, case when i % 11 > 0 then i % 50 end, \
                 case when i % 13 > 0 then i * 7 % 101 end, 'c' || i % 70, i % 9 \
                 from generate_series(1, {rows}) i; \
             create index on t (a, z); create index on t (b); create index on t (c); \
             create table o (k int primary key, a int, b int); \
             insert into o select i, i * 3 % 60, i * 5 % 110 from generate_series(1, 40) i"
        ),
    );
    (fresh, c)
}

/// The same answer, in whatever order, as where no index serves.
fn check(c: &mut Connection, query: &str, condition: &str) {
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let found = sorted(run(c, &format!("{query} where {condition}")));
    let slowly = ["t.id", "t.a", "t.b", "t.c", "t.z"].iter().fold(
        format!(" {condition} "),
        |text, column| {
            let computed = match *column {
                "t.c" => "(t.c || '')".to_owned(),
                _ => format!("({column} + 0)"),
            };
            text.replace(&format!("{column} "), &format!("{computed} "))
        },
    );
    assert_ne!(slowly.trim(), condition);
    assert_eq!(sorted(run(c, &format!("{query} where {slowly}"))), found, "{condition}");
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }

    fn comparison(&mut self) -> String {
        let number = self.below(110);
        match self.below(11) {
            0 => format!("t.id = {}", number * 20),
            1 => format!("t.id between {number} and {}", number + 5),
            2 => format!("t.a = {}", number / 2),
            3 => format!("t.b = {number}"),
            4 => format!("t.b in ({number}, {}, null)", number / 2),
            5 => format!("t.c = 'c{}'", number * 2 / 3),
            6 => format!("t.b = any('{{{number},3}}')"),
            7 => "t.a is null".to_owned(),
            8 => "(t.b is null and t.z < 5)".to_owned(),
            9 => format!("(t.a = {} and t.z = {})", number / 2, number % 9),
            _ => format!("(t.b = {number} and t.z <> {})", number % 9),
        }
    }

    fn condition(&mut self) -> String {
        let sides: Vec<String> = (0..2 + self.below(3)).map(|_| self.comparison()).collect();
        let or = format!("( {} )", sides.join("  or "));
        match self.below(4) {
            0 => format!("{or} and t.z < 5"),
            1 => format!("t.a = 7 and {or}"),
            2 => format!("{or} and ( {}  or {} )", self.comparison(), self.comparison()),
            _ => or,
        }
    }
}

#[test]
fn each_row_is_given_once() {
    let (_fresh, mut c) = table(2_000);
    let mut numbers = Numbers(5);
    let mut appended = 0;
    for _ in 0..150 {
        let condition = numbers.condition();
        let plan = run(&mut c, &format!("explain select * from t where {condition}"));
        appended += usize::from(plan.contains("Append"));
        check(&mut c, "select * from t", &condition);
        check(&mut c, "select count(*), sum(id) from t", &condition);
    }
    assert!(appended > 50, "{appended}");
}

#[test]
fn sides_may_use_rows_outside() {
    let (_fresh, mut c) = table(2_000);
    for (from, condition) in [
        ("o join t on true", "(t.a = o.a  or t.b = o.b )"),
        ("o join t on true", "(t.id = o.k  or t.b = o.b  and t.z < o.k ) and o.a > 5"),
        ("o left join t on t.id = o.k * 5 or t.b = o.b", "t.z is distinct from 3"),
        ("o", "exists (select from t where t.a = o.a  or t.id = o.k )"),
        ("o", "not exists (select from t where t.id = o.a  or t.b = o.b  and t.z = 2)"),
    ] {
        let query = format!("select * from {from}");
        let plan = run(&mut c, &format!("explain {query} where {condition}"));
        assert!(plan.contains("Append"), "{query} where {condition}\n{plan}");
        if condition.contains(" or ") {
            check(&mut c, &query, condition);
        }
    }
    let joined = "select count(*), sum(t.id) from o left join t on t.id = o.k * 5 or t.b = o.b";
    let slowly =
        "select count(*), sum(t.id) from o left join t on t.id + 0 = o.k * 5 or t.b + 0 = o.b";
    assert_eq!(run(&mut c, joined), run(&mut c, slowly));
}

#[test]
fn rows_are_changed_once() {
    let (_fresh, mut c) = table(2_000);
    let or = "a = 7 or b = 14 or id in (7, 57, 58)";
    let count = run(
        &mut c,
        "select count(*) from t where a + 0 = 7 or b + 0 = 14 or id + 0 in (7, 57, 58)",
    );
    let count = count.lines().nth(1).expect("a row").to_owned();
    // The new values are those by which rows are found.
    let updated = run(&mut c, &format!("update t set z = z + 100, b = 14, a = 7 where {or}"));
    assert_eq!(updated.trim(), format!("UPDATE {count}"));
    let again = run(&mut c, "select count(*), max(z) < 200 from t where z >= 100");
    assert!(again.contains(&format!("{count}|t")), "{again}");
    let locked = run(&mut c, &format!("select id from t where {or} for update"));
    assert!(locked.contains(&format!("SELECT {count}")), "{locked}");
    let deleted = run(&mut c, &format!("delete from t where {or} returning id"));
    assert!(deleted.contains(&format!("DELETE {count}")), "{deleted}");
}

#[test]
fn a_side_that_differs_each_time_is_no_way_to_find_rows() {
    let (_fresh, mut c) = table(2_000);
    let plan = run(&mut c, "explain select * from t where a = 7 and random() < 0.5 or b = 14");
    assert!(plan.contains("Seq Scan"), "{plan}");
}

/// What an earlier side has given is not computed again, where it may fail.
#[test]
fn a_row_of_an_earlier_side_is_not_looked_at_again() {
    let (_fresh, mut c) = table(2_000);
    run(&mut c, "insert into t values (3000, 77, 207, 'x', 1)");
    let query = "select id from t where b = 207 or a = 77 and 1 / (b - 207) < 9";
    let plan = run(&mut c, &format!("explain {query}"));
    assert!(plan.contains("Append"), "{plan}");
    assert_eq!(run(&mut c, query), "id\n3000\nSELECT 1\n");
}

#[test]
fn a_value_among_columns_is_an_or() {
    let (_fresh, mut c) = table(2_000);
    for (query, condition) in [
        ("select * from t", "14 in (t.a , t.b )"),
        ("select * from t", "14 in (t.a , t.b , 3, null)"),
        ("select o.k, t.id from o join t on true", "o.a in (t.a , t.b )"),
    ] {
        let plan = run(&mut c, &format!("explain {query} where {condition}"));
        assert_eq!(plan.contains("Append"), !condition.contains("null"), "{condition}\n{plan}");
        check(&mut c, query, condition);
    }
    let refused = run(&mut c, "select count(*) from t where 14 not in (a, b)");
    let slowly = run(&mut c, "select count(*) from t where not (a = 14) and not (b = 14)");
    assert_eq!(refused, slowly);
}

/// Its rows are looked for by a hash table, not all of them for each row outside.
#[test]
fn keys_with_many_rows_are_hashed() {
    let (_fresh, mut c) = table(20_000);
    run(
        &mut c,
        "create table y (id int primary key, kind int not null, n int); \
         insert into y select i, i % 4, i from generate_series(1, 12000) i; \
         create index on y (kind)",
    );
    for condition in ["y.n < 0", "y.n > t.id"] {
        let query = format!(
            "select count(*) from t where not exists \
             (select from y where y.kind = t.z and {condition})"
        );
        let plan = run(&mut c, &format!("explain {query}"));
        assert!(plan.contains("Hash"), "{condition}\n{plan}");
    }
    // The first of the rows is enough.
    let query = "select count(*) from o where exists (select from y where y.kind = o.a)";
    let plan = run(&mut c, &format!("explain {query}"));
    assert!(plan.contains("Nested Loop Semi Join"), "{plan}");
    let slowly = query.replace("y.kind", "y.kind + 0");
    assert_eq!(run(&mut c, query), run(&mut c, &slowly));
}

#[test]
fn an_order_is_weighed_where_the_rows_are_known() {
    let (_fresh, mut c) = table(20_000);
    run(
        &mut c,
        "create table w (id int primary key, st text, at int); \
         insert into w select i, case when i % 1000 = 0 then 'rare' else 'common' end, i * 7 \
             from generate_series(1, 20000) i; \
         create index on w (st); create index on w (at)",
    );
    let first = |condition: &str, order: &str| {
        format!("select id from w where {condition} order by {order} limit 10")
    };
    for (condition, order, access) in [
        ("st = 'common'", "id desc", "Index Scan Backward using w_pkey"),
        ("st = 'common'", "at", "Index Scan using w_at_idx"),
        ("st in ('common', 'rare')", "at", "Index Scan using w_at_idx"),
        ("st = 'rare'", "at desc", "Index Scan using w_st_idx"),
        ("st in ('rare', 'none')", "at desc", "Index Scan using w_st_idx"),
        ("st = 'common' or at < 50", "id", "Index Scan using w_pkey"),
        ("st = 'rare' or at < 50", "id", "Append"),
        ("at > 139900", "id", "Index Scan using w_at_idx"),
        ("at > 700", "id", "Index Scan using w_pkey"),
    ] {
        let query = first(condition, order);
        let plan = run(&mut c, &format!("explain {query}"));
        assert!(plan.contains(access), "{query}\n{plan}");
        let computed = condition.replace("st ", "st || '' ").replace("at ", "at + 0 ");
        let slowly = format!("select id from w where {computed} order by {order}, id + 0 limit 10");
        assert_eq!(run(&mut c, &query), run(&mut c, &slowly), "{query}");
    }
}

/// Rows that are equal in the order come one way by its index and the other way from a sort.
#[test]
fn a_prepared_statement_weighs_its_values() {
    let (_fresh, mut c) = table(10);
    run(
        &mut c,
        "create table w (id int primary key, st text, pair int); \
         insert into w select i, case when i % 2000 < 2 then 'rare' when i % 50 / 2 = 5 then 'some' \
             else 'common' end, i / 2 from generate_series(1, 20000) i; \
         create index on w (st); create index on w (pair); \
         prepare p(text) as select id from w where st = $1 order by pair desc limit 10",
    );
    // What is sorted stays so up to some thousand rows. What follows the order does not, if there
    // are fewer rows than the plan was made for.
    for (value, is_sorted) in [
        ("common", false),
        ("rare", true),
        ("some", true),
        ("common", false),
        ("some", false),
        ("rare", true),
        ("common", false),
    ] {
        let found = run(&mut c, &format!("execute p('{value}')"));
        let ids: Vec<i32> = found.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(ids.len(), 10, "{found}");
        let equal = ids.windows(2).find(|pair| pair[0] / 2 == pair[1] / 2).expect("equal rows");
        assert_eq!(equal[0] < equal[1], is_sorted, "{value}: {ids:?}");
    }
}

/// The first, the last and all others of each group, by what does not exist.
#[test]
fn rows_for_which_there_is_no_other() {
    let (_fresh, mut c) = table(10);
    run(
        &mut c,
        "create table e (id int primary key, k int, at int); \
         insert into e select i, i % 5, case when i % 50 > 0 then i * 7919 % 5003 end \
             from generate_series(1, 4000) i; \
         insert into e select 5000 + i, null, i from generate_series(1, 9) i",
    );
    let of_groups = |function: &str| {
        format!(
            "select count(*) from e where (k, at) in (select k, {function}(at) from e group by k)"
        )
    };
    for memory in ["4MB", "64kB"] {
        run(&mut c, &format!("set work_mem = '{memory}'"));
        for (comparison, function) in [(">", "max"), ("<", "min")] {
            for order in ["at", "id", "at desc"] {
                let lone = format!(
                    "select count(*) from (select * from e order by {order} offset 0) e where k > -1 \
                     and at > 0 and not exists \
                     (select from e o where o.k = e.k and o.at {comparison} e.at)"
                );
                assert_eq!(run(&mut c, &lone), run(&mut c, &of_groups(function)), "{lone}");
                let others = lone.replace("not exists", "exists");
                let all = "select count(*) - 5 from e where k > -1 and at > 0";
                assert_eq!(
                    run(&mut c, &others).lines().nth(1),
                    run(&mut c, all).lines().nth(1),
                    "{others}"
                );
            }
        }
    }
}
