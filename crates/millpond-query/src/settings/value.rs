//! Parsing and showing of one setting's value.

use super::definition::{Definition, Kind, Unit};
use super::nearest;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DateStyle, Zone};

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// A switch.
    Bool(bool),
    /// A whole number, in the setting's unit.
    Int(i64),
    /// A number, in the setting's unit.
    Real(f64),
    /// One of the setting's words.
    Word(&'static str),
    /// Any text.
    Text(Box<str>),
}

impl SettingValue {
    /// The number; 0 for other kinds.
    pub fn as_int(&self) -> i64 {
        match self {
            SettingValue::Int(int) => *int,
            _ => 0,
        }
    }

    /// The number; 0 for other kinds.
    pub fn as_real(&self) -> f64 {
        match self {
            SettingValue::Real(real) => *real,
            SettingValue::Int(int) => *int as f64,
            _ => 0.0,
        }
    }

    /// The switch; off for other kinds.
    pub fn as_bool(&self) -> bool {
        matches!(self, SettingValue::Bool(true) | SettingValue::Word("on"))
    }

    /// The text or word; empty for other kinds.
    pub fn as_text(&self) -> &str {
        match self {
            SettingValue::Word(word) => word,
            SettingValue::Text(text) => text,
            _ => "",
        }
    }
}

/// Parses what the user gave for a setting.
pub(crate) fn parse(definition: &Definition, text: &str) -> Result<SettingValue> {
    let name = definition.name;
    match definition.kind {
        Kind::Bool => parse_bool(text).map(SettingValue::Bool).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("parameter \"{name}\" requires a Boolean value"),
            )
            .hint("Available values: on, off, true, false, yes, no, 1, 0.")
        }),
        Kind::Int(min, max, unit) => check_int(name, parse_int(name, text, min, max, unit)?),
        Kind::Real(min, max, unit) => {
            let number = parse_number(name, text, unit)?;
            if number < min || number > max {
                return Err(out_of_range(
                    name,
                    &format!("{number}"),
                    &format!("{min}"),
                    &format!("{max}"),
                ));
            }
            Ok(SettingValue::Real(number))
        }
        Kind::Enum(words) => parse_word(name, text, words),
        Kind::Text => parse_text(definition, text),
        Kind::List => Ok(SettingValue::Text(text.trim().into())),
    }
}

fn parse_text(definition: &Definition, text: &str) -> Result<SettingValue> {
    let bad = |hint: &str| {
        let name = definition.name;
        Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{name}\": \"{text}\""),
        )
        .hint(hint))
    };
    match definition.name {
        "client_encoding" => {
            let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            match plain.to_ascii_lowercase().as_str() {
                "utf8" | "unicode" => Ok(SettingValue::Text("UTF8".into())),
                _ => bad("Only \"UTF8\" is supported."),
            }
        }
        "TimeZone" => match Zone::parse(text) {
            Some((_, name)) => Ok(SettingValue::Text(name.into())),
            None if cfg!(feature = "time-zones") => {
                bad("Zones have the names of the IANA's database, as \"Europe/Berlin\".")
            }
            None => bad("This build knows UTC and fixed offsets, as \"<+01>-01\"."),
        },
        "DateStyle" => parse_date_style(text, DateStyle::default(), DateStyle::default()),
        _ if text.contains('\0') => bad("It must not contain a zero byte."),
        "application_name" => {
            // As PostgreSQL does, so that logs stay plain and rows short.
            let clean: String = text
                .chars()
                .map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' })
                .take(63)
                .collect();
            Ok(SettingValue::Text(clean.into()))
        }
        _ => Ok(SettingValue::Text(text.into())),
    }
}

/// Reads `DateStyle`: see [`DateStyle::parse`].
pub(super) fn parse_date_style(
    text: &str,
    current: DateStyle,
    default: DateStyle,
) -> Result<SettingValue> {
    let style = DateStyle::parse(text, current, default).map_err(|detail| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"DateStyle\": \"{text}\""),
        )
        .detail(detail)
    })?;
    Ok(SettingValue::Text(style.to_string().into()))
}

