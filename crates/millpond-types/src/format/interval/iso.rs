//! Intervals in the forms of ISO 8601: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`.

use crate::Interval;

use super::sum::{Bad, Sum, Unit, fraction_of};

/// Reads an interval that begins with `P`.
pub(super) fn read(text: &str) -> Result<Interval, Bad> {
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Bad::Syntax)?;
    let mut sum = Sum::default();
    let (mut in_date, mut has_field) = (true, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (in_date, has_field, rest) = (false, false, after);
            continue;
        }
        let number = Number::take(&mut rest)?;
        let mut letters = rest.chars();
        let letter = letters.next();
        let after = letters.as_str();
        let unit = match (letter, in_date) {
            (Some('Y'), true) => Unit::Year,
            (Some('M'), true) => Unit::Month,
            (Some('W'), true) => Unit::Week,
            (Some('D'), true) => Unit::Day,
            (Some('H'), false) => Unit::Hour,
            (Some('M'), false) => Unit::Minute,
            (Some('S'), false) => Unit::Second,
            _ if has_field => return Err(Bad::Syntax),
            _ if in_date => {
                rest = alternative_date(number, rest, &mut sum)?;
                match rest.strip_prefix('T') {
                    Some(after) => {
                        (in_date, rest) = (false, after);
                        continue;
                    }
                    None if rest.is_empty() => break,
                    None => return Err(Bad::Syntax),
                }
            }
            _ => {
                alternative_time(number, rest, &mut sum)?;
                break;
            }
        };
        sum.add(unit, number.whole, number.fraction)?;
        (has_field, rest) = (true, after);
    }
    sum.finish()
}

/// A number with the count of its digits before the point.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
    digits: usize,
}

impl Number {
    fn take(rest: &mut &str) -> Result<Self, Bad> {
        let (negative, unsigned) = match rest.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, rest.strip_prefix('+').unwrap_or(rest)),
        };
        let split = |text: &'_ str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, mut after) = unsigned.split_at(split(unsigned));
        let mut fraction = 0.0;
        if let Some(more) = after.strip_prefix('.') {
            let (fractional, behind) = more.split_at(split(more));
            if digits.is_empty() && fractional.is_empty() {
                return Err(Bad::Syntax);
            }
            (fraction, after) = (fraction_of(fractional)?, behind);
        } else if digits.is_empty() {
            return Err(Bad::Syntax);
        }
        let count = digits.len();
        let whole: i64 = if count == 0 { 0 } else { digits.parse().map_err(|_| Bad::Field)? };
        *rest = after;
        Ok(if negative {
            Number { whole: -whole, fraction: -fraction, digits: count }
        } else {
            Number { whole, fraction, digits: count }
        })
    }
}

/// `00010203` or `0001-02-03`. Returns what follows.
fn alternative_date<'a>(first: Number, rest: &'a str, sum: &mut Sum) -> Result<&'a str, Bad> {
    if first.digits == 8 && (rest.is_empty() || rest.starts_with('T')) {
        sum.add(Unit::Year, first.whole / 10_000, 0.0)?;
        sum.add(Unit::Month, first.whole / 100 % 100, 0.0)?;
        sum.add(Unit::Day, first.whole % 100, first.fraction)?;
        return Ok(rest);
    }
    sum.add(Unit::Year, first.whole, first.fraction)?;
    let mut rest = rest;
    for unit in [Unit::Month, Unit::Day] {
        let Some(mut after) = rest.strip_prefix('-') else { break };
        let number = Number::take(&mut after)?;
        sum.add(unit, number.whole, number.fraction)?;
        rest = after;
    }
    Ok(rest)
}

/// `040506` or `04:05:06`.
fn alternative_time(first: Number, rest: &str, sum: &mut Sum) -> Result<(), Bad> {
    if first.digits == 6 && rest.is_empty() {
        sum.add(Unit::Hour, first.whole / 10_000, 0.0)?;
        sum.add(Unit::Minute, first.whole / 100 % 100, 0.0)?;
        return sum.add(Unit::Second, first.whole % 100, first.fraction);
    }
    sum.add(Unit::Hour, first.whole, first.fraction)?;
    let mut rest = rest;
    for unit in [Unit::Minute, Unit::Second] {
        let Some(mut after) = rest.strip_prefix(':') else { break };
        let number = Number::take(&mut after)?;
        sum.add(unit, number.whole, number.fraction)?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(Bad::Syntax) }
}
