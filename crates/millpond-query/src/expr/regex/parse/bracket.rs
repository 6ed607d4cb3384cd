//! Bracket expressions: sets of characters, ranges, classes.

use super::super::bad;
use super::super::node::NodeId;
use super::super::set::{Class, Parts};
use super::Parser;
use super::escape::{Decimal, ESCAPE, class_escape};
use crate::error::Result;

const BRACKETS: &str = "brackets [] not balanced";
const RANGE: &str = "invalid character range";

impl Parser {
    /// A bracket expression, whose first bracket has been read.
    pub(super) fn bracket(&mut self) -> Result<NodeId> {
        let negated = self.eat('^');
        let no_newline = negated && self.options.newline_stops;
        let mut parts = Parts { negated, no_newline, ..Parts::default() };
        let mut first = true;
        loop {
            if !first && self.eat(']') {
                break;
            }
            let Some(low) = self.bracket_item(&mut parts, first)? else {
                first = false;
                // A class is no end of a range.
                if self.peek() == Some('-') && self.text.get(self.at + 1) != Some(&']') {
                    return Err(bad(RANGE));
                }
                continue;
            };
            first = false;
            let is_range = self.peek() == Some('-') && self.text.get(self.at + 1) != Some(&']');
            if !is_range {
                parts.ranges.push((low, low));
                continue;
            }
            self.at += 1;
            let high = self.bracket_item(&mut parts, true)?.ok_or_else(|| bad(RANGE))?;
            if low > high {
                return Err(bad(RANGE));
            }
            parts.ranges.push((low, high));
        }
        self.set(parts)
    }

    /// A character of a bracket expression; `None` if it was a class, which is in `parts` now.
    fn bracket_item(&mut self, parts: &mut Parts, minus: bool) -> Result<Option<char>> {
        match self.next().ok_or_else(|| bad(BRACKETS))? {
            '[' if matches!(self.peek(), Some('.' | '=' | ':')) => {
                let kind = self.next().unwrap_or(':');
                let name = self.bracket_name(kind)?;
                let mut chars = name.chars();
                match (kind, chars.next(), chars.next()) {
                    (':', ..) => {
                        let class = Class::named(&name);
                        let class = class.ok_or_else(|| bad("invalid character class"))?;
                        parts.classes.push((class, false));
                        Ok(None)
                    }
                    ('=', Some(c), None) => {
                        parts.ranges.push((c, c));
                        Ok(None)
                    }
                    (_, Some(c), None) => Ok(Some(c)),
                    _ => collating_element(&name)
                        .map(Some)
                        .ok_or_else(|| bad("invalid collating element")),
                }
            }
            '\\' if self.is_advanced() => {
                let c = self.next().ok_or_else(|| bad(ESCAPE))?;
                if let Some(class) = class_escape(c) {
                    parts.classes.push(class);
                    return Ok(None);
                }
                if matches!(c, '1'..='9') {
                    return match self.decimal(c)? {
                        Decimal::Octal(c) => Ok(Some(c)),
                        Decimal::Group(_) => Err(bad(ESCAPE)),
                    };
                }
                self.char_escape(c)?.map(Some).ok_or_else(|| bad(ESCAPE))
            }
            // Only at the ends, or as the end of a range, it is itself.
            '-' if !minus && self.peek() != Some(']') => Err(bad(RANGE)),
            c => Ok(Some(c)),
        }
    }

    /// The name in `[:name:]`.
    fn bracket_name(&mut self, kind: char) -> Result<String> {
        let mut name = String::new();
        loop {
            match self.next() {
                None => return Err(bad(BRACKETS)),
                Some(c) if c == kind && self.peek() == Some(']') => {
                    self.at += 1;
                    return Ok(name);
                }
                Some(c) => name.push(c),
            }
        }
    }
}

/// Names that POSIX gives to characters.
fn collating_element(name: &str) -> Option<char> {
    Some(match name {
        "NUL" => '\0',
        "tab" => '\t',
        "newline" => '\n',
        "carriage-return" => '\r',
        "space" => ' ',
        "exclamation-mark" => '!',
        "quotation-mark" => '"',
        "number-sign" => '#',
        "dollar-sign" => '$',
        "percent-sign" => '%',
        "ampersand" => '&',
        "apostrophe" => '\'',
        "left-parenthesis" => '(',
        "right-parenthesis" => ')',
        "asterisk" => '*',
        "plus-sign" => '+',
        "comma" => ',',
        "hyphen" | "hyphen-minus" => '-',
        "period" | "full-stop" => '.',
        "slash" | "solidus" => '/',
        "colon" => ':',
        "semicolon" => ';',
        "equals-sign" => '=',
        "question-mark" => '?',
        "commercial-at" => '@',
        "left-square-bracket" => '[',
        "backslash" | "reverse-solidus" => '\\',
        "right-square-bracket" => ']',
        "circumflex" | "circumflex-accent" => '^',
        "underscore" | "low-line" => '_',
        "left-brace" | "left-curly-bracket" => '{',
        "vertical-line" => '|',
        "right-brace" | "right-curly-bracket" => '}',
        "tilde" => '~',
        _ => return None,
    })
}
