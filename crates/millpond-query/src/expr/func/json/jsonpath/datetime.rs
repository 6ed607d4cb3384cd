//! The method `.datetime()`, and how dates and times compare within a path.

use std::cmp::Ordering;

use super::super::encode;
use super::eval::{Evaluation, Result, Stop, soft};
use super::item::Item;
use crate::Datum;
use crate::error::{SqlError, SqlState};
use crate::expr::func::template::{DateTime, Template};
use crate::expr::other_casts::zone_of_today;
use crate::types::{FormatOptions, USECS_PER_DAY, Zone};

/// The forms of ISO 8601 that need no template, in the order of trial.
const ISO_FORMS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

thread_local! {
    static ISO: Vec<Template> =
        ISO_FORMS.iter().filter_map(|form| Template::new(form).ok()).collect();
}

/// The date or time that a string is.
pub(super) fn datetime<'a>(item: &Item<'_>, template: Option<&str>) -> Result<Item<'a>> {
    let state = SqlState::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION;
    let Some(text) = item.text() else {
        let what = "jsonpath item method .datetime() can only be applied to a string";
        return Err(soft(state, what));
    };
    if let Some(template) = template {
        let template = Template::new(template)?;
        return template.read(text).map(Item::DateTime).map_err(Stop::Soft);
    }
    let value = ISO.with(|forms| forms.iter().find_map(|form| form.read(text).ok()));
    value.map(Item::DateTime).ok_or_else(|| {
        let what = format!("datetime format is not recognized: \"{text}\"");
        let hint = "Use a datetime template argument to specify the input data format.";
        Stop::Soft(SqlError::new(state, what).hint(hint))
    })
}

/// The text of a value as JSON has it. A time stamp with time zone keeps the zone that was read.
pub(super) fn text(value: DateTime) -> String {
    let shown = |datum: Datum<'_>, zone: Zone| {
        encode::text(&datum, &FormatOptions { zone, ..FormatOptions::default() })
    };
    let utc = Zone::Fixed(0);
    match value {
        DateTime::Date(days) => shown(Datum::Date(days), utc),
        DateTime::Timestamp(usecs) => shown(Datum::Timestamp(usecs), utc),
        DateTime::TimestampTz(usecs, east) => shown(Datum::Timestamptz(usecs), Zone::Fixed(east)),
        DateTime::Time(usecs) => clock(usecs),
        DateTime::TimeTz(usecs, west) => {
            let sign = if west > 0 { '-' } else { '+' };
            let minutes = west.unsigned_abs() / 60;
            format!("{}{sign}{:02}:{:02}", clock(usecs), minutes / 60, minutes % 60)
        }
    }
}

fn clock(usecs: i64) -> String {
    let value = crate::types::time::time_value(usecs);
    encode::text(&value.as_datum(), &FormatOptions::default())
}

impl Evaluation<'_, '_> {
    /// The order of two values; `None` if one is a day and the other a time of day.
    pub(super) fn order(&self, a: DateTime, b: DateTime) -> Result<Option<Ordering>> {
        use DateTime::{Date, Time, TimeTz, Timestamp, TimestampTz};
        Ok(Some(match (a, b) {
            (Date(a), Date(b)) => a.cmp(&b),
            (Time(a), Time(b)) | (Timestamp(a), Timestamp(b)) => a.cmp(&b),
            (TimestampTz(a, _), TimestampTz(b, _)) => a.cmp(&b),
            (TimeTz(..), TimeTz(..)) => with_zone(a).cmp(&with_zone(b)),
            (Date(a), Timestamp(b)) => begin(a).cmp(&b),
            (Date(a), TimestampTz(b, _)) => self.zone("date", "timestamptz")?.utc(begin(a)).cmp(&b),
            (Timestamp(a), TimestampTz(b, _)) => {
                self.zone("timestamp", "timestamptz")?.utc(a).cmp(&b)
            }
            (Time(a), TimeTz(..)) => {
                let zone = self.zone("time", "timetz")?;
                with_zone(TimeTz(a, zone_of_today(a, zone))).cmp(&with_zone(b))
            }
            (Timestamp(_) | TimestampTz(..), Date(_))
            | (TimestampTz(..), Timestamp(_))
            | (TimeTz(..), Time(_)) => return Ok(self.order(b, a)?.map(Ordering::reverse)),
            (Date(_) | Timestamp(_) | TimestampTz(..), Time(_) | TimeTz(..))
            | (Time(_) | TimeTz(..), Date(_) | Timestamp(_) | TimestampTz(..)) => return Ok(None),
        }))
    }

    /// The session's zone, for a value without one. Only some functions may use it.
    fn zone(&self, from: &str, to: &str) -> Result<Zone> {
        if self.uses_zone() {
            return Ok(self.env().facts.settings.format_options().zone);
        }
        let what = format!("cannot convert value from {from} to {to} without time zone usage");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
        // Not an error that a predicate forgives.
        Err(Stop::Hard(error.hint("Use *_tz() function for time zone support.")))
    }
}

/// A time of day with a zone in its order: by the moment, then by the zone.
fn with_zone(value: DateTime) -> (i64, i32) {
    match value {
        DateTime::TimeTz(usecs, west) => (usecs + i64::from(west) * 1_000_000, west),
        _ => (0, 0),
    }
}

/// A day's first moment. That of a day that no time stamp has is before or behind all of them.
fn begin(days: i32) -> i64 {
    i64::from(days).saturating_mul(USECS_PER_DAY).clamp(i64::MIN + 1, i64::MAX - 1)
}
