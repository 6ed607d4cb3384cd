//! Numbers read by a template.

use super::number_pattern::{self, Anchor, Node, Pattern};
use crate::Numeric;
use crate::error::{Result, SqlError, SqlState};

/// Reads a text from the front, as the template leads.
struct Reader<'a> {
    pattern: Pattern,
    input: &'a [u8],
    at: usize,
    sign: Option<char>,
    digits: String,
    before: usize,
    after: usize,
    point: bool,
}

/// The number that a text has in the places of a template; `None` by an empty template.
pub(super) fn read(text: &str, template: &str) -> Result<Option<Numeric>> {
    if template.is_empty() {
        return Ok(None);
    }
    let parsed = number_pattern::parsed(template)?;
    let (nodes, pattern) = (&parsed.0, parsed.1);
    let refused = [(pattern.scientific, "EEEE"), (pattern.roman, "RN")];
    if let Some((_, name)) = refused.iter().find(|(has, _)| *has) {
        let message = format!("\"{name}\" not supported for input");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let mut reader = Reader {
        pattern,
        input: text.as_bytes(),
        at: 0,
        sign: None,
        digits: String::new(),
        before: 0,
        after: 0,
        point: false,
    };
    for node in nodes {
        if reader.is_done() {
            break;
        }
        reader.node(*node);
    }
    let digits = reader.digits.strip_suffix('.').unwrap_or(&reader.digits);
    let digits = format!("{}{digits}", reader.sign.unwrap_or(' '));
    let number: Numeric = digits.parse().map_err(|_| {
        let message = format!("invalid input syntax for type numeric: \"{digits}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })?;
    let precision = pattern.before + pattern.shift + reader.after;
    let limit = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let scale = i16::try_from(reader.after).unwrap_or(i16::MAX);
    let number = number.as_ref().with_precision(limit(precision), scale)?;
    if !pattern.has_shift {
        return Ok(Some(number));
    }
    let factor = match pattern.shift {
        0 => "1".to_owned(),
        shift => format!("0.{}1", "0".repeat(shift - 1)),
    };
    // PostgreSQL's power of ten has this scale.
    let factor = factor.parse::<Numeric>()?.as_ref().round(16)?;
    Ok(Some(number.as_ref().mul(factor.as_ref())?))
}

impl Reader<'_> {
    fn is_done(&self) -> bool {
        self.at >= self.input.len()
    }

    fn next(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// Skips a character; one that has been entered already, byte by byte.
    fn skip(&mut self) {
        self.at += match self.next() {
            Some(0xf0..) => 4,
            Some(0xe0..) => 3,
            Some(0xc0..) => 2,
            _ => 1,
        };
    }

    /// Skips a character that can't be a part of a number.
    fn skip_foreign(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                None | Some(b'0'..=b'9' | b'.' | b',' | b'+' | b'-') => break,
                Some(_) => self.skip(),
            }
        }
    }

    fn node(&mut self, node: Node) {
        match node {
            Node::Nine | Node::Zero | Node::Point => {
                self.place(node);
                // A place is a byte, not a character.
                self.at += 1;
            }
            Node::Comma | Node::Group => {
                if !self.pattern.fill && self.next() == Some(b',') {
                    self.skip();
                }
            }
            Node::Currency => self.skip_foreign(1),
            Node::Ordinal(_) => {
                if !(self.pattern.roman || self.sign == Some('-') || self.pattern.has_point) {
                    self.skip_foreign(2);
                }
            }
            Node::Minus => self.sign_or_skip(b"-"),
            Node::Plus => self.sign_or_skip(b"+"),
            Node::Sign => self.sign_or_skip(b"-+"),
            Node::Char(_) => self.skip(),
            Node::Roman(_) | Node::Mark => {}
        }
    }

    fn sign_or_skip(&mut self, signs: &[u8]) {
        match self.next().filter(|c| signs.contains(c)) {
            Some(sign) => {
                self.sign = Some(char::from(sign));
                self.skip();
            }
            None => self.skip_foreign(1),
        }
    }

    /// Reads a digit or the point. The caller goes on by one character afterwards.
    fn place(&mut self, node: Node) {
        if self.next() == Some(b' ') {
            self.at += 1;
        }
        let is_digit = node != Node::Point;
        if self.sign.is_none() && is_digit && self.before + self.after == 0 {
            self.sign_before();
        }
        let mut was_read = false;
        match self.next() {
            None => return,
            Some(c) if c.is_ascii_digit() => {
                if self.point && self.after == self.pattern.after {
                    return;
                }
                self.digits.push(char::from(c));
                if self.point {
                    self.after += 1;
                } else {
                    self.before += 1;
                }
                was_read = true;
            }
            Some(b'.') if self.pattern.has_point && !self.point => {
                self.digits.push('.');
                self.point = true;
                was_read = true;
            }
            Some(_) => {}
        }
        if self.sign.is_none() && self.before + self.after > 0 {
            self.sign_behind(was_read);
        }
    }

    fn sign_before(&mut self) {
        let found = self.next();
        if self.pattern.locale_sign && self.pattern.anchor == Anchor::Before {
            if let Some(sign @ (b'-' | b'+')) = found {
                self.at += 1;
                self.sign = Some(char::from(sign));
            }
            return;
        }
        self.sign = match found {
            Some(b'-') => Some('-'),
            Some(b'<') if self.pattern.brackets => Some('-'),
            Some(b'+') => Some('+'),
            _ => return,
        };
        self.at += 1;
    }

    fn sign_behind(&mut self, was_read: bool) {
        let after = self.input.get(self.at + 1).copied();
        if self.pattern.locale_sign && was_read {
            if let Some(sign @ (b'-' | b'+')) = after {
                self.at += 1;
                self.sign = Some(char::from(sign));
            }
        } else if !was_read && (self.pattern.plus || self.pattern.minus) {
            if let Some(sign @ (b'-' | b'+')) = self.next() {
                self.sign = Some(char::from(sign));
            }
        }
    }
}