fn parse_word(
    name: &str,
    text: &str,
    words: &'static [(&'static str, &'static str)],
) -> Result<SettingValue> {
    if let Some((_, word)) = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())) {
        return Ok(SettingValue::Word(word));
    }
    let mut known: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
    known.dedup();
    let list = known.join(", ");
    let hint = match nearest(text, words.iter().map(|(word, _)| *word)) {
        Some(near) => format!("Available values: {list}. Perhaps you meant \"{near}\"."),
        None => format!("Available values: {list}."),
    };
    Err(SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{text}\""),
    )
    .hint(hint))
}

/// The least and the most that limits of the buffers used by VACUUM can be, in kB, apart from 0.
const MIN_USAGE_LIMIT_KB: i64 = 128;
pub(super) const MAX_USAGE_LIMIT_KB: i64 = 16 << 20;

/// What a range can't say.
fn check_int(name: &str, value: SettingValue) -> Result<SettingValue> {
    let number = value.as_int();
    if name == "vacuum_buffer_usage_limit" && (1..MIN_USAGE_LIMIT_KB).contains(&number) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{name}\": {number}"),
        )
        .detail(format!(
            "\"{name}\" must be 0 or between {MIN_USAGE_LIMIT_KB} kB and {MAX_USAGE_LIMIT_KB} kB."
        )));
    }
    Ok(value)
}

/// The value of the option `BUFFER_USAGE_LIMIT`, in kB.
pub(crate) fn usage_limit_kb(text: &str) -> Result<u32> {
    let name = "BUFFER_USAGE_LIMIT";
    let parsed = parse_number(name, text, Unit::Kilobytes).map(f64::round);
    let number = *parsed.as_ref().unwrap_or(&-1.0);
    let fits = (MIN_USAGE_LIMIT_KB as f64..=MAX_USAGE_LIMIT_KB as f64).contains(&number);
    if number == 0.0 || fits {
        return Ok(number as u32);
    }
    let mut error = SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!(
            "{name} option must be 0 or between {MIN_USAGE_LIMIT_KB} kB and {MAX_USAGE_LIMIT_KB} kB"
        ),
    );
    error.hint = parsed.err().and_then(|unit| unit.hint.clone());
    Err(error)
}

/// A switch: any unambiguous beginning of on, off, true, false, yes, no, or 1 or 0.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let starts = |word: &str, least: usize| text.len() >= least && word.starts_with(text.as_str());
    if starts("true", 1) || starts("yes", 1) || starts("on", 2) || text == "1" {
        Some(true)
    } else if starts("false", 1) || starts("no", 1) || starts("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

fn parse_int(name: &str, text: &str, min: i64, max: i64, unit: Unit) -> Result<SettingValue> {
    let number = parse_number(name, text, unit)?.round();
    if number < min as f64 || number > max as f64 {
        let shown = if number.abs() < 1e15 { format!("{number}") } else { text.trim().to_owned() };
        let with_unit = |number: i64| match unit.as_str() {
            Some(unit) => format!("{number} {unit}"),
            None => number.to_string(),
        };
        let shown = match unit.as_str() {
            Some(unit) => format!("{shown} {unit}"),
            None => shown,
        };
        return Err(out_of_range(name, &shown, &with_unit(min), &with_unit(max)));
    }
    Ok(SettingValue::Int(number as i64))
}

fn out_of_range(name: &str, value: &str, min: &str, max: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("{value} is outside the valid range for parameter \"{name}\" ({min} .. {max})"),
    )
}

