//! `TimeZone`: how time stamps are read and written.

use crate::common::{Transcript, fresh, run, script};
use millpond::{Connection, Params, Value};

/// The only cell of a result.
fn cell(c: &mut Connection, sql: &str) -> String {
    let text = run(c, sql);
    let mut lines = text.lines();
    lines.nth(1).unwrap_or(&text).to_owned()
}

#[test]
fn fixed_offsets() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        "
> set timezone = 1
SET

> show timezone
TimeZone
<+01>-01
SHOW

> create table t (k timestamptz primary key, plain timestamp)
CREATE TABLE

> insert into t values ('2026-11-22 08:00', '2026-11-22 08:00')
INSERT 0 1

> select k::text, plain::text, k::date::text, k::timestamp::text, plain::timestamptz::text from t
k|plain|k|k|plain
2026-11-22 08:00:00+01|2026-11-22 08:00:00|2026-11-22|2026-11-22 08:00:00|2026-11-22 08:00:00+01
SELECT 1

> select '4714-11-24 BC'::date < k as a, '4714-11-24 BC'::date > '-infinity'::timestamptz as b from t
a|b
t|t
SELECT 1

> select k::text from t where k = '2026-11-22 08:00'
k
2026-11-22 08:00:00+01
SELECT 1

> select k::text from t where k = '2026-11-22 08:00' and plain = k
k
2026-11-22 08:00:00+01
SELECT 1

> set time zone 'UTC'
SET

> select k::text from t where k = '2026-11-22 08:00'
k
SELECT 0

> select k::text from t where k = '2026-11-22 07:00' and plain > k
k
2026-11-22 07:00:00+00
SELECT 1

> set timezone = '<-03:30>+3:30'
SET

> copy t to stdout
2026-11-22 03:30:00-03:30\t2026-11-22 08:00:00
COPY 1

> select '2026-11-22 08:00+02'::timestamptz::text as x
x
2026-11-22 02:30:00-03:30
SELECT 1

> set timezone = 'Nowhere'
ERROR: invalid value for parameter \"TimeZone\": \"Nowhere\" [22023]
HINT: HINT_OF_BUILD

> begin; set local time zone -8; select '2026-11-22 08:00'::timestamptz::text as x; rollback
BEGIN
SET
x
2026-11-22 08:00:00-08
SELECT 1
ROLLBACK

> show time zone
TimeZone
<-03:30>+3:30
SHOW

> reset time zone; show timezone
RESET
TimeZone
UTC
SHOW
"
        .replace(
            "HINT_OF_BUILD",
            if cfg!(feature = "time-zones") {
                "Zones have the names of the IANA's database, as \"Europe/Berlin\"."
            } else {
                "This build knows UTC and fixed offsets, as \"<+01>-01\"."
            },
        )
        .as_str(),
    );
}

#[test]
fn a_prepared_statement_goes_by_the_zone_of_its_execution() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let prepared = c.prepare("select '2026-11-22 08:00'::timestamptz::text", &[]).unwrap();
    for (zone, shown) in [("0", "+00"), ("2", "+02"), ("-5", "-05")] {
        run(&mut c, &format!("set timezone = {zone}"));
        let mut portal = c.bind(&prepared, Params::new()).unwrap();
        let mut sink = Transcript::default();
        c.execute_portal(&mut portal, 0, &mut sink).unwrap();
        c.sync(&mut sink).unwrap();
        assert_eq!(sink.text.lines().next(), Some(&*format!("2026-11-22 08:00:00{shown}")));
    }
    let given = c.query("select $1::timestamptz::text", &[Value::from("2026-11-22 08:00")]);
    assert_eq!(given.unwrap().rows[0][0], Value::from("2026-11-22 08:00:00-05"));
}

#[test]
fn today_is_the_session_s() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let mut days = Vec::new();
    for zone in [-12, 12] {
        run(&mut c, &format!("set timezone = {zone}"));
        let day = cell(&mut c, "select current_date::text");
        assert_eq!(cell(&mut c, "select 'today'::date::text"), day);
        assert_eq!(cell(&mut c, "select now()::date::text"), day);
        days.push(day);
    }
    assert_ne!(days[0], days[1]);
}

#[cfg(feature = "time-zones")]
#[test]
fn zones_with_rules() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "set timezone = 'europe/berlin'");
    assert_eq!(cell(&mut c, "show timezone"), "Europe/Berlin");
    for (literal, shown) in [
        ("2026-01-01 12:00", "2026-01-01 12:00:00+01"),
        ("2026-07-01 12:00", "2026-07-01 12:00:00+02"),
        ("2026-07-01 12:00 America/New_York", "2026-07-01 18:00:00+02"),
        ("2026-03-29 02:30", "2026-03-29 03:30:00+02"),
        ("1800-01-01 00:00", "1800-01-01 00:00:00+00:53:28"),
        ("infinity", "infinity"),
    ] {
        assert_eq!(cell(&mut c, &format!("select '{literal}'::timestamptz::text")), shown);
    }
}

