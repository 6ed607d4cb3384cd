//! The templates of dates and times, as a list of fields and of characters between them.

use std::cell::RefCell;
use std::rc::Rc;

use super::wrong;
use crate::error::Result;
use crate::expr::recent::Recent;

/// A field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// `AM` or `PM`; the flag says with points.
    Meridiem(bool),
    /// `AD` or `BC`, likewise.
    Era(bool),
    Century,
    /// The day's name; the flag says in full.
    DayName(bool),
    MonthName(bool),
    RomanMonth,
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    Week,
    IsoWeek,
    WeekOfMonth,
    Month,
    Quarter,
    Julian,
    Hour12,
    Hour24,
    Minute,
    Second,
    SecondOfDay,
    Millisecond,
    Microsecond,
    /// Digits of the second's fraction: how many.
    Fraction(u32),
    ZoneName,
    ZoneHour,
    ZoneMinute,
    ZoneOffset,
    /// This number of the year's last digits.
    Year(u32),
    IsoYear(u32),
    /// The year with a comma.
    YearComma,
    /// The input has to agree with the template.
    Exact,
}

impl Field {
    /// Whether it is of the time of day.
    pub(super) fn is_of_time(self) -> bool {
        matches!(
            self,
            Self::Meridiem(_)
                | Self::Hour12
                | Self::Hour24
                | Self::Minute
                | Self::Second
                | Self::SecondOfDay
                | Self::Millisecond
                | Self::Microsecond
                | Self::Fraction(_)
        )
    }
}

/// How the letters of a field are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Capital,
    Lower,
}

/// A field as a template has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) field: Field,
    /// PostgreSQL's spelling, for messages.
    pub(super) name: &'static str,
    pub(super) case: Case,
    /// `FM`
    pub(super) fill: bool,
    /// `TM`
    pub(super) translated: bool,
    /// `TH` or `th`; the flag says upper case.
    pub(super) ordinal: Option<bool>,
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Field(Item),
    Char(char),
    Space(char),
    Separator(char),
}

use Case::{Capital, Lower, Upper};
use Field as F;

/// The fields' names. Of two that begin alike the longer comes first.
const NAMES: &[(&str, Field)] = &[
    ("A.D.", F::Era(true)),
    ("A.M.", F::Meridiem(true)),
    ("AD", F::Era(false)),
    ("AM", F::Meridiem(false)),
    ("B.C.", F::Era(true)),
    ("BC", F::Era(false)),
    ("CC", F::Century),
    ("DAY", F::DayName(true)),
    ("DDD", F::DayOfYear),
    ("DD", F::Day),
    ("DY", F::DayName(false)),
    ("D", F::DayOfWeek),
    ("FF1", F::Fraction(1)),
    ("FF2", F::Fraction(2)),
    ("FF3", F::Fraction(3)),
    ("FF4", F::Fraction(4)),
    ("FF5", F::Fraction(5)),
    ("FF6", F::Fraction(6)),
    ("FX", F::Exact),
    ("HH24", F::Hour24),
    ("HH12", F::Hour12),
    ("HH", F::Hour12),
    ("IDDD", F::IsoDayOfYear),
    ("ID", F::IsoDayOfWeek),
    ("IW", F::IsoWeek),
    ("IYYY", F::IsoYear(4)),
    ("IYY", F::IsoYear(3)),
    ("IY", F::IsoYear(2)),
    ("I", F::IsoYear(1)),
    ("J", F::Julian),
    ("MI", F::Minute),
    ("MM", F::Month),
    ("MONTH", F::MonthName(true)),
    ("MON", F::MonthName(false)),
    ("MS", F::Millisecond),
    ("OF", F::ZoneOffset),
    ("P.M.", F::Meridiem(true)),
    ("PM", F::Meridiem(false)),
    ("Q", F::Quarter),
    ("RM", F::RomanMonth),
    ("SSSSS", F::SecondOfDay),
    ("SSSS", F::SecondOfDay),
    ("SS", F::Second),
    ("TZH", F::ZoneHour),
    ("TZM", F::ZoneMinute),
    ("TZ", F::ZoneName),
    ("US", F::Microsecond),
    ("WW", F::Week),
    ("W", F::WeekOfMonth),
    ("Y,YYY", F::YearComma),
    ("YYYY", F::Year(4)),
    ("YYY", F::Year(3)),
    ("YY", F::Year(2)),
    ("Y", F::Year(1)),
];

