//! Values: as clients write them, and as rows, index keys and numbers are stored.

use millpond::types::{FormatOptions, Zone, binary, text};
use millpond::{DataType, Datum, NumericRef, Value};
use millpond_engine::types::key::{KeyLayout, KeyOrder};
use millpond_engine::types::numeric::{Numeric, Parts};
use millpond_engine::types::tuple::TupleLayout;

use crate::bytes::Bytes;

pub const TEXT_TOKENS: &[&[u8]] = &[
    b"infinity",
    b"-infinity",
    b"nan",
    b"epoch",
    b"now",
    b"today",
    b"tomorrow",
    b"allballs",
    b" BC",
    b" AD",
    b" am",
    b" pm",
    b"T",
    b"Z",
    b"+05:30",
    b"-15:59:59",
    b"Europe/Berlin",
    b"Etc/GMT+5",
    b"294276-12-31",
    b"4714-11-24 BC",
    b"5874897-12-31",
    b"24:00:00",
    b"23:59:60",
    b".999999999",
    b"Jan ",
    b"September",
    b"monday",
    b"J2451187",
    b"e+400",
    b"e-16383",
    b"1e131071",
    b"\\x",
    b"\\\\",
    b"\\377",
    b"true",
    b"off",
    b"9223372036854775808",
    b"-2147483648",
    b"1e-400",
];

const TYPES: &[DataType] = &[
    DataType::Bool,
    DataType::Int2,
    DataType::Int4,
    DataType::Int8,
    DataType::Float4,
    DataType::Float8,
    DataType::Numeric { precision_scale: None },
    DataType::Numeric { precision_scale: Some((10, 2)) },
    DataType::Numeric { precision_scale: Some((5, -3)) },
    DataType::Numeric { precision_scale: Some((1000, 1000)) },
    DataType::Text,
    DataType::Name,
    DataType::Varchar(None),
    DataType::Varchar(Some(5)),
    DataType::Char(4),
    DataType::Bytea,
    DataType::Date,
    DataType::Timestamp(None),
    DataType::Timestamptz(None),
];

fn options(input: &mut Bytes<'_>) -> FormatOptions {
    const ZONES: &[&str] =
        &["UTC", "Europe/Berlin", "America/St_Johns", "-12", "<+15>-15", "Asia/Kathmandu"];
    let choice = input.byte();
    let zone = Zone::parse(ZONES[usize::from(choice >> 1) % ZONES.len()]);
    FormatOptions {
        zone: zone.map_or(Zone::UTC, |(zone, _)| zone),
        bytea_escape: choice & 1 != 0,
        ..FormatOptions::default()
    }
}

fn same(a: &Value, b: &Value) -> bool {
    // Numbers that are equal may still be printed differently.
    let shown = |value: &Value| match value {
        Value::Numeric(number) => number.as_ref().to_string(),
        _ => String::new(),
    };
    a.sql_cmp(b).is_some_and(|order| order.is_eq()) && shown(a) == shown(b)
}

/// Writes and reads an accepted value in both formats, stores it, and uses it as a key.
fn is_kept(ty: DataType, value: &Value, options: &FormatOptions) {
    let datum = value.as_datum();
    let mut bytes = Vec::new();
    binary::encode(ty, &datum, &mut bytes);
    match binary::decode(ty, &bytes) {
        Ok(again) => assert!(same(&again, value), "{value:?} of {ty} in binary form is {again:?}"),
        Err(error) => panic!("{value:?} of {ty} in binary form: {error}"),
    }
    let Some(written) = text::to_string(ty, &datum, options) else { return };
    match text::parse(ty, &written, options) {
        Ok(again) => assert!(
            same(&again, value),
            "{value:?} of {ty} is written {written:?}, which is {again:?}"
        ),
        // An error is allowed in the last hours of the range of time, in a zone with an offset.
        Err(error) => assert!(
            is_at_an_end_of_time(value),
            "{value:?} of {ty} is written {written:?}: {error}"
        ),
    }
    is_stored(ty, &datum);
}

fn is_at_an_end_of_time(value: &Value) -> bool {
    const FIRST_US: i64 = -211_813_488_000_000_000;
    const LAST_US: i64 = 9_223_371_331_200_000_000;
    const WEEK_US: i64 = 7 * 86_400_000_000;
    match *value {
        Value::Timestamptz(us) => !(FIRST_US + WEEK_US..=LAST_US - WEEK_US).contains(&us),
        _ => false,
    }
}

