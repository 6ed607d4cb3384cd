//! `DateStyle` and other settings of texts: statements that are kept follow the session.

use crate::common::{fresh, run, script};

#[test]
fn one_text_follows_the_session_s_style() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table t (k int primary key, d date, f float8, b bytea)");
    run(&mut c, "insert into t values (1, '2003-01-02', 0.1, 'a')");
    run(&mut c, "prepare p as select d::text, 0.1::float8 + 0.2 from t where k = 1");
    let text = "select k, d::text, '01/02/2003'::date = d, concat(d), f + 0.2, b::text from t";
    let by_style = [
        ("ISO, MDY", 1, "hex", "1|2003-01-02|t|2003-01-02|0.30000000000000004|\\x61"),
        ("German", 0, "escape", "1|02.01.2003|f|02.01.2003|0.3|a"),
        ("SQL, DMY", -13, "hex", "1|02/01/2003|f|02/01/2003|0.3|\\x61"),
        ("Postgres, MDY", 3, "escape", "1|01-02-2003|t|01-02-2003|0.30000000000000004|a"),
    ];
    for (style, digits, bytes, expected) in by_style.iter().chain(&by_style) {
        run(&mut c, &format!("set datestyle to '{style}'"));
        run(&mut c, &format!("set extra_float_digits to {digits}"));
        run(&mut c, &format!("set bytea_output to {bytes}"));
        let parts: Vec<&str> = expected.split('|').collect();
        for statement in [text, text] {
            let found = run(&mut c, statement);
            assert_eq!(found.lines().nth(1), Some(*expected), "{style}");
        }
        let executed = run(&mut c, "execute p");
        assert_eq!(executed.lines().nth(1), Some(&*format!("{}|{}", parts[1], parts[4])));
    }
}

#[test]
fn datestyle_is_set_in_parts() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    for (given, shown) in [
        ("dmy", "ISO, DMY"),
        ("sql", "SQL, DMY"),
        ("us", "SQL, MDY"),
        ("german", "German, DMY"),
        ("postgresql", "Postgres, DMY"),
        ("noneuropean, iso", "ISO, MDY"),
        ("ymd", "ISO, YMD"),
        ("default", "ISO, MDY"),
    ] {
        run(&mut c, &format!("set datestyle to '{given}'"));
        assert_eq!(run(&mut c, "show datestyle").lines().nth(1), Some(shown), "{given}");
    }
    script(
        &mut c,
        "
> set datestyle to 'iso, sql'
ERROR: invalid value for parameter \"DateStyle\": \"iso, sql\" [22023]
DETAIL: Conflicting \"datestyle\" specifications.

> set datestyle to 'foo'
ERROR: invalid value for parameter \"DateStyle\": \"foo\" [22023]
DETAIL: Unrecognized key word: \"foo\".
",
    );
}

#[test]
fn now_is_the_transaction_s_time() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let text = "select 'now'::timestamptz = now(), 'today'::date = current_date";
    for _ in 0..2 {
        assert_eq!(run(&mut c, text).lines().nth(1), Some("t|t"));
    }
}

#[test]
fn copy_follows_the_styles() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table t (k int primary key, d date, t timestamp, f float4)");
    run(&mut c, "set datestyle to 'German'");
    run(&mut c, "set extra_float_digits to -2");
    let line = "1\t02.01.2003\t02.01.2003 04:05:06\t0.1235\n";
    assert!(crate::common::run_copy(&mut c, "copy t from stdin", &[line]).contains("COPY 1"));
    assert!(run(&mut c, "copy t to stdout").contains(line));
    run(&mut c, "reset datestyle");
    let shown = run(&mut c, "select d::text, t::text from t");
    assert_eq!(shown.lines().nth(1), Some("2003-01-02|2003-01-02 04:05:06"));
}
