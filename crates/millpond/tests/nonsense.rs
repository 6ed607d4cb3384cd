//! Whatever is sent, something comes back: no panic, no stuck session, and the next statement
//! works.

mod common;

use common::{fresh, run};
use proptest::prelude::*;

/// Words that make statements which are nearly right.
fn word() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => prop_oneof![
            Just("select"), Just("from"), Just("t"), Just("where"), Just("a"), Just("b"), Just("="), Just("1"),
            Just(","), Just("("), Just(")"), Just("and"), Just("*"), Just("'x'"), Just("null"), Just("order by"),
        ],
        2 => prop_oneof![
            Just("insert into t values"), Just("update t set"), Just("delete from t"), Just("returning"),
            Just("limit"), Just("offset"), Just("in"), Just("between"), Just("or"), Just("not"), Just("+"),
            Just("-"), Just("/"), Just("0"), Just("::int"), Just("::text"), Just("||"), Just("like"),
            Just("is null"), Just("desc"), Just("for update"), Just("<"), Just(">="), Just("2147483647"),
            Just("99999999999999999999"), Just("1.5e3"), Just("''"), Just("default"), Just("case when"),
            Just("then"), Just("else"), Just("end"), Just("count(*)"), Just("sum("), Just("length("),
            Just("coalesce("), Just("date '2024-01-01'"), Just("true"), Just("%"), Just("$1"), Just("c"), Just("d"),
        ],
        1 => prop_oneof![
            Just("begin"), Just("commit"), Just("rollback"), Just(";"), Just("explain"), Just("set"),
            Just("show"), Just("work_mem"), Just("to"), Just("copy"), Just("stdout"), Just("create table"),
            Just("x"), Just("int"), Just("primary key"), Just("drop table"), Just("truncate"), Just("prepare p as"),
            Just("execute p"), Just("deallocate all"), Just("lock table"), Just("alter table"), Just("add"),
            Just("index"), Just("on"), Just("create"), Just("unique"), Just("."), Just("public"), Just("\"A\""),
        ],
    ]
}

#[test]
fn nearly_right_statements() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (a int primary key, b text, c numeric(10,2), d timestamp)").unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let texts = prop::collection::vec(word(), 1..14);
    let connection = std::cell::RefCell::new(&mut c);
    runner
        .run(&texts, |words| {
            let mut connection = connection.borrow_mut();
            let sql = words.join(" ");
            let found = run(&mut connection, &sql);
            prop_assert!(!found.contains("[XX"), "{sql}: {found}");
            // Twice, because the second time it may come from the cache.
            let again = run(&mut connection, &sql);
            prop_assert!(!again.contains("[XX"), "{sql}: {again}");
            let _ = run(&mut connection, "rollback");
            let alive = run(&mut connection, "select 1");
            prop_assert_eq!(alive, "?column?\n1\nSELECT 1\n");
            Ok(())
        })
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_text(texts in prop::collection::vec("\\PC{0,40}", 1..20)) {
        let fresh = fresh();
        let mut c = fresh.database.connect().unwrap();
        for text in texts {
            let _ = run(&mut c, &text);
        }
        let _ = run(&mut c, "rollback");
        prop_assert_eq!(run(&mut c, "select 1"), "?column?\n1\nSELECT 1\n");
    }
}
