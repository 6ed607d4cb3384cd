//! A text by a template of SQL/JSON: the fields of the template say which type its value has.

use std::rc::Rc;

use super::date_fields;
use super::date_pattern::{self, Field, Node};
use super::date_read::{put_together, rounded};
use super::wrong;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Zone, in_timestamp_range};

/// A value of one of five types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expr::func) enum DateTime {
    /// Days since 2000.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// The same, with seconds west of UTC.
    TimeTz(i64, i32),
    /// Microseconds since 2000.
    Timestamp(i64),
    /// Microseconds since 2000, UTC, and the seconds east of UTC that the text names.
    TimestampTz(i64, i32),
}

/// A template of SQL/JSON, which a text has to fit without any freedom.
#[derive(Debug, Clone)]
pub(in crate::expr::func) struct Template(Rc<Vec<Node>>);

/// What the fields of a template are of.
#[derive(Default)]
struct Parts {
    dated: bool,
    timed: bool,
    zoned: bool,
}

impl Template {
    pub(in crate::expr::func) fn new(text: &str) -> Result<Self> {
        date_pattern::parsed(text, true).map(Self)
    }

    /// Reads a text.
    pub(in crate::expr::func) fn read(&self, text: &str) -> Result<DateTime> {
        let fields = date_fields::read(text, &self.0, !self.0.is_empty())?;
        let parts = self.parts();
        let read = put_together(&fields, text)?;
        let east = read.zone.map_or(0, |zone| zone.offset_at(0));
        match (parts.dated, parts.timed) {
            (true, true) => {
                let zone = if parts.zoned { Zone::Fixed(east) } else { Zone::Fixed(0) };
                let usecs = read.local_usecs().map(|local| zone.utc(local));
                let usecs = usecs.filter(|usecs| in_timestamp_range(*usecs)).ok_or_else(|| {
                    let ty = if parts.zoned { "timestamptz" } else { "timestamp" };
                    let message = format!("{ty} out of range");
                    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
                })?;
                let usecs = rounded(usecs, read.fraction);
                Ok(match parts.zoned {
                    true => DateTime::TimestampTz(usecs, east),
                    false => DateTime::Timestamp(usecs),
                })
            }
            (true, false) if parts.zoned => {
                Err(wrong("datetime format is zoned but not timed".to_owned()))
            }
            (true, false) => read.date(text).map(DateTime::Date),
            (false, true) => {
                let usecs = rounded(read.clock(), read.fraction);
                Ok(match parts.zoned {
                    true => DateTime::TimeTz(usecs, -east),
                    false => DateTime::Time(usecs),
                })
            }
            (false, false) => Err(wrong("datetime format is not dated and not timed".to_owned())),
        }
    }

    fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        for node in self.0.iter() {
            let Node::Field(item) = node else { continue };
            match item.field {
                field if field.is_of_time() => parts.timed = true,
                Field::ZoneName | Field::ZoneHour | Field::ZoneMinute | Field::ZoneOffset => {
                    parts.zoned = true;
                }
                // As in PostgreSQL, a week of ISO 8601 alone is no date.
                Field::Exact | Field::IsoWeek => {}
                _ => parts.dated = true,
            }
        }
        parts
    }
}

impl DateTime {
    /// The type's name as `.type()` gives it.
    pub(in crate::expr::func) fn type_name(self) -> &'static str {
        match self {
            DateTime::Date(_) => "date",
            DateTime::Time(_) => "time without time zone",
            DateTime::TimeTz(..) => "time with time zone",
            DateTime::Timestamp(_) => "timestamp without time zone",
            DateTime::TimestampTz(..) => "timestamp with time zone",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{date_read, number_read};
    use super::Template;
    use crate::types::Zone;

    proptest! {
        #[test]
        fn no_template_panics(
            template in "((FM|TM|FX)?(YYYY|IYYY|Y,YYY|YY|Y|CC|J|Q|MM|RM|Mon|DDD|IDDD|DD|ID|D|Day|IW|WW|W|\
                AM|BC|HH24|HH12|MI|SSSSS|SS|MS|US|FF3|TZH|TZM|TZ)(TH|th)?[-/,:;. \"é]?){0,5}",
            text in "[-+0-9]{0,12}[-+0-9:.,TapmbcIVXé ]{0,24}",
        ) {
            let _ = Template::new(&template).and_then(|template| template.read(&text));
            let _ = date_read::date(&text, &template);
            let _ = date_read::timestamp(&text, &template, Zone::UTC);
            let _ = number_read::read(&text, &template);
        }
    }
}
