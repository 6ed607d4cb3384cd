//! The fields of a date or time stamp in a text: cut out one after the other, then put together.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::Zone;
use super::super::calendar::{USECS_PER_DAY, date_of_civil};

pub(super) const USECS_PER_SECOND: i64 = 1_000_000;

/// Why a text is no date or time.
pub(in crate::types) enum Bad {
    Syntax,
    Range,
    /// A day that no calendar has, where another order of the fields might have been meant.
    FieldRange,
    Zone(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Infinity,
    NegInfinity,
    Epoch,
    Now,
    /// Midnight of today plus this number of days.
    Today(i64),
}

/// What a text says, field by field.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) special: Option<Special>,
    date: Option<(i64, u32, u32)>,
    /// A month by name, and the bare numbers beside it.
    month: Option<u32>,
    numbers: Vec<(i64, usize)>,
    pub(super) time: Option<i64>,
    pm: Option<bool>,
    bc: bool,
    pub(super) zone: Option<Zone>,
}

impl Fields {
    /// Whether there is a day in the text.
    pub(super) fn has_day(&self) -> bool {
        self.date.is_some() || self.month.is_some() || !self.numbers.is_empty()
    }

    /// Days since 2000-01-01.
    pub(super) fn day(&self) -> Result<i64, Bad> {
        let (mut year, month, day) = match (self.date, self.month) {
            (Some(date), None) if self.numbers.is_empty() => date,
            (None, Some(month)) => self.named_month(month)?,
            _ => return Err(Bad::Syntax),
        };
        if self.bc {
            if year <= 0 {
                return Err(Bad::FieldRange);
            }
            year = 1 - year;
        } else if year <= 0 {
            return Err(Bad::FieldRange);
        }
        date_of_civil(year, month, day).ok_or(Bad::FieldRange)
    }

    /// "Jan 8 1999", "8 January 99", "1999 Jan 8".
    fn named_month(&self, month: u32) -> Result<(i64, u32, u32), Bad> {
        let [(first, first_digits), (second, second_digits)] = *self.numbers else {
            return Err(Bad::Syntax);
        };
        let (day, year, digits) = if first_digits > 2 || first > 31 {
            (second, first, first_digits)
        } else {
            (first, second, second_digits)
        };
        Ok((full_year(year, digits), month, u32::try_from(day).map_err(|_| Bad::FieldRange)?))
    }

    /// Microseconds since midnight.
    pub(super) fn usecs(&self) -> Result<i64, Bad> {
        const HOUR: i64 = 3600 * USECS_PER_SECOND;
        let time = self.time.unwrap_or(0);
        match self.pm {
            None => Ok(time),
            Some(_) if self.time.is_none() || time >= 13 * HOUR => Err(Bad::FieldRange),
            Some(true) if time < 12 * HOUR => Ok(time + 12 * HOUR),
            Some(false) if time >= 12 * HOUR => Ok(time - 12 * HOUR),
            Some(_) => Ok(time),
        }
    }
}

/// Two digits mean 1970 to 2069.
fn full_year(year: i64, digits: usize) -> i64 {
    match (digits, year) {
        (1 | 2, 70..) => year + 1900,
        (1 | 2, _) => year + 2000,
        _ => year,
    }
}

/// Cuts a text into fields.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn eat(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn digits(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_digit())
    }
}

fn number(digits: &str) -> Result<i64, Bad> {
    if digits.is_empty() {
        return Err(Bad::Syntax);
    }
    if digits.len() > 9 {
        return Err(Bad::FieldRange);
    }
    digits.parse().map_err(|_| Bad::Syntax)
}

pub(super) fn read(text: &str) -> Result<Fields, Bad> {
    let mut fields = Fields::default();
    let mut scanner = Scanner { rest: text };
    let mut count = 0;
    loop {
        scanner.take_while(|c| c.is_ascii_whitespace() || c == ',');
        let Some(next) = scanner.peek() else { break };
        count += 1;
        match next {
            '0'..='9' => read_numeric(&mut scanner, &mut fields)?,
            '+' | '-' if fields.time.is_some() || fields.date.is_some() => {
                set(&mut fields.zone, Zone::Fixed(read_offset(&mut scanner)?))?;
            }
            '-' if scanner
                .rest
                .get(1..)
                .is_some_and(|word| word.trim_end().eq_ignore_ascii_case("infinity")) =>
            {
                scanner.rest = "";
                set(&mut fields.special, Special::NegInfinity)?;
            }
            'a'..='z' | 'A'..='Z' => read_word(&mut scanner, &mut fields)?,
            _ => return Err(Bad::Syntax),
        }
    }
    let fixed = matches!(
        fields.special,
        Some(Special::Infinity | Special::NegInfinity | Special::Epoch | Special::Now)
    );
    if count == 0 || fixed && count > 1 || fields.special.is_some() && fields.date.is_some() {
        return Err(Bad::Syntax);
    }
    Ok(fields)
}

