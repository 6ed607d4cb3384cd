//! What the fields of a text mean, one after the other, in a date and time or in a time of day.

use crate::current_timestamp;

use super::super::calendar::USECS_PER_DAY;
use super::civil_fields::{CivilFields, fraction, mask, number, offset};
use super::numbers::{Numbers, clock};
use super::token::{Field, Kind, fields};
use super::words::{self, Unit, Word};
use super::{Bad, DateOrder, UNIX_EPOCH_SHIFT, Zone};

/// What a text is apart from its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) enum Special {
    Infinity,
    NegInfinity,
    Epoch,
}

/// What a session's settings say of texts.
#[derive(Clone, Copy)]
pub(in crate::format) struct Session {
    pub(in crate::format) zone: Zone,
    pub(in crate::format) order: DateOrder,
    /// The time of `now`, in UTC.
    pub(in crate::format) now: Option<i64>,
}

impl Session {
    /// Days from 2000-01-01 to today, and the time since midnight.
    fn now(self) -> (i64, i64) {
        let now = self.zone.local(self.now_utc());
        (now.div_euclid(USECS_PER_DAY), now.rem_euclid(USECS_PER_DAY))
    }

    fn now_utc(self) -> i64 {
        self.now.unwrap_or_else(current_timestamp)
    }

    /// The days to today.
    pub(in crate::format) fn today(self) -> i64 {
        self.now().0
    }
}

/// A text that is being read.
struct Decoder {
    session: Session,
    only_time: bool,
    fields: CivilFields,
    special: Option<Special>,
    /// What the field before has said of the next one.
    unit: Option<Unit>,
    month_by_name: bool,
    /// The zone has rules: its offset depends on the day.
    named_zone: bool,
}

/// Reads a date, with or without a time.
pub(in crate::format) fn date_and_time(
    text: &str,
    session: Session,
) -> Result<(CivilFields, Option<Special>), Bad> {
    let mut decoder = Decoder::new(session, false);
    decoder.run(&fields(text)?)?;
    let special = decoder.special;
    if special.is_none() && !decoder.fields.has(mask::DATE) {
        return Err(Bad::Syntax);
    }
    Ok((decoder.fields, special))
}

/// Reads a time of day, which may have a day beside it.
pub(in crate::format) fn time_of_day(text: &str, session: Session) -> Result<CivilFields, Bad> {
    let mut decoder = Decoder::new(session, true);
    decoder.run(&fields(text)?)?;
    let fields = decoder.fields;
    fields.usecs()?;
    let has_day = fields.has(mask::DATE);
    let wants_day = decoder.named_zone || fields.has_any(mask::DATE);
    if !fields.has(mask::TIME) || wants_day && !has_day {
        return Err(Bad::Syntax);
    }
    Ok(fields)
}

impl Decoder {
    fn new(session: Session, only_time: bool) -> Self {
        Self {
            session,
            only_time,
            fields: CivilFields::default(),
            special: None,
            unit: None,
            month_by_name: false,
            named_zone: false,
        }
    }

    fn numbers(&self) -> Numbers {
        Numbers {
            order: self.session.order,
            month_by_name: self.month_by_name && !self.only_time,
            only_time: self.only_time,
        }
    }

    fn run(&mut self, fields: &[Field]) -> Result<(), Bad> {
        for (place, field) in fields.iter().enumerate() {
            let found = match field.kind {
                Kind::Date => self.date(fields, place)?,
                Kind::Time => self.clock(&field.text)?,
                Kind::Zone => self.zone(Zone::Fixed(offset(&field.text)?)),
                Kind::Number => self.number(fields, place)?,
                Kind::Word => self.word(fields, place)?,
            };
            if self.fields.found & found != 0 {
                return Err(Bad::Syntax);
            }
            self.fields.found |= found;
        }
        self.fields.check_day()?;
        self.fields.apply_pm()?;
        self.check_dst()
    }

    /// Daylight saving time by a word needs a zone without rules.
    fn check_dst(&mut self) -> Result<(), Bad> {
        if !self.fields.has(mask::DST) {
            return Ok(());
        }
        match self.fields.zone {
            Some(Zone::Fixed(seconds)) if !self.named_zone => {
                self.fields.zone = Some(Zone::Fixed(seconds + 3600));
                Ok(())
            }
            _ => Err(Bad::Syntax),
        }
    }

    fn zone(&mut self, zone: Zone) -> u32 {
        self.fields.zone = Some(zone);
        mask::ZONE
    }

    /// A zone by its name.
    fn zone_named(&mut self, name: &str) -> Option<u32> {
        let (zone, _) = Zone::named(name)?;
        self.named_zone = !matches!(zone, Zone::Fixed(_));
        Some(self.zone(zone))
    }