/// Names in lower case and with a capital, which messages repeat as they are spelled.
const SPELLINGS: &[(&str, &str, Case)] = &[
    ("Day", "DAY", Capital),
    ("Dy", "DY", Capital),
    ("Month", "MONTH", Capital),
    ("Mon", "MON", Capital),
    ("a.d.", "A.D.", Lower),
    ("a.m.", "A.M.", Lower),
    ("ad", "AD", Lower),
    ("am", "AM", Lower),
    ("b.c.", "B.C.", Lower),
    ("bc", "BC", Lower),
    ("cc", "CC", Lower),
    ("day", "DAY", Lower),
    ("ddd", "DDD", Lower),
    ("dd", "DD", Lower),
    ("dy", "DY", Lower),
    ("d", "D", Lower),
    ("ff1", "FF1", Lower),
    ("ff2", "FF2", Lower),
    ("ff3", "FF3", Lower),
    ("ff4", "FF4", Lower),
    ("ff5", "FF5", Lower),
    ("ff6", "FF6", Lower),
    ("fx", "FX", Lower),
    ("hh24", "HH24", Lower),
    ("hh12", "HH12", Lower),
    ("hh", "HH", Lower),
    ("iddd", "IDDD", Lower),
    ("id", "ID", Lower),
    ("iw", "IW", Lower),
    ("iyyy", "IYYY", Lower),
    ("iyy", "IYY", Lower),
    ("iy", "IY", Lower),
    ("i", "I", Lower),
    ("j", "J", Lower),
    ("mi", "MI", Lower),
    ("mm", "MM", Lower),
    ("month", "MONTH", Lower),
    ("mon", "MON", Lower),
    ("ms", "MS", Lower),
    ("of", "OF", Lower),
    ("p.m.", "P.M.", Lower),
    ("pm", "PM", Lower),
    ("q", "Q", Lower),
    ("rm", "RM", Lower),
    ("sssss", "SSSSS", Lower),
    ("ssss", "SSSS", Lower),
    ("ss", "SS", Lower),
    ("tzh", "TZH", Lower),
    ("tzm", "TZM", Lower),
    ("tz", "TZ", Lower),
    ("us", "US", Lower),
    ("ww", "WW", Lower),
    ("w", "W", Lower),
    ("y,yyy", "Y,YYY", Lower),
    ("yyyy", "YYYY", Lower),
    ("yyy", "YYY", Lower),
    ("yy", "YY", Lower),
    ("y", "Y", Lower),
];

impl Field {
    /// Whether the field is a number.
    pub(super) fn is_digits(self) -> bool {
        !matches!(
            self,
            F::Meridiem(_)
                | F::Era(_)
                | F::DayName(_)
                | F::MonthName(_)
                | F::RomanMonth
                | F::ZoneName
                | F::ZoneHour
                | F::ZoneMinute
                | F::ZoneOffset
                | F::Exact
        )
    }
}

/// Whether a character of the template stands for any separator of the input.
pub(super) fn is_separator(c: char) -> bool {
    c.is_ascii_graphic() && !c.is_ascii_alphanumeric()
}

/// C's white space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// The longest field that the text begins with.
fn find(text: &str) -> Option<(Field, &'static str, Case)> {
    let upper = NAMES.iter().find(|(name, _)| text.starts_with(name));
    let other = SPELLINGS.iter().find(|(name, ..)| text.starts_with(name));
    let other = other.filter(|(name, ..)| upper.is_none_or(|(own, _)| own.len() < name.len()));
    match (upper, other) {
        (_, Some((name, upper, case))) => {
            let (_, field) = NAMES.iter().find(|(name, _)| name == upper)?;
            Some((*field, name, *case))
        }
        (Some((name, field)), None) => Some((*field, name, Upper)),
        (None, None) => None,
    }
}

/// The parts of a template; the thread keeps the last ones. `standard`: by the rules of SQL/JSON.
pub(super) fn parsed(template: &str, standard: bool) -> Result<Rc<Vec<Node>>> {
    thread_local! {
        static RECENT: RefCell<Recent<bool, Vec<Node>>> = const { RefCell::new(Recent::new()) };
    }
    RECENT.with_borrow_mut(|recent| recent.get(template, standard, |text, _| parse(text, standard)))
}

/// Splits a template into its parts.
pub(super) fn parse(mut text: &str, standard: bool) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    while !text.is_empty() {
        let (mut fill, mut translated) = (false, false);
        if let Some(rest) = strip(text, &["FM", "fm"]) {
            (fill, text) = (true, rest);
        } else if let Some(rest) = strip(text, &["TM", "tm"]) {
            (translated, text) = (true, rest);
        }
        if let Some((field, name, case)) = find(text) {
            text = text.get(name.len()..).unwrap_or("");
            let mut ordinal = None;
            for (suffix, means) in [("TH", Some(true)), ("th", Some(false)), ("SP", None)] {
                if let Some(rest) = text.strip_prefix(suffix) {
                    (ordinal, text) = (means, rest);
                    break;
                }
            }
            nodes.push(Node::Field(Item { field, name, case, fill, translated, ordinal }));
        } else if let Some(rest) = text.strip_prefix('"') {
            text = quoted(rest, &mut |c| nodes.push(Node::Char(c)));
        } else if let Some(c) = text.chars().next().filter(|_| standard) {
            nodes.push(standard_separator(c)?);
            text = text.get(c.len_utf8()..).unwrap_or("");
        } else {
            if text.starts_with("\\\"") {
                text = text.get(1..).unwrap_or("");
            }
            let mut chars = text.chars();
            nodes.extend(chars.next().map(|c| match c {
                c if is_separator(c) => Node::Separator(c),
                c if is_space(c) => Node::Space(c),
                c => Node::Char(c),
            }));
            text = chars.as_str();
        }
    }
    Ok(nodes)
}

/// SQL/JSON has few characters between fields, and the text must have the same.
fn standard_separator(c: char) -> Result<Node> {
    match c {
        ' ' => Ok(Node::Space(c)),
        '-' | '.' | '/' | ',' | '\'' | ':' | ';' => Ok(Node::Separator(c)),
        _ => Err(wrong(format!("invalid datetime format separator: \"{c}\""))),
    }
}

fn strip<'a>(text: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

/// Reads text up to the closing quote, and returns what follows.
pub(super) fn quoted<'a>(text: &'a str, push: &mut dyn FnMut(char)) -> &'a str {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => push(chars.next().unwrap_or(c)),
            c => push(c),
        }
    }
    chars.as_str()
}
