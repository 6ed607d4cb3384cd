//! The words of a path.

use super::syntax;
use crate::error::{DataException, Result};

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name without quotes.
    Name(String),
    String(String),
    /// `$name`
    Variable(String),
    Number(String),
    /// An operator or a sign.
    Sign(&'static str),
    End,
}

/// The longer ones first.
const SIGNS: [&str; 28] = [
    "&&", "||", "==", "!=", "<>", "<=", ">=", "**", "$", "@", ".", "[", "]", "{", "}", "(", ")",
    "?", "!", "<", ">", "=", "+", "-", "*", "/", "%", ",",
];

const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// What ends a name.
fn is_special(c: char) -> bool {
    c.is_ascii_whitespace() || "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    place: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, place: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.place..).unwrap_or("")
    }

    /// The next word, and the text that an error shows for it. Of a name that is, as in PostgreSQL,
    /// the blank that ended it.
    pub(super) fn next(&mut self) -> Result<(Token, &'a str)> {
        self.skip_blanks()?;
        let start = self.place;
        let token = self.token()?;
        let written = match token {
            Token::Name(_) => {
                let rest = self.rest();
                rest.get(..usize::from(rest.starts_with(BLANKS)))
            }
            _ => self.text.get(start..self.place),
        };
        Ok((token, written.unwrap_or("")))
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches(BLANKS).len();
            self.place += blanks;
            let Some(comment) = self.rest().strip_prefix("/*") else { return Ok(()) };
            match comment.find("*/") {
                Some(end) => self.place += end + 4,
                None => return Err(syntax("unexpected end of comment at end of jsonpath input")),
            }
        }
    }

    fn token(&mut self) -> Result<Token> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let (first, second) = (chars.next(), chars.next());
        match first {
            None => Ok(Token::End),
            Some('"') => self.string().map(Token::String),
            Some('$') if second == Some('"') => {
                self.place += 1;
                self.string().map(Token::Variable)
            }
            Some('$') if second.is_some_and(|c| !is_special(c)) => {
                self.place += 1;
                self.name().map(Token::Variable)
            }
            Some('0'..='9') => self.number(),
            Some('.') if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            Some(c) if !is_special(c) || c == '\\' => self.name().map(Token::Name),
            Some(_) => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.place += sign.len();
                    Ok(Token::Sign(sign))
                }
                None => Err(near(rest.get(..1).unwrap_or(rest))),
            },
        }
    }

    fn number(&mut self) -> Result<Token> {
        let rest = self.rest();
        let digits = |from: usize| {
            let tail = rest.get(from..).unwrap_or("");
            from + tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len())
        };
        let at = |place: usize| rest.as_bytes().get(place).copied();
        let mut end = digits(0);
        let is_octal = end > 1 && at(0) == Some(b'0');
        if at(end) == Some(b'.') {
            end = digits(end + 1);
        }
        if matches!(at(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(at(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            } else if sign > 0 && !is_octal {
                let text = rest.get(..end + 2).unwrap_or(rest);
                let message = "invalid numeric literal at or near";
                return Err(syntax(format!("{message} \"{text}\" of jsonpath input")));
            }
        }
        // The first character that does not belong there is shown.
        let end = if is_octal { 1 } else { end };
        let junk = rest.get(end..).and_then(|tail| tail.chars().next());
        if let Some(junk) = junk.filter(|c| !is_special(*c)) {
            let text = rest.get(..end + junk.len_utf8()).unwrap_or(rest);
            let message = "trailing junk after numeric literal at or near";
            return Err(syntax(format!("{message} \"{text}\" of jsonpath input")));
        }
        self.place += end;
        Ok(Token::Number(rest.get(..end).unwrap_or("").to_owned()))
    }

    fn string(&mut self) -> Result<String> {
        self.place += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(['"', '\\']) else {
                return Err(syntax("unterminated quoted string at end of jsonpath input"));
            };
            text.push_str(rest.get(..end).unwrap_or(""));
            self.place += end;
            if rest.as_bytes().get(end) == Some(&b'"') {
                self.place += 1;
                return Ok(text);
            }
            text.push(self.escape()?);
        }
    }

    fn name(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find(is_special).unwrap_or(rest.len());
            text.push_str(rest.get(..end).unwrap_or(""));
            self.place += end;
            if self.rest().starts_with('\\') {
                text.push(self.escape()?);
            } else {
                return Ok(text);
            }
        }
    }

    /// A character that is written with a backslash.
    fn escape(&mut self) -> Result<char> {
        let rest = self.rest();
        let Some(c) = rest.chars().nth(1) else {
            return Err(syntax("unexpected end after backslash at end of jsonpath input"));
        };
        self.place += 1 + c.len_utf8();
        Ok(match c {
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => {
                let code = self.hexadecimal(2, 2, "invalid hexadecimal character sequence")?;
                character(code)?
            }
            'u' => self.unicode()?,
            other => other,
        })
    }

    fn hexadecimal(&mut self, least: usize, most: usize, error: &str) -> Result<u32> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len()).min(most);
        let code = rest.get(..length).filter(|_| length >= least);
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        self.place += length;
        code.ok_or_else(|| syntax(format!("{error} at or near \"{rest}\" of jsonpath input")))
    }

    fn code_unit(&mut self) -> Result<u32> {
        const ERROR: &str = "invalid Unicode escape sequence";
        if !self.rest().starts_with('{') {
            return self.hexadecimal(4, 4, ERROR);
        }
        self.place += 1;
        let code = self.hexadecimal(1, 6, ERROR)?;
        if !self.rest().starts_with('}') {
            return Err(syntax(format!("{ERROR} at end of jsonpath input")));
        }
        self.place += 1;
        Ok(code)
    }

    fn unicode(&mut self) -> Result<char> {
        let high = self.code_unit()?;
        if !(0xd800..0xdc00).contains(&high) {
            return character(high);
        }
        if !self.rest().starts_with("\\u") {
            return Err(no_surrogate());
        }
        self.place += 2;
        let low = self.code_unit()?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(no_surrogate());
        }
        character(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }
}

fn character(code: u32) -> Result<char> {
    if code == 0 {
        return Err(DataException::new(
            crate::sqlstate::SqlState::UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
        )
        .detail("\\u0000 cannot be converted to text."));
    }
    char::from_u32(code).ok_or_else(no_surrogate)
}

#[cold]
fn no_surrogate() -> DataException {
    DataException::new(
        crate::sqlstate::SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type jsonpath",
    )
    .detail("Unicode low surrogate must follow a high surrogate.")
}

/// A syntax error at a word.
#[cold]
pub(super) fn near(word: &str) -> DataException {
    match word {
        "" => syntax("syntax error at end of jsonpath input"),
        word => syntax(format!("syntax error at or near \"{word}\" of jsonpath input")),
    }
}
