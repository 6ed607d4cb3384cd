//! Intervals as they are written.

use std::io::Write;

use crate::Interval;

use super::{IntervalStyle, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SECOND};

/// An interval's fields, all of which may be negative.
struct Fields {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// Seconds, as microseconds.
    usecs: i64,
}

impl Fields {
    fn of(interval: Interval) -> Self {
        Fields {
            years: i64::from(interval.months / 12),
            months: i64::from(interval.months % 12),
            days: i64::from(interval.days),
            hours: interval.usecs / USECS_PER_HOUR,
            minutes: interval.usecs % USECS_PER_HOUR / USECS_PER_MINUTE,
            usecs: interval.usecs % USECS_PER_MINUTE,
        }
    }

    fn all(&self) -> [i64; 6] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.usecs]
    }

    fn negated(self) -> Self {
        Fields {
            years: -self.years,
            months: -self.months,
            days: -self.days,
            hours: -self.hours,
            minutes: -self.minutes,
            usecs: -self.usecs,
        }
    }
}

/// Appends an interval in a style. Writing to memory can't fail.
pub(in crate::format) fn write(interval: Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    let fields = Fields::of(interval);
    let _ = match style {
        IntervalStyle::Postgres => postgres(&fields, out),
        IntervalStyle::PostgresVerbose => verbose(&fields, out),
        IntervalStyle::SqlStandard => sql_standard(fields, out),
        IntervalStyle::Iso8601 => iso_8601(&fields, out),
    };
}

/// Seconds without sign, with what follows the point but trailing zeros.
fn seconds(usecs: i64, width: usize, out: &mut Vec<u8>) -> std::io::Result<()> {
    let usecs = usecs.unsigned_abs();
    write!(out, "{:0width$}", usecs / USECS_PER_SECOND as u64)?;
    let fraction = usecs % USECS_PER_SECOND as u64;
    if fraction > 0 {
        let digits = format!("{fraction:06}");
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    Ok(())
}

fn postgres(fields: &Fields, out: &mut Vec<u8>) -> std::io::Result<()> {
    let (mut first, mut after_negative) = (true, false);
    for (value, unit) in [(fields.years, "year"), (fields.months, "mon"), (fields.days, "day")] {
        if value == 0 {
            continue;
        }
        let space = if first { "" } else { " " };
        let sign = if after_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        write!(out, "{space}{sign}{value} {unit}{plural}")?;
        (first, after_negative) = (false, value < 0);
    }
    let time = [fields.hours, fields.minutes, fields.usecs];
    if first || time.iter().any(|&part| part != 0) {
        let space = if first { "" } else { " " };
        let sign = if time.iter().any(|&part| part < 0) {
            "-"
        } else if after_negative {
            "+"
        } else {
            ""
        };
        let (hours, minutes) = (fields.hours.abs(), fields.minutes.abs());
        write!(out, "{space}{sign}{hours:02}:{minutes:02}:")?;
        seconds(fields.usecs, 2, out)?;
    }
    Ok(())
}

fn verbose(fields: &Fields, out: &mut Vec<u8>) -> std::io::Result<()> {
    out.push(b'@');
    // The first field's sign becomes "ago"; later ones are relative to it.
    let mut ago = None;
    let parts = [
        (fields.years, "year"),
        (fields.months, "mon"),
        (fields.days, "day"),
        (fields.hours, "hour"),
        (fields.minutes, "min"),
    ];
    for (value, unit) in parts {
        if value == 0 {
            continue;
        }
        let value = if *ago.get_or_insert(value < 0) { -value } else { value };
        let plural = if value == 1 { "" } else { "s" };
        // As PostgreSQL: only one unit is singular, not minus one.
        write!(out, " {value} {unit}{plural}")?;
    }
    if fields.usecs != 0 {
        let negative = fields.usecs < 0;
        let sign = if *ago.get_or_insert(negative) == negative { "" } else { "-" };
        write!(out, " {sign}")?;
        seconds(fields.usecs, 1, out)?;
        let one = fields.usecs.abs() == USECS_PER_SECOND;
        write!(out, " sec{}", if one { "" } else { "s" })?;
    }
    out.extend_from_slice(match ago {
        None => b" 0",
        Some(true) => b" ago",
        Some(false) => b"",
    });
    Ok(())
}

fn sql_standard(fields: Fields, out: &mut Vec<u8>) -> std::io::Result<()> {
    let all = fields.all();
    if all.iter().all(|&part| part == 0) {
        out.push(b'0');
        return Ok(());
    }
    let has_months = fields.years != 0 || fields.months != 0;
    let has_time = all[2..].iter().any(|&part| part != 0);
    let (negative, positive) = (all.iter().any(|&p| p < 0), all.iter().any(|&p| p > 0));
    if negative && positive || has_months && has_time {
        return sql_mixed(&fields, out);
    }
    let fields = if negative {
        out.push(b'-');
        fields.negated()
    } else {
        fields
    };
    if has_months {
        return write!(out, "{}-{}", fields.years, fields.months);
    }
    if fields.days != 0 {
        write!(out, "{} ", fields.days)?;
    }
    write!(out, "{}:{:02}:", fields.hours, fields.minutes)?;
    seconds(fields.usecs, 2, out)
}

/// What the standard has no form for: each part with its sign.
fn sql_mixed(fields: &Fields, out: &mut Vec<u8>) -> std::io::Result<()> {
    let sign = |negative| if negative { '-' } else { '+' };
    let [years, months, days, hours, minutes, _] = fields.all().map(i64::abs);
    let year_sign = sign(fields.years < 0 || fields.months < 0);
    let day_sign = sign(fields.days < 0);
    let time_sign = sign(fields.all()[3..].iter().any(|&part| part < 0));
    write!(out, "{year_sign}{years}-{months} {day_sign}{days} {time_sign}{hours}:{minutes:02}:")?;
    seconds(fields.usecs, 2, out)
}

fn iso_8601(fields: &Fields, out: &mut Vec<u8>) -> std::io::Result<()> {
    let all = fields.all();
    if all.iter().all(|&part| part == 0) {
        out.extend_from_slice(b"PT0S");
        return Ok(());
    }
    out.push(b'P');
    let part = |value: i64, letter: char, out: &mut Vec<u8>| match value {
        0 => Ok(()),
        value => write!(out, "{value}{letter}"),
    };
    part(fields.years, 'Y', out)?;
    part(fields.months, 'M', out)?;
    part(fields.days, 'D', out)?;
    if all[3..].iter().any(|&part| part != 0) {
        out.push(b'T');
    }
    part(fields.hours, 'H', out)?;
    part(fields.minutes, 'M', out)?;
    if fields.usecs != 0 {
        if fields.usecs < 0 {
            out.push(b'-');
        }
        seconds(fields.usecs, 1, out)?;
        out.push(b'S');
    }
    Ok(())
}
