//! What is refused: too deep, too large, or easily misread.

use crate::common::{fresh, run};

#[test]
fn what_would_be_misread_is_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b bytea); insert into t values (1, '\\x61ff')")
        .unwrap();
    let sql = "select 'a' collate \"de_DE\"";
    let found = run(&mut c, sql);
    assert!(found.contains("[0A000]") || found.contains("[42883]"), "{sql}: {found}");
    assert_eq!(run(&mut c, "select 'a' collate \"C\" as x"), "x\na\nSELECT 1\n");
    let found =
        run(&mut c, "select count(*) from t where pg_buffercache_usage_counts() is not null");
    assert!(found.contains("set-returning functions are not allowed in WHERE [0A000]"), "{found}");
    let named = "with ordinality as (select 1 as x) select x from ordinality";
    assert_eq!(run(&mut c, named), "x\n1\nSELECT 1\n");
    assert_eq!(
        run(&mut c, "set bytea_output = 'escape'; copy t to stdout"),
        "SET\n1\ta\\\\377\nCOPY 1\n"
    );
    assert!(c.format_options().bytea_escape);
}

fn joins(count: usize) -> String {
    (1..=count).map(|at| format!(" join t t{at} on t{at}.a = t0.a")).collect()
}

#[test]
fn deep_statements_need_little_stack() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let chain = format!("select {}1", "1+".repeat(390));
        assert_eq!(run(&mut c, &chain), "?column?\n391\nSELECT 1\n");
        let unions = format!("select 1{}", " union select 1".repeat(450));
        assert_eq!(run(&mut c, &unions), "?column?\n1\nSELECT 1\n");
        for (open, close) in [
            ("abs(", ")"),
            ("coalesce(", ")"),
            ("case when true then ", " end"),
            ("(array[", "])[1]"),
            ("1 + abs(", ")"),
        ] {
            for levels in [40, 99] {
                let found = run(
                    &mut c,
                    &format!("select {}1{}", open.repeat(levels), close.repeat(levels)),
                );
                assert!(
                    found.ends_with("\nSELECT 1\n") || levels > 40 && found.contains("[54001]"),
                    "{open}: {found:.200}"
                );
            }
        }
        c.batch("create table t (a int primary key)").unwrap();
        let ors = format!("select a from t where {}a = 1", "a = 2 or ".repeat(590));
        assert_eq!(run(&mut c, &ors), "a\nSELECT 0\n");
        let cases = format!("select {}1{}", "case when true then ".repeat(40), " end".repeat(40));
        assert_eq!(run(&mut c, &cases), "case\n1\nSELECT 1\n");
        let arms = format!("select case 7 {}end", "when 1 + 1 then 2 * 3 ".repeat(500));
        assert_eq!(run(&mut c, &arms), "case\nNULL\nSELECT 1\n");
        let nested = format!("select {}1{}", "(".repeat(70), ")".repeat(70));
        assert_eq!(run(&mut c, &nested), "?column?\n1\nSELECT 1\n");
        for chain in ["1+", "1::int+", "a,b) or (1,"] {
            let found = run(&mut c, &format!("select {}1", chain.repeat(5_000)));
            assert!(
                found.contains("[54001]") || found.contains("[42601]"),
                "{chain}: {found:.100}"
            );
        }
        for sql in [
            format!("select * from unnest({}1, 2)", "1+".repeat(5_000)),
            format!("select 1{}", "::int".repeat(5_000)),
            format!("select * from t{}", " join t on true".repeat(5_000)),
            format!("select count(*) from t t0{}", joins(400)),
            format!("select 1{}", " union select 1".repeat(2_500)),
        ] {
            let found = run(&mut c, &sql);
            assert!(found.contains("[54001]"), "{sql:.40}: {found:.100}");
        }
        for (open, close) in
            [("(", ")"), ("not ", ""), ("- ", ""), ("coalesce(", ")"), ("case when ", "")]
        {
            let deep = format!("select {}1{}", open.repeat(20_000), close.repeat(20_000));
            let found = run(&mut c, &deep);
            assert!(
                found.contains("[54001]") || found.contains("[42601]"),
                "{open}: {}",
                &found[..100.min(found.len())]
            );
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn deep_plans_need_little_stack() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key); insert into t values (1)").unwrap();
    let tables = |count: usize| {
        let list: Vec<String> = (0..count).map(|i| format!("t t{i}")).collect();
        format!("select count(*) from {}", list.join(", "))
    };
    let chain = |count: usize, step: &dyn Fn(usize) -> String| {
        let steps: Vec<String> = (1..count).map(|i| format!("c{i} as ({})", step(i - 1))).collect();
        format!("with c0 as (select a from t), {} select a from c{}", steps.join(", "), count - 1)
    };
    // Each query is run once and kept, because the next reads it twice.
    let twice = |i: usize| format!("select x.a from c{i} x, c{i} y");
    let within = |i: usize| {
        format!(
            "select a from t where a + random() < 9 and (select count(*) from c{i}) = (select max(a) from c{i})"
        )
    };
    let nested = move |levels: usize, count: usize| {
        let tables = tables(count);
        let open = format!("{tables} where 1 = (");
        format!("{}{tables}{}", open.repeat(levels), ")".repeat(levels))
    };
    // Subplans beside each other are not deep.
    let reads = "(select count(*) from c) + ".repeat(50);
    let reads = format!(
        "with c as (select a from t), d as (select a from c) select {reads} (select count(*) from d) - 50"
    );
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        for few in [tables(110), chain(30, &twice), chain(15, &within), nested(4, 20), reads] {
            let found = run(&mut c, &few);
            assert!(found.ends_with("\n1\nSELECT 1\n"), "{found}: {few:.90}");
        }
        for many in [
            tables(1000),
            chain(300, &twice),
            chain(300, &within),
            nested(9, 90),
            format!("update t set a = ({})", tables(1000)),
        ] {
            let found = run(&mut c, &many);
            assert!(found.contains("[54001]"), "{found:.90}: {many:.90}");
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn values_beyond_all_memory_are_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let error = c
        .query("select replace(repeat('a', 60000000), 'a', repeat('b', 60000000))", &[])
        .unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "54000", "{error}");
}

