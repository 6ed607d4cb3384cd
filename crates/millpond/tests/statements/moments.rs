//! Dates and time stamps that are compared with another of these types, by an index.

use millpond::Connection;

use crate::common::{Fresh, fresh, run};

/// Days and half hours around changes of clocks, in three types of columns.
fn table() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("one of few connections");
    run(
        &mut c,
        "create table t (id int primary key, d date, ts timestamp, tz timestamptz); \
         insert into t select i, date '2026-03-20' + i % 300, \
             timestamp '2026-03-27' + i % 400 * interval '30 minutes' + i / 400 * interval '70 days', \
             timestamptz '2026-03-27Z' + i % 400 * interval '30 minutes' + i / 400 * interval '70 days' \
             from generate_series(1, 800) i; \
         insert into t values (-1, 'infinity', 'infinity', 'infinity'), (-2, null, null, null), \
             (-3, '-infinity', '-infinity', '-infinity'), (-4, '5874897-12-31', '294276-12-31', \
             '294276-12-30'), (-5, '4713-01-02 BC', '4713-01-02 BC', '4713-01-02 BC'); \
         create index on t (d, id); create index on t (ts desc); create index on t (tz); analyze t",
    );
    (fresh, c)
}

const VALUES: [&str; 11] = [
    "date '2026-03-29'",
    "date 'infinity'",
    "date '5874897-12-30'",
    "date '4713-01-03 BC'",
    "timestamp '2026-03-29 02:30'",
    "timestamp '2026-10-25 02:30'",
    "timestamp '-infinity'",
    "timestamptz '2026-03-29 01:00Z'",
    "timestamptz '2026-10-25 00:30Z'",
    "timestamptz 'infinity'",
    "null::timestamptz",
];

#[test]
fn values_of_another_type_are_found_by_an_index() {
    let (_fresh, mut c) = table();
    let mut by_index = 0;
    for zone in ["UTC", "Europe/Berlin"] {
        run(&mut c, &format!("set time zone '{zone}'"));
        for column in ["d", "ts", "tz", "ts::date", "tz::date", "tz::timestamp"] {
            for value in VALUES {
                let counts = ["<", "<=", "=", ">=", ">"].map(|op| {
                    format!("(select count(*) + sum(id) from t where {column} {op} {value})")
                });
                let query = format!("select {}", counts.join(", "));
                let slowly = query.replace(" t ", " (select * from t offset 0) t ");
                assert_eq!(run(&mut c, &query), run(&mut c, &slowly), "{zone}: {query}");
                let plan = run(&mut c, &format!("explain {query}"));
                by_index += plan.matches("Index Cond").count();
            }
        }
    }
    // Many choose to read all rows, because there are few.
    assert!(by_index > 250, "{by_index}");
}

#[test]
fn a_recent_part_is_read_by_an_index() {
    let (_fresh, mut c) = table();
    for zone in ["UTC", "Europe/Berlin"] {
        run(&mut c, &format!("set time zone '{zone}'"));
        for (condition, bound) in [
            ("ts >= now() + interval '10 years'", "ts >= "),
            ("d > now() + interval '10 years'", "d > "),
            ("ts::date > date '2026-05-01' and ts >= '2035-01-01'", "ts >= '2035-01-01 00:00:00')"),
            ("ts::date = date '2026-05-02'", "ts >= '2026-05-02' AND ts <= '2026-05-02'"),
            ("timestamp '2026-03-20 05:00' >= d", "d <= "),
            ("d = timestamp '2026-03-20'", "d >= '2026-03-20 00:00:00' AND d <= "),
            (
                "tz::date between date '2026-05-02' and date '2026-05-02'",
                "tz >= '2026-05-02' AND tz",
            ),
        ] {
            let plan = run(&mut c, &format!("explain select id from t where {condition}"));
            assert!(plan.contains(&format!("Index Cond: ({bound}")), "{condition}: {plan}");
            assert!(plan.contains("Filter: "), "{condition}: {plan}");
        }
        // What is rounded first is not in the column's order.
        let plan = run(&mut c, "explain select id from t where ts::timestamptz(0) > '2030-01-01Z'");
        assert!(!plan.contains("Index Cond"), "{plan}");
    }
}

#[test]
fn rows_are_joined_by_moments_of_another_type() {
    let (_fresh, mut c) = table();
    run(
        &mut c,
        "set time zone 'Europe/Berlin'; create table days (day date); \
         insert into days select date '2026-03-26' + i from generate_series(0, 20) i",
    );
    for condition in [
        "t.ts >= day and t.ts < day + 1",
        "t.tz >= day and t.tz < day + 1",
        "t.ts::date = day",
        "t.d = day::timestamp",
        "t.d >= day::timestamptz and t.d <= day::timestamptz",
    ] {
        let query = format!(
            "select day, count(*), sum(id) from days join t on {condition} group by day order by 1"
        );
        let slowly = query.replace(" t ", " (select * from t offset 0) t ");
        assert_eq!(run(&mut c, &query), run(&mut c, &slowly), "{query}");
    }
}
