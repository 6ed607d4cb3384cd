use proptest::prelude::*;

use super::*;

fn num(text: &str) -> Numeric {
    text.parse().unwrap()
}

#[test]
fn prints_what_it_reads() {
    for text in [
        "0",
        "1",
        "-1",
        "12345",
        "10000",
        "100000000",
        "0.1",
        "0.0001",
        "-0.00001",
        "123.456",
        "99999999999999999999.99999999999999999999",
        "1.00",
        "0.00",
        "NaN",
        "Infinity",
        "-Infinity",
        "1234567890.0987654321",
        "0.000000000000000000001",
    ] {
        assert_eq!(num(text).to_string(), text);
        let owned = num(text);
        assert_eq!(NumericRef::from_bytes(owned.as_ref().bytes()).unwrap().to_string(), text);
    }
}

#[test]
fn reads_other_spellings() {
    for (text, printed) in [
        ("  1.5 ", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        ("-0", "0"),
        ("+7", "7"),
        ("1.5E+2", "150"),
        ("0012.50", "12.50"),
        ("nan", "NaN"),
        ("inf", "Infinity"),
        ("-INFINITY", "-Infinity"),
        ("0e-5", "0.00000"),
        ("12.34e1", "123.4"),
    ] {
        assert_eq!(num(text).to_string(), printed, "{text}");
    }
    for text in ["", " ", "a", "1a", "1e", "1.2.3", "--1", "1e+", ".", "-nan", "1 2", "0x10"] {
        assert!(matches!(text.parse::<Numeric>(), Err(NumericError::Syntax(_))), "{text}");
    }
    assert_eq!("1e200001".parse::<Numeric>(), Err(NumericError::Overflow));
    assert_eq!("1e-20000".parse::<Numeric>(), Err(NumericError::Overflow));
}

#[test]
fn arithmetic_as_postgres() {
    let check = |result: Result<Numeric, NumericError>, expected: &str| {
        assert_eq!(result.unwrap().to_string(), expected);
    };
    let op = |a: &str, b: &str| (num(a), num(b));
    let (a, b) = op("1.10", "2.205");
    check(a.as_ref().add(b.as_ref()), "3.305");
    check(a.as_ref().sub(b.as_ref()), "-1.105");
    check(a.as_ref().mul(b.as_ref()), "2.42550");
    for (a, b, quotient) in [
        ("1", "3", "0.33333333333333333333"),
        ("2", "3", "0.66666666666666666667"),
        ("10", "2", "5.0000000000000000"),
        ("1", "8", "0.12500000000000000000"),
        ("-7", "2", "-3.5000000000000000"),
        ("12345678901234567890", "3", "4115226300411522630"),
        ("1", "30000", "0.000033333333333333333333"),
    ] {
        let (a, b) = op(a, b);
        check(a.as_ref().div(b.as_ref()), quotient);
    }
    check(num("7.5").as_ref().rem(num("2").as_ref()), "1.5");
    check(num("-7").as_ref().rem(num("2").as_ref()), "-1");
    assert_eq!(num("1").as_ref().div(num("0").as_ref()), Err(NumericError::DivisionByZero));
    check(num("1").as_ref().add(num("NaN").as_ref()), "NaN");
    check(num("Infinity").as_ref().mul(num("-2").as_ref()), "-Infinity");
    check(num("Infinity").as_ref().sub(num("Infinity").as_ref()), "NaN");
}

#[test]
fn rounding_and_precision() {
    for (text, scale, rounded) in [
        ("2.5", 0, "3"),
        ("-2.5", 0, "-3"),
        ("2.449", 1, "2.4"),
        ("2.45", 1, "2.5"),
        ("1", 3, "1.000"),
        ("1250", -2, "1300"),
        ("0.00005", 4, "0.0001"),
        ("9999.99995", 4, "10000.0000"),
    ] {
        assert_eq!(num(text).as_ref().round(scale).unwrap().to_string(), rounded, "{text}");
    }
    assert_eq!(num("123.456").as_ref().with_precision(5, 2).unwrap().to_string(), "123.46");
    assert!(num("1234.5").as_ref().with_precision(5, 2).is_err());
    assert!(num("999.995").as_ref().with_precision(5, 2).is_err());
    assert_eq!(num("0.009").as_ref().with_precision(2, 3).unwrap().to_string(), "0.009");
    assert!(num("0.1").as_ref().with_precision(2, 3).is_err());
}

#[test]
fn conversions() {
    assert_eq!(num("9223372036854775807").as_ref().to_i64("bigint"), Ok(i64::MAX));
    assert_eq!(num("-9223372036854775808").as_ref().to_i64("bigint"), Ok(i64::MIN));
    assert!(num("9223372036854775808").as_ref().to_i64("bigint").is_err());
    assert_eq!(num("1.5").as_ref().to_i64("bigint"), Ok(2));
    assert_eq!(Numeric::from(-1_234_567_890_123_i64).to_string(), "-1234567890123");
    assert_eq!(Numeric::from_f64(0.1).to_string(), "0.1");
    assert_eq!(Numeric::from_f64(1e20).to_string(), "100000000000000000000");
    assert_eq!(Numeric::from_f32(0.1).to_string(), "0.1");
    assert_eq!(num("0.1").as_ref().to_f64(), 0.1);
}

#[test]
fn damaged_bytes_are_refused() {
    for bytes in [
        &[][..],
        &[1],
        &[3, 0xc0],
        &[0, 0xc0, 1, 2],
        &[0x40, 0x80, 1],
        &[0x40, 0x80, 0x10, 0x27],
        &[0, 0, 0],
    ] {
        assert!(NumericRef::from_bytes(bytes).is_none(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn agrees_with_integers(a in any::<i64>(), b in any::<i64>()) {
        let (x, y) = (Numeric::from(a), Numeric::from(b));
        let (wide_a, wide_b) = (i128::from(a), i128::from(b));
        prop_assert_eq!(x.as_ref().add(y.as_ref()).unwrap(), Numeric::from(wide_a + wide_b));
        prop_assert_eq!(x.as_ref().mul(y.as_ref()).unwrap(), Numeric::from(wide_a * wide_b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.to_string(), a.to_string());
        prop_assert_eq!(x.as_ref().to_i64("bigint").unwrap(), a);
    }

    #[test]
    fn text_round_trips(text in "-?[1-9][0-9]{0,30}\\.[0-9]{1,30}") {
        prop_assert_eq!(num(&text).to_string(), text);
    }

    #[test]
    fn any_bytes_are_safe(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        if let Some(number) = NumericRef::from_bytes(&bytes) {
            let _ = number.cmp(&num("1").as_ref());
            let mut key = Vec::new();
            encode_key(number, &mut key);
        }
    }
}

/// Numbers of few and of many digits, around the borders of what is computed as integers.
fn number() -> impl Strategy<Value = Numeric> {
    let digits = proptest::collection::vec(0u8..10, 1..45);
    (digits, 0usize..40, any::<bool>(), 0usize..20).prop_map(|(digits, scale, negative, zeros)| {
        let mut text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        text.push_str(&"0".repeat(zeros));
        if scale >= text.len() {
            text.insert_str(0, &"0".repeat(scale + 1 - text.len()));
        }
        text.insert(text.len() - scale, '.');
        let sign = if negative { "-" } else { "" };
        num(&format!("{sign}{}", text.trim_end_matches('.')))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn small_numbers_are_computed_as_large_ones(a in number(), b in number(), c in number()) {
        let (x, y) = (a.as_ref(), b.as_ref());
        prop_assert_eq!(x.add(y).unwrap().to_string(), x.add_any(y).unwrap().to_string());
        prop_assert_eq!(x.sub(y).unwrap().to_string(), x.add_any(y.neg().as_ref()).unwrap().to_string());
        prop_assert_eq!(x.mul(y).unwrap().to_string(), x.mul_any(y).unwrap().to_string());
        if y.signum() != 0 {
            prop_assert_eq!(x.div(y).unwrap().to_string(), x.div_any(y).unwrap().to_string());
        }
        let mut sum = NumericSum::default();
        prop_assert_eq!(sum.int(), Some(0));
        let mut wanted = num("0");
        for number in [x, y, c.as_ref(), y.neg().as_ref()] {
            sum.add(number).unwrap();
            wanted = wanted.as_ref().add_any(number).unwrap();
            prop_assert_eq!(sum.total().unwrap().to_string(), wanted.to_string());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn small_numbers_are_rounded_as_large_ones(
        a in number(), b in number(), scale in -12i16..12, precision in 1u16..30,
    ) {
        let (x, y) = (a.as_ref(), b.as_ref());
        let rounded = x.round_any(scale).unwrap();
        prop_assert_eq!(x.round(scale).unwrap().to_string(), rounded.to_string());
        let Parts::Finite(decimal) = x.parts() else { panic!("a number without a value") };
        let cut = Numeric::from_decimal(decimal.clone().truncated(scale)).unwrap();
        prop_assert_eq!(x.truncate(scale).unwrap().to_string(), cut.to_string());
        if y.signum() != 0 {
            prop_assert_eq!(x.rem(y).unwrap().to_string(), x.rem_any(y).unwrap().to_string());
        }
        prop_assert_eq!(x.to_i64("bigint"), x.to_i64_any("bigint"));
        prop_assert_eq!(x.to_f64().to_bits(), x.to_f64_any().to_bits());
        let limit = num(&format!("1e{}", i32::from(precision) - i32::from(scale)));
        let fits = rounded.as_ref().abs() < limit;
        let stored = x.with_precision(precision, scale);
        let wanted = fits.then(|| rounded.to_string());
        prop_assert_eq!(stored.map(|number| number.to_string()).ok(), wanted);
        let negative = Decimal { negative: !decimal.negative, ..decimal };
        prop_assert_eq!(x.neg().to_string(), Numeric::from_decimal(negative).unwrap().to_string());
        // The bytes of a number are the same however it was made.
        let sum = x.add(y).unwrap();
        let read = num(&sum.to_string());
        prop_assert_eq!(sum.as_ref().bytes(), read.as_ref().bytes());
    }

    #[test]
    fn short_texts_are_read_as_long_ones(text in "[0-9]{0,9}\\.?[0-9]{0,9}", negative: bool) {
        let text = if negative { format!("-{text}") } else { text };
        // An exponent takes the long way.
        match (text.parse::<Numeric>(), format!("{text}e0").parse::<Numeric>()) {
            (Ok(short), Ok(long)) => prop_assert_eq!(short.as_ref().bytes(), long.as_ref().bytes()),
            (short, long) => prop_assert!(short.is_err() && long.is_err()),
        }
    }
}

#[test]
fn signs_of_every_form() {
    let long = format!("1e-{}", 300);
    let shown = format!("1.{}", "0".repeat(80));
    for text in ["0", "0.00", "1", "2.5", "1e400", &long, &shown, "NaN", "Infinity"] {
        let number = num(text);
        let negative =
            if number.is_zero_or_nan() { number.clone() } else { num(&format!("-{text}")) };
        assert_eq!(number.as_ref().neg().as_ref().bytes(), negative.as_ref().bytes(), "{text}");
        assert_eq!(negative.as_ref().neg().as_ref().bytes(), number.as_ref().bytes(), "{text}");
        assert_eq!(
            negative.as_ref().abs().as_ref().bytes(),
            number.as_ref().abs().as_ref().bytes()
        );
        assert_eq!(
            negative.as_ref().signum(),
            if number.is_zero_or_nan() {
                number.as_ref().signum()
            } else {
                -number.as_ref().signum()
            }
        );
        assert_eq!(number.as_ref().is_nan(), text == "NaN");
    }
}

#[test]
fn floats_become_the_number_that_their_text_is() {
    for float in [
        0.0,
        -0.0,
        1.0,
        -1.5,
        100.0,
        1e15,
        123_456_789.125,
        1e-7,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        0.1 + 0.2,
    ] {
        let text = format!("{float:.14e}");
        let (digits, exponent) = text.split_once('e').unwrap();
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        let read = num(&format!("{digits}e{exponent}"));
        assert_eq!(Numeric::from_f64(float).as_ref().bytes(), read.as_ref().bytes(), "{float}");
    }
}

impl Numeric {
    fn is_zero_or_nan(&self) -> bool {
        self.as_ref().is_nan() || self.as_ref().signum() == 0
    }
}

#[test]
fn integers_of_a_scale_are_numbers_of_that_scale() {
    for (text, scale, value) in [
        ("0.00", 2, 0),
        ("-1.5", 1, -15),
        ("1234567.89", 2, 123_456_789),
        (
            "99999999999999999999999999999999999.99",
            2,
            9_999_999_999_999_999_999_999_999_999_999_999_999,
        ),
        ("9999999999999999999999999999.9999999999", 10, 10i128.pow(38) - 1),
        ("-0.0000000001", 10, -1),
        ("0.000000000000000000000001", 24, 1),
        ("120000", 0, 120_000),
    ] {
        let number: Numeric = text.parse().unwrap();
        assert_eq!(number.as_ref().unscaled(scale), Some(value), "{text}");
        assert_eq!(Numeric::from_unscaled(value, scale), Some(number.clone()), "{text}");
        assert_eq!(number.as_ref().unscaled(scale + 1), None, "{text} is of scale {scale}");
    }
    let shown = |text: &str, scale| {
        let number: Numeric = text.parse().unwrap();
        number.as_ref().with_scale(scale).map(|number| number.as_ref().to_string())
    };
    assert_eq!(shown("0.0000", 0).as_deref(), Some("0"));
    assert_eq!(shown("1.2000", 1).as_deref(), Some("1.2"));
    assert_eq!(shown("-12.5", 3).as_deref(), Some("-12.500"));
    assert_eq!(shown("1.25", 1), None);
    let wide: Numeric = "1e40".parse().unwrap();
    assert_eq!(wide.as_ref().unscaled(0), None);
    assert_eq!(Numeric::nan().as_ref().unscaled(0), None);
}
