//! Bounds of keys: lists before other columns, row values, NOT, LIKE, numbers of other types.

use millpond::Connection;

use crate::common::{Fresh, fresh, run};

fn table(rows: u32) -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("one of few connections");
    run(
        &mut c,
        &format!(
            "create table t (id int primary key, a int, b int, c int, s text, v varchar(20), r real); \
             insert into t select i, case when i % 11 > 0 then i % 12 end, \
                 case when i % 7 > 0 then i % 30 end, i % 5, case when i % 13 > 0 then \
                 (array['', 'k', 'kä', 'k_1', 'K', 'kz', 'l', 'k%'])[i % 8 + 1] || i % 40 end, \
                 'v' || i % 200, case i % 50 when 0 then 'NaN' when 1 then '-infinity' \
                 when 2 then -0.0 else i % 50 / 7.0 end from generate_series(1, {rows}) i; \
             create index on t (a, b, c); create index on t (b desc, s desc nulls last); \
             create index on t (s); create index on t (v desc); create index on t (r); \
             create unique index on t (c, id); analyze t"
        ),
    );
    (fresh, c)
}

/// The query beside the same one without any index.
fn check(c: &mut Connection, condition: &str) {
    let query = format!("select id from t where {condition}");
    let slowly = query.replace(" t ", " (select * from t offset 0) t ");
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let found = run(c, &query);
    assert!(!found.contains("ERROR"), "{query}: {found}");
    assert_eq!(sorted(found), sorted(run(c, &slowly)), "{query}");
}

fn bounds(c: &mut Connection, condition: &str) -> String {
    let plan = run(c, &format!("explain select id from t where {condition}"));
    let found = plan.split("Index Cond: (").nth(1).and_then(|rest| rest.split(")\n").next());
    found.unwrap_or(&plan).to_owned()
}

#[test]
fn columns_behind_a_list_have_bounds() {
    let (_fresh, mut c) = table(1_500);
    for (condition, expected) in [
        ("a in (1, 5) and b = 7", "a IN (1, 5) AND b = 7"),
        ("a in (1, 5, null) and b = 7 and c > 2", "a IN (1, 5, NULL) AND b = 7 AND c > 2"),
        ("a = any ('{1,5,5,1}') and b > 27", "a = ANY ('{1,5,5,1}'::integer[]) AND b > 27"),
        ("a in (5, 1) and b is null", "a IN (5, 1) AND b IS NULL"),
        ("a in (5, 1) and b is not null and c > 7", "a IN (5, 1) AND b IS NOT NULL"),
        ("a = 3 and b in (3, 15) and c in (1, 2)", "a = 3 AND b IN (3, 15)"),
        ("c in (1, 4) and id in (1, 2, 4, 9)", "id IN (1, 2, 4, 9)"),
        ("c in (1, 4) and id = 9", "id = 9"),
        ("b in (3, 4) and s like 'k%'", "b IN (3, 4) AND s LIKE 'k%'"),
    ] {
        assert_eq!(bounds(&mut c, condition), expected, "{condition}");
        check(&mut c, condition);
    }
    for order in ["a, b, c", "a desc, b desc, c desc"] {
        let query = format!(
            "select a, b, c from t where a in (5, 1, 2) and b = 14 order by {order} limit 9"
        );
        let slowly = query.replace(" t ", " (select * from t offset 0) t ");
        assert_eq!(run(&mut c, &query), run(&mut c, &slowly));
    }
}

#[test]
fn row_values_are_bounds_of_several_columns() {
    let (_fresh, mut c) = table(1_500);
    assert_eq!(bounds(&mut c, "(a, b) > (11, 28)"), "(a > 11) OR (a = 11 AND b > 28)");
    assert_eq!(
        bounds(&mut c, "(a, b, c) <= (0, 1, 3)"),
        "(a < 0) OR (a = 0 AND b < 1) OR (a = 0 AND b = 1 AND c <= 3)"
    );
    assert_eq!(
        bounds(&mut c, "a = 7 and (b, c) > (28, 2)"),
        "(a = 7 AND b > 28) OR (a = 7 AND b = 28 AND c > 2)"
    );
    for op in ["<", "<=", ">", ">="] {
        for values in
            ["(5, 12)", "(11, 29)", "(0, null)", "(null, 3)", "(5, 2147483647)", "(-9, 2)"]
        {
            check(&mut c, &format!("(a, b) {op} {values}"));
            check(&mut c, &format!("not (a, b) {op} {values}"));
        }
        check(&mut c, &format!("(a, b, c) {op} (5, 12, 2)"));
        check(&mut c, &format!("(b, s) {op} (12, 'k')"));
        check(&mut c, &format!("c = 3 and (c, id) {op} (3, 77)"));
    }
    // Page by page.
    let mut pages = String::new();
    let mut last = (-1, -1);
    for _ in 0..15 {
        let page = run(
            &mut c,
            &format!(
                "select c, id from t where (c, id) > ({}, {}) order by c, id limit 100",
                last.0, last.1
            ),
        );
        let rows: Vec<&str> = page.lines().filter(|line| line.contains('|')).skip(1).collect();
        let (group, id) = rows.last().expect("a page").split_once('|').expect("two columns");
        last = (group.parse().expect("a number"), id.parse().expect("a number"));
        pages.extend(rows.iter().map(|row| format!("{row}\n")));
    }
    let all = run(&mut c, "select c, id from t order by c, id");
    assert_eq!(
        pages,
        all.lines().skip(1).take(1_500).map(|row| format!("{row}\n")).collect::<String>()
    );
}

