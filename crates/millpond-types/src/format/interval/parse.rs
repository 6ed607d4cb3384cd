//! Intervals as they are read: `1 day 02:00`, `@ 1 day 2 hours ago`, `1-2 3 4:05:06`, and ISO 8601.

use crate::Interval;
use crate::other::INTERVAL_FIELDS;

use super::sum::{Bad, Sum, Unit, fraction_of, unit};
use super::{
    IntervalStyle, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SECOND, iso, out_of_range,
    with_typmod,
};
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

/// Reads an interval of a type with this modifier.
pub(in crate::format) fn parse(text: &str, typmod: i32, style: IntervalStyle) -> Result<Interval> {
    let range = if typmod < 0 { 0x7fff } else { typmod >> 16 & 0x7fff };
    let read = match tokens(text).and_then(|tokens| read(&tokens, range, style)) {
        Err(Bad::Syntax) => iso::read(text),
        other => other,
    };
    let interval = read.map_err(|bad| error(bad, text))?;
    with_typmod(interval, typmod)
}

#[cold]
fn error(bad: Bad, text: &str) -> DataException {
    match bad {
        Bad::Sum => out_of_range(),
        Bad::Syntax => DataException::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        Bad::Field => DataException::new(
            SqlState::INTERVAL_FIELD_OVERFLOW,
            format!("interval field value out of range: \"{text}\""),
        ),
    }
}

/// What a text is made of.
struct Token<'a> {
    kind: Kind,
    /// What sign it has, if any.
    negative: Option<bool>,
    text: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `1`, `1.5`, `1-2`
    Number,
    /// `1:30`, `1:30:15.5`
    Time,
    Word,
}

/// More fields than any interval has.
const MAX_FIELDS: usize = 25;

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Bad> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if tokens.len() >= MAX_FIELDS {
            return Err(Bad::Syntax);
        }
        match next {
            c if c.is_ascii_whitespace() || c == '\x0b' => rest = rest.get(1..).unwrap_or(""),
            '0'..='9' => tokens.push(number(&mut rest, None)),
            '.' if rest.get(1..).is_some_and(starts_with_digit) => {
                tokens.push(number(&mut rest, None));
            }
            '+' | '-' => {
                // A sign may stand apart from its number.
                rest = rest.get(1..).unwrap_or("").trim_start();
                if !starts_with_digit(rest) {
                    return Err(Bad::Syntax);
                }
                tokens.push(number(&mut rest, Some(next == '-')));
            }
            c if c.is_ascii_alphabetic() => tokens.push(word(&mut rest)?),
            c if c.is_ascii_punctuation() => rest = rest.get(1..).unwrap_or(""),
            _ => return Err(Bad::Syntax),
        }
    }
    Ok(tokens)
}

fn take<'a>(rest: &mut &'a str, accept: impl Fn(char) -> bool) -> &'a str {
    let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(end);
    *rest = after;
    taken
}

fn number<'a>(rest: &mut &'a str, negative: Option<bool>) -> Token<'a> {
    let whole = *rest;
    let part = take(rest, |c| c.is_ascii_digit() || matches!(c, ':' | '.'));
    let mut length = part.len();
    if !part.contains(':') {
        // Years and months.
        length += take(rest, |c| c.is_ascii_digit() || matches!(c, '-' | '.')).len();
    }
    let text = whole.get(..length).unwrap_or(whole);
    let kind = if part.contains(':') { Kind::Time } else { Kind::Number };
    Token { kind, negative, text }
}

fn word<'a>(rest: &mut &'a str) -> Result<Token<'a>, Bad> {
    let text = take(rest, |c| c.is_ascii_alphabetic());
    // A word that goes on with digits is a date, unless it is short enough for a unit.
    let short = ["d", "h", "m", "s", "y", "mm"].iter().any(|unit| text.eq_ignore_ascii_case(unit));
    let is_date = rest.starts_with(['-', '/', '.'])
        || !short && rest.starts_with(|c: char| c.is_ascii_digit() || c == '+');
    if is_date {
        return Err(Bad::Syntax);
    }
    Ok(Token { kind: Kind::Word, negative: None, text })
}

/// What the numbers to the left of a place are.
#[derive(Clone, Copy)]
enum Ahead {
    /// There is nothing to the right.
    Nothing,
    Unit(Unit),
    /// `ago`
    Ago,
}

/// Units that an interval has had, as bits.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn bit(unit: Unit) -> u32 {
        1 << unit as u32
    }

    fn seconds() -> u32 {
        Self::bit(Unit::Second) | Self::bit(Unit::Millisecond) | Self::bit(Unit::Microsecond)
    }

    fn mark(&mut self, bits: u32) -> Result<(), Bad> {
        if self.0 & bits != 0 {
            return Err(Bad::Syntax);
        }
        self.0 |= bits;
        Ok(())
    }
}

