//! Time zones in POSIX's form, as PostgreSQL reads them: `CST7CDT`,
//! `AEST-10AEDT,M10.1.0,M4.1.0/3`.
//!
//! A name, seconds west of UTC, then perhaps a second name with its own offset, and the rules for
//! the two changes of a year. Names may be almost anything. Without rules, those of the USA hold.

use super::calendar::{USECS_PER_DAY, civil_of_timestamp, date_of_civil, days_in_month};

const DAY: i64 = 86_400;
const USECS_PER_SECOND: i64 = 1_000_000;
/// PostgreSQL's limit of an offset: a week, less an hour.
const MOST_HOURS: i32 = 167;
/// The rules of a zone that names none.
const DEFAULT_RULES: &str = ",M3.2.0,M11.1.0";

/// What a text in POSIX's form means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posix {
    /// Seconds east of UTC.
    Fixed(i32),
    Changing(PosixZone),
}

/// A zone with a summer time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixZone {
    /// Seconds west of UTC.
    standard: i32,
    summer: i32,
    /// When summer time begins and ends.
    start: Rule,
    end: Rule,
}

/// A moment of each year, on the clock that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    day: RuleDay,
    /// Seconds after midnight.
    time: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleDay {
    /// `J`, a day from 1, without the 29th of February.
    Julian(u16),
    /// A day from 0.
    OfYear(u16),
    /// `M`, the given day of the week in the given week of a month. Week 5 is the last.
    Weekday { month: u8, week: u8, weekday: u8 },
}

/// A change of a zone's offset: when it is, in seconds since 2000, and what holds then.
type Change = (i64, i32);

impl Posix {
    /// Reads a zone.
    pub(super) fn parse(text: &str) -> Option<Posix> {
        let (standard, rest) = offset(name(text)?)?;
        if rest.is_empty() {
            return Some(Posix::Fixed(-standard));
        }
        let after_name = name(rest)?;
        if after_name.len() == rest.len() {
            return None;
        }
        let (summer, rules) = match after_name.chars().next() {
            None | Some(',' | ';') => (standard - 3600, after_name),
            Some(_) => offset(after_name)?,
        };
        let rules = if rules.is_empty() { DEFAULT_RULES } else { rules };
        let (start, rest) = rule(rules.strip_prefix([',', ';'])?)?;
        let (end, rest) = rule(rest.strip_prefix(',')?)?;
        rest.is_empty().then_some(Posix::Changing(PosixZone { standard, summer, start, end }))
    }
}

impl PosixZone {
    /// Seconds east of UTC at that time, in microseconds since 2000.
    pub(super) fn offset_at(self, utc: i64) -> i32 {
        let changes = self.changes_around(utc);
        let seconds = utc.div_euclid(USECS_PER_SECOND);
        let last = changes.iter().rfind(|(at, _)| *at <= seconds);
        last.map_or(self.before(&changes), |(_, offset)| *offset)
    }

    /// The smaller and the larger of both offsets, in seconds east of UTC.
    pub(super) fn offsets(self) -> (i32, i32) {
        let (standard, summer) = (-self.standard, -self.summer);
        (standard.min(summer), standard.max(summer))
    }

    /// Seconds east of UTC when the zone's clock shows that time.
    pub(super) fn offset_of_local(self, local: i64) -> i32 {
        let the_day_before = local.saturating_sub(USECS_PER_DAY);
        let before = self.offset_at(the_day_before);
        let day_before = the_day_before.div_euclid(USECS_PER_SECOND);
        let changes = self.changes_around(the_day_before);
        let Some((at, after)) = changes.into_iter().find(|(at, _)| *at > day_before) else {
            return before;
        };
        let seconds = local.div_euclid(USECS_PER_SECOND);
        let [as_before, as_after] = [before, after].map(|offset| seconds - i64::from(offset));
        match (as_before < at, as_after < at) {
            (true, true) => before,
            (false, false) => after,
            // The clock skips the time.
            _ if as_before > as_after => before,
            // The clock shows it twice.
            _ => after,
        }
    }

    /// What holds before the first change; for ever, if there is none.
    fn before(self, changes: &[Change]) -> i32 {
        if changes.is_empty() { -self.summer } else { -self.standard }
    }

    /// The changes of the year of a time and of its neighbours, in order.
    fn changes_around(self, utc: i64) -> Vec<Change> {
        let year = i64::from(civil_of_timestamp(utc).year);
        (year - 1..=year + 1).filter_map(|year| self.changes_of(year)).flatten().collect()
    }

    /// The changes of a year; `None` if it is summer all the year.
    fn changes_of(self, year: i64) -> Option<[Change; 2]> {
        let new_year = date_of_civil(year, 1, 1)? * DAY;
        let start = self.start.seconds(year)? + i64::from(self.standard);
        let end = self.end.seconds(year)? + i64::from(self.summer);
        let length = DAY * if days_in_month(year, 2) == 29 { 366 } else { 365 };
        let (start, end) = ((start, -self.summer), (end, -self.standard));
        if end.0 < start.0 {
            return Some([end, start].map(|(at, offset)| (new_year + at, offset)));
        }
        let most = length + i64::from(self.standard - self.summer);
        (start.0 < end.0 && end.0 - start.0 < most)
            .then(|| [start, end].map(|(at, offset)| (new_year + at, offset)))
    }
}