/// Each table, index and TRUNCATE takes a number, and none is used again.
#[test]
fn file_numbers_end_with_warnings_and_then_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let settings = millpond::Settings::default().with("shared_buffers", "8MB").unwrap();
        millpond::Database::open(dir.path(), settings).unwrap()
    };
    let database = open();
    let mut c = database.connect().unwrap();
    assert_eq!(run(&mut c, "create table t (a int)"), "CREATE TABLE\n");
    c.batch("insert into t values (1)").unwrap();
    drop(c);
    database.shutdown().unwrap();
    drop(database);
    // A file left by a crash, with a number near the end, counts as used.
    std::fs::write(dir.path().join("base").join(((1 << 28) - 1024 - 4).to_string()), "").unwrap();
    let database = open();
    let mut c = database.connect().unwrap();
    for (left, sql, tag) in [
        (2, "create table u (a int)", "CREATE TABLE"),
        (1, "truncate u", "TRUNCATE TABLE"),
        (0, "create index on t (a)", "CREATE INDEX"),
    ] {
        let warning = format!(
            "WARNING: the database can make {left} more files of tables and indexes, and then none\n"
        );
        assert_eq!(run(&mut c, sql), format!("{warning}{tag}\n"));
    }
    let error = "ERROR: the database has used up its file numbers; \
                 dump it and restore it into a new one [54000]\n";
    for sql in ["create table v (a int)", "create index on u (a)", "truncate t"] {
        assert_eq!(run(&mut c, sql), error);
    }
    // What there is goes on, also after a restart.
    assert_eq!(run(&mut c, "insert into t values (2)"), "INSERT 0 1\n");
    drop(c);
    database.shutdown().unwrap();
    drop(database);
    let database = open();
    let mut c = database.connect().unwrap();
    assert_eq!(run(&mut c, "select * from t"), "a\n1\n2\nSELECT 2\n");
    assert_eq!(run(&mut c, "create table v (a int)"), error);
}