fn is_stored(ty: DataType, datum: &Datum<'_>) {
    let layout = TupleLayout::new([DataType::Int4, ty, DataType::Bool]);
    let mut row = Vec::new();
    if layout.encode(&[Datum::Int4(7), *datum, Datum::Bool(true)], &mut row).is_ok() {
        assert!(layout.verify(&row).is_ok(), "a row that was written is sound");
        match layout.column(&row, 1) {
            Ok(again) => assert!(again.sql_cmp(datum).is_some_and(|order| order.is_eq())),
            Err(error) => panic!("a row that was written: {error}"),
        }
    }
    for order in [KeyOrder::ASC, KeyOrder::DESC] {
        let mut key = Vec::new();
        let encoded = KeyLayout::new([(ty, order)]).encode(&[*datum], &mut key);
        assert!(encoded.is_ok(), "every value can be a key: {encoded:?}");
    }
}

/// A value as text.
pub fn text_input(input: &[u8]) {
    let mut input = Bytes(input);
    let (ty, options) = (input.choose(TYPES), options(&mut input));
    let Ok(given) = std::str::from_utf8(input.0) else { return };
    match text::parse(ty, given, &options) {
        Ok(value) => is_kept(ty, &value, &options),
        Err(error) => assert_ne!(error.sqlstate.as_str(), "XX000", "{error}"),
    }
    let _ = Zone::parse(given);
}

pub fn text_seeds() -> Vec<Vec<u8>> {
    const TEXTS: &[&str] = &[
        "true",
        " F ",
        "off",
        "1",
        "-32768",
        "+2147483647",
        " 9223372036854775807 ",
        "-1.5e-10",
        "NaN",
        "-Infinity",
        "1e131071",
        "0.00001234",
        "-123456789.987654321",
        "12345.678e-3",
        "text",
        "caf\u{e9}  ",
        "\\x00ff7f",
        "a\\\\b\\377",
        "1999-01-08",
        "January 8, 1999",
        "99-Jan-08",
        "4714-11-24 BC",
        "5874897-12-31",
        "infinity",
        "20240131",
        "1/8/1999",
        "2004-10-19 10:23:54.123456",
        "2004-10-19T10:23:54+02",
        "294276-12-31 23:59:59.999999",
        "20240131T235959.5-0330",
        "Jan 8 04:05 pm 1999 Europe/Berlin",
        "2026-03-29 02:30 Europe/Berlin",
        "epoch",
        "yesterday 04:05:06",
        "tomorrow allballs",
        "44-03-15 BC 12:00 am Etc/GMT+5",
        "mon jan 8 24:00:00 1999",
    ];
    let mut seeds = Vec::new();
    for (index, text) in TEXTS.iter().enumerate() {
        for ty in 0..TYPES.len() as u8 {
            let mut seed = vec![ty, index as u8];
            seed.extend_from_slice(text.as_bytes());
            seeds.push(seed);
        }
    }
    seeds
}

/// A value in binary form.
pub fn binary_input(input: &[u8]) {
    let mut input = Bytes(input);
    let (ty, options) = (input.choose(TYPES), options(&mut input));
    match binary::decode(ty, input.0) {
        Ok(value) => is_kept(ty, &value, &options),
        Err(error) => assert_ne!(error.sqlstate.as_str(), "XX000", "{error}"),
    }
}

pub fn binary_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for seed in text_seeds() {
        let ty = TYPES[usize::from(seed[0])];
        let options = FormatOptions::default();
        let text = String::from_utf8_lossy(&seed[2..]);
        if let Ok(value) = text::parse(ty, &text, &options) {
            let mut bytes = vec![seed[0], seed[1]];
            binary::encode(ty, &value.as_datum(), &mut bytes);
            if bytes.len() <= 512 {
                seeds.push(bytes);
            }
        }
    }
    seeds
}