impl Rule {
    /// Seconds from the beginning of a year.
    fn seconds(self, year: i64) -> Option<i64> {
        let is_leap = days_in_month(year, 2) == 29;
        let days = match self.day {
            RuleDay::Julian(day) => i64::from(day) - 1 + i64::from(is_leap && day >= 60),
            RuleDay::OfYear(day) => i64::from(day),
            RuleDay::Weekday { month, week, weekday } => {
                let new_year = date_of_civil(year, 1, 1)?;
                let month = u32::from(month);
                let first = date_of_civil(year, month, 1)?;
                // The first of January 2000 was a Saturday.
                let of_first = (first + 6).rem_euclid(7);
                let first_such = (i64::from(weekday) - of_first).rem_euclid(7);
                let mut day = first_such + 7 * (i64::from(week) - 1);
                while day >= i64::from(days_in_month(year, month)) {
                    day -= 7;
                }
                first - new_year + day
            }
        };
        Some(days * DAY + i64::from(self.time))
    }
}

/// What is behind a name, which may be empty.
fn name(text: &str) -> Option<&str> {
    match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>').map(|(_, rest)| rest),
        None => Some(
            text.trim_start_matches(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '-' | '+')),
        ),
    }
}

/// A number within limits, and what is behind it.
fn number(text: &str, from: i32, to: i32) -> Option<(i32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let value: i32 = digits.parse().ok()?;
    (from..=to).contains(&value).then_some((value, rest))
}

/// Hours, with minutes and seconds or without, and what is behind them.
fn offset(text: &str) -> Option<(i32, &str)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, mut rest) = number(digits, 0, MOST_HOURS)?;
    let mut seconds = hours * 3600;
    for (unit, most) in [(60, 59), (1, 60)] {
        let Some(part) = rest.strip_prefix(':') else { break };
        let (value, after) = number(part, 0, most)?;
        seconds += value * unit;
        rest = after;
    }
    Some((sign * seconds, rest))
}

/// A rule, and what is behind it.
fn rule(text: &str) -> Option<(Rule, &str)> {
    let (day, rest) = if let Some(julian) = text.strip_prefix('J') {
        let (day, rest) = number(julian, 1, 365)?;
        (RuleDay::Julian(day as u16), rest)
    } else if let Some(months) = text.strip_prefix('M') {
        let (month, rest) = number(months, 1, 12)?;
        let (week, rest) = number(rest.strip_prefix('.')?, 1, 5)?;
        let (weekday, rest) = number(rest.strip_prefix('.')?, 0, 6)?;
        let [month, week, weekday] = [month, week, weekday].map(|part| part as u8);
        (RuleDay::Weekday { month, week, weekday }, rest)
    } else {
        let (day, rest) = number(text, 0, 365)?;
        (RuleDay::OfYear(day as u16), rest)
    };
    let (time, rest) = match rest.strip_prefix('/') {
        Some(time) => offset(time)?,
        None => (2 * 3600, rest),
    };
    Some((Rule { day, time }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(text: &str) -> PosixZone {
        match Posix::parse(text) {
            Some(Posix::Changing(zone)) => zone,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn at(text: &str) -> i64 {
        crate::format::datetime::parse_timestamp(text, &Default::default()).unwrap()
    }

    /// What PostgreSQL 15 answers.
    #[test]
    fn clocks_change_twice_a_year() {
        let utc = ["2020-01-15 12:00", "2020-07-01 12:00", "2021-03-14 07:30", "1850-07-01"];
        for (text, hours) in [
            ("CST7CDT", [-7, -6, -7, -6]),
            ("EST5EDT,M3.2.0,M11.1.0", [-5, -4, -4, -4]),
            ("-2.53", [2, -53, -53, -53]),
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", [11, 10, 11, 10]),
            ("X3Y2,J60,J300/1", [-3, -2, -2, -2]),
            ("A1B,0/0,364", [0, 0, 0, 0]),
            ("<+03>-3<+04>,M3.5.0/1,M10.5.0/-1", [3, 4, 3, 4]),
        ] {
            let found = utc.map(|utc| zone(text).offset_at(at(utc)) / 3600);
            assert_eq!(found, hours, "{text}");
        }
        let local = ["2021-03-14 02:30", "2021-11-07 01:30", "2021-03-28 01:30", "2500-07-01"];
        for (text, utc) in [
            (
                "CST7CDT",
                ["2021-03-14 09:30", "2021-11-07 08:30", "2021-03-28 07:30", "2500-07-01 06:00"],
            ),
            (
                "-2.53",
                ["2021-03-16 07:30", "2021-11-09 06:30", "2021-03-30 06:30", "2500-07-03 05:00"],
            ),
        ] {
            let offsets = local.map(|local| i64::from(zone(text).offset_of_local(at(local))));
            let found = [0, 1, 2, 3].map(|i| at(local[i]) - offsets[i] * USECS_PER_SECOND);
            assert_eq!(found, utc.map(at), "{text}");
        }
    }

    #[test]
    fn most_names_will_do() {
        for (text, seconds) in [("S0000", 0), ("foo/1", -3600), ("est5", -18000), ("+2", -7200)] {
            assert_eq!(Posix::parse(text), Some(Posix::Fixed(seconds)), "{text}");
        }
        for text in
            ["", "abc", "EST", "a168", "-253", "EST5:99", "EST5EDT,M13.1.0,M1.1.0", "<x", "a5,"]
        {
            assert_eq!(Posix::parse(text), None, "{text}");
        }
    }
}
