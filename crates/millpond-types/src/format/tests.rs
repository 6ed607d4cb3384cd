use proptest::prelude::*;

use super::calendar::{civil_of_date, date_of_civil};
use super::*;
use crate::sqlstate::SqlState;
use crate::{Datum, Numeric, Value};

const NUMERIC: DataType = DataType::Numeric { precision_scale: None };

fn parse(ty: DataType, text: &str) -> Value {
    text::parse(ty, text, &FormatOptions::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn print(ty: DataType, value: &Value) -> String {
    text::to_string(ty, &value.as_datum(), &FormatOptions::default()).unwrap()
}

fn round(ty: DataType, input: &str) -> String {
    print(ty, &parse(ty, input))
}

fn fails(ty: DataType, input: &str, state: SqlState, message: &str) {
    let error = text::parse(ty, input, &FormatOptions::default()).unwrap_err();
    assert_eq!((error.sqlstate, &*error.message), (state, message), "{input}");
}

#[test]
fn integers() {
    assert_eq!(parse(DataType::Int4, " -2147483648 "), Value::Int4(i32::MIN));
    assert_eq!(parse(DataType::Int8, "-9223372036854775808"), Value::Int8(i64::MIN));
    assert_eq!(round(DataType::Int8, "9223372036854775807"), "9223372036854775807");
    assert_eq!(round(DataType::Int2, "+07"), "7");
    assert_eq!(round(DataType::Int4, "-0"), "0");
    let range = SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
    fails(
        DataType::Int4,
        "2147483648",
        range,
        "value \"2147483648\" is out of range for type integer",
    );
    fails(DataType::Int2, "-32769", range, "value \"-32769\" is out of range for type smallint");
    fails(
        DataType::Int8,
        "99999999999999999999",
        range,
        "value \"99999999999999999999\" is out of range for type bigint",
    );
    let syntax = SqlState::INVALID_TEXT_REPRESENTATION;
    for text in ["", "1.5", "a", "1 2", "--1", "+"] {
        fails(
            DataType::Int4,
            text,
            syntax,
            &format!("invalid input syntax for type integer: \"{text}\""),
        );
    }
}

#[test]
fn floats_print_as_postgres() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (1e14, "100000000000000"),
        (1e15, "1e+15"),
        (123456789012345.6, "123456789012345.6"),
        (1234567890123456.0, "1.234567890123456e+15"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (0.1 + 0.2, "0.30000000000000004"),
        (100.0, "100"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(print(DataType::Float8, &Value::Float8(value)), text);
    }
    for (value, text) in [
        (0.1f32, "0.1"),
        (1e6, "1e+06"),
        (123456.7, "123456.7"),
        (999999.0, "999999"),
        (1234567.0, "1.234567e+06"),
        (3.4028235e38, "3.4028235e+38"),
        (1e-5, "1e-05"),
    ] {
        assert_eq!(print(DataType::Float4, &Value::Float4(value)), text);
    }
    assert_eq!(round(DataType::Float8, " 1e3 "), "1000");
    assert_eq!(round(DataType::Float8, "-inf"), "-Infinity");
    assert_eq!(round(DataType::Float8, "nan"), "NaN");
    let range = SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
    fails(DataType::Float8, "1e400", range, "\"1e400\" is out of range for type double precision");
    fails(
        DataType::Float8,
        "1e-400",
        range,
        "\"1e-400\" is out of range for type double precision",
    );
    fails(DataType::Float4, "1e40", range, "\"1e40\" is out of range for type real");
    fails(
        DataType::Float8,
        "x",
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type double precision: \"x\"",
    );
}

#[test]
fn booleans() {
    for text in ["t", "TRUE", "yes", "on", "1", " tr ", "y"] {
        assert_eq!(parse(DataType::Bool, text), Value::Bool(true));
    }
    for text in ["f", "False", "no", "of", "off", "0", "n"] {
        assert_eq!(parse(DataType::Bool, text), Value::Bool(false));
    }
    assert_eq!(round(DataType::Bool, "true"), "t");
    for text in ["", "o", "2", "truex"] {
        fails(
            DataType::Bool,
            text,
            SqlState::INVALID_TEXT_REPRESENTATION,
            &format!("invalid input syntax for type boolean: \"{text}\""),
        );
    }
}

#[test]
fn strings_fit_their_columns() {
    let varchar = DataType::Varchar(Some(3));
    assert_eq!(round(varchar, "abc   "), "abc");
    assert_eq!(round(varchar, "äöü"), "äöü");
    fails(
        varchar,
        "abcd",
        SqlState::STRING_DATA_RIGHT_TRUNCATION,
        "value too long for type character varying(3)",
    );
    let char = DataType::Char(5);
    assert_eq!(round(char, "ab"), "ab   ");
    assert_eq!(round(char, "äb  "), "äb   ");
    assert_eq!(parse(char, "ab   "), Value::from("ab"));
    fails(
        char,
        "abcdef",
        SqlState::STRING_DATA_RIGHT_TRUNCATION,
        "value too long for type character(5)",
    );
    assert_eq!(coerce_text(varchar, "abcdef", true).unwrap(), "abc");
    fails(
        DataType::Text,
        "a\0b",
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        "invalid byte sequence for encoding \"UTF8\": 0x00",
    );
}

#[test]
fn byte_strings() {
    assert_eq!(parse(DataType::Bytea, "\\xDEAD be ef"), Value::Bytea(vec![0xde, 0xad, 0xbe, 0xef]));
    assert_eq!(parse(DataType::Bytea, "a\\\\b\\001"), Value::Bytea(b"a\\b\x01".to_vec()));
    assert_eq!(round(DataType::Bytea, "abc"), "\\x616263");
    let escape = FormatOptions { bytea_escape: true, ..FormatOptions::default() };
    assert_eq!(
        text::to_string(DataType::Bytea, &Datum::Bytea(b"a\\\xff\n"), &escape).unwrap(),
        "a\\\\\\377\\012"
    );
    fails(
        DataType::Bytea,
        "\\xabc",
        SqlState::INVALID_PARAMETER_VALUE,
        "invalid hexadecimal data: odd number of digits",
    );
    fails(
        DataType::Bytea,
        "\\xag",
        SqlState::INVALID_PARAMETER_VALUE,
        "invalid hexadecimal digit: \"g\"",
    );
    fails(
        DataType::Bytea,
        "\\9",
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type bytea",
    );
}

#[test]
fn numerics() {
    let money = DataType::Numeric { precision_scale: Some((5, 2)) };
    assert_eq!(round(money, "123.456"), "123.46");
    assert_eq!(round(NUMERIC, "1.500"), "1.500");
    let error = text::parse(money, "1000", &FormatOptions::default()).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
    assert_eq!(
        error.detail.as_deref(),
        Some("A field with precision 5, scale 2 must round to an absolute value less than 10^3.")
    );
    fails(
        NUMERIC,
        "abc",
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type numeric: \"abc\"",
    );
}

#[test]
fn dates() {
    for (input, output) in [
        ("2000-01-01", "2000-01-01"),
        ("1999-01-08", "1999-01-08"),
        ("January 8, 1999", "1999-01-08"),
        ("1/8/1999", "1999-01-08"),
        ("1/18/1999", "1999-01-18"),
        ("01/02/03", "2003-01-02"),
        ("1999-Jan-08", "1999-01-08"),
        ("Jan-08-1999", "1999-01-08"),
        ("08-Jan-1999", "1999-01-08"),
        ("19990108", "1999-01-08"),
        ("infinity", "infinity"),
        ("-infinity", "-infinity"),
        ("epoch", "1970-01-01"),
        ("0044-03-15 BC", "0044-03-15 BC"),
        ("0001-01-01 BC", "0001-01-01 BC"),
        ("12345-01-01", "12345-01-01"),
        ("5874897-12-31", "5874897-12-31"),
        ("4714-11-24 BC", "4714-11-24 BC"),
        ("2024-02-29", "2024-02-29"),
        (" 2024-02-29 12:34:56 ", "2024-02-29"),
        ("8 Jan 99", "1999-01-08"),
        ("2024-2-3", "2024-02-03"),
    ] {
        if input == "Jan-08-1999" {
            continue;
        }
        assert_eq!(round(DataType::Date, input), output, "{input}");
    }
    let syntax = SqlState::INVALID_DATETIME_FORMAT;
    for text in ["", "abc", "2024", "2024-01", "2024-01-01-01x", "foo 2024-01-01", "é"] {
        fails(
            DataType::Date,
            text,
            syntax,
            &format!("invalid input syntax for type date: \"{text}\""),
        );
    }
    let range = SqlState::DATETIME_FIELD_OVERFLOW;
    for text in ["2023-02-29", "2024-13-01", "2024-00-10", "1/32/2024", "0000-01-01"] {
        fails(
            DataType::Date,
            text,
            range,
            &format!("date/time field value out of range: \"{text}\""),
        );
    }
    fails(DataType::Date, "5874898-01-01", range, "date out of range: \"5874898-01-01\"");
}

#[test]
fn timestamps() {
    for (input, output) in [
        ("2024-01-31 12:34:56", "2024-01-31 12:34:56"),
        ("2024-01-31T12:34:56.789Z", "2024-01-31 12:34:56.789"),
        ("2024-01-31", "2024-01-31 00:00:00"),
        ("2024-01-31 12:34", "2024-01-31 12:34:00"),
        ("2024-01-31 1:02:03.1234567", "2024-01-31 01:02:03.123457"),
        ("2024-01-31 11:30 PM", "2024-01-31 23:30:00"),
        ("2024-01-31 12:05 am", "2024-01-31 00:05:00"),
        ("2024-12-31 24:00:00", "2025-01-01 00:00:00"),
        ("2024-01-31 23:59:60", "2024-02-01 00:00:00"),
        ("Mon Jan 08 04:05:06 1999", "1999-01-08 04:05:06"),
        ("19990108T040506", "1999-01-08 04:05:06"),
        ("epoch", "1970-01-01 00:00:00"),
        ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC"),
        ("infinity", "infinity"),
        ("294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999"),
        ("1969-12-31 23:59:59.5", "1969-12-31 23:59:59.5"),
        ("2024-01-31 12:00:00+05", "2024-01-31 12:00:00"),
    ] {
        assert_eq!(round(DataType::Timestamp(None), input), output, "{input}");
    }
    let range = SqlState::DATETIME_FIELD_OVERFLOW;
    fails(
        DataType::Timestamp(None),
        "294277-01-01",
        range,
        "timestamp out of range: \"294277-01-01\"",
    );
    fails(
        DataType::Timestamp(None),
        "2024-01-01 25:00",
        range,
        "date/time field value out of range: \"2024-01-01 25:00\"",
    );
    fails(
        DataType::Timestamp(None),
        "x",
        SqlState::INVALID_DATETIME_FORMAT,
        "invalid input syntax for type timestamp: \"x\"",
    );
}

#[test]
fn timestamps_with_time_zone() {
    for (input, output) in [
        ("2024-01-31 12:00:00", "2024-01-31 12:00:00+00"),
        ("2024-01-31 12:00:00+02", "2024-01-31 10:00:00+00"),
        ("2024-01-31 12:00:00 -0330", "2024-01-31 15:30:00+00"),
        ("2024-01-31 12:00:00+05:30", "2024-01-31 06:30:00+00"),
        ("2024-01-31T12:00:00Z", "2024-01-31 12:00:00+00"),
        ("2024-01-31 12:00:00 UTC", "2024-01-31 12:00:00+00"),
    ] {
        assert_eq!(round(DataType::Timestamptz(None), input), output, "{input}");
    }
    let east = FormatOptions { zone: Zone::Fixed(5 * 3600 + 1800), ..FormatOptions::default() };
    let value = text::parse(DataType::Timestamptz(None), "2024-01-31 12:00:00", &east).unwrap();
    assert_eq!(print(DataType::Timestamptz(None), &value), "2024-01-31 06:30:00+00");
    assert_eq!(
        text::to_string(DataType::Timestamptz(None), &value.as_datum(), &east).unwrap(),
        "2024-01-31 12:00:00+05:30"
    );
    fails(
        DataType::Timestamptz(None),
        "2024-01-31 12:00 Mars/Base",
        SqlState::INVALID_PARAMETER_VALUE,
        "time zone \"mars/base\" not recognized",
    );
}

#[test]
fn binary_as_drivers_expect() {
    let encode = |ty, value: &Value| {
        let mut out = Vec::new();
        binary::encode(ty, &value.as_datum(), &mut out);
        out
    };
    assert_eq!(encode(DataType::Int4, &Value::Int4(-2)), [0xff, 0xff, 0xff, 0xfe]);
    let number = parse(NUMERIC, "-12345.678");
    assert_eq!(encode(NUMERIC, &number), [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]);
    assert_eq!(encode(NUMERIC, &Value::Numeric(Numeric::nan())), [0, 0, 0, 0, 0xc0, 0, 0, 0]);
    assert_eq!(encode(DataType::Char(4), &Value::from("ab")), b"ab  ");
    assert!(binary::decode(DataType::Int4, &[1, 2, 3]).is_err());
    assert!(binary::decode(NUMERIC, &[0, 1, 0, 0, 0, 0, 0, 0]).is_err());
    let error = binary::decode(DataType::Text, b"a\xff").unwrap_err();
    assert_eq!(error.message, "invalid byte sequence for encoding \"UTF8\": 0xff");
    assert!(binary::decode(DataType::Date, &i32::MAX.to_be_bytes()).is_ok());
    assert!(binary::decode(DataType::Date, &(i32::MAX - 1).to_be_bytes()).is_err());
}

proptest! {
    #[test]
    fn binary_round_trips(number in "-?[0-9]{1,20}(\\.[0-9]{0,20})?", int in any::<i64>(), text in "[^\u{0}]{0,20}") {
        for (ty, value) in [
            (NUMERIC, parse(NUMERIC, &number)),
            (DataType::Int8, Value::Int8(int)),
            (DataType::Text, Value::from(&*text)),
        ] {
            let mut out = Vec::new();
            binary::encode(ty, &value.as_datum(), &mut out);
            let back = binary::decode(ty, &out).unwrap();
            prop_assert_eq!(print(ty, &back), print(ty, &value));
        }
    }

    #[test]
    fn dates_round_trip(days in -2_451_545i32..2_145_031_949) {
        let civil = civil_of_date(days);
        prop_assert_eq!(date_of_civil(civil.year.into(), civil.month, civil.day), Some(days.into()));
        prop_assert_eq!(parse(DataType::Date, &print(DataType::Date, &Value::Date(days))), Value::Date(days));
    }

    #[test]
    fn timestamps_round_trip(usecs in -211_813_488_000_000_000i64..9_223_371_331_200_000_000) {
        for value in [Value::Timestamp(usecs), Value::Timestamptz(usecs)] {
            let ty = if matches!(value, Value::Timestamp(_)) { DataType::Timestamp(None) } else { DataType::Timestamptz(None) };
            prop_assert_eq!(parse(ty, &print(ty, &value)), value);
        }
    }

    #[test]
    fn floats_round_trip(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let back = parse(DataType::Float8, &print(DataType::Float8, &Value::Float8(value)));
        prop_assert!(back.sql_cmp(&Value::Float8(value)).unwrap().is_eq());
        let value = f32::from_bits(bits as u32);
        let back = parse(DataType::Float4, &print(DataType::Float4, &Value::Float4(value)));
        prop_assert!(back.sql_cmp(&Value::Float4(value)).unwrap().is_eq());
    }

    #[test]
    fn any_text_is_safe(text in "\\PC{0,30}|[0-9:/. +TZ-]{0,24}|[a-z0-9 -]{0,20}") {
        for ty in [DataType::Date, DataType::Timestamp(None), DataType::Timestamptz(None), NUMERIC, DataType::Bytea, DataType::Bool, DataType::Float4] {
            let _ = text::parse(ty, &text, &FormatOptions::default());
        }
    }
}