/// A stored row of some types, and a stored number.
pub fn tuple(input: &[u8]) {
    let mut input = Bytes(input);
    let count = usize::from(input.byte() % 20);
    let types: Vec<DataType> = (0..count).map(|_| input.choose(TYPES)).collect();
    let layout = TupleLayout::new(types.iter().copied());
    let row = input.0;
    let mut columns = Vec::new();
    let all = layout.decode(row, |column, datum| {
        assert_eq!(column, columns.len(), "columns come in order");
        columns.push(datum);
    });
    for (column, datum) in columns.iter().enumerate() {
        let alone = layout.column(row, column);
        assert!(alone.is_ok_and(|alone| agree(&alone, datum)), "column {column} of {row:?}");
    }
    for column in columns.len()..count {
        let _ = layout.column(row, column);
    }
    if layout.verify(row).is_ok() {
        assert!(all.is_ok() && columns.len() == count, "a sound row can be read");
        let mut again = Vec::new();
        if layout.encode(&columns, &mut again).is_ok() {
            assert!(layout.verify(&again).is_ok(), "a row is written as it was read");
        }
        columns.iter().zip(&types).for_each(|(datum, ty)| is_shown(*ty, datum));
    }
    if let Some(number) = NumericRef::from_bytes(row) {
        is_computed(number);
    }
}

fn agree(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    a.is_null() && b.is_null() || a.sql_cmp(b).is_some_and(|order| order.is_eq())
}

/// Every stored value can be sent to a client.
fn is_shown(ty: DataType, datum: &Datum<'_>) {
    let mut out = Vec::new();
    text::encode(ty, datum, &FormatOptions::default(), &mut out);
    binary::encode(ty, datum, &mut out);
    if !datum.is_null() {
        let _ = KeyLayout::new([(ty, KeyOrder::ASC)]).encode(&[*datum], &mut out);
    }
}

fn is_computed(number: NumericRef<'_>) {
    let shown = number.to_string();
    // A number has only one form if this program stored it. A damaged one may have another form.
    let again: Result<Numeric, _> = shown.parse();
    if let Ok(again) = &again {
        let _ = again.as_ref().cmp(&number);
    }
    let _ = (number.neg(), number.abs(), number.signum());
    // Arithmetic with a hundred thousand digits takes milliseconds, so only some inputs do it.
    let long = matches!(number.parts(), Parts::Finite(decimal) if decimal.weight.abs() > 250);
    if (long || shown.len() > 1000) && number.bytes()[0] != 7 {
        return;
    }
    let _ = (number.to_f64(), number.to_i64("bigint"));
    let _ = (number.round(2), number.round(-2), number.with_precision(10, 2));
    let other = Numeric::from(3i64);
    let _ = (number.add(other.as_ref()), number.sub(other.as_ref()), number.mul(other.as_ref()));
    let _ = (number.div(other.as_ref()), number.rem(other.as_ref()), other.as_ref().div(number));
}

pub fn tuple_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for chosen in [&[2, 10, 3][..], &[0, 1, 2, 3, 4, 5], &[6, 7, 10, 12, 13, 14, 15, 16, 17]] {
        for nulls in [0usize, 2] {
            let types: Vec<DataType> = chosen.iter().map(|&ty| TYPES[usize::from(ty)]).collect();
            let values: Vec<Value> = types
                .iter()
                .enumerate()
                .map(|(at, ty)| sample(*ty, nulls != 0 && at % nulls == 0))
                .collect();
            let row: Vec<Datum<'_>> = values.iter().map(Value::as_datum).collect();
            let mut seed = vec![chosen.len() as u8];
            seed.extend_from_slice(chosen);
            if TupleLayout::new(types).encode(&row, &mut seed).is_ok() {
                seeds.push(seed);
            }
        }
    }
    for number in [
        "0",
        "-1.5",
        "12345678.9",
        "1e-20",
        "1e131071",
        "0.0000000000000000000000000000000000000000000000000000000000000000000000001",
    ] {
        if let Ok(number) = number.parse::<Numeric>() {
            let mut seed = vec![0];
            seed.extend_from_slice(number.as_ref().bytes());
            seeds.push(seed);
        }
    }
    seeds
}

fn sample(ty: DataType, null: bool) -> Value {
    let text = match ty {
        _ if null => return Value::Null,
        DataType::Bool => "true",
        DataType::Text
        | DataType::Varchar(_)
        | DataType::Char(_)
        | DataType::Name
        | DataType::Bytea => "abc",
        DataType::Date | DataType::Timestamp(_) | DataType::Timestamptz(_) => "1999-01-08",
        _ => "12",
    };
    text::parse(ty, text, &FormatOptions::default()).unwrap_or_default()
}
