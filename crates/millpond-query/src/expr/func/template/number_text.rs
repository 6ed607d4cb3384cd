//! The digits that a template of a number puts in their places.

use millpond_types::NumericRef;

use super::number_pattern::Pattern;
use crate::Numeric;
use crate::error::{Result, SqlError, SqlState};

/// A number's digits.
pub(super) struct Shown {
    /// Digits, perhaps with a point, without the sign (but with it in scientific notation).
    pub(super) digits: String,
    pub(super) negative: bool,
    /// How many places of the template before the point stay empty.
    pub(super) spaces: usize,
}

fn whole(digits: String) -> Shown {
    Shown { digits, negative: false, spaces: 0 }
}

/// Splits off the sign and compares the length with the template's.
fn fitted(text: &str, pattern: &Pattern) -> Shown {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let length = digits.find('.').unwrap_or(digits.len());
    if length > pattern.before {
        return Shown { digits: hashes(pattern.before, pattern.after), negative, spaces: 0 };
    }
    Shown { digits: digits.to_owned(), negative, spaces: pattern.before - length }
}

/// What is shown of a number that does not fit.
fn hashes(before: usize, after: usize) -> String {
    format!("{}.{}", "#".repeat(before), "#".repeat(after))
}

/// The same in scientific notation.
fn scientific_hashes(pattern: &Pattern) -> Shown {
    whole(format!(" {}.{}", "#".repeat(pattern.before), "#".repeat(pattern.after + 4)))
}

fn roman(number: i64) -> Shown {
    const VALUES: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..4000).contains(&number) {
        return whole("#".repeat(15));
    }
    let (mut rest, mut text) = (number, String::new());
    for (value, letters) in VALUES {
        while rest >= value {
            text.push_str(letters);
            rest -= value;
        }
    }
    whole(text)
}

#[cold]
fn out_of_range(ty: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

/// Scientific notation as C writes it: the exponent has a sign and at least two digits.
fn c_exponent(number: f64, after: usize) -> String {
    // A float has no more digits than these.
    let shown = after.min(1100);
    let text = format!("{number:.shown$e}");
    let zeros = "0".repeat(after - shown);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}{zeros}e{sign}{exponent:0>2}")
}

fn with_room_for_sign(text: String) -> Shown {
    whole(if text.starts_with('-') { text } else { format!(" {text}") })
}

fn of_int(text: String, pattern: &Pattern) -> Shown {
    let zeros = match pattern.after {
        0 => String::new(),
        after => format!(".{}", "0".repeat(after)),
    };
    fitted(&format!("{text}{zeros}"), pattern)
}

pub(super) fn of_int4(number: i32, pattern: &mut Pattern) -> Result<Shown> {
    if pattern.roman {
        return Ok(roman(number.into()));
    }
    if pattern.scientific {
        return Ok(with_room_for_sign(c_exponent(f64::from(number), pattern.after)));
    }
    let factor = u32::try_from(pattern.shift).ok().and_then(|n| 10i32.checked_pow(n));
    pattern.before += pattern.shift;
    // As in PostgreSQL the product is cut to 32 bits.
    Ok(of_int(number.wrapping_mul(factor.unwrap_or(i32::MIN)).to_string(), pattern))
}

pub(super) fn of_int8(number: i64, pattern: &mut Pattern) -> Result<Shown> {
    if pattern.roman {
        let small = i32::try_from(number).map_err(|_| out_of_range("integer"))?;
        return Ok(roman(small.into()));
    }
    if pattern.scientific {
        return Ok(scientific(&number.to_string(), pattern));
    }
    let factor = u32::try_from(pattern.shift).ok().and_then(|n| 10i64.checked_pow(n));
    pattern.before += pattern.shift;
    let shifted = factor.and_then(|factor| number.checked_mul(factor));
    Ok(of_int(shifted.ok_or_else(|| out_of_range("bigint"))?.to_string(), pattern))
}