    /// Takes the time of a field, which a `t` may have announced.
    fn clock(&mut self, text: &str) -> Result<u32, Bad> {
        if self.unit.take().is_some_and(|unit| unit != Unit::Clock) {
            return Err(Bad::Syntax);
        }
        let found = clock(text, &mut self.fields)?;
        if !self.only_time {
            self.fields.usecs()?;
        }
        Ok(found)
    }

    /// A field with separators: a day, a zone's name, or a time with an offset behind it.
    fn date(&mut self, fields: &[Field], place: usize) -> Result<u32, Bad> {
        let Some(field) = fields.get(place) else { return Err(Bad::Syntax) };
        let text = &*field.text;
        if !self.only_time && self.unit == Some(Unit::Julian) {
            return self.julian_with_zone(text);
        }
        let is_day = if self.only_time {
            let kind_at = |place: usize| fields.get(place).map(|field| field.kind);
            place == 0
                && fields.len() >= 2
                && (kind_at(fields.len() - 1) == Some(Kind::Date) || kind_at(1) == Some(Kind::Time))
        } else {
            self.unit.is_none() && !self.fields.has(mask::MONTH | mask::DAY)
        };
        if is_day {
            return self.numbers().date(text, &mut self.fields);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit())
            && (self.only_time || self.unit.is_none())
        {
            return self.zone_named(text).ok_or_else(|| Bad::Zone(text.to_owned()));
        }
        if self.unit.take().is_some_and(|unit| unit != Unit::Clock) || self.fields.has(mask::TIME) {
            return Err(Bad::Syntax);
        }
        let (digits, zone) = text.split_at(text.find('-').ok_or(Bad::Syntax)?);
        let zone = Zone::Fixed(offset(zone)?);
        let found = self.numbers().run_together(digits, &mut self.fields)?;
        Ok(found | self.zone(zone))
    }

    /// A day's number with an offset: `2451187-08`
    fn julian_with_zone(&mut self, text: &str) -> Result<u32, Bad> {
        let (day, rest) = number(text)?;
        self.unit = None;
        self.set_julian(day);
        let zone = Zone::Fixed(offset(rest)?);
        Ok(mask::DATE | mask::TIME | self.zone(zone))
    }

    fn set_julian(&mut self, day: i64) {
        // The number of 2000-01-01.
        const EPOCH: i64 = 2_451_545;
        self.fields.set_day(day - EPOCH);
        self.fields.is_julian = true;
    }

    fn number(&mut self, fields: &[Field], place: usize) -> Result<u32, Bad> {
        let Some(field) = fields.get(place) else { return Err(Bad::Syntax) };
        let text = &*field.text;
        if let Some(unit) = self.unit.take() {
            return self.labelled(unit, text);
        }
        let numbers = self.numbers();
        let point = text.find('.');
        let length = point.unwrap_or(text.len());
        let is_last_date = fields.last().is_some_and(|last| last.kind == Kind::Date);
        let (date, time) = (self.fields.has_any(mask::DATE), self.fields.has_any(mask::TIME));
        let fields = &mut self.fields;
        if self.only_time {
            return match point {
                Some(_) if place == 0 && is_last_date => numbers.date(text, fields),
                Some(_) if length > 2 => numbers.run_together(text, fields),
                Some(_) => Err(Bad::Syntax),
                None if length > 4 => numbers.run_together(text, fields),
                None => numbers.single(text, fields),
            };
        }
        match point {
            Some(_) if !date => numbers.date(text, fields),
            Some(_) if length > 2 => numbers.run_together(text, fields),
            _ if text.len() >= 6 && (!date || !time) => numbers.run_together(text, fields),
            _ => numbers.single(text, fields),
        }
    }

    /// A number behind a word that says what it is.
    fn labelled(&mut self, unit: Unit, text: &str) -> Result<u32, Bad> {
        if unit == Unit::Clock {
            let numbers = Numbers { only_time: true, ..self.numbers() };
            let found = numbers.run_together(text, &mut self.fields)?;
            return if found == mask::TIME { Ok(found) } else { Err(Bad::Syntax) };
        }
        let (value, rest) = number(text)?;
        if !rest.is_empty()
            && (!rest.starts_with('.') || !matches!(unit, Unit::Julian | Unit::Second))
        {
            return Err(Bad::Syntax);
        }
        let minutes = self.fields.has(mask::MONTH | mask::HOUR);
        let fields = &mut self.fields;
        let (slot, found) = match unit {
            Unit::Year => (&mut fields.year, mask::YEAR),
            Unit::Month if minutes => (&mut fields.minute, mask::MINUTE),
            Unit::Month => (&mut fields.month, mask::MONTH),
            Unit::Day => (&mut fields.day, mask::DAY),
            Unit::Hour => (&mut fields.hour, mask::HOUR),
            Unit::Minute => (&mut fields.minute, mask::MINUTE),
            Unit::Second => {
                fields.second = value;
                if rest.is_empty() {
                    return Ok(mask::SECOND);
                }
                fields.fraction = fraction(rest)?;
                return Ok(mask::SECONDS);
            }
            Unit::Julian => return self.julian(value, rest),
            Unit::Clock | Unit::Other => return Err(Bad::Syntax),
        };
        *slot = value;
        Ok(found)
    }