fn set<T>(field: &mut Option<T>, value: T) -> Result<(), Bad> {
    if field.replace(value).is_some() { Err(Bad::Syntax) } else { Ok(()) }
}

fn read_numeric(scanner: &mut Scanner<'_>, fields: &mut Fields) -> Result<(), Bad> {
    let first = scanner.digits();
    match scanner.peek() {
        Some(':') => set(&mut fields.time, read_time(scanner, first)?),
        Some(separator @ ('-' | '/' | '.')) if fields.date.is_none() && fields.month.is_none() => {
            scanner.eat(separator);
            read_separated(scanner, separator, first, fields)
        }
        // "20240131" and "20240131T235959".
        _ if first.len() == 8 && fields.date.is_none() && fields.month.is_none() => set(
            &mut fields.date,
            (number(&first[..4])?, number(&first[4..6])? as u32, number(&first[6..])? as u32),
        ),
        _ if (first.len() == 6 || first.len() == 4)
            && fields.date.is_some()
            && fields.time.is_none() =>
        {
            let part = |range: std::ops::Range<usize>| first.get(range).map_or(Ok(0), number);
            let seconds = part(4..6)?;
            let fraction = if scanner.eat('.') { fraction(scanner.digits())? } else { 0 };
            set(&mut fields.time, clock(part(0..2)?, part(2..4)?, seconds, fraction)?)
        }
        _ => {
            fields.numbers.push((number(first)?, first.len()));
            Ok(())
        }
    }
}

/// The rest of a date whose first number and separator have been read.
fn read_separated(
    scanner: &mut Scanner<'_>,
    separator: char,
    first: &str,
    fields: &mut Fields,
) -> Result<(), Bad> {
    let middle = scanner.take_while(|c| c.is_ascii_alphanumeric());
    if !scanner.eat(separator) {
        return Err(Bad::Syntax);
    }
    let last = scanner.digits();
    let small = |digits: &str| number(digits).map(|n| n as u32);
    let date = if !middle.starts_with(|c: char| c.is_ascii_digit()) {
        let month = month(&middle.to_ascii_lowercase()).ok_or(Bad::Syntax)?;
        if first.len() > 2 {
            (number(first)?, month, small(last)?)
        } else {
            (full_year(number(last)?, last.len()), month, small(first)?)
        }
    } else if first.len() > 2 {
        (number(first)?, small(middle)?, small(last)?)
    } else {
        // Month, day, year.
        (full_year(number(last)?, last.len()), small(first)?, small(middle)?)
    };
    set(&mut fields.date, date)
}

/// The rest of a time whose hours have been read.
fn read_time(scanner: &mut Scanner<'_>, hours: &str) -> Result<i64, Bad> {
    scanner.eat(':');
    let minutes = number(scanner.digits())?;
    let (mut seconds, mut micros) = (0, 0);
    if scanner.eat(':') {
        seconds = number(scanner.digits())?;
        if scanner.eat('.') {
            micros = fraction(scanner.digits())?;
        }
    }
    clock(number(hours)?, minutes, seconds, micros)
}

/// Digits after the point as microseconds, rounded.
fn fraction(digits: &str) -> Result<i64, Bad> {
    let mut micros = 0;
    for position in 0..6 {
        let digit = digits.as_bytes().get(position).map_or(0, |digit| i64::from(digit - b'0'));
        micros = micros * 10 + digit;
    }
    let round_up = digits.as_bytes().get(6).is_some_and(|&digit| digit >= b'5');
    Ok(micros + i64::from(round_up))
}

fn clock(hours: i64, minutes: i64, seconds: i64, micros: i64) -> Result<i64, Bad> {
    let usecs = ((hours * 60 + minutes) * 60 + seconds) * USECS_PER_SECOND + micros;
    // 24:00:00 and a leap second are allowed.
    if hours > 24 || minutes > 59 || seconds > 60 || usecs > USECS_PER_DAY {
        return Err(Bad::FieldRange);
    }
    Ok(usecs)
}