/// A number of a float's precision; `digits` is how many it has.
fn of_float(
    number: f64,
    scaled: impl FnOnce(i32) -> f64,
    digits: usize,
    pattern: &mut Pattern,
) -> Result<Shown> {
    if pattern.roman {
        return Ok(roman(number.round_ties_even() as i64));
    }
    if pattern.scientific {
        if !number.is_finite() {
            return Ok(scientific_hashes(pattern));
        }
        return Ok(with_room_for_sign(c_exponent(number, pattern.after)));
    }
    let number = scaled(i32::try_from(pattern.shift).unwrap_or(i32::MAX));
    pattern.before += pattern.shift;
    let length = c_float(number.abs(), 0).len();
    if length >= digits {
        pattern.after = 0;
    } else if length + pattern.after > digits {
        pattern.after = digits - length;
    }
    Ok(fitted(&c_float(number, pattern.after), pattern))
}

/// A float as C's `%.*f` writes it.
fn c_float(number: f64, after: usize) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number < 0.0 { "-Infinity".to_owned() } else { "Infinity".to_owned() }
    } else {
        format!("{number:.after$}")
    }
}

pub(super) fn of_float4(number: f32, pattern: &mut Pattern) -> Result<Shown> {
    let scaled = |shift| f64::from(if shift == 0 { number } else { number * 10f32.powi(shift) });
    of_float(number.into(), scaled, 6, pattern)
}

pub(super) fn of_float8(number: f64, pattern: &mut Pattern) -> Result<Shown> {
    let scaled = |shift| if shift == 0 { number } else { number * 10f64.powi(shift) };
    of_float(number, scaled, 15, pattern)
}

pub(super) fn of_numeric(number: NumericRef<'_>, pattern: &mut Pattern) -> Result<Shown> {
    if pattern.roman {
        let int = number.to_i64("integer")?;
        let small = i32::try_from(int).map_err(|_| out_of_range("integer"))?;
        return Ok(roman(small.into()));
    }
    let text = number.to_string();
    if pattern.scientific {
        let is_finite = text.ends_with(|c: char| c.is_ascii_digit());
        return Ok(if is_finite { scientific(&text, pattern) } else { scientific_hashes(pattern) });
    }
    let factor: Numeric = format!("1{}", "0".repeat(pattern.shift)).parse()?;
    pattern.before += pattern.shift;
    let scale = i16::try_from(pattern.after).unwrap_or(i16::MAX);
    let shifted = number.mul(factor.as_ref())?.as_ref().round(scale)?;
    Ok(fitted(&shifted.to_string(), pattern))
}

/// An exact number in scientific notation.
fn scientific(text: &str, pattern: &Pattern) -> Shown {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => (" ", text),
    };
    let (whole_part, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all: Vec<u8> = whole_part.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let first = all.iter().position(|digit| *digit != 0);
    let exponent = first.map_or(0, |first| whole_part.len() as i64 - 1 - first as i64);
    let digits = first.and_then(|first| all.get(first..)).unwrap_or(&[]);
    let wanted = pattern.after + 1;
    let mut kept: Vec<u8> = digits.iter().copied().take(wanted).collect();
    kept.resize(wanted, 0);
    if digits.get(wanted).is_some_and(|digit| *digit >= 5) {
        let mut place = kept.len();
        loop {
            let Some(digit) = place.checked_sub(1).and_then(|at| kept.get_mut(at)) else {
                kept.insert(0, 1);
                break;
            };
            if *digit < 9 {
                *digit += 1;
                break;
            }
            *digit = 0;
            place -= 1;
        }
    }
    let shown: String = kept.iter().map(|digit| char::from(b'0' + digit)).collect();
    let (head, tail) = shown.split_at(shown.len() - pattern.after);
    let point = if pattern.after > 0 { "." } else { "" };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    whole(format!("{sign}{head}{point}{tail}e{exponent_sign}{:02}", exponent.abs()))
}