#[test]
fn two_row_values_bound_both_ends() {
    let (_fresh, mut c) = table(1_500);
    for (condition, expected) in [
        ("(a, b) >= (3, 7) and (a, b) < (4, 9)", "(a > 3 AND a <= 4) OR (a = 3 AND b >= 7)"),
        ("(a, b) > (11, 28) and c <> 3", "(a > 11) OR (a = 11 AND b > 28)"),
    ] {
        assert_eq!(bounds(&mut c, condition), expected, "{condition}");
        check(&mut c, condition);
    }
    let many = "(a, b, c, id, a, b, c, id, a, id) >= (5, 14, 4, 149, 5, 14, 4, 149, 5, 149)";
    check(&mut c, many);
    check(&mut c, &many.replace(">=", "<"));
}

#[test]
fn negations_are_bounds() {
    let (_fresh, mut c) = table(1_500);
    for (condition, expected) in [
        ("not (a <> 3) and b = 3", "a = 3 AND b = 3"),
        ("not (a <> 3 or b <> 3)", "a = 3 AND b = 3"),
        ("not (a < 11) and not (b <= 28 and true) and a < 12", "a >= 11 AND a < 12"),
        ("not (b is not null) and a in (3, 4) and not (a = 4)", "a IN (3, 4) AND b IS NULL"),
        ("not (not (id = 8))", "id = 8"),
        ("not (id not in (8, 9))", "id IN (8, 9)"),
        ("not (id not between 8 and 9)", "id >= 8 AND id <= 9"),
    ] {
        assert_eq!(bounds(&mut c, condition), expected, "{condition}");
        check(&mut c, condition);
    }
    for condition in [
        "not (a = 3 and b = 3)",
        "not (a = 3 and b = null)",
        "not (s like 'k%')",
        "not (a in (1, null))",
        "not (a is distinct from b)",
        "not (r < 'NaN')",
        "not (r > 3.5 and a = b)",
        "not (a = b) is true",
    ] {
        check(&mut c, condition);
    }
}

#[test]
fn patterns_are_bounds_of_texts() {
    let (_fresh, mut c) = table(1_500);
    for pattern in
        ["k%", "kä%", "k\\_1%", "k_1%", "k1", "", "%", "%1", "K1_", "k\\%", "kz39", "zz%", "k%1%"]
    {
        for column in ["s", "v"] {
            check(&mut c, &format!("{column} like '{pattern}'"));
            check(&mut c, &format!("{column} not like '{pattern}'"));
            check(&mut c, &format!("{column} ilike '{pattern}'"));
            check(&mut c, &format!("b = 13 and {column} like '{pattern}' and {column} > 'k'"));
        }
    }
    check(&mut c, "s like null");
    assert_eq!(bounds(&mut c, "v like 'v1%' and v > 'v15'"), "v > 'v15' AND v LIKE 'v1%'");
    for other in ["v > 'v15'", "v < 'v15'", "v between 'v12' and 'v2'", "v > 'v2'", "v < 'v'"] {
        check(&mut c, &format!("v like 'v1%' and {other}"));
        check(&mut c, &format!("v like '%1%' and {other}"));
    }
    check(&mut c, "v like 'v1%' and v like 'v19%'");
    check(&mut c, "v like 'v1%' escape '1'");
    assert_eq!(bounds(&mut c, "v like 'v19%'"), "v LIKE 'v19%'");
    assert_eq!(bounds(&mut c, "s like 'kä1%'"), "s LIKE 'kä1%'");
    // A pattern that leaves nothing out is no bound, also when another one was planned for.
    assert!(bounds(&mut c, "s like '%9'").contains("Seq Scan"));
    run(&mut c, "prepare p (text) as select count(*) from t where s like $1");
    for pattern in ["kz39%", "%9", "kz%", "%", "l1%", "kz39%"] {
        let slowly =
            format!("select count(*) from (select * from t offset 0) t where s like '{pattern}'");
        let found = run(&mut c, &format!("execute p ('{pattern}')"));
        assert_eq!(found, run(&mut c, &slowly), "{pattern}");
    }
}

#[test]
fn numbers_of_more_precision_are_bounds() {
    let (_fresh, mut c) = table(1_500);
    for value in
        ["0.1", "3.5", "1e300", "-1e300", "'NaN'::float8", "0", "'infinity'::float8", "0.7142857"]
    {
        for op in ["<", "<=", "=", ">=", ">", "<>"] {
            check(&mut c, &format!("r {op} {value}"));
            check(&mut c, &format!("{value} {op} r"));
        }
    }
    assert!(bounds(&mut c, "r > 6.9").starts_with("r > "));
    check(&mut c, "r in (0.1, 0.5, 3.5) or r between 1.1 and 1.2");
}
