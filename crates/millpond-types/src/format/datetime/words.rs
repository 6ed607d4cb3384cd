//! The words of dates and times.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Zone;

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Infinity,
    NegInfinity,
    Epoch,
    Now,
    /// The day that is this number of days after today.
    Today(i64),
    /// `allballs`: midnight in UTC
    Midnight,
    Month(i64),
    DayOfWeek,
    Pm(bool),
    /// `bc`, or `ad` with false
    Bc(bool),
    /// `dst`: an hour more than the zone says
    Dst,
    /// What the next number is.
    Unit(Unit),
    /// `t`: a time follows.
    Clock,
    /// `at`, `on`
    Filler,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    /// Run-together hours, minutes and seconds.
    Clock,
    /// A unit that dates are not made of.
    Other,
}

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

const DAYS_OF_WEEK: [&str; 15] = [
    "sun",
    "sunday",
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "weds",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
];

/// The meaning of a word in small letters, unless it is a zone.
pub(super) fn find(word: &str) -> Option<Word> {
    Some(match word {
        "infinity" => Word::Infinity,
        "-infinity" => Word::NegInfinity,
        "epoch" => Word::Epoch,
        "now" => Word::Now,
        "today" => Word::Today(0),
        "tomorrow" => Word::Today(1),
        "yesterday" => Word::Today(-1),
        "allballs" => Word::Midnight,
        "am" => Word::Pm(false),
        "pm" => Word::Pm(true),
        "ad" => Word::Bc(false),
        "bc" => Word::Bc(true),
        "dst" => Word::Dst,
        "at" | "on" => Word::Filler,
        "t" => Word::Clock,
        "y" => Word::Unit(Unit::Year),
        "m" => Word::Unit(Unit::Month),
        "d" => Word::Unit(Unit::Day),
        "h" => Word::Unit(Unit::Hour),
        "mm" => Word::Unit(Unit::Minute),
        "s" => Word::Unit(Unit::Second),
        "j" | "jd" | "julian" => Word::Unit(Unit::Julian),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Unit(Unit::Other),
        "sept" => Word::Month(9),
        "friday" | "sat" | "saturday" => Word::DayOfWeek,
        _ if DAYS_OF_WEEK.contains(&word) => Word::DayOfWeek,
        _ => Word::Month(month(word)?),
    })
}

fn month(word: &str) -> Option<i64> {
    let is_it = |month: &str| month == word || month.get(..3) == Some(word);
    MONTHS.iter().position(|month| is_it(month)).map(|place| place as i64 + 1)
}

/// The zone of an abbreviation, as PostgreSQL's default set has it.
pub(super) fn abbreviated(word: &str) -> Option<Zone> {
    static ZONES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let lines = |file: &'static str| file.lines().filter_map(|line| line.split_once(' '));
        // Abbreviations that always mean the same offset, with its seconds east of UTC; and those
        // whose offset has changed over time, with the zone that they are of.
        let fixed = lines(include_str!("abbreviations.txt"));
        fixed.chain(lines(include_str!("zone_abbreviations.txt"))).collect()
    });
    let meaning = ZONES.get(word)?;
    match meaning.parse() {
        Ok(seconds) => Some(Zone::Fixed(seconds)),
        Err(_) => Zone::parse(meaning).map(|(zone, _)| zone.of_abbreviation()),
    }
}
