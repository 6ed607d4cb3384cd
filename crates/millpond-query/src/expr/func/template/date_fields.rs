//! The fields of a text that a template describes.

use super::date_input::Input;
use super::date_pattern::{Field, Item, Node, is_separator, is_space};
use super::date_write::{DAYS, MONTHS, ROMAN_MONTHS};
use super::wrong;
use crate::error::{Result, SqlError, SqlState};

/// Which calendar fields are of; those of both can't be mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Gregorian,
    Iso,
}

/// A number that the text gives; 0 is as good as none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Number {
    pub(super) value: i32,
}

/// What the fields say.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) mode: Option<Mode>,
    pub(super) is_12_hours: bool,
    pub(super) afternoon: Number,
    pub(super) before_christ: Number,
    pub(super) hour: Number,
    pub(super) minute: Number,
    pub(super) second: Number,
    pub(super) second_of_day: Number,
    pub(super) millisecond: Number,
    pub(super) microsecond: Number,
    pub(super) fraction: u32,
    pub(super) zone_sign: i32,
    pub(super) zone_hour: Number,
    pub(super) zone_minute: Number,
    pub(super) year: Number,
    pub(super) year_digits: u32,
    pub(super) century: Number,
    pub(super) month: Number,
    pub(super) day: Number,
    pub(super) day_of_year: Number,
    /// Sunday is 1.
    pub(super) day_of_week: Number,
    pub(super) week: Number,
    pub(super) week_of_month: Number,
    pub(super) julian: Number,
}

impl Number {
    fn set(&mut self, value: i32, item: &Item) -> Result<()> {
        if self.value != 0 && self.value != value {
            let message =
                format!("conflicting values for \"{}\" field in formatting string", item.name);
            return Err(wrong(message)
                .detail("This value contradicts a previous setting for the same field type."));
        }
        self.value = value;
        Ok(())
    }
}

/// Whether a number may be of any length, because what follows in the template is no digit.
fn is_open(item: &Item, next: Option<&Node>) -> bool {
    item.fill
        || item.ordinal.is_some()
        || match next {
            None => true,
            // A zone's minutes have digits, too, and nothing else.
            Some(Node::Field(next)) => !next.field.is_digits() && next.field != Field::ZoneMinute,
            Some(Node::Char(c) | Node::Space(c) | Node::Separator(c)) => !c.is_ascii_digit(),
        }
}

fn mode_of(field: Field) -> Option<Mode> {
    match field {
        Field::DayOfYear
        | Field::Day
        | Field::DayOfWeek
        | Field::Month
        | Field::MonthName(_)
        | Field::RomanMonth
        | Field::Week
        | Field::WeekOfMonth
        | Field::Year(_)
        | Field::YearComma => Some(Mode::Gregorian),
        Field::IsoDayOfYear | Field::IsoDayOfWeek | Field::IsoWeek | Field::IsoYear(_) => {
            Some(Mode::Iso)
        }
        _ => None,
    }
}

/// Reads a text by a template. `standard`: the text has to agree with the template, to its end.
pub(super) fn read(text: &str, nodes: &[Node], standard: bool) -> Result<Fields> {
    let mut input = Input { text, at: 0 };
    let mut fields = Fields::default();
    let (mut exact, mut extra) = (standard, 0);
    let mut count = 0;
    for (place, node) in nodes.iter().enumerate() {
        if input.rest().is_empty() {
            break;
        }
        count += 1;
        let is_field = matches!(node, Node::Field(_));
        let is_exact = matches!(node, Node::Field(item) if item.field == Field::Exact);
        if !exact && !is_exact && (is_field || place == 0) {
            extra += input.skip_spaces();
        }
        match node {
            Node::Char(_) | Node::Space(_) | Node::Separator(_) if standard => {
                agree(node, &mut input)?;
            }
            Node::Space(_) | Node::Separator(_) if !exact => {
                // One of the template stands for one of the text, or for nothing.
                extra -= 1;
                if input.next().is_some_and(|c| is_space(c) || is_separator(c)) {
                    input.skip();
                    extra += 1;
                }
            }
            Node::Char(_) if !exact && extra > 0 => extra -= 1,
            Node::Char(_) | Node::Space(_) | Node::Separator(_) => input.skip(),
            Node::Field(item) => {
                fields.set_mode(item.field)?;
                if item.field == Field::Exact {
                    exact = true;
                } else {
                    let open = is_open(item, nodes.get(place + 1));
                    fields.take(item, open, extra, &mut input)?;
                }
                if !exact {
                    extra = input.skip_spaces();
                }
            }
        }
    }
    if standard {
        check_end(count == nodes.len(), &mut input)?;
    }
    Ok(fields)
}

