//! The time zones that have names: `pg_timezone_names`.

use super::Kind::{Bool, Interval, Text};
use super::{Cell, Columns, Source, View, view};
use crate::types::Zone;
use millpond_types::current_timestamp;

/// The views of this file.
pub(crate) const VIEWS: &[View] =
    &[view("pg_timezone_names", 12104, PG_TIMEZONE_NAMES, pg_timezone_names)];

/// What functions return that are known in FROM only.
pub(crate) const FUNCTIONS: &[View] =
    &[view("pg_timezone_names", 12105, PG_TIMEZONE_NAMES, pg_timezone_names)];

const PG_TIMEZONE_NAMES: Columns =
    &[("name", Text), ("abbrev", Text), ("utc_offset", Interval), ("is_dst", Bool)];

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
