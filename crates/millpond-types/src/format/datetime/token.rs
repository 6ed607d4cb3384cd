//! Cutting a text into the fields of a date or a time: what each looks like, not yet what it means.

use super::words;
use super::{Bad, Bad::Syntax};

/// What a field looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `12`, `12.5`, `.5`
    Number,
    /// With separators in it: `1999-01-08`, `jan-08-1999`, `america/new_york`.
    Date,
    /// `04:05`, `04:05:06.789`
    Time,
    /// `+02`, `-3:30`
    Zone,
    Word,
}

/// A field, in small letters.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// More fields than a date or time has.
const MOST_FIELDS: usize = 25;
/// The most letters of all fields, with one more for each.
const MOST_LETTERS: usize = 128;

/// The rest of a text.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn digits(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_digit())
    }

    /// What has been taken since `start` was the rest.
    fn since(&self, start: &'a str) -> &'a str {
        start.get(..start.len() - self.rest.len()).unwrap_or(start)
    }

    /// A field that begins with a digit.
    fn numeric(&mut self) -> Kind {
        self.digits();
        match self.peek() {
            Some(':') => {
                self.take_while(|c| c.is_ascii_digit() || c == ':' || c == '.');
                Kind::Time
            }
            Some(separator @ ('-' | '/' | '.')) => self.separated(separator),
            _ => Kind::Number,
        }
    }

    /// The rest of a field whose first number ends with a separator.
    fn separated(&mut self, separator: char) -> Kind {
        self.skip();
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.take_while(|c| c.is_ascii_alphanumeric() || c == separator);
            return Kind::Date;
        }
        self.digits();
        // Three parts have the same separator.
        if self.peek() == Some(separator) {
            self.take_while(|c| c.is_ascii_digit() || c == separator);
            return Kind::Date;
        }
        if separator == '.' { Kind::Number } else { Kind::Date }
    }

    /// A field that begins with a letter.
    fn word(&mut self) -> Kind {
        let word = self.take_while(|c| c.is_ascii_alphabetic());
        let is_date = match self.peek() {
            Some('-' | '/' | '.') => true,
            // `utc+3`, but not `jan8`.
            Some(c) if c == '+' || c.is_ascii_digit() => {
                words::find(&word.to_ascii_lowercase()).is_none()
            }
            _ => false,
        };
        if !is_date {
            return Kind::Word;
        }
        self.take_while(|c| c.is_ascii_alphanumeric() || "+-/_.:".contains(c));
        Kind::Date
    }

    /// A field that begins with a sign, which may stand apart from it.
    fn signed(&mut self) -> Result<Field, Bad> {
        let sign = if self.peek() == Some('-') { '-' } else { '+' };
        self.skip();
        self.take_while(is_space);
        let start = self.rest;
        let kind = match self.peek() {
            Some(c) if c.is_ascii_digit() => {
                self.take_while(|c| c.is_ascii_digit() || ":.-".contains(c));
                Kind::Zone
            }
            Some(c) if c.is_ascii_alphabetic() => {
                self.take_while(|c| c.is_ascii_alphabetic());
                Kind::Word
            }
            _ => return Err(Syntax),
        };
        Ok(Field { kind, text: format!("{sign}{}", self.since(start)).to_ascii_lowercase() })
    }
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Cuts a text into fields.
pub(super) fn fields(text: &str) -> Result<Vec<Field>, Bad> {
    let mut scanner = Scanner { rest: text };
    let (mut fields, mut letters) = (Vec::new(), 0);
    while let Some(next) = scanner.peek() {
        let start = scanner.rest;
        let kind = match next {
            c if is_space(c) => {
                scanner.skip();
                continue;
            }
            '0'..='9' => scanner.numeric(),
            '.' => {
                scanner.skip();
                scanner.digits();
                Kind::Number
            }
            'a'..='z' | 'A'..='Z' => scanner.word(),
            '+' | '-' => {
                push(&mut fields, &mut letters, scanner.signed()?)?;
                continue;
            }
            // Other signs separate fields.
            c if c.is_ascii_punctuation() => {
                scanner.skip();
                continue;
            }
            _ => return Err(Syntax),
        };
        let text = scanner.since(start).to_ascii_lowercase();
        push(&mut fields, &mut letters, Field { kind, text })?;
    }
    Ok(fields)
}

fn push(fields: &mut Vec<Field>, letters: &mut usize, field: Field) -> Result<(), Bad> {
    *letters += field.text.len() + 1;
    if fields.len() >= MOST_FIELDS || *letters > MOST_LETTERS {
        return Err(Syntax);
    }
    fields.push(field);
    Ok(())
}