/// Takes the character that a template asks for.
fn agree(node: &Node, input: &mut Input<'_>) -> Result<()> {
    let (what, c) = match node {
        Node::Char(c) => ("character", *c),
        Node::Space(c) | Node::Separator(c) => ("separator", *c),
        Node::Field(_) => return Ok(()),
    };
    if input.next() != Some(c) {
        return Err(wrong(format!("unmatched format {what} \"{c}\"")));
    }
    input.skip();
    Ok(())
}

/// Template and text have to end together.
fn check_end(is_whole: bool, input: &mut Input<'_>) -> Result<()> {
    if !is_whole {
        return Err(wrong("input string is too short for datetime format".to_owned()));
    }
    input.skip_spaces();
    if input.rest().is_empty() {
        return Ok(());
    }
    Err(wrong("trailing characters remain in input string after datetime format".to_owned()))
}

impl Fields {
    fn set_mode(&mut self, field: Field) -> Result<()> {
        if let Some(mode) = mode_of(field)
            && *self.mode.get_or_insert(mode) != mode
        {
            let what = "invalid combination of date conventions".to_owned();
            return Err(wrong(what).hint(
                "Do not mix Gregorian and ISO week date conventions in a formatting template.",
            ));
        }
        Ok(())
    }

    fn take(&mut self, item: &Item, open: bool, extra: i32, input: &mut Input<'_>) -> Result<()> {
        match item.field {
            Field::Exact => return Ok(()),
            Field::ZoneName | Field::ZoneOffset => {
                let message =
                    format!("formatting field \"{}\" is only supported in to_char", item.name);
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            Field::Meridiem(_)
            | Field::Era(_)
            | Field::MonthName(_)
            | Field::DayName(_)
            | Field::RomanMonth => return self.take_word(item, input),
            Field::ZoneHour => {
                self.zone_sign = match input.next() {
                    Some('-') => -1,
                    Some('+' | ' ') => 1,
                    // A minus that was taken as a separator is one nevertheless.
                    _ if extra > 0
                        && input.text.get(..input.at).is_some_and(|t| t.ends_with('-')) =>
                    {
                        -1
                    }
                    _ => 1,
                };
                if matches!(input.next(), Some('-' | '+' | ' ')) {
                    input.skip();
                }
            }
            Field::ZoneMinute if self.zone_sign == 0 => self.zone_sign = 1,
            Field::YearComma => return self.take_year_comma(item, input),
            _ => {}
        }
        self.take_number(item, open, input)
    }

    fn take_word(&mut self, item: &Item, input: &mut Input<'_>) -> Result<()> {
        let short = |name: &'static &'static str| name.get(..3).unwrap_or(name);
        match item.field {
            Field::Meridiem(points) => {
                let words = if points { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let value = input.word(words.into_iter(), item)?;
                self.afternoon.set(value, item)?;
                self.is_12_hours = true;
            }
            Field::Era(points) => {
                let words = if points { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                let value = input.word(words.into_iter(), item)?;
                self.before_christ.set(value, item)?;
            }
            Field::MonthName(full) => {
                let value = match full {
                    true => input.word(MONTHS.iter().copied(), item)?,
                    false => input.word(MONTHS.iter().map(short), item)?,
                };
                self.month.set(value + 1, item)?;
            }
            Field::DayName(full) => {
                let value = match full {
                    true => input.word(DAYS.iter().copied(), item)?,
                    false => input.word(DAYS.iter().map(short), item)?,
                };
                self.day_of_week.set(value, item)?;
                self.day_of_week.value += 1;
            }
            _ => {
                let value = input.word(ROMAN_MONTHS.iter().copied(), item)?;
                self.month.set(12 - value, item)?;
            }
        }
        Ok(())
    }

    fn take_year_comma(&mut self, item: &Item, input: &mut Input<'_>) -> Result<()> {
        let bad = || wrong("invalid input string for \"Y,YYY\"".to_owned());
        let (thousands, used) = Input::number(input.rest());
        let after = input.rest().get(used..).and_then(|rest| rest.strip_prefix(','));
        let after = after.filter(|_| used > 0).ok_or_else(bad)?;
        let spaces = after.len() - after.trim_start_matches(is_space).len();
        let number = after.get(spaces..).unwrap_or("");
        let (rest, length) =
            Input::number(number.get(..number.floor_char_boundary(3)).unwrap_or(""));
        if length == 0 {
            return Err(bad());
        }
        let year = thousands.saturating_mul(1000).saturating_add(rest);
        self.year.set(i32::try_from(year).map_err(|_| bad())?, item)?;
        self.year_digits = 4;
        input.at += used + 1 + spaces + length;
        input.skip_ordinal(item);
        Ok(())
    }

    fn take_number(&mut self, item: &Item, open: bool, input: &mut Input<'_>) -> Result<()> {
        let length = match item.field {
            Field::Hour12 | Field::Hour24 | Field::ZoneHour | Field::ZoneMinute => 2,
            Field::Millisecond | Field::IsoDayOfYear => 3,
            Field::Microsecond => 6,
            Field::IsoDayOfWeek => 1,
            Field::Fraction(digits) => digits as usize,
            _ => item.name.len(),
        };
        let (used, value) = input.field(length, item, open)?;
        let fraction = |most: u32| {
            let missing = most.saturating_sub(u32::try_from(used).unwrap_or(most));
            value.saturating_mul(10i32.pow(missing.min(6)))
        };
        match item.field {
            Field::Hour12 => {
                self.is_12_hours = true;
                self.hour.set(value, item)?;
            }
            Field::Hour24 => self.hour.set(value, item)?,
            Field::Minute => self.minute.set(value, item)?,
            Field::Second => self.second.set(value, item)?,
            Field::SecondOfDay => self.second_of_day.set(value, item)?,
            Field::Millisecond => {
                self.millisecond.set(value, item)?;
                self.millisecond.value = fraction(3);
            }
            Field::Microsecond | Field::Fraction(_) => {
                if let Field::Fraction(digits) = item.field {
                    self.fraction = digits;
                }
                self.microsecond.set(value, item)?;
                self.microsecond.value = fraction(6);
            }
            Field::ZoneHour => return self.zone_hour.set(value, item),
            Field::ZoneMinute => return self.zone_minute.set(value, item),
            Field::Month => self.month.set(value, item)?,
            Field::DayOfYear | Field::IsoDayOfYear => self.day_of_year.set(value, item)?,
            Field::Day => self.day.set(value, item)?,
            Field::DayOfWeek => self.day_of_week.set(value, item)?,
            Field::IsoDayOfWeek => {
                self.day_of_week.set(value, item)?;
                let next = value.saturating_add(1);
                self.day_of_week.value = if next > 7 { 1 } else { next };
            }
            Field::Week | Field::IsoWeek => self.week.set(value, item)?,
            Field::WeekOfMonth => self.week_of_month.set(value, item)?,
            Field::Century => self.century.set(value, item)?,
            Field::Julian => self.julian.set(value, item)?,
            Field::Year(digits) | Field::IsoYear(digits) => {
                self.year.set(value, item)?;
                self.year_digits = digits;
                if digits < 4 && used < 4 {
                    self.year.value = near_2020(value);
                }
            }
            // The quarter says nothing that a date could be made of.
            _ => {}
        }
        input.skip_ordinal(item);
        Ok(())
    }
}

/// A year of up to three digits, as the one of such an end that is closest to 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year.saturating_add(2000),
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}
