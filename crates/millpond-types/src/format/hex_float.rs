//! Hexadecimal numbers as C's `strtod` reads them: `0x1.8p-3`.

/// What a type of floats can hold.
#[derive(Clone, Copy)]
pub(super) struct Precision {
    /// Binary digits.
    digits: i64,
    /// The exponent of the least number above 0.
    least: i64,
    /// The exponent that is too large.
    limit: i64,
}

pub(super) const DOUBLE: Precision = Precision { digits: 53, least: -1074, limit: 1024 };
pub(super) const SINGLE: Precision = Precision { digits: 24, least: -149, limit: 128 };

/// A number, `digits * 2^exponent`.
struct Scaled {
    digits: u64,
    exponent: i64,
    /// Whether there are more digits that are not 0.
    inexact: bool,
}

/// Reads a number. `None` if the text is none, `Some(None)` if it is out of the type's range.
pub(super) fn parse(text: &str, precision: Precision) -> Option<Option<f64>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let body = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"))?;
    let scaled = scaled(body)?;
    let rounded = rounded(&scaled, precision);
    Some(rounded.map(|value| if text.starts_with('-') { -value } else { value }))
}

fn scaled(body: &str) -> Option<Scaled> {
    let (mantissa, exponent) = match body.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, power(exponent)?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = Scaled { digits: 0, exponent, inexact: false };
    for (digits, is_fraction) in [(whole, false), (fraction, true)] {
        for c in digits.chars() {
            let digit = u64::from(c.to_digit(16)?);
            if number.digits >> 60 == 0 {
                number.digits = number.digits << 4 | digit;
                number.exponent -= if is_fraction { 4 } else { 0 };
            } else {
                number.inexact |= digit != 0;
                number.exponent += if is_fraction { 0 } else { 4 };
            }
        }
    }
    Some(number)
}

/// The exponent. One that is too large for any number is bounded.
fn power(text: &str) -> Option<i64> {
    const MOST: i64 = 1 << 40;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i64>().unwrap_or(MOST).min(MOST);
    Some(if text.starts_with('-') { -value } else { value })
}

/// The nearest number of a type, the even one of two; `None` if it is too large, or becomes 0.
fn rounded(number: &Scaled, precision: Precision) -> Option<f64> {
    let Scaled { digits, exponent, inexact } = *number;
    if digits == 0 {
        return Some(0.0);
    }
    let length = i64::from(u64::BITS - digits.leading_zeros());
    // The exponent of the last digit that is kept.
    let last = (exponent + length - precision.digits).max(precision.least);
    let dropped = last - exponent;
    let wide = u128::from(digits);
    let kept = match dropped {
        // There is room below for all digits.
        ..=0 => wide << dropped.unsigned_abs().min(63),
        1..=64 => {
            let (kept, rest) = (wide >> dropped, wide & ((1 << dropped) - 1));
            let half = 1 << (dropped - 1);
            let up = rest > half || rest == half && (inexact || kept & 1 == 1);
            kept + u128::from(up)
        }
        _ => 0,
    };
    let length = i64::from(u128::BITS - kept.leading_zeros());
    if kept == 0 || last + length > precision.limit {
        return None;
    }
    // At most 53 digits are kept, or 1 with 53 zeros, so nothing is lost.
    Some(kept as f64 * power_of_2(last))
}

/// A power of 2 that double precision has.
fn power_of_2(exponent: i64) -> f64 {
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent + 1074).max(0)),
        _ => f64::from_bits(u64::try_from(exponent + 1023).unwrap_or(0).min(2046) << 52),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_of_types() {
        let greatest = f64::from(f32::MAX);
        for (text, double, single) in [
            ("0x1.fffffffffffff7p1023", Some(Some(f64::MAX)), Some(None)),
            ("0x1.fffffffffffff8p1023", Some(None), Some(None)),
            ("0x1p-1075", Some(None), Some(None)),
            ("0x1.8p-1075", Some(Some(5e-324)), Some(None)),
            ("0x1.fffffep127", Some(Some(greatest)), Some(Some(greatest))),
            ("-0x0p99999999999999999999", Some(Some(0.0)), Some(Some(0.0))),
            ("0x1p99999999999999999999", Some(None), Some(None)),
            ("0x.8", Some(Some(0.5)), Some(Some(0.5))),
            ("0x", None, None),
            ("0x.", None, None),
            ("0x1p", None, None),
            ("1p3", None, None),
        ] {
            assert_eq!(parse(text, DOUBLE), double, "{text}");
            assert_eq!(parse(text, SINGLE), single, "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_numbers_are_read(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let (exponent, digits) = ((bits >> 52 & 2047) as i64, bits & ((1 << 52) - 1));
            let lead = i64::from(exponent > 0);
            let sign = if value.is_sign_negative() { "-" } else { "" };
            let text = format!("{sign}0x{lead}.{digits:013x}p{}", exponent.max(1) - 1023);
            prop_assert_eq!(parse(&text, DOUBLE), Some(Some(value)));
        }

        #[test]
        fn singles_are_rounded_once(digits in 1u64..1 << 53, exponent in -230i32..100) {
            let text = format!("0x{digits:x}p{exponent}");
            let exact = digits as f64 * 2f64.powi(exponent);
            let expected = Some(exact as f32).filter(|value| value.is_finite() && *value != 0.0);
            prop_assert_eq!(parse(&text, SINGLE), Some(expected.map(f64::from)));
        }

        #[test]
        fn no_text_panics(text in "[-+]?0[xX][0-9a-fp.+-]{0,30}") {
            let _ = parse(&text, DOUBLE);
            let _ = parse(&text, SINGLE);
        }
    }
}
