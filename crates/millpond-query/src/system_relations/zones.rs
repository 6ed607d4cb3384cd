//! The time zones that have names, and the abbreviations of zones in texts: `pg_timezone_names`,
//! `pg_timezone_abbrevs`.

use super::Kind::{Bool, Interval, Text};
use super::{Cell, Columns, Source, View, view};
use crate::types::Zone;
use millpond_types::current_timestamp;
use millpond_types::format::datetime::abbreviations_at;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_timezone_names", 12104, PG_TIMEZONE_NAMES, pg_timezone_names),
    view("pg_timezone_abbrevs", 12105, PG_TIMEZONE_ABBREVS, pg_timezone_abbrevs),
];

/// What functions return.
pub(crate) const FUNCTIONS: &[View] = &[
    view("pg_timezone_names", 2856, PG_TIMEZONE_NAMES, pg_timezone_names),
    view("pg_timezone_abbrevs", 2599, PG_TIMEZONE_ABBREVS, pg_timezone_abbrevs),
];

const PG_TIMEZONE_NAMES: Columns =
    &[("name", Text), ("abbrev", Text), ("utc_offset", Interval), ("is_dst", Bool)];

const PG_TIMEZONE_ABBREVS: Columns =
    &[("abbrev", Text), ("utc_offset", Interval), ("is_dst", Bool)];

const USECS_PER_SECOND: i64 = 1_000_000;

fn pg_timezone_names(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let now = current_timestamp();
    let row = |(name, zone): (&str, Zone)| {
        vec![
            name.into(),
            zone.abbreviation_at(now).into(),
            (i64::from(zone.offset_at(now)) * USECS_PER_SECOND).into(),
            zone.is_dst_at(now).into(),
        ]
    };
    Zone::all_named().map(row).collect()
}

fn pg_timezone_abbrevs(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let now = current_timestamp();
    let row = |(name, zone, is_dst): (&str, Zone, bool)| {
        vec![
            name.to_ascii_uppercase().into(),
            (i64::from(zone.offset_at(now)) * USECS_PER_SECOND).into(),
            is_dst.into(),
        ]
    };
    abbreviations_at(now).map(row).collect()
}