/// Puts an interval together from right to left: a unit stands behind its number.
fn read(tokens: &[Token<'_>], range: i32, style: IntervalStyle) -> Result<Interval, Bad> {
    let (mut sum, mut seen, mut ago, mut ahead) =
        (Sum::default(), Seen::default(), false, Ahead::Nothing);
    for token in tokens.iter().rev() {
        match token.kind {
            Kind::Time => {
                let usecs = time(token.text, range)?;
                let usecs = if token.negative == Some(true) { -usecs } else { usecs };
                sum.add(Unit::Microsecond, usecs, 0.0)?;
                let minutes = Seen::bit(Unit::Hour) | Seen::bit(Unit::Minute);
                seen.mark(minutes | Seen::seconds())?;
                ahead = Ahead::Unit(Unit::Day);
            }
            Kind::Number => {
                let wanted = match ahead {
                    Ahead::Nothing => last_unit(range),
                    Ahead::Unit(unit) => unit,
                    Ahead::Ago => return Err(Bad::Syntax),
                };
                let unit = quantity(token, wanted, &mut sum, &mut seen)?;
                ahead = Ahead::Unit(unit);
            }
            Kind::Word => {
                let word = token.text.to_ascii_lowercase();
                match unit(&word) {
                    Some(unit) => ahead = Ahead::Unit(unit),
                    None if word == "ago" => (ago, ahead) = (true, Ahead::Ago),
                    None => return Err(Bad::Syntax),
                }
            }
        }
    }
    if seen.0 == 0 {
        return Err(Bad::Syntax);
    }
    let signed = |token: &&Token<'_>| token.negative.is_some();
    let first_is_negative = tokens.first().is_some_and(|token| token.negative == Some(true));
    let one_sign = tokens.iter().filter(signed).count() == 1;
    if style == IntervalStyle::SqlStandard && first_is_negative && one_sign {
        sum.make_negative();
    }
    if ago {
        sum.negate()?;
    }
    sum.finish()
}

/// The unit of a number that stands alone: the last of the type's fields.
fn last_unit(range: i32) -> Unit {
    let fields = INTERVAL_FIELDS.iter().find(|(bits, _)| *bits == range);
    match fields.and_then(|(_, name)| name.rsplit(' ').next()) {
        Some("year") => Unit::Year,
        Some("month") => Unit::Month,
        Some("day") => Unit::Day,
        Some("hour") => Unit::Hour,
        Some("minute") => Unit::Minute,
        _ => Unit::Second,
    }
}

/// Adds a number of some unit. `1-2` is years and months, whatever the unit. Returns the unit of a
/// number before it.
fn quantity(token: &Token<'_>, wanted: Unit, sum: &mut Sum, seen: &mut Seen) -> Result<Unit, Bad> {
    let negative = token.negative == Some(true);
    let mut rest = token.text;
    let digits = take(&mut rest, |c| c.is_ascii_digit());
    // The least number has no positive counterpart.
    let mut whole = match digits {
        "" => 0,
        digits => digits.parse::<i128>().map_err(|_| Bad::Field)?,
    };
    let (mut unit, mut fraction) = (wanted, 0.0);
    if let Some(mut months) = rest.strip_prefix('-') {
        let digits = take(&mut months, |c| c.is_ascii_digit());
        let count = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| Bad::Field)? };
        if count >= 12 {
            return Err(Bad::Field);
        }
        if !months.is_empty() {
            return Err(Bad::Syntax);
        }
        unit = Unit::Month;
        whole = whole.checked_mul(12).and_then(|all| all.checked_add(count)).ok_or(Bad::Field)?;
    } else if let Some(digits) = rest.strip_prefix('.') {
        fraction = fraction_of(digits)?;
    } else if !rest.is_empty() {
        return Err(Bad::Syntax);
    }
    let (whole, fraction) = if negative { (-whole, -fraction) } else { (whole, fraction) };
    let whole = i64::try_from(whole).map_err(|_| Bad::Field)?;
    sum.add(unit, whole, fraction)?;
    seen.mark(match unit {
        Unit::Second if fraction != 0.0 => Seen::seconds(),
        unit => Seen::bit(unit),
    })?;
    // Before hours stand days.
    Ok(if unit == Unit::Hour { Unit::Day } else { unit })
}

/// `1:30`, `1:30.5` (minutes and seconds) or `1:30:15.5`, as microseconds.
fn time(text: &str, range: i32) -> Result<i64, Bad> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, digits)) => (clock, Some(fraction_of(digits)?)),
        None => (text, None),
    };
    let mut parts = [0i64; 3];
    let mut count = 0;
    for part in clock.split(':') {
        let slot = parts.get_mut(count).ok_or(Bad::Syntax)?;
        // Nothing between colons is a zero.
        *slot = if part.is_empty() { 0 } else { part.parse().map_err(|_| Bad::Field)? };
        count += 1;
    }
    let minute_to_second =
        INTERVAL_FIELDS.iter().any(|(bits, name)| *bits == range && *name == "minute to second");
    let [hours, minutes, seconds] = parts;
    let [hours, minutes, seconds] = match count {
        2 if fraction.is_some() || minute_to_second => [0, hours, minutes],
        2 | 3 => [hours, minutes, seconds],
        _ => return Err(Bad::Syntax),
    };
    if minutes > 59 || seconds > 60 {
        return Err(Bad::Field);
    }
    let usecs = (fraction.unwrap_or(0.0) * USECS_PER_SECOND as f64).round_ties_even() as i64;
    let clock = minutes * USECS_PER_MINUTE + seconds * USECS_PER_SECOND + usecs;
    hours.checked_mul(USECS_PER_HOUR).and_then(|all| all.checked_add(clock)).ok_or(Bad::Field)
}