#[test]
fn what_a_zone_moves_out_of_range_is_refused() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "set timezone = -8; create table t (plain timestamp primary key)");
    run(&mut c, "insert into t values ('294276-12-31 23:59:59'), ('infinity')");
    let cast = "select plain::timestamptz::text from t where plain";
    let found = run(&mut c, &format!("{cast} < 'infinity'"));
    assert!(found.ends_with("ERROR: timestamp out of range [22008]\n"), "{found}");
    assert_eq!(cell(&mut c, &format!("{cast} = 'infinity'")), "infinity");
}

#[test]
fn the_clock_of_a_join_has_a_time_zone_in_every_zone() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let clock = "select now() as x, '2026-11-22'::timestamptz as y \
                 from pg_class a join pg_class b on a.oid = b.oid limit 1";
    let prepared = c.prepare(clock, &[]).unwrap();
    let types: Vec<_> = prepared.columns().unwrap().iter().map(|column| column.ty).collect();
    assert_eq!(types, [millpond::DataType::Timestamptz(None); 2]);
    for zone in ["UTC", "Europe/Berlin", "<+01>-01"] {
        run(&mut c, &format!("set timezone = '{zone}'"));
        let mut portal = c.bind(&prepared, Params::new()).unwrap();
        let mut sink = Transcript::default();
        c.execute_portal(&mut portal, 0, &mut sink).unwrap();
        c.sync(&mut sink).unwrap();
        // Times of views can be reckoned with, too.
        let age = "select count(*) from pg_stat_activity where now() - query_start is null";
        let found = run(&mut c, age);
        assert!(found.ends_with("SELECT 1\n"), "{zone}: {found}");
    }
}

#[cfg(feature = "time-zones")]
#[test]
fn joins_go_by_the_session_s_zone() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "set timezone = 'Europe/Berlin'; create table t (k timestamptz primary key)");
    run(&mut c, "insert into t values ('2026-07-01 00:30'), ('2026-11-22 08:00')");
    let join = "select count(*), min(a.k) from t a join t b on a.k = b.k where a.k >= ";
    let text = format!("{join}'2026-11-22 08:00:00'");
    assert!(run(&mut c, &text).contains("1|2026-11-22 08:00:00+01"), "{}", run(&mut c, &text));
    let prepared = c.prepare(&text, &[]).unwrap();
    let by_day =
        "select cast(a.k as date), count(*) from t a join t b on a.k = b.k group by 1 order by 1";
    assert!(run(&mut c, by_day).contains("2026-07-01|1\n2026-11-22|1"), "{}", run(&mut c, by_day));
    let of = "select count(*) from t a join t b on a.k = b.k where a.k = $1";
    let given = Value::from("2026-11-22 08:00");
    assert_eq!(c.query(of, std::slice::from_ref(&given)).unwrap().rows[0][0], Value::Int8(1));
    run(&mut c, "set timezone = 'UTC'");
    assert!(run(&mut c, &text).contains("0|NULL"), "{}", run(&mut c, &text));
    assert!(run(&mut c, by_day).contains("2026-06-30|1"), "{}", run(&mut c, by_day));
    assert_eq!(c.query(of, &[given]).unwrap().rows[0][0], Value::Int8(0));
    let mut portal = c.bind(&prepared, Params::new()).unwrap();
    let mut sink = Transcript::default();
    c.execute_portal(&mut portal, 0, &mut sink).unwrap();
    c.sync(&mut sink).unwrap();
    assert!(sink.text.starts_with("0|NULL"), "planned for another zone: {}", sink.text);
}

/// In the hour that Moscow's clock skipped when MSK became another offset.
#[cfg(feature = "time-zones")]
#[test]
fn an_abbreviation_is_read_as_from_its_change_on() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "set timezone = 'UTC'");
    for (text, utc) in [
        ("'2011-03-27 01:59:59 MSK'::timestamptz", "2011-03-26 22:59:59+00"),
        ("'2011-03-27 02:00:00 MSK'::timestamptz", "2011-03-26 22:00:00+00"),
        ("'2011-03-27 02:59:59 MSK'::timestamptz", "2011-03-26 22:59:59+00"),
        ("'2011-03-27 03:00:00 MSK'::timestamptz", "2011-03-26 23:00:00+00"),
        ("'2011-03-27 02:30:00'::timestamp at time zone 'MSK'", "2011-03-26 22:30:00+00"),
        ("'2011-03-27 02:30:00 Europe/Moscow'::timestamptz", "2011-03-26 23:30:00+00"),
        ("'2014-10-26 01:30:00 MSK'::timestamptz", "2014-10-25 22:30:00+00"),
    ] {
        assert_eq!(cell(&mut c, &format!("select {text}")), utc, "{text}");
    }
}
