use crate::other::INTERVAL_FIELDS;

use crate::format::{FormatOptions, IntervalStyle, text};
use crate::{DataType, Value};

const INTERVAL: DataType = DataType::Other { oid: 1186, typmod: -1 };

fn options(interval_style: IntervalStyle) -> FormatOptions {
    FormatOptions { interval_style, ..FormatOptions::default() }
}

fn shown(value: &Value, style: IntervalStyle) -> String {
    text::to_string(INTERVAL, &value.as_datum(), &options(style)).unwrap()
}

fn read(input: &str) -> Result<String, String> {
    let style = IntervalStyle::Postgres;
    text::parse(INTERVAL, input, &options(style))
        .map(|value| shown(&value, style))
        .map_err(|error| format!("{} {}", error.sqlstate, error.message))
}

#[test]
fn intervals_are_read_as_postgresql_reads_them() {
    for (input, output) in [
        ("1", "00:00:01"),
        ("1.5", "00:00:01.5"),
        ("-1.5", "-00:00:01.5"),
        (".5 s", "00:00:00.5"),
        ("1 day 1", "1 day 00:00:01"),
        ("1 day 24:00", "1 day 24:00:00"),
        ("1-2", "1 year 2 mons"),
        ("-1-2", "-1 years -2 mons"),
        ("1-2 3", "1 year 2 mons 00:00:03"),
        ("1-2 3 4:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("@ 1 year 2 mons -3 days ago", "-1 years -2 mons +3 days"),
        ("1.5 years", "1 year 6 mons"),
        ("1.5 months", "1 mon 15 days"),
        ("-1.5 months", "-1 mons -15 days"),
        ("1.5 weeks", "10 days 12:00:00"),
        ("1.51 year", "1 year 6 mons"),
        ("0.1 year", "1 mon"),
        ("1.2 decades", "12 years"),
        ("1 millennium 2 centuries", "1200 years"),
        ("1.55 months", "1 mon 16 days 12:00:00"),
        ("1 2:03", "1 day 02:03:00"),
        ("1 2 hours", "1 day 02:00:00"),
        ("1 -2:03", "1 day -02:03:00"),
        ("-1 2:03", "-1 days +02:03:00"),
        ("1:30.5", "00:01:30.5"),
        ("100:30:15", "100:30:15"),
        ("-1:30:15.1234567", "-01:30:15.123457"),
        ("- 1 day", "-1 days"),
        ("1 day ago 2 hours", "-1 days -02:00:00"),
        ("1 day -2 hours 3 min", "1 day -01:57:00"),
        ("9223372036854 seconds", "2562047788:00:54"),
        ("178956970 years", "178956970 years"),
        ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
        ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("P00010203T040506", "1 year 2 mons 3 days 04:05:06"),
        ("P1.5Y", "1 year 6 mons"),
        ("P-1Y", "-1 years"),
        ("P1.5W", "10 days 12:00:00"),
        ("PT1.5S", "00:00:01.5"),
        ("PT", "00:00:00"),
        ("P10", "10 years"),
    ] {
        assert_eq!(read(input).as_deref(), Ok(output), "{input}");
    }
}

#[test]
fn what_is_no_interval_is_refused() {
    for input in [
        "",
        "foo",
        "1 foo",
        "day",
        "1 day 2 days",
        "3 4",
        "2:03 1",
        "P",
        "1d2h3m4s5ms6us",
        "1e3 s",
        "1 sec 2.5 secs",
        "1:00 2 hours",
        "infinity",
        "epoch",
        "1.5.5 s",
        "-.5 s",
        "ago",
        "-",
        "P1H",
        "PT1Y",
        "P1Y2",
        "é",
    ] {
        let expected = format!("22007 invalid input syntax for type interval: \"{input}\"");
        assert_eq!(read(input), Err(expected), "{input}");
    }
    for input in [
        "1-12",
        "1:60",
        "2147483648 days",
        "99999999999999 seconds",
        "2562047789 hours",
        "99999999999999999999",
    ] {
        let expected = format!("22015 interval field value out of range: \"{input}\"");
        assert_eq!(read(input), Err(expected), "{input}");
    }
    assert_eq!(read("178956971 years"), Err("22008 interval out of range".to_owned()));
}

fn interval_type(fields: Option<&str>, precision: Option<i32>) -> DataType {
    const ALL: i32 = 0x7fff;
    let bits = |fields| INTERVAL_FIELDS.iter().find(|(_, name)| *name == fields).unwrap().0;
    let typmod = fields.map_or(ALL, bits) << 16 | precision.unwrap_or(0xffff);
    DataType::Other { oid: 1186, typmod }
}

#[test]
fn modifiers_cut_fields_and_round_seconds() {
    let of = |fields: Option<&str>, precision, input| {
        let ty = interval_type(fields, precision);
        let value = text::parse(ty, input, &FormatOptions::default()).unwrap();
        shown(&value, IntervalStyle::Postgres)
    };
    assert_eq!(of(Some("year"), None, "1"), "1 year");
    assert_eq!(of(Some("month"), None, "1"), "1 mon");
    assert_eq!(of(Some("minute to second"), None, "1:30"), "00:01:30");
    assert_eq!(of(Some("day to hour"), None, "1 2"), "1 day 02:00:00");
    assert_eq!(of(Some("hour to minute"), None, "1 day 2:03:04.5678"), "1 day 02:03:00");
    assert_eq!(of(Some("hour"), None, "1.5"), "01:00:00");
    assert_eq!(of(Some("second"), Some(2), "1.234567"), "00:00:01.23");
    assert_eq!(of(None, Some(0), "-1.5 s"), "-00:00:02");
    assert_eq!(of(Some("month"), None, "1 year 2 mon 3 days 04:05:06"), "1 year 2 mons");
}

#[test]
fn intervals_are_written_in_four_styles() {
    use IntervalStyle::{Iso8601, Postgres, PostgresVerbose, SqlStandard};
    for (input, verbose, sql, iso) in [
        (
            "1 year 2 mons -3 days 04:05:06.7",
            "@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs",
            "+1-2 -3 +4:05:06.7",
            "P1Y2M-3DT4H5M6.7S",
        ),
        ("0", "@ 0", "0", "PT0S"),
        ("-1 year", "@ 1 year ago", "-1-0", "P-1Y"),
        ("1 mon", "@ 1 mon", "0-1", "P1M"),
        ("-1.5 s", "@ 1.5 secs ago", "-0:00:01.5", "PT-1.5S"),
        ("1 day -1 s", "@ 1 day -1 sec", "+0-0 +1 -0:00:01", "P1DT-1S"),
        ("-1 mon 2 days", "@ 1 mon -2 days ago", "-0-1 +2 +0:00:00", "P-1M2D"),
        ("1 day", "@ 1 day", "1 0:00:00", "P1D"),
        ("1 day 2:03", "@ 1 day 2 hours 3 mins", "1 2:03:00", "P1DT2H3M"),
    ] {
        let value = text::parse(INTERVAL, input, &options(Postgres)).unwrap();
        assert_eq!(shown(&value, PostgresVerbose), verbose);
        assert_eq!(shown(&value, SqlStandard), sql);
        assert_eq!(shown(&value, Iso8601), iso);
        for style in [Postgres, PostgresVerbose, SqlStandard, Iso8601] {
            let again = text::parse(INTERVAL, &shown(&value, style), &options(style)).unwrap();
            assert_eq!(again, value, "{input} in {style:?}");
        }
    }
    // In SQL's style a sign in front is that of all fields.
    let value = text::parse(INTERVAL, "-1 2:03:04", &options(SqlStandard)).unwrap();
    assert_eq!(shown(&value, Postgres), "-1 days -02:03:04");
}

#[test]
fn no_text_panics() {
    // Pieces that the reader treats in their own way, put together at random.
    const PIECES: &[&str] = &[
        "1",
        "-",
        "+",
        ":",
        ".",
        " ",
        "day",
        "ago",
        "P",
        "T",
        "9223372036854775807",
        "2147483648",
        "Y",
        "M",
        "W",
        "millennia",
        "é",
        "@",
        "0.999999999",
        "-9223372036854775808",
        "s",
    ];
    let mut seed = 1u64;
    for _ in 0..20_000 {
        let mut input = String::new();
        for _ in 0..6 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            input.push_str(PIECES[(seed >> 33) as usize % PIECES.len()]);
        }
        for style in [IntervalStyle::Postgres, IntervalStyle::SqlStandard] {
            let _ = text::parse(INTERVAL, &input, &options(style)).map(|v| shown(&v, style));
        }
    }
}
