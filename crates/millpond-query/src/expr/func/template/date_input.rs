//! A text that a template describes, as it is read: numbers and words.

use super::date_pattern::{Item, is_space};
use super::wrong;
use crate::error::{Result, SqlError, SqlState};

/// A text that is read from the front.
pub(super) struct Input<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(super) fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn skip(&mut self) {
        self.at += self.next().map_or(0, char::len_utf8);
    }

    /// Skips white space, and says how many characters of it there were.
    pub(super) fn skip_spaces(&mut self) -> i32 {
        let mut count = 0;
        while self.next().is_some_and(is_space) {
            self.skip();
            count += 1;
        }
        count
    }

    /// A number as C's `strtol` reads it; the text's length is 0 if there is none.
    pub(super) fn number(text: &str) -> (i128, usize) {
        let spaces = text.len() - text.trim_start_matches(is_space).len();
        let rest = text.get(spaces..).unwrap_or("");
        let signed = rest.starts_with(['+', '-']);
        let digits = rest.get(usize::from(signed)..).unwrap_or("");
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return (0, 0);
        }
        let digits = digits.get(..length).unwrap_or("");
        let value = digits.trim_start_matches('0').get(..).map_or(0, |digits| match digits {
            "" => 0,
            digits => digits.parse::<i128>().unwrap_or(i128::MAX),
        });
        let value = if rest.starts_with('-') { -value } else { value };
        (value, spaces + usize::from(signed) + length)
    }

    /// A number of `length` digits, or of any where the template lets it end elsewhere. Returns how
    /// many bytes it took, and the number.
    pub(super) fn field(&mut self, length: usize, item: &Item, open: bool) -> Result<(usize, i32)> {
        let start = self.at;
        self.skip_spaces();
        let rest = self.rest();
        let copy = rest.get(..rest.floor_char_boundary(length)).unwrap_or(rest);
        let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let invalid = || wrong(format!("invalid value \"{copy}\" for \"{}\"", item.name));
        let value = if open {
            let (value, used) = Self::number(self.text.get(start..).unwrap_or(""));
            self.at = start + used;
            value
        } else {
            if rest.len() < length {
                let name = item.name;
                let message = format!("source string too short for \"{name}\" formatting field");
                return Err(wrong(message)
                    .detail(format!(
                        "Field requires {length} characters, but only {} remain.",
                        rest.len()
                    ))
                    .hint(hint));
            }
            let (value, used) = Self::number(copy);
            if used > 0 && used < length {
                return Err(invalid()
                    .detail(format!(
                        "Field requires {length} characters, but only {used} could be parsed."
                    ))
                    .hint(hint));
            }
            self.at += used;
            value
        };
        if self.at == start {
            return Err(invalid().detail("Value must be an integer."));
        }
        let value = i32::try_from(value).map_err(|_| {
            let message = format!("value for \"{}\" in source string is out of range", item.name);
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message).detail(format!(
                "Value must be in the range {} to {}.",
                i32::MIN,
                i32::MAX
            ))
        })?;
        Ok((self.at - start, value))
    }

    /// The place of the first of these words that comes next.
    pub(super) fn word<'w>(
        &mut self,
        words: impl Iterator<Item = &'w str>,
        item: &Item,
    ) -> Result<i32> {
        let rest = self.rest();
        for (place, word) in words.enumerate() {
            let begins = rest.get(..word.len()).is_some_and(|own| own.eq_ignore_ascii_case(word));
            if begins {
                self.at += word.len();
                return Ok(i32::try_from(place).unwrap_or(0));
            }
        }
        let found = rest.split(is_space).next().unwrap_or("");
        let message = format!("invalid value \"{found}\" for \"{}\"", item.name);
        Err(wrong(message)
            .detail("The given value did not match any of the allowed values for this field."))
    }

    /// The letters of an ordinal number.
    pub(super) fn skip_ordinal(&mut self, item: &Item) {
        if item.ordinal.is_some() {
            self.skip();
            self.skip();
        }
    }
}