    /// A day by its number, whose fraction is the time.
    fn julian(&mut self, day: i64, rest: &str) -> Result<u32, Bad> {
        self.set_julian(day);
        if rest.is_empty() {
            return Ok(mask::DATE);
        }
        let part: f64 = format!("0{rest}").parse().map_err(|_| Bad::Syntax)?;
        self.fields.set_clock((part * USECS_PER_DAY as f64) as i64);
        Ok(mask::DATE | mask::TIME)
    }

    fn word(&mut self, fields: &[Field], place: usize) -> Result<u32, Bad> {
        let Some(field) = fields.get(place) else { return Err(Bad::Syntax) };
        let text = &*field.text;
        if let Some(zone) = words::abbreviated(text) {
            return Ok(self.zone(zone));
        }
        let Some(word) = words::find(text) else {
            return self.zone_named(text).ok_or(Bad::Syntax);
        };
        Ok(match word {
            Word::Infinity => self.special(Special::Infinity)?,
            Word::NegInfinity => self.special(Special::NegInfinity)?,
            Word::Epoch => self.special(Special::Epoch)?,
            Word::Now => self.now(),
            Word::Midnight => {
                self.fields.set_clock(0);
                mask::TIME | self.zone(Zone::UTC)
            }
            Word::Pm(pm) => {
                self.fields.pm = Some(pm);
                mask::AM_PM
            }
            Word::Bc(bc) => {
                self.fields.bc = bc;
                mask::ERA
            }
            Word::Dst => mask::DST,
            Word::Filler => 0,
            Word::Unit(unit) => {
                self.unit = Some(unit);
                0
            }
            Word::Clock => self.announce_clock(fields.get(place + 1))?,
            Word::Today(_) | Word::Month(_) | Word::DayOfWeek if self.only_time => {
                return Err(Bad::Syntax);
            }
            Word::Today(plus) => {
                self.fields.set_day(self.session.today() + plus);
                self.fields.is_julian = true;
                mask::DATE
            }
            Word::DayOfWeek => mask::DAY_OF_WEEK,
            Word::Month(month) => self.month(month),
        })
    }

    fn special(&mut self, special: Special) -> Result<u32, Bad> {
        if self.only_time {
            return Err(Bad::Syntax);
        }
        self.special = Some(special);
        Ok(mask::SPECIAL)
    }

    fn now(&mut self) -> u32 {
        let (days, usecs) = self.session.now();
        self.fields.set_clock(usecs);
        if self.only_time {
            return mask::TIME;
        }
        self.fields.set_day(days);
        self.fields.is_julian = true;
        // The zone's rules are those of the session's zone.
        let offset = self.session.zone.offset_at(self.session.now_utc());
        mask::DATE | mask::TIME | self.zone(Zone::Fixed(offset))
    }

    /// A `t` stands between a day and a time.
    fn announce_clock(&mut self, next: Option<&Field>) -> Result<u32, Bad> {
        let has_time =
            next.is_some_and(|next| matches!(next.kind, Kind::Number | Kind::Time | Kind::Date));
        if !has_time || !self.only_time && !self.fields.has(mask::DATE) {
            return Err(Bad::Syntax);
        }
        self.unit = Some(Unit::Clock);
        Ok(0)
    }

    /// A month's name makes a day of a number that was taken for the month.
    fn month(&mut self, month: i64) -> u32 {
        let was_day = self.fields.has(mask::MONTH)
            && !self.month_by_name
            && !self.fields.has(mask::DAY)
            && (1..=31).contains(&self.fields.month);
        self.month_by_name = true;
        let before = std::mem::replace(&mut self.fields.month, month);
        if was_day {
            self.fields.day = before;
            return mask::DAY;
        }
        mask::MONTH
    }
}

/// The day of `epoch`, in days since 2000-01-01.
pub(super) const EPOCH_DAY: i64 = -UNIX_EPOCH_SHIFT / USECS_PER_DAY;
