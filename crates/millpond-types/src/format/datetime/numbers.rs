//! The numbers of dates and times: which field a number is depends on those that came before.

use super::civil_fields::{CivilFields, first_of, fraction, mask, number};
use super::words::{self, Word};
use super::{Bad, DateOrder};

/// What decides on numbers, apart from the fields that came before.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) order: DateOrder,
    /// The month was a word.
    pub(super) month_by_name: bool,
    /// A day is not to be looked for, as if there was one.
    pub(super) only_time: bool,
}

impl Numbers {
    fn before(self, fields: &CivilFields) -> u32 {
        fields.found | if self.only_time { mask::DATE } else { 0 }
    }

    /// Takes a number of its own. Returns the fields that it is.
    pub(super) fn single(self, text: &str, fields: &mut CivilFields) -> Result<u32, Bad> {
        let (value, rest) = number(text)?;
        if rest.starts_with('.') {
            // `2001.360`, `040506.789`
            if text.len() - rest.len() > 2 {
                return Numbers { only_time: true, ..self }.run_together(text, fields);
            }
            fields.fraction = fraction(rest)?;
        } else if !rest.is_empty() {
            return Err(Bad::Syntax);
        }
        let digits = text.len();
        let before = self.before(fields) & mask::DATE;
        if digits == 3 && before == mask::YEAR && (1..=366).contains(&value) {
            fields.day_of_year = value;
            return Ok(mask::DAY_OF_YEAR | mask::MONTH | mask::DAY);
        }
        let is_year = digits >= 3 || self.order == DateOrder::Ymd;
        const YEAR_MONTH: u32 = mask::YEAR | mask::MONTH;
        const MONTH_DAY: u32 = mask::MONTH | mask::DAY;
        let field = match before {
            0 if is_year => mask::YEAR,
            0 => first_of(self.order),
            mask::YEAR => mask::MONTH,
            mask::MONTH if self.month_by_name && is_year => mask::YEAR,
            mask::MONTH => mask::DAY,
            YEAR_MONTH if self.month_by_name && digits >= 3 && fields.short_year => {
                // What looked like the year was the day.
                (fields.day, fields.year, fields.short_year) = (fields.year, value, false);
                return Ok(mask::DAY);
            }
            YEAR_MONTH => mask::DAY,
            mask::DAY => mask::MONTH,
            MONTH_DAY => mask::YEAR,
            mask::DATE => return self.run_together(text, fields),
            _ => return Err(Bad::Syntax),
        };
        match field {
            mask::YEAR => (fields.year, fields.short_year) = (value, digits <= 2),
            mask::MONTH => fields.month = value,
            _ => fields.day = value,
        }
        Ok(field)
    }

    /// Takes digits without separators: a day (`19990108`) or a time (`040506.789`).
    pub(super) fn run_together(self, text: &str, fields: &mut CivilFields) -> Result<u32, Bad> {
        let before = self.before(fields);
        let (digits, point) = text.split_at(text.find('.').unwrap_or(text.len()));
        let part = |range: std::ops::Range<usize>| digits.get(range).map_or(0, leading_number);
        let length = digits.len();
        if !point.is_empty() {
            fields.fraction = fraction(point)?;
        } else if before & mask::DATE != mask::DATE && length >= 6 {
            fields.day = part(length - 2..length);
            fields.month = part(length - 4..length - 2);
            fields.year = part(0..length - 4);
            fields.short_year |= length == 6;
            return Ok(mask::DATE);
        }
        if before & mask::TIME == mask::TIME || length != 6 && length != 4 {
            return Err(Bad::Syntax);
        }
        (fields.hour, fields.minute) = (part(0..2), part(2..4));
        fields.second = if length == 6 { part(4..6) } else { 0 };
        Ok(mask::TIME)
    }

    /// Takes a date with separators, or of words and numbers with separators: `jan-08-1999`.
    pub(super) fn date(self, text: &str, fields: &mut CivilFields) -> Result<u32, Bad> {
        let parts = parts(text)?;
        let (mut found, mut by_name) = (0, false);
        let before = fields.found;
        let mut take = |fields: &mut CivilFields, new: u32| {
            if fields.found & new != 0 {
                return Err(Bad::Syntax);
            }
            fields.found |= new;
            found |= new;
            Ok(())
        };
        let is_word = |part: &&&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
        for part in parts.iter().filter(is_word) {
            match words::find(part) {
                Some(Word::Month(month)) => {
                    (fields.month, by_name) = (month, true);
                    take(fields, mask::MONTH)?;
                }
                Some(Word::Filler) => {}
                _ => return Err(Bad::Syntax),
            }
        }
        let numbers = Numbers { month_by_name: by_name, only_time: false, ..self };
        for part in parts.iter().filter(|part| !is_word(part)) {
            let new = numbers.single(part, fields)?;
            take(fields, new)?;
        }
        if fields.found & !(mask::DAY_OF_YEAR | mask::ZONE) != mask::DATE {
            return Err(Bad::Syntax);
        }
        fields.found = before;
        Ok(found)
    }
}

/// The number that a text begins with. One that is too large is some large number.
fn leading_number(text: &str) -> i64 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(..end).unwrap_or_default();
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(i64::MAX).min(i32::MAX.into()) }
}

/// Letters and digits, without what stands between them.
fn parts(text: &str) -> Result<Vec<&str>, Bad> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_digit = rest.starts_with(|c: char| c.is_ascii_digit());
        let belongs = |c: char| if is_digit { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
        let (part, after) = rest.split_at(rest.find(|c| !belongs(c)).unwrap_or(rest.len()));
        // There is nothing behind a separator.
        if part.is_empty() {
            return Err(Bad::Syntax);
        }
        parts.push(part);
        // One separator goes with the part; so does a letter behind digits.
        let mut chars = after.chars();
        chars.next();
        rest = chars.as_str();
    }
    Ok(parts)
}

/// Takes `04:05`, `04:05:06.789`, or minutes and seconds: `05:06.789`.
pub(super) fn clock(text: &str, fields: &mut CivilFields) -> Result<u32, Bad> {
    let colon = |rest: &'_ str| rest.starts_with(':');
    let (hour, rest) = text.split_once(':').ok_or(Bad::Syntax)?;
    // It is checked in the end: other fields may be worse.
    let hour: i64 = hour.parse().map_err(|_| Bad::Field)?;
    // Nothing behind the colon is a zero.
    let or_zero = |rest: &str| -> Result<i64, Bad> {
        if rest.is_empty() || rest.starts_with([':', '.']) { Ok(0) } else { Ok(number(rest)?.0) }
    };
    let minute = or_zero(rest)?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (fields.hour, fields.minute, fields.second, fields.fraction) = (hour, minute, 0, 0);
    if colon(rest) {
        let rest = rest.get(1..).unwrap_or("");
        fields.second = or_zero(rest)?;
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if !rest.is_empty() {
            fields.fraction = fraction(rest)?;
        }
    } else if !rest.is_empty() {
        fields.fraction = fraction(rest)?;
        (fields.hour, fields.minute, fields.second) = (0, hour, minute);
    }
    if fields.minute > 59 || fields.second > 60 {
        return Err(Bad::Field);
    }
    Ok(mask::TIME)
}