/// A number with an optional unit, converted to the setting's unit.
fn parse_number(name: &str, text: &str, unit: Unit) -> Result<f64> {
    let bad = |hint: String| {
        let error = SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{name}\": \"{text}\""),
        );
        if hint.is_empty() { error } else { error.hint(hint) }
    };
    let trimmed = text.trim();
    let end = number_end(trimmed);
    let (digits, word) = (&trimmed[..end], trimmed[end..].trim());
    if unit == Unit::Permissions
        && let Some(octal) = digits.strip_prefix('0').filter(|octal| !octal.is_empty())
        && let Ok(number) = u32::from_str_radix(octal, 8)
    {
        return if word.is_empty() { Ok(number.into()) } else { Err(bad(String::new())) };
    }
    let number: f64 = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).map_err(|_| bad(String::new()))? as f64,
        None => digits.parse().map_err(|_| bad(String::new()))?,
    };
    if !number.is_finite() {
        return Err(bad(String::new()));
    }
    if word.is_empty() {
        return Ok(number);
    }
    let Some((family, factor)) = unit.family() else { return Err(bad(String::new())) };
    match family.iter().find(|(known, _)| *known == word) {
        Some((_, size)) => Ok(number * *size as f64 / factor as f64),
        None => {
            let mut words: Vec<&str> = family.iter().map(|(known, _)| *known).collect();
            words.reverse();
            let mut hint = format!("Valid units for this parameter are {}.", quoted_list(&words));
            if let Some(near) = words.iter().find(|known| known.eq_ignore_ascii_case(word)) {
                hint.push_str(&format!(" Perhaps you meant \"{digits}{near}\"."));
            }
            Err(bad(hint))
        }
    }
}

fn quoted_list(words: &[&str]) -> String {
    let mut list = String::new();
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            list.push_str(if i + 1 == words.len() { ", and " } else { ", " });
        }
        list.push_str(&format!("\"{word}\""));
    }
    list
}

fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    if bytes[at..].starts_with(b"0x") || bytes[at..].starts_with(b"0X") {
        at += 2;
        while bytes.get(at).is_some_and(u8::is_ascii_hexdigit) {
            at += 1;
        }
        return at;
    }
    while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at += 1 + sign;
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
        }
    }
    at
}

/// A value as `SHOW` shows it: with the largest unit that leaves a whole number.
pub(crate) fn show(definition: &Definition, value: &SettingValue) -> String {
    let unit = match definition.kind {
        Kind::Int(_, _, unit) | Kind::Real(_, _, unit) => unit,
        _ => Unit::None,
    };
    match value {
        SettingValue::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        SettingValue::Word(word) => (*word).to_owned(),
        SettingValue::Text(text) => text.to_string(),
        SettingValue::Real(real) if *real == 0.0 || unit == Unit::None => format!("{real}"),
        SettingValue::Real(real) => format!("{real}{}", unit.as_str().unwrap_or("")),
        SettingValue::Int(int) => match unit.family() {
            Some((family, factor)) if *int > 0 => {
                let total = int.saturating_mul(factor);
                // Days of seconds are shown as such, but never bytes where kB is the unit's size.
                match family.iter().find(|(_, size)| *size <= total && total % size == 0) {
                    Some((word, size)) => format!("{}{word}", total / size),
                    None => int.to_string(),
                }
            }
            None if unit == Unit::Permissions => format!("{int:04o}"),
            _ => int.to_string(),
        },
    }
}

/// One line of a configuration file: `name = value` or `name value`, `#` comments, values in single
/// quotes where they need them.
pub(super) fn parse_config_line(line: &str) -> Result<Option<(String, String)>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let bad = || {
        SqlError::new(
            SqlState::CONFIG_FILE_ERROR,
            format!("syntax error in configuration: \"{line}\""),
        )
        .hint("Write name = value, and text with spaces in single quotes.")
    };
    let end = line.find(|c: char| c == '=' || c.is_whitespace()).ok_or_else(bad)?;
    let name = &line[..end];
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => {
            let mut value = String::new();
            let mut chars = quoted.char_indices().peekable();
            loop {
                match chars.next() {
                    Some((_, '\'')) if chars.peek().is_some_and(|(_, c)| *c == '\'') => {
                        chars.next();
                        value.push('\'');
                    }
                    Some((at, '\'')) => {
                        let after = quoted[at + 1..].trim_start();
                        if !after.is_empty() && !after.starts_with('#') {
                            return Err(bad());
                        }
                        break value;
                    }
                    Some((_, c)) => value.push(c),
                    None => return Err(bad()),
                }
            }
        }
        None => {
            let value = rest.split('#').next().unwrap_or("").trim();
            if value.is_empty() {
                return Err(bad());
            }
            value.to_owned()
        }
    };
    Ok(Some((name.to_owned(), value)))
}
