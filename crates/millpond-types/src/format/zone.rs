//! Time zones: how far a session's clock is from UTC.
//!
//! Without the feature `time-zones` there are UTC and zones in POSIX's form; with it every zone of
//! the IANA's database. Its rules are known until 2100. A later year is read as an earlier one
//! whose days fall on the same days of the week.

use super::posix_zone::{Posix, PosixZone};
use crate::{TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY};

const USECS_PER_SECOND: i64 = 1_000_000;
/// PostgreSQL's limit: a week, less an hour.
const MOST_HOURS: i32 = 167;
/// Names of UTC that are known in any case.
const UTC_NAMES: &[&str] = &[
    "UTC",
    "GMT",
    "UCT",
    "Zulu",
    "Universal",
    "Greenwich",
    "Etc/UTC",
    "Etc/GMT",
    "Etc/UCT",
    "Etc/Zulu",
    "Etc/Universal",
    "Etc/Greenwich",
];

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A fixed offset: seconds east of UTC.
    Fixed(i32),
    /// A zone with rules of its own.
    Posix(PosixZone),
    /// A zone of the IANA's database.
    #[cfg(feature = "time-zones")]
    Named(chrono_tz::Tz),
    /// The same, of which an abbreviation was given: see [`Zone::of_abbreviation`].
    #[cfg(feature = "time-zones")]
    Abbreviated(chrono_tz::Tz),
}

impl Default for Zone {
    fn default() -> Self {
        Zone::UTC
    }
}

impl Zone {
    /// The zone of a session that has set none.
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone of a text as `SET TimeZone` takes it, and how `SHOW` spells it. The text is a name,
    /// or hours east of UTC.
    pub fn parse(text: &str) -> Option<(Zone, String)> {
        match text.trim().parse::<f64>() {
            Ok(hours) => hours_east(hours),
            Err(_) => Self::named(text),
        }
    }

