//! What is refused: too deep, too large, or easily misread.

use crate::common::{fresh, run};

#[test]
fn what_would_be_misread_is_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b bytea); insert into t values (1, '\\x61ff')")
        .unwrap();
    for sql in [
        "select * from t x join t y on x.a = y.a for update",
        "select * from t x join t y on x.a = y.a for no key update skip locked",
        "select * from (select * from t for update) x",
        "select to_char(now(), 'YYYY') from t group by 1",
        "select 'a' collate \"de_DE\"",
        "select * from generate_series(1, 2) with ordinality",
        "select * from t x, lateral generate_series(1, 2) with ordinality g",
        "select * from pg_buffercache_summary() with ordinality",
    ] {
        assert!(
            run(&mut c, sql).contains("[0A000]") || run(&mut c, sql).contains("[42883]"),
            "{sql}: {}",
            run(&mut c, sql)
        );
    }
    assert_eq!(run(&mut c, "select 'a' collate \"C\" as x"), "x\na\nSELECT 1\n");
    #[cfg(feature = "datafusion")]
    for (name, sql) in [
        ("pg_buffercache_summary", "select pg_buffercache_summary()"),
        ("pg_buffercache_summary", "select a, pg_catalog.pg_buffercache_summary() from t"),
        (
            "pg_buffercache_usage_counts",
            "select count(*) from t where pg_buffercache_usage_counts() > 1",
        ),
        ("pg_stat_get_backend_io", "select pg_stat_get_backend_io(1)"),
        ("generate_series", "select generate_series(1, 3) as i"),
    ] {
        let found = run(&mut c, sql);
        let wanted = format!("function {name} outside of FROM is not supported yet [0A000]");
        assert!(found.contains(&wanted), "{sql}: {found}");
    }
    if cfg!(feature = "datafusion") {
        let named = "with ordinality as (select 1 as x) select x from ordinality";
        assert_eq!(run(&mut c, named), "x\n1\nSELECT 1\n");
    }
    assert_eq!(
        run(&mut c, "set bytea_output = 'escape'; copy t to stdout"),
        "SET\n1\ta\\\\377\nCOPY 1\n"
    );
    assert!(c.format_options().bytea_escape);
}

#[test]
fn deep_statements_need_little_stack() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let chain = format!("select {}1", "1+".repeat(190));
        assert_eq!(run(&mut c, &chain), "?column?\n191\nSELECT 1\n");
        c.batch("create table t (a int primary key)").unwrap();
        let ors = format!("select a from t where {}a = 1", "a = 2 or ".repeat(590));
        assert_eq!(run(&mut c, &ors), "a\nSELECT 0\n");
        let cases = format!("select {}1{}", "case when true then ".repeat(40), " end".repeat(40));
        assert_eq!(run(&mut c, &cases), "case\n1\nSELECT 1\n");
        let arms = format!("select case 7 {}end", "when 1 + 1 then 2 * 3 ".repeat(500));
        assert_eq!(run(&mut c, &arms), "case\nNULL\nSELECT 1\n");
        let nested = format!("select {}1{}", "(".repeat(70), ")".repeat(70));
        assert_eq!(run(&mut c, &nested), "?column?\n1\nSELECT 1\n");
        for (open, close) in
            [("(", ")"), ("not ", ""), ("-", ""), ("coalesce(", ")"), ("case when ", "")]
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
fn values_beyond_all_memory_are_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let error = c
        .query("select replace(repeat('a', 60000000), 'a', repeat('b', 60000000))", &[])
        .unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "54000", "{error}");
}