#[test]
fn lists_have_a_longest_length() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key); insert into t values (1)").unwrap();
    let ones = |count: usize| vec!["1"; count].join(", ");
    let targets = "target lists can have at most 1664 entries [54011]";
    let subscripts = "number of array dimensions (7) exceeds the maximum allowed (6) [54000]";
    let dimensions = |of: &str| format!("select ({of}){}", "[1]".repeat(7));
    for (sql, error) in [
        (format!("select {}", ones(1665)), targets),
        (format!("select {} from t", ones(1665)), targets),
        (format!("select {} from t", vec!["count(*)"; 1665].join(", ")), targets),
        (format!("values ({})", ones(1665)), targets),
        (format!("select 1 from (values ({0}), ({0})) v", ones(1665)), targets),
        (format!("update t set a = 1 returning {}", ones(1665)), targets),
        (
            format!("select row({})", ones(1665)),
            "ROW expressions can have at most 1664 entries [54011]",
        ),
        (
            format!("select concat({})", ones(101)),
            "cannot pass more than 100 arguments to a function [54023]",
        ),
        (dimensions("array[1]"), subscripts),
        (dimensions("null::int[]"), subscripts),
    ] {
        let found = run(&mut c, &sql);
        assert!(found.contains(error), "{sql:.60}: {found:.100}");
    }
    for sql in [
        format!("select {}", ones(1664)),
        format!("values ({})", ones(1664)),
        format!("select row({})", ones(1664)),
        format!("select concat({})", ones(100)),
    ] {
        let found = run(&mut c, &sql);
        assert!(found.ends_with("\nSELECT 1\n"), "{sql:.60}: {found:.100}");
    }
}

#[test]
fn json_has_a_longest_length() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let array = "total size of jsonb array elements exceeds the maximum of 268435455 bytes";
    let object = "total size of jsonb object elements exceeds the maximum of 268435455 bytes";
    let large = "repeat('x', 50000000)";
    for (sql, error) in [
        (
            "select to_jsonb(repeat('x', 268435456))".to_owned(),
            "string too long to represent as jsonb string",
        ),
        (format!("select jsonb_agg({large}) from generate_series(1, 6)"), array),
        (format!("select jsonb_build_array({0}, {0}, {0}, {0}, {0}, {0})", large), array),
        (format!("select jsonb_object_agg(i, {large}) from generate_series(1, 6) i"), object),
        ("select to_json(repeat(chr(1), 190000000))".to_owned(), "requested length too large"),
    ] {
        let found = run(&mut c, &sql);
        assert!(found.contains(error) && found.contains("[54000]"), "{sql:.60}: {found:.100}");
    }
}

/// Long and deep paths of JSON are refused before the stack ends.
#[test]
fn paths_need_little_stack() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let mut count = |document: &str, path: &str| {
            run(&mut c, &format!("select count(*) from jsonb_path_query('{document}', '{path}')"))
        };
        // Each level once, and as often as there are levels around it.
        assert_eq!(count(&deep(500), "$.**"), "count\n501\nSELECT 1\n");
        assert_eq!(count(&deep(90), "$.**.**"), "count\n4186\nSELECT 1\n");
        assert_eq!(count("1", &format!("${}", "[0]".repeat(190))), "count\n1\nSELECT 1\n");
        for path in [
            format!("${}", "[0]".repeat(100_000)),
            format!("${}", ".size()".repeat(100_000)),
            format!("1{}", " + 1".repeat(100_000)),
            format!("$ == 1{}", " || $ == 1".repeat(100_000)),
            format!("$ == 1{}", " && $ == 1".repeat(100_000)),
            format!("{}1", "-".repeat(100_000)),
            format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        ] {
            let found = count("1", &path);
            assert!(found.contains("[54001]"), "{path:.40}: {found:.200}");
        }
    });
    thread.unwrap().join().unwrap();
}