    /// The zone of a name, and how `SHOW` spells it. A name may be in POSIX's form, which counts to
    /// the west.
    pub fn named(name: &str) -> Option<(Zone, String)> {
        let name = name.trim();
        if let Some(name) = UTC_NAMES.iter().find(|utc| utc.eq_ignore_ascii_case(name)) {
            return Some((Zone::UTC, (*name).to_owned()));
        }
        #[cfg(feature = "time-zones")]
        if let Some(zone) =
            chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name))
        {
            return Some((Zone::Named(*zone), zone.name().to_owned()));
        }
        let name = name.to_ascii_uppercase();
        let zone = match Posix::parse(&name)? {
            Posix::Fixed(seconds) => Zone::Fixed(seconds),
            Posix::Changing(zone) => Zone::Posix(zone),
        };
        Some((zone, name))
    }

    /// The same zone where one of its abbreviations was written. A time that the clock skips is
    /// read as what the abbreviation means from then on.
    pub(super) fn of_abbreviation(self) -> Zone {
        match self {
            #[cfg(feature = "time-zones")]
            Zone::Named(zone) => Zone::Abbreviated(zone),
            zone => zone,
        }
    }

    /// Seconds east of UTC at that time (microseconds since 2000, UTC).
    pub fn offset_at(self, utc: i64) -> i32 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Posix(zone) => zone.offset_at(utc),
            #[cfg(feature = "time-zones")]
            Zone::Named(zone) | Zone::Abbreviated(zone) => named::offset_at(zone, utc),
        }
    }

    /// Seconds east of UTC when the zone's clock shows that time. As PostgreSQL does, a time that
    /// the clock skips is read as if it had not been put forward yet. A time that it shows twice is
    /// read as the later of the two.
    pub fn offset_of_local(self, local: i64) -> i32 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Posix(zone) => zone.offset_of_local(local),
            #[cfg(feature = "time-zones")]
            Zone::Named(zone) => named::offset_of_local(zone, local),
            #[cfg(feature = "time-zones")]
            Zone::Abbreviated(zone) => {
                let before = i64::from(named::offset_of_local(zone, local)) * USECS_PER_SECOND;
                named::offset_at(zone, local.saturating_sub(before))
            }
        }
    }

    /// What the zone's clock shows at that time.
    pub fn local(self, utc: i64) -> i64 {
        match utc {
            TIMESTAMP_INFINITY | TIMESTAMP_NEG_INFINITY => utc,
            _ => utc.saturating_add(i64::from(self.offset_at(utc)) * USECS_PER_SECOND),
        }
    }

    /// When the zone's clock shows that time.
    pub fn utc(self, local: i64) -> i64 {
        match local {
            TIMESTAMP_INFINITY | TIMESTAMP_NEG_INFINITY => local,
            _ => local.saturating_sub(i64::from(self.offset_of_local(local)) * USECS_PER_SECOND),
        }
    }

    /// The earliest and the latest local time that belongs to a time: the zone's clock shows it
    /// then, or [`Zone::utc`] makes the time of it. In a zone of the database the two differ only
    /// where its offset changes within a few days.
    pub fn locals_near(self, utc: i64) -> (i64, i64) {
        let (least, most) = self.offsets_near(utc);
        (east(utc, least), east(utc, most))
    }

    /// The earliest and the latest time that belongs to a local time: the inverse of
    /// [`Zone::locals_near`].
    pub fn utcs_near(self, local: i64) -> (i64, i64) {
        let (least, most) = self.offsets_near(self.utc(local));
        (east(local, -most), east(local, -least))
    }

    /// The smallest and the largest offset within 50 hours of a time, or more. No clock is changed
    /// by more than a day.
    fn offsets_near(self, utc: i64) -> (i32, i32) {
        let _ = utc;
        match self {
            Zone::Fixed(seconds) => (seconds, seconds),
            Zone::Posix(zone) => zone.offsets(),
            #[cfg(feature = "time-zones")]
            Zone::Named(_) | Zone::Abbreviated(_) => {
                // In no zone of the database does an offset last for less than 95 hours (Freetown,
                // 1939).
                let offsets = [-50, -25, 0, 25, 50]
                    .map(|hour| self.offset_at(utc.saturating_add(hour * 3600 * USECS_PER_SECOND)));
                offsets.into_iter().fold((i32::MAX, i32::MIN), |(least, most), offset| {
                    (least.min(offset), most.max(offset))
                })
            }
        }
    }

    /// What the zone is called at that time: `CET`, or an offset where it has no letters.
    pub fn abbreviation_at(self, utc: i64) -> String {
        match self {
            Zone::UTC => "UTC".to_owned(),
            Zone::Posix(zone) => Zone::Fixed(zone.offset_at(utc)).abbreviation_at(utc),
            Zone::Fixed(seconds) => {
                let sign = if seconds < 0 { '-' } else { '+' };
                let [hours, minutes, rest] =
                    [seconds / 3600, seconds / 60 % 60, seconds % 60].map(i32::abs);
                match (minutes, rest) {
                    (0, 0) => format!("{sign}{hours:02}"),
                    (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
                    _ => format!("{sign}{hours:02}:{minutes:02}:{rest:02}"),
                }
            }
            #[cfg(feature = "time-zones")]
            Zone::Named(zone) | Zone::Abbreviated(zone) => named::abbreviation_at(zone, utc),
        }
    }

    /// Whether its clock shows summer time at that time.
    pub fn is_dst_at(self, utc: i64) -> bool {
        let _ = utc;
        match self {
            #[cfg(feature = "time-zones")]
            Zone::Named(zone) | Zone::Abbreviated(zone) => named::is_dst_at(zone, utc),
            _ => false,
        }
    }

    /// All zones that have names of their own.
    pub fn all_named() -> impl Iterator<Item = (&'static str, Zone)> {
        #[cfg(feature = "time-zones")]
        let zones = chrono_tz::TZ_VARIANTS.iter().map(|zone| (zone.name(), Zone::Named(*zone)));
        #[cfg(not(feature = "time-zones"))]
        let zones = [("UTC", Zone::UTC)].into_iter();
        zones
    }
}

/// Hours east of UTC, shown as PostgreSQL shows them: in ISO's sense in brackets, then in POSIX's.
fn hours_east(hours: f64) -> Option<(Zone, String)> {
    if !hours.is_finite() || hours.abs() > f64::from(MOST_HOURS) {
        return None;
    }
    let seconds = (hours * 3600.0) as i32;
    let [hours, minutes, rest] = [seconds / 3600, seconds / 60 % 60, seconds % 60].map(i32::abs);
    let shown = match (minutes, rest) {
        (0, 0) => format!("{hours:02}"),
        (_, 0) => format!("{hours:02}:{minutes:02}"),
        _ => format!("{hours:02}:{minutes:02}:{rest:02}"),
    };
    let (iso, posix) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
    Some((Zone::Fixed(seconds), format!("<{iso}{shown}>{posix}{shown}")))
}