/// "+02", "-0330", "+5:30", "+05:30:15": seconds east of UTC.
fn read_offset(scanner: &mut Scanner<'_>) -> Result<i32, Bad> {
    let negative = scanner.eat('-');
    if !negative {
        scanner.eat('+');
    }
    let digits = scanner.digits();
    let (hours, mut minutes, mut seconds) = match digits.len() {
        1 | 2 => (number(digits)?, 0, 0),
        3 | 4 => {
            let (hours, minutes) = digits.split_at(digits.len() - 2);
            (number(hours)?, number(minutes)?, 0)
        }
        6 => (number(&digits[..2])?, number(&digits[2..4])?, number(&digits[4..])?),
        _ => return Err(Bad::Syntax),
    };
    if digits.len() <= 2 && scanner.eat(':') {
        minutes = number(scanner.digits())?;
        if scanner.eat(':') {
            seconds = number(scanner.digits())?;
        }
    }
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Bad::FieldRange);
    }
    let offset = (hours * 3600 + minutes * 60 + seconds) as i32;
    Ok(if negative { -offset } else { offset })
}

fn month(word: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    if word == "sept" {
        return Some(9);
    }
    let index = MONTHS.iter().position(|month| *month == word || month[..3] == *word)?;
    Some(index as u32 + 1)
}

fn is_weekday(word: &str) -> bool {
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
        .iter()
        .any(|day| word.len() >= 3 && day.starts_with(word))
}

/// The zone of an abbreviation that always means the same offset, as PostgreSQL's default set has
/// it. `abbreviations.txt` has a line for each: its name, then seconds east of UTC.
fn abbreviated(word: &str) -> Option<Zone> {
    static OFFSETS: LazyLock<HashMap<&str, i32>> = LazyLock::new(|| {
        let parsed = |line: &'static str| {
            let (name, seconds) = line.split_once(' ')?;
            Some((name, seconds.parse().ok()?))
        };
        include_str!("abbreviations.txt").lines().filter_map(parsed).collect()
    });
    OFFSETS.get(word).map(|seconds| Zone::Fixed(*seconds))
}

fn read_word(scanner: &mut Scanner<'_>, fields: &mut Fields) -> Result<(), Bad> {
    // The "T" between an ISO date and its time stands directly before digits.
    if fields.date.is_some() && fields.time.is_none() {
        let after = scanner.rest.strip_prefix(['T', 't']);
        if let Some(after) = after.filter(|after| after.starts_with(|c: char| c.is_ascii_digit())) {
            scanner.rest = after;
            return Ok(());
        }
    }
    let start = scanner.rest;
    let mut original = scanner.take_while(|c| c.is_ascii_alphabetic() || c == '/' || c == '_');
    if original.contains('/') {
        // A zone's name: `Etc/GMT+5`, `America/Port-au-Prince`.
        let more = scanner.take_while(|c| c.is_ascii_alphanumeric() || "/_+-".contains(c));
        original = start.get(..original.len() + more.len()).unwrap_or(original);
    }
    let word = original.to_ascii_lowercase();
    match &*word {
        "am" => set(&mut fields.pm, false),
        "pm" => set(&mut fields.pm, true),
        "bc" => {
            fields.bc = true;
            Ok(())
        }
        "ad" => Ok(()),
        "z" | "utc" | "gmt" | "ut" | "zulu" => set(&mut fields.zone, Zone::UTC),
        "infinity" | "inf" => set(&mut fields.special, Special::Infinity),
        "epoch" => set(&mut fields.special, Special::Epoch),
        "now" => set(&mut fields.special, Special::Now),
        "today" => set(&mut fields.special, Special::Today(0)),
        "tomorrow" => set(&mut fields.special, Special::Today(1)),
        "yesterday" => set(&mut fields.special, Special::Today(-1)),
        "allballs" => {
            set(&mut fields.time, 0)?;
            set(&mut fields.zone, Zone::UTC)
        }
        _ if is_weekday(&word) => Ok(()),
        _ => match month(&word) {
            Some(month) => set(&mut fields.month, month),
            None if original.contains('/') => match Zone::parse(original) {
                Some((zone, _)) => set(&mut fields.zone, zone),
                None if fields.time.is_some() => Err(Bad::Zone(original.to_owned())),
                None => Err(Bad::Syntax),
            },
            None => set(&mut fields.zone, abbreviated(&word).ok_or(Bad::Syntax)?),
        },
    }
}
