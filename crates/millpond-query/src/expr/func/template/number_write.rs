//! Numbers written by a template.

use super::date_write::ordinal;
use super::number_pattern::{Anchor, Node, Pattern};
use super::number_text::Shown;
use crate::error::Result;

/// Writes a number's digits where the template has places for them.
struct Writer<'a> {
    pattern: Pattern,
    digits: &'a [u8],
    negative: bool,
    spaces: usize,
    /// The next of the digits.
    at: usize,
    /// The last of the digits that are not zeros at the end, with `FM`.
    last: Option<usize>,
    sign_written: bool,
    digit_written: bool,
    /// Places of the template that have been passed.
    passed: usize,
    /// One less than all of them, so -1 is possible.
    places: isize,
    out: String,
}

pub(super) fn write(nodes: &[Node], mut pattern: Pattern, shown: Shown) -> Result<String> {
    if pattern.scientific {
        return Ok(shown.digits);
    }
    pattern.zero_start = pattern.zero_start.saturating_sub(1);
    let sign_written = if pattern.plus || pattern.minus {
        !pattern.plus || pattern.minus
    } else {
        if !shown.negative && pattern.fill {
            pattern.brackets = false;
        }
        pattern.settle_sign();
        !shown.negative && pattern.fill && !pattern.locale_sign
    };
    let mut last = None;
    if pattern.fill && pattern.has_point {
        last = last_relevant(&shown.digits);
        if let Some(last) = &mut last
            && pattern.zero_end > shown.spaces
        {
            let zero = (shown.digits.len() - 1).min(pattern.zero_end - shown.spaces);
            *last = (*last).max(zero);
        }
    }
    let mut places = (pattern.before + pattern.after) as isize - 1;
    if !sign_written && shown.spaces == 0 {
        places += 1;
    }
    let mut writer = Writer {
        pattern,
        digits: shown.digits.as_bytes(),
        negative: shown.negative,
        spaces: shown.spaces,
        at: 0,
        last,
        sign_written,
        digit_written: false,
        passed: 0,
        places,
        out: String::new(),
    };
    for node in nodes {
        writer.node(*node, &shown.digits)?;
    }
    // A float with fewer digits than the template ends where they do.
    let end = writer.out.find('\0').unwrap_or(writer.out.len());
    writer.out.truncate(end);
    Ok(writer.out)
}

/// The place of the last digit after the point that is not 0, or of the point.
fn last_relevant(digits: &str) -> Option<usize> {
    let point = digits.find('.')?;
    let trimmed = digits.trim_end_matches('0').len();
    Some(point.max(trimmed - 1))
}

impl Writer<'_> {
    fn next(&self) -> u8 {
        self.digits.get(self.at).copied().unwrap_or(0)
    }

    /// Roman numbers have none. As in PostgreSQL, the text ends where it would be.
    fn sign(&self) -> char {
        match (self.pattern.roman, self.negative) {
            (true, _) => '\0',
            (false, true) => '-',
            (false, false) => '+',
        }
    }

    fn space(&mut self) {
        if !self.pattern.fill {
            self.out.push(' ');
        }
    }

    fn node(&mut self, node: Node, number: &str) -> Result<()> {
        match node {
            Node::Char(c) => self.out.push(c),
            Node::Nine | Node::Zero | Node::Point => self.place(node),
            Node::Comma | Node::Group if self.digit_written => self.out.push(','),
            Node::Comma | Node::Group => self.space(),
            Node::Currency => self.out.push(' '),
            Node::Minus if self.negative => self.out.push('-'),
            Node::Plus if !self.negative && !self.pattern.roman => self.out.push('+'),
            Node::Minus | Node::Plus => self.space(),
            Node::Sign => self.out.push(self.sign()),
            Node::Roman(upper) => {
                let rest = number.get(self.at..).unwrap_or("");
                let text = if upper { rest.to_owned() } else { rest.to_lowercase() };
                match self.pattern.fill {
                    true => self.out.push_str(&text),
                    false => self.out.push_str(&format!("{text:>15}")),
                }
            }
            Node::Ordinal(upper) => {
                let has_none = self.pattern.roman
                    || number.starts_with('#')
                    || self.negative
                    || self.pattern.has_point;
                if !has_none {
                    self.out.push_str(ordinal(number, upper)?);
                }
            }
            Node::Mark => {}
        }
        Ok(())
    }

    /// Whether the 0 before the point is left out: `9.9` shows `.1`.
    fn hides_zero(&self) -> bool {
        !self.pattern.has_zero && self.at == 0 && self.next() == b'0' && self.pattern.after != 0
    }

    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits.get(last) == Some(&b'.'))
    }

    fn place(&mut self, node: Node) {
        if self.pattern.roman {
            return;
        }
        self.digit_written = false;
        let at_zero = self.pattern.has_zero && self.pattern.zero_start == self.passed;
        if !self.sign_written
            && (self.passed >= self.spaces || at_zero)
            && (!self.hides_zero() || self.ends_at_point())
        {
            self.sign_before();
        }
        if self.passed < self.spaces {
            if self.pattern.has_zero && self.pattern.zero_start <= self.passed {
                self.out.push('0');
                self.digit_written = true;
            } else {
                self.space();
            }
        } else {
            self.digit(node);
        }
        let mut end =
            self.places + isize::from(self.spaces > 0) + isize::from(self.pattern.has_point);
        if self.last == Some(self.at) {
            end = self.passed as isize;
        }
        if self.passed as isize + 1 == end {
            if self.sign_written && self.pattern.brackets {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.pattern.locale_sign && self.pattern.anchor == Anchor::After {
                self.out.push(self.sign());
            }
        }
        self.passed += 1;
    }

    fn sign_before(&mut self) {
        if self.pattern.locale_sign {
            if self.pattern.anchor == Anchor::Before {
                self.out.push(self.sign());
                self.sign_written = true;
            }
            return;
        }
        if self.pattern.brackets {
            self.out.push(if self.negative { '<' } else { ' ' });
        } else if self.negative {
            self.out.push('-');
        } else {
            self.space();
        }
        self.sign_written = true;
    }

    fn digit(&mut self, node: Node) {
        if self.next() == b'.' {
            if !self.ends_at_point() || self.pattern.fill {
                self.out.push('.');
            }
        } else if self.last.is_some_and(|last| self.at > last) && node != Node::Zero {
            // A zero at the end.
        } else if self.hides_zero() {
            if !self.pattern.fill {
                self.out.push(' ');
            } else if self.ends_at_point() {
                self.out.push('0');
            }
        } else {
            self.out.push(char::from(self.next()));
            self.digit_written = true;
        }
        if self.at < self.digits.len() {
            self.at += 1;
        }
    }
}