/// Adds seconds to a time. An infinite time stays infinite.
fn east(time: i64, seconds: i32) -> i64 {
    match time {
        TIMESTAMP_INFINITY | TIMESTAMP_NEG_INFINITY => time,
        _ => time.saturating_add(i64::from(seconds) * USECS_PER_SECOND),
    }
}

#[cfg(feature = "time-zones")]
mod named {
    use chrono::{DateTime, Datelike, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone};
    use chrono_tz::{OffsetComponents, OffsetName, Tz};

    /// Microseconds from 1970 to 2000.
    const EPOCH_2000_US: i64 = 946_684_800_000_000;
    const DAY_US: i64 = 86_400_000_000;

    /// 400 years: then dates fall on the same days of the week again.
    const CYCLE_US: i64 = 146_097 * DAY_US;
    /// The first year without rules.
    const FIRST_UNKNOWN: i32 = 2100;

    fn naive(us: i64) -> NaiveDateTime {
        // chrono's calendar ends before PostgreSQL's time stamps do.
        let us = if us > CYCLE_US { us % CYCLE_US + CYCLE_US } else { us };
        let since_1970 = DateTime::from_timestamp_micros(us.saturating_add(EPOCH_2000_US));
        let time = since_1970.map_or(NaiveDateTime::MIN, |time| time.naive_utc());
        if time.year() < FIRST_UNKNOWN { time } else { like(time).unwrap_or(time) }
    }

    /// The same day of the last year with rules that has its length and begins on its day of the
    /// week.
    fn like(time: NaiveDateTime) -> Option<NaiveDateTime> {
        let days = |year| {
            let first = NaiveDate::from_yo_opt(year, 1)?;
            Some((first.weekday(), first.leap_year()))
        };
        let own = days(time.year());
        let year = (FIRST_UNKNOWN - 28..FIRST_UNKNOWN).rev().find(|year| days(*year) == own)?;
        Some(NaiveDate::from_yo_opt(year, time.ordinal())?.and_time(time.time()))
    }

    pub(super) fn offset_at(zone: Tz, utc: i64) -> i32 {
        zone.offset_from_utc_datetime(&naive(utc)).fix().local_minus_utc()
    }

    pub(super) fn is_dst_at(zone: Tz, utc: i64) -> bool {
        !zone.offset_from_utc_datetime(&naive(utc)).dst_offset().is_zero()
    }

    pub(super) fn abbreviation_at(zone: Tz, utc: i64) -> String {
        let offset = zone.offset_from_utc_datetime(&naive(utc));
        let name = offset.abbreviation().map(str::to_owned);
        name.unwrap_or_else(|| {
            // The database's names of offsets have no colons.
            let offset = super::Zone::Fixed(offset.fix().local_minus_utc());
            offset.abbreviation_at(utc).replace(':', "")
        })
    }

