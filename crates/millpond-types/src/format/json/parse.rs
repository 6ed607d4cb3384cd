//! JSON's grammar.

use std::borrow::Cow;

use crate::jsonb::{MAX_DEPTH, write};

use super::{syntax, too_deep, too_long};
use crate::Numeric;
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

/// The bytes of a `jsonb` value.
pub fn to_jsonb(text: &str) -> Result<Vec<u8>> {
    let mut reader = Reader::new(text);
    let mut out = Vec::with_capacity(text.len() + 16);
    reader.value(0, Some(&mut out))?;
    reader.end()?;
    Ok(out)
}

/// Reads a text from the front.
pub struct Reader<'a> {
    rest: &'a str,
    /// Whether characters that are written as numbers are to be made, so that they must be there.
    decodes: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the whole text.
    pub fn new(text: &'a str) -> Self {
        Reader { rest: text, decodes: true }
    }

    /// A reader that takes characters as they are written, for texts whose strings do not matter.
    pub fn of_escapes(text: &'a str) -> Self {
        Reader { rest: text, decodes: false }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Goes on behind white space.
    pub fn skip_spaces(&mut self) {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let spaces = self.rest.bytes().take_while(is_space).count();
        self.rest = self.rest.get(spaces..).unwrap_or("");
    }

    /// Goes on behind that character, if it is next.
    pub fn eat(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self) -> Result<()> {
        self.skip_spaces();
        if self.rest.is_empty() { Ok(()) } else { Err(self.unexpected("end of input")) }
    }

    /// The error of what comes next.
    pub fn unexpected(&self, expected: &str) -> DataException {
        let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
        let end = end.max(self.rest.chars().next().map_or(0, char::len_utf8));
        match self.rest.get(..end) {
            None | Some("") => syntax("The input string ended unexpectedly."),
            Some(word) if word.starts_with(|c: char| c.is_alphabetic()) => {
                syntax(format!("Token \"{word}\" is invalid."))
            }
            Some(token) => syntax(format!("Expected {expected}, but found \"{token}\".")),
        }
    }

    /// Reads a value; with a buffer, its `jsonb` is appended there.
    pub fn value(&mut self, depth: usize, out: Option<&mut Vec<u8>>) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.skip_spaces();
        match self.rest.bytes().next() {
            Some(b'{') => self.object(depth, out),
            Some(b'[') => self.array(depth, out),
            Some(b'"') => {
                let text = self.string()?;
                out.map_or(Ok(()), |out| write::string(&text, out).map_err(too_long))
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => self.word(out),
        }
    }

    fn word(&mut self, out: Option<&mut Vec<u8>>) -> Result<()> {
        let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = match word {
            "null" => None,
            "true" => Some(true),
            "false" => Some(false),
            _ => return Err(self.unexpected("JSON value")),
        };
        self.rest = rest;
        match (out, value) {
            (Some(out), Some(value)) => write::bool(value, out),
            (Some(out), None) => write::null(out),
            (None, _) => {}
        }
        Ok(())
    }

    fn digits(&self, from: usize) -> usize {
        let rest = self.rest.get(from..).unwrap_or("");
        from + rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn number(&mut self, out: Option<&mut Vec<u8>>) -> Result<()> {
        let at = |place: usize| self.rest.as_bytes().get(place).copied();
        let start = usize::from(at(0) == Some(b'-'));
        let mut end = self.digits(start);
        let mut valid = end > start && (at(start) != Some(b'0') || end == start + 1);
        if at(end) == Some(b'.') {
            let fraction = self.digits(end + 1);
            valid &= fraction > end + 1;
            end = fraction;
        }
        if matches!(at(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(at(end + 1), Some(b'+' | b'-')));
            let exponent = self.digits(end + 1 + sign);
            valid &= exponent > end + 1 + sign;
            end = exponent;
        }
        let (number, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        // Letters that follow would make it another token.
        if !valid || rest.starts_with(|c: char| c.is_alphanumeric()) {
            return Err(syntax(format!("Token \"{number}\" is invalid.")));
        }
        self.rest = rest;
        if let Some(out) = out {
            let number: Numeric = number.parse()?;
            write::number(number.as_ref(), out).map_err(too_long)?;
        }
        Ok(())
    }

    /// A string in quotes. Without escapes it is a piece of the text.
    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        self.eat('"');
        let mut text = Cow::Borrowed("");
        loop {
            let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..b' ');
            let Some(end) = self.rest.bytes().position(is_special) else {
                return Err(syntax("The input string ended unexpectedly."));
            };
            let (part, rest) = self.rest.split_at(end);
            text += part;
            self.rest = rest;
            if self.eat('"') {
                return Ok(text);
            }
            if !self.eat('\\') {
                let c = self.rest.chars().next().unwrap_or(' ');
                let code = u32::from(c);
                return Err(syntax(format!("Character with value 0x{code:02x} must be escaped.")));
            }
            text.to_mut().push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char> {
        let mut chars = self.rest.chars();
        let Some(escape) = chars.next() else {
            return Err(syntax("The input string ended unexpectedly."));
        };
        self.rest = chars.as_str();
        Ok(match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode(),
            other => return Err(syntax(format!("Escape sequence \"\\{other}\" is invalid."))),
        })
    }

    fn hex(&mut self) -> Result<u32> {
        let wrong = || syntax("\"\\u\" must be followed by four hexadecimal digits.");
        let digits =
            self.rest.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(wrong)?;
        self.rest = self.rest.get(4..).unwrap_or("");
        u32::from_str_radix(digits, 16).map_err(|_| wrong())
    }

    fn unicode(&mut self) -> Result<char> {
        let first = self.hex()?;
        if !self.decodes {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        let code = match first {
            0 => {
                return Err(DataException::new(
                    SqlState::UNTRANSLATABLE_CHARACTER,
                    "unsupported Unicode escape sequence",
                )
                .detail("\\u0000 cannot be converted to text."));
            }
            0xd800..=0xdbff => {
                let low = "Unicode low surrogate must follow a high surrogate.";
                if !(self.eat('\\') && self.eat('u')) {
                    return Err(syntax(low));
                }
                match self.hex()? {
                    second @ 0xdc00..=0xdfff => {
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    _ => return Err(syntax(low)),
                }
            }
            code => code,
        };
        let low = "Unicode low surrogate must follow a high surrogate.";
        char::from_u32(code).ok_or_else(|| syntax(low))
    }

    fn array(&mut self, depth: usize, mut out: Option<&mut Vec<u8>>) -> Result<()> {
        self.eat('[');
        let mut array = out.as_deref_mut().map(write::Array::begin);
        self.skip_spaces();
        if !self.eat(']') {
            loop {
                if let Some(array) = &mut array {
                    array.element();
                }
                self.value(depth + 1, out.as_deref_mut())?;
                self.skip_spaces();
                if self.eat(']') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected("\",\" or \"]\""));
                }
            }
        }
        match out.zip(array) {
            Some((out, array)) => array.end(out).map_err(too_long),
            None => Ok(()),
        }
    }

    fn object(&mut self, depth: usize, mut out: Option<&mut Vec<u8>>) -> Result<()> {
        self.eat('{');
        let mut object = out.as_deref_mut().map(write::Object::begin);
        self.skip_spaces();
        if !self.eat('}') {
            loop {
                let name = self.name()?;
                if let Some((out, object)) = out.as_deref_mut().zip(object.as_mut()) {
                    object.member(&name, out).map_err(too_long)?;
                }
                self.value(depth + 1, out.as_deref_mut())?;
                self.skip_spaces();
                if self.eat('}') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected("\",\" or \"}\""));
                }
            }
        }
        match out.zip(object) {
            Some((out, object)) => object.end(out).map_err(too_long),
            None => Ok(()),
        }
    }

    /// A member's name and the colon.
    pub fn name(&mut self) -> Result<Cow<'a, str>> {
        self.skip_spaces();
        if !self.rest.starts_with('"') {
            return Err(self.unexpected("string"));
        }
        let name = self.string()?;
        self.skip_spaces();
        if self.eat(':') { Ok(name) } else { Err(self.unexpected("\":\"")) }
    }
}
