//! The words of dates and times.

use std::collections::BTreeMap;
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

/// What an abbreviation means.
struct Abbreviation {
    /// The seconds east of UTC, or the zone that it is of.
    meaning: &'static str,
    /// Whether it means summer time, of one with an offset.
    is_dst: bool,
}

impl Abbreviation {
    fn zone(&self) -> Option<Zone> {
        match self.meaning.parse() {
            Ok(seconds) => Some(Zone::Fixed(seconds)),
            Err(_) => Zone::parse(self.meaning).map(|(zone, _)| zone.of_abbreviation()),
        }
    }
}

/// PostgreSQL's default set of abbreviations, in their order.
static ABBREVIATIONS: LazyLock<BTreeMap<&str, Abbreviation>> = LazyLock::new(|| {
    let parsed = |line: &'static str| {
        let mut words = line.split(' ');
        let (name, meaning) = (words.next()?, words.next()?);
        Some((name, Abbreviation { meaning, is_dst: words.next().is_some() }))
    };
    // Those that always mean the same offset, and those whose offset has changed over time.
    let fixed = include_str!("abbreviations.txt").lines();
    fixed.chain(include_str!("zone_abbreviations.txt").lines()).filter_map(parsed).collect()
});

/// The zone of an abbreviation in small letters.
pub(super) fn abbreviated(word: &str) -> Option<Zone> {
    ABBREVIATIONS.get(word)?.zone()
}

/// All abbreviations in small letters: each with its zone, and whether it means summer time at that
/// time (microseconds since 2000, UTC).
pub fn abbreviations_at(utc: i64) -> impl Iterator<Item = (&'static str, Zone, bool)> {
    ABBREVIATIONS.iter().filter_map(move |(name, abbreviation)| {
        let zone = abbreviation.zone()?;
        Some((*name, zone, abbreviation.is_dst || zone.is_dst_at(utc)))
    })
}