    pub(super) fn offset_of_local(zone: Tz, local: i64) -> i32 {
        match zone.offset_from_local_datetime(&naive(local)) {
            MappedLocalTime::Single(offset) => offset.fix().local_minus_utc(),
            MappedLocalTime::Ambiguous(_, later) => later.fix().local_minus_utc(),
            // What held the day before.
            MappedLocalTime::None => offset_at(zone, local.saturating_sub(DAY_US)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(text: &str) -> Option<(Zone, String)> {
        Zone::parse(text)
    }

    #[test]
    fn offsets_are_read_as_postgresql_reads_them() {
        for (text, seconds, shown) in [
            ("utc", 0, "UTC"),
            ("Etc/gmt", 0, "Etc/GMT"),
            ("1", 3600, "<+01>-01"),
            ("+05.5", 19800, "<+05:30>-05:30"),
            ("-8", -28800, "<-08>+08"),
            ("0", 0, "<+00>-00"),
            ("<+01>-01", 3600, "<+01>-01"),
            ("jst-9", 32400, "JST-9"),
            ("foo+3:30", -12600, "FOO+3:30"),
            ("+02:00", -7200, "+02:00"),
            ("-3:30", 12600, "-3:30"),
            ("z0", 0, "Z0"),
            ("1.51", 5436, "<+01:30:36>-01:30:36"),
        ] {
            let found = (Zone::Fixed(seconds), shown.to_owned());
            assert_eq!(zone(text), Some(found.clone()), "{text}");
            assert_eq!(zone(shown), Some(found), "{text}, as it is shown");
        }
        for text in ["", "nowhere", "Europe/Nowhere", "ab+", "abc", "1000", "nan", "EST5:99", "<x"]
        {
            assert_eq!(zone(text), None, "{text}");
        }
    }

    #[cfg(not(feature = "time-zones"))]
    #[test]
    fn zones_with_rules_are_refused() {
        assert_eq!(zone("Europe/Berlin"), None);
    }

    #[cfg(feature = "time-zones")]
    #[test]
    fn local_times_near_a_time_include_all_that_compare_with_it() {
        use rand::{Rng, SeedableRng, rngs::SmallRng};
        const HOUR: i64 = 3600 * USECS_PER_SECOND;
        fn check(zone: Zone, name: &str, utc: i64, local: i64) {
            let (earliest, latest) = zone.locals_near(utc);
            assert!(zone.utc(local) < utc || local >= earliest, "{name} {utc} {local}");
            assert!(zone.utc(local) > utc || local <= latest, "{name} {utc} {local}");
            let (earliest, latest) = zone.utcs_near(local);
            assert!(zone.local(utc) < local || utc >= earliest, "{name} {utc} {local}");
            assert!(zone.local(utc) > local || utc <= latest, "{name} {utc} {local}");
        }
        let mut random = SmallRng::seed_from_u64(7);
        for (name, zone) in Zone::all_named() {
            // From 1915 to 2035, around changes of the clock.
            let mut changes = 0;
            for month in -1_020..420 {
                let (mut before, mut after) = (month * 730 * HOUR, (month + 1) * 730 * HOUR);
                if zone.offset_at(before) == zone.offset_at(after) || changes > 60 {
                    continue;
                }
                while after - before > HOUR {
                    let middle = before + (after - before) / 2;
                    let is_after = zone.offset_at(middle) == zone.offset_at(after);
                    *(if is_after { &mut after } else { &mut before }) = middle;
                }
                changes += 1;
                for _ in 0..20 {
                    let mut near = |time| time + random.random_range(-3_600..3_600) * HOUR / 60;
                    let utc = near(after);
                    check(zone, name, utc, near(zone.local(utc)));
                }
            }
        }
        // Where no clock is changed nearby, there is one.
        let berlin = Zone::named("Europe/Berlin").unwrap().0;
        assert_eq!(berlin.locals_near(0), (HOUR, HOUR));
        assert_eq!(berlin.locals_near(i64::MAX), (i64::MAX, i64::MAX));
        assert_eq!(Zone::Fixed(-3600).utcs_near(0), (HOUR, HOUR));
    }

    #[cfg(feature = "time-zones")]
    #[test]
    fn clocks_are_put_forward_and_back() {
        let (berlin, shown) = zone("europe/berlin").unwrap();
        assert_eq!(shown, "Europe/Berlin");
        let at = |text: &str| {
            crate::format::datetime::parse_timestamp(text, &Default::default()).unwrap()
        };
        for (local, utc) in [
            ("2026-01-01 12:00", "2026-01-01 11:00"),
            ("2026-07-01 12:00", "2026-07-01 10:00"),
            // Skipped: as before the change.
            ("2026-03-29 02:30", "2026-03-29 01:30"),
            // Twice: the later.
            ("2026-10-25 02:30", "2026-10-25 01:30"),
        ] {
            assert_eq!(berlin.utc(at(local)), at(utc), "{local}");
        }
        assert_eq!(berlin.local(at("2026-03-29 01:30")), at("2026-03-29 03:30"));
        assert_eq!(berlin.local(i64::MAX), i64::MAX);
        assert_eq!(berlin.offset_at(i64::MAX - 1), 3600);
        let kathmandu = Zone::named("Asia/Kathmandu").unwrap().0;
        assert_eq!(kathmandu.abbreviation_at(at("2026-01-01")), "+0545");
        for (utc, hours) in [
            ("2099-07-01", 2),
            ("2100-03-28 00:59", 1),
            ("2100-03-28 01:00", 2),
            ("2399-12-31", 1),
            ("2400-03-26 00:59", 1),
            ("2400-03-26 01:00", 2),
            ("205000-07-10", 2),
            ("290000-07-10", 2),
            ("4713-01-01 BC", 0),
        ] {
            assert_eq!(berlin.offset_at(at(utc)) / 3600, hours, "{utc}");
        }
    }
}
