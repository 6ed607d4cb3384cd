//! `DateStyle`: how dates are written, and in which order their numbers are read.

use std::fmt;

/// The setting `DateStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateStyle {
    /// How dates and time stamps are written.
    pub format: DateFormat,
    /// The order of day, month and year where numbers don't tell it.
    pub order: DateOrder,
}

/// How dates and time stamps are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateFormat {
    /// `1997-12-17 07:37:16-08`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16 PST`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
    /// `17.12.1997 07:37:16 PST`
    German,
}

/// The order of numbers in a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year
    #[default]
    Mdy,
    /// Day, month, year
    Dmy,
    /// Year, month, day
    Ymd,
}

/// What a word of the setting asks for.
enum Word {
    Format(DateFormat),
    Order(DateOrder),
    Default,
}

fn word(text: &str) -> Option<Word> {
    let text = text.to_ascii_uppercase();
    Some(match &*text {
        "ISO" => Word::Format(DateFormat::Iso),
        "SQL" => Word::Format(DateFormat::Sql),
        "GERMAN" => Word::Format(DateFormat::German),
        "YMD" => Word::Order(DateOrder::Ymd),
        "DMY" => Word::Order(DateOrder::Dmy),
        "MDY" | "US" => Word::Order(DateOrder::Mdy),
        "DEFAULT" => Word::Default,
        _ if text.starts_with("POSTGRES") => Word::Format(DateFormat::Postgres),
        _ if text.starts_with("EURO") => Word::Order(DateOrder::Dmy),
        _ if text.starts_with("NONEURO") => Word::Order(DateOrder::Mdy),
        _ => return None,
    })
}

/// Takes a value over, unless another one has been given before. Says whether it could.
fn give<T: PartialEq>(slot: &mut Option<T>, value: T) -> bool {
    let fits = slot.as_ref().is_none_or(|before| *before == value);
    *slot = Some(value);
    fits
}

impl DateStyle {
    /// Reads the setting. What a text leaves open stays as it is in `current`, and the word
    /// `DEFAULT` fills it from `default`. An error is a detail for the client.
    pub fn parse(text: &str, current: Self, default: Self) -> Result<Self, String> {
        let (mut format, mut order) = (None, None);
        let (mut uses_default, mut fits) = (false, true);
        for part in text.split(',').map(str::trim) {
            fits &= match word(part.trim_matches('"')) {
                Some(Word::Format(wanted)) => give(&mut format, wanted),
                Some(Word::Order(wanted)) => give(&mut order, wanted),
                Some(Word::Default) => {
                    uses_default = true;
                    true
                }
                None if text.trim().is_empty() => true,
                None => return Err(format!("Unrecognized key word: \"{part}\".")),
            };
        }
        if !fits {
            return Err("Conflicting \"datestyle\" specifications.".to_owned());
        }
        let open = if uses_default { default } else { current };
        // Germans write the day first.
        let order_of_format = match format {
            Some(DateFormat::German) => DateOrder::Dmy,
            _ => open.order,
        };
        Ok(Self { format: format.unwrap_or(open.format), order: order.unwrap_or(order_of_format) })
    }

    /// The style that a text names, as it is shown.
    pub fn named(text: &str) -> Self {
        Self::parse(text, Self::default(), Self::default()).unwrap_or_default()
    }
}

impl fmt::Display for DateStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = match self.format {
            DateFormat::Iso => "ISO",
            DateFormat::Sql => "SQL",
            DateFormat::Postgres => "Postgres",
            DateFormat::German => "German",
        };
        let order = match self.order {
            DateOrder::Mdy => "MDY",
            DateOrder::Dmy => "DMY",
            DateOrder::Ymd => "YMD",
        };
        write!(f, "{format}, {order}")
    }
}
