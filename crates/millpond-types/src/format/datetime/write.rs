//! Dates and time stamps as they are written, in all styles.

use crate::{DATE_INFINITY, DATE_NEG_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY};

use super::super::calendar::{Civil, USECS_PER_DAY, civil_of_date, civil_of_timestamp};
use super::super::integer::write_padded;
use super::{DateFormat, DateOrder, DateStyle, USECS_PER_SECOND, Zone};

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Letters of a zone's abbreviation.
const MOST_LETTERS: usize = 10;

pub(in crate::format) fn write_date(date: i32, style: DateStyle, out: &mut Vec<u8>) {
    match date {
        DATE_INFINITY => out.extend_from_slice(b"infinity"),
        DATE_NEG_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => {
            let civil = civil_of_date(date);
            match style.format {
                DateFormat::Iso => write_iso_day(&civil, out),
                format => {
                    write_short_day(&civil, style.order, separator(format), out);
                }
            }
            write_era(&civil, out);
        }
    }
}

/// Prints a time stamp; with a zone, one with time zone.
pub(in crate::format) fn write_timestamp(
    timestamp: i64,
    zone: Option<Zone>,
    style: DateStyle,
    out: &mut Vec<u8>,
) {
    match timestamp {
        TIMESTAMP_INFINITY => return out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEG_INFINITY => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let offset = zone.map_or(0, |zone| zone.offset_at(timestamp));
    let local = timestamp.saturating_add(i64::from(offset) * USECS_PER_SECOND);
    let civil = civil_of_timestamp(local);
    match style.format {
        DateFormat::Iso => {
            write_iso_day(&civil, out);
            out.push(b' ');
            write_clock(civil.usecs, out);
            if zone.is_some() {
                write_offset(offset, out);
            }
        }
        DateFormat::Postgres => {
            write_words(&civil, local, style.order, out);
            write_zone(zone, timestamp, true, out);
        }
        format => {
            write_short_day(&civil, style.order, separator(format), out);
            out.push(b' ');
            write_clock(civil.usecs, out);
            write_zone(zone, timestamp, false, out);
        }
    }
    write_era(&civil, out);
}

/// What stands between the numbers of a day.
fn separator(format: DateFormat) -> u8 {
    match format {
        DateFormat::Sql => b'/',
        DateFormat::German => b'.',
        DateFormat::Iso | DateFormat::Postgres => b'-',
    }
}

/// `Wed Dec 17 07:37:16 1997`
fn write_words(civil: &Civil, local: i64, order: DateOrder, out: &mut Vec<u8>) {
    // 2000-01-01 was a Saturday.
    let day_of_week = (local.div_euclid(USECS_PER_DAY) + 6).rem_euclid(7) as usize;
    let name = |names: &[&'static str], place: usize| names.get(place).copied().unwrap_or("");
    let month = name(&MONTHS, civil.month.saturating_sub(1) as usize);
    out.extend_from_slice(name(&DAYS, day_of_week).as_bytes());
    out.push(b' ');
    if order == DateOrder::Dmy {
        write_padded(civil.day, 2, out);
        out.push(b' ');
        out.extend_from_slice(month.as_bytes());
    } else {
        out.extend_from_slice(month.as_bytes());
        out.push(b' ');
        write_padded(civil.day, 2, out);
    }
    out.push(b' ');
    write_clock(civil.usecs, out);
    out.push(b' ');
    write_padded(shown_year(civil), 4, out);
}

/// The zone's letters, or its offset, which may need a space before it.
fn write_zone(zone: Option<Zone>, timestamp: i64, spaced: bool, out: &mut Vec<u8>) {
    let Some(zone) = zone else { return };
    let name = zone.abbreviation_at(timestamp);
    let name = name.get(..MOST_LETTERS).unwrap_or(&name);
    if name.is_empty() {
        if spaced {
            out.push(b' ');
        }
        return write_offset(zone.offset_at(timestamp), out);
    }
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
}

/// Prints a time of day.
pub(in crate::format) fn write_clock(usecs: i64, out: &mut Vec<u8>) {
    let seconds = (usecs / USECS_PER_SECOND) as u32;
    for (i, part) in [seconds / 3600, seconds / 60 % 60, seconds % 60].into_iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        write_padded(part, 2, out);
    }
    let fraction = (usecs % USECS_PER_SECOND) as u32;
    if fraction > 0 {
        out.push(b'.');
        write_padded(fraction, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// The year without its era.
fn shown_year(civil: &Civil) -> u32 {
    let year = if civil.year > 0 { civil.year } else { 1 - civil.year };
    year.unsigned_abs()
}

fn write_iso_day(civil: &Civil, out: &mut Vec<u8>) {
    write_padded(shown_year(civil), 4, out);
    out.push(b'-');
    write_padded(civil.month, 2, out);
    out.push(b'-');
    write_padded(civil.day, 2, out);
}

/// Day, month and year. In the German style the day is always first.
fn write_short_day(civil: &Civil, order: DateOrder, separator: u8, out: &mut Vec<u8>) {
    let day_first = order == DateOrder::Dmy || separator == b'.';
    let (first, second) =
        if day_first { (civil.day, civil.month) } else { (civil.month, civil.day) };
    write_padded(first, 2, out);
    out.push(separator);
    write_padded(second, 2, out);
    out.push(separator);
    write_padded(shown_year(civil), 4, out);
}

fn write_era(civil: &Civil, out: &mut Vec<u8>) {
    if civil.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

pub(in crate::format) fn write_offset(offset: i32, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let seconds = offset.unsigned_abs();
    write_padded(seconds / 3600, 2, out);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        write_padded(seconds / 60 % 60, 2, out);
    }
    if !seconds.is_multiple_of(60) {
        out.push(b':');
        write_padded(seconds % 60, 2, out);
    }
}
