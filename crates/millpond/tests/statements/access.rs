//! Conditions that an index serves, with PostgreSQL's answers, and the same conditions without it.

use millpond::Connection;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{fresh, run, script};

#[test]
fn arrays_and_alternatives_use_an_index() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("access.txt"));
}

fn seeded() -> StdRng {
    let seed = std::env::var("MILLPOND_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(rand::random::<u64>);
    println!("MILLPOND_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Random conditions on two tables of the same rows, with duplicates and NULLs, give the same rows.
/// One table has no index. The order is the same, too, where the wanted order is all of the row.
#[test]
fn an_index_changes_no_answer() {
    let mut random = seeded();
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    fill(&mut c, &mut random);
    let mut used = 0;
    for _ in 0..200 {
        let condition = conjunction(&mut random, 2);
        let way = ["", " desc"][random.random_range(0..2)];
        let order = format!("a{way}, b{way}, s{way}");
        let query =
            |table: &str| format!("select a, b, s from {table} where {condition} order by {order}");
        let (found, expected) = (run(&mut c, &query("indexed")), run(&mut c, &query("plain")));
        assert!(expected.contains("SELECT"), "{condition}: {expected}");
        assert_eq!(found, expected, "{condition} order by {order}");
        let plan = run(&mut c, &format!("explain {}", query("indexed")));
        used += u32::from(plan.contains("Index Cond"));
    }
    assert!(used > 50, "{used} conditions had an index");
}

/// Changes by random conditions leave the same rows with and without an index.
#[test]
fn an_index_changes_no_change() {
    let mut random = seeded();
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    fill(&mut c, &mut random);
    for _ in 0..40 {
        let condition = conjunction(&mut random, 2);
        let change = match random.random_range(0..4) {
            0 => format!("delete from # where ({condition}) and s < 's3'"),
            1 => format!("update # set a = b, b = a where {condition}"),
            _ => format!("update # set a = a + 1 where {condition}"),
        };
        let mut answers = Vec::new();
        for table in ["indexed", "plain"] {
            let changed = run(&mut c, &change.replace('#', table));
            let rows = run(&mut c, &format!("select a, b, s from {table} order by 1, 2, 3"));
            answers.push((changed, rows));
        }
        assert_eq!(answers[0], answers[1], "{change}");
    }
}

fn fill(c: &mut Connection, random: &mut StdRng) {
    run(c, "create table plain (a int, b int, s text)");
    run(c, "create table indexed (a int, b int, s text)");
    run(c, "create index on indexed (a, b, s)");
    run(c, "create index on indexed (s desc)");
    for _ in 0..20 {
        let rows: Vec<String> = (0..8)
            .map(|_| {
                let text = ["null", "'s1'", "'s2'", "'s3'", "'s4'"][random.random_range(0..5)];
                format!("({}, {}, {text})", number(random), number(random))
            })
            .collect();
        for table in ["plain", "indexed"] {
            let answer = run(c, &format!("insert into {table} values {}", rows.join(", ")));
            assert!(answer.contains("INSERT 0 8"), "{answer}");
        }
    }
}

fn number(random: &mut StdRng) -> String {
    match random.random_range(0..12) {
        11 => "null".to_owned(),
        number => number.to_string(),
    }
}

fn list(random: &mut StdRng) -> Vec<String> {
    (0..random.random_range(1..5)).map(|_| number(random)).collect()
}

/// Conditions that must all hold, some of which are ORs.
fn conjunction(random: &mut StdRng, depth: usize) -> String {
    let count = random.random_range(1..3);
    let one = |random: &mut StdRng| {
        if depth == 0 || random.random_bool(0.4) {
            return simple(random);
        }
        let sides: Vec<String> =
            (0..random.random_range(2..4)).map(|_| conjunction(random, depth - 1)).collect();
        format!("({})", sides.join(" or "))
    };
    let all: Vec<String> = (0..count).map(|_| one(random)).collect();
    all.join(" and ")
}

fn simple(random: &mut StdRng) -> String {
    let column = ["a", "a", "b"][random.random_range(0..3)];
    let one = number(random);
    match random.random_range(0..10) {
        0 => format!("{column} = any('{{{}}}'::int[])", list(random).join(",")),
        1 => format!("{column} = any(array[{}]::int8[])", list(random).join(", ")),
        2 => format!("{column} in ({})", list(random).join(", ")),
        3 => format!("{column} between {one} and {}", number(random)),
        4 => {
            let op = ["<", "<=", ">", ">="][random.random_range(0..4)];
            format!("{column} {op} {one}")
        }
        5 => format!("(a, b) > ({one}, {})", number(random)),
        6 => "s = any(array['s1', 's4', null])".to_owned(),
        7 => "s >= 's2'".to_owned(),
        8 => format!("{column} = any(null::int[])"),
        _ => format!("{column} = {one}"),
    }
}

/// A long list is searched, where it is known what is in it, as one after the other is compared.
#[test]
fn a_long_list_finds_what_comparisons_find() {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("one of few connections");
    let made = run(
        &mut c,
        "create table t (a int, b text, c numeric, e timestamp, f char(4)); \
         insert into t select case when i % 50 > 0 then i % 97 end, 't' || i % 83, i % 71 / 10.0, \
             timestamp '2026-01-01' + i % 59 * interval '1 h', \
             'c' || i % 37 from generate_series(1, 20000) i",
    );
    assert!(made.ends_with("INSERT 0 20000\n"), "{made}");
    for (column, ty, of) in [
        ("a", "int", "x::text"),
        ("b", "text", "'t' || x"),
        ("c", "numeric", "(x / 10.0)::text"),
        ("e", "timestamp", "(timestamp '2026-01-01' + x * interval '1 h')::text"),
        ("f", "char(4)", "'c' || x"),
    ] {
        let texts = run(&mut c, &format!("select {of} from generate_series(3, 120, 4) x"));
        let mut items: Vec<String> =
            texts.lines().skip(1).map(|text| format!("'{text}'::{ty}")).collect();
        items.pop();
        assert!(items.len() > 20, "{texts}");
        for null in ["", ", null"] {
            let list = items.join(", ") + null;
            let any: Vec<String> = list.split(", ").map(|i| format!("{column} = {i}")).collect();
            let any = any.join(" or ");
            let count = |c: &mut Connection, condition: &str| {
                run(c, &format!("select count(*), min(a), max(b) from t where {condition}"))
            };
            let found = count(&mut c, &any);
            assert!(!found.contains("ERROR") && !found.contains("\n0|"), "{column} {found}");
            assert_eq!(count(&mut c, &format!("{column} in ({list})")), found, "{column}");
            let of_array = format!("{column} = any (array[{list}])");
            assert_eq!(count(&mut c, &of_array), found, "{column}");
            let changed = run(&mut c, &format!("begin; delete from t where {column} in ({list})"));
            let number = found.lines().nth(1).and_then(|line| line.split('|').next());
            assert_eq!(changed, format!("BEGIN\nDELETE {}\n", number.unwrap_or_default()));
            run(&mut c, "rollback");
            let others = count(&mut c, &format!("not ({any})"));
            assert_eq!(count(&mut c, &format!("{column} not in ({list})")), others, "{column}");
            let of_array = format!("{column} <> all (array[{list}])");
            assert_eq!(count(&mut c, &of_array), others, "{column}");
        }
    }
}

/// A boolean alone is a condition on its value.
#[test]
fn a_boolean_is_found_by_its_index() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(
        &mut c,
        "create table t (id int primary key, b bool, v int); create index on t (b, v); \
         insert into t select i, case when i % 50 = 0 then true when i % 41 = 0 then false end, i % 9 \
         from generate_series(1, 12000) i",
    );
    for (condition, bounds) in [
        ("b", "(b = true)"),
        ("not b", "(b = false)"),
        ("b is true", "(b = true)"),
        ("b is false and v > 3", "((b = false) AND (v > 3))"),
        ("b = true and v in (2, 4)", "((b = true) AND (v IN (2, 4)))"),
        (
            "b and v = 3 or not b and v = 5",
            "(((b = true) AND (v = 3)) OR ((b = false) AND (v = 5)))",
        ),
    ] {
        let query = format!("select id from t where {condition} order by id");
        let plan = run(&mut c, &format!("explain {query}"));
        assert!(plan.contains(&format!("Index Cond: {bounds}")), "{condition}\n{plan}");
        let slowly = query.replace(" from t ", " from (select * from t offset 0) t ");
        assert_eq!(run(&mut c, &query), run(&mut c, &slowly), "{condition}");
    }
    for condition in ["b is not true", "b is not false", "b is unknown"] {
        let query = format!("select count(*) from t where {condition}");
        let slowly = query.replace(" from t ", " from (select * from t offset 0) t ");
        assert_eq!(run(&mut c, &query), run(&mut c, &slowly), "{condition}");
    }
}

/// A condition on a key of groups leaves out rows before they are grouped.
#[test]
fn a_condition_on_groups_uses_an_index() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(
        &mut c,
        "create table t (id int primary key, g int, v int); create index on t (g); \
         insert into t select i, i % 700, i % 9 from generate_series(1, 5000) i",
    );
    let query = "select g, count(*) from t group by g having g = 7 and count(*) > 2";
    let plan = run(&mut c, &format!("explain {query}"));
    assert!(plan.contains("Index Cond: (g = 7)"), "{plan}");
    assert_eq!(run(&mut c, query), "g|count\n7|8\nSELECT 1\n");
    let query = "select g, count(*) from t group by grouping sets ((g), ()) having g = 7";
    assert_eq!(run(&mut c, query), "g|count\n7|8\nSELECT 1\n");
    assert_eq!(run(&mut c, "select count(*) from t having count(*) < 0"), "count\nSELECT 0\n");
}
