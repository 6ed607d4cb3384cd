//! From a text to tokens, by the rules of PostgreSQL's scanner.
//!
//! A token is a kind and a range of bytes. Values are decoded when the parser takes the token, so
//! that the text of a keyword or an operator is never copied.

mod comment;
mod number;
mod operator;
mod quoted;
pub(crate) mod value;

use crate::Stop;
use crate::error::SyntaxError;
use crate::keyword::Keyword;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word that is no keyword.
    Ident,
    /// `"..."`
    QuotedIdent,
    /// `U&"..."`, with its UESCAPE
    UnicodeIdent,
    /// A word with a meaning in the grammar.
    Keyword(Keyword),
    /// `'...'`
    String,
    /// `E'...'`
    EscapeString,
    /// `U&'...'`, with its UESCAPE
    UnicodeString,
    /// `$tag$...$tag$`
    DollarString,
    /// `B'...'`
    BitString,
    /// `X'...'`
    HexString,
    /// `$1`
    Param,
    /// A literal that is to be a parameter: its number, from 1.
    Lifted(u16),
    /// Digits.
    Integer,
    /// A number with a point or an exponent.
    Float,
    /// An operator without a token of its own.
    Op,
    /// `::`
    Typecast,
    /// `..`
    DotDot,
    /// `:=`
    ColonEquals,
    /// `=>`
    EqualsGreater,
    /// `<=`
    LessEquals,
    /// `>=`
    GreaterEquals,
    /// `<>` or `!=`
    NotEquals,
    /// A character that stands for itself.
    Char(u8),
    /// What the scanner refuses. It is the last token.
    Bad,
    /// The end of the text.
    End,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
}

/// The tokens of a text, up to its end or to the first thing that is no token.
#[derive(Debug)]
pub struct Tokens {
    /// The last one is `End` or `Bad`.
    pub list: Vec<Token>,
    /// What `Bad` is about.
    pub error: Option<Box<SyntaxError>>,
}

/// What a backslash in a literal in plain quotes is: `standard_conforming_strings`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainStrings {
    /// A character like others.
    #[default]
    Standard,
    /// The beginning of an escape, as in `E'...'`.
    Escapes,
}

/// Tokens that are read without a look whether to stop.
const TOKENS_BETWEEN_LOOKS: usize = 1 << 14;

/// Splits `text` into tokens. The caller has checked that its length fits into 32 bits.
pub fn tokens(text: &str, strings: PlainStrings, stop: Stop<'_>) -> Lex<Tokens> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, list: Vec::new(), strings };
    lexer.list.reserve(text.len() / 5 + 4);
    let error = loop {
        if lexer.list.len() % TOKENS_BETWEEN_LOOKS == TOKENS_BETWEEN_LOOKS - 1 && stop() {
            return Err(SyntaxError::stopped());
        }
        match lexer.next() {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
    };
    if error.is_some() {
        lexer.push(TokenKind::Bad, lexer.at);
    }
    Ok(Tokens { list: lexer.list, error })
}

/// What reading a piece answers.
type Lex<T> = Result<T, Box<SyntaxError>>;

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    list: Vec<Token>,
    strings: PlainStrings,
}

impl Lexer<'_> {
    /// The byte `ahead` of here; 0 after the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.list.push(Token { kind, start: start as u32, end: self.at as u32 });
    }

    /// Reads one token. False at the end.
    fn next(&mut self) -> Lex<bool> {
        self.skip_space()?;
        let start = self.at;
        if start >= self.bytes.len() {
            self.unfinished_uescape(start)?;
            self.push(TokenKind::End, start);
            return Ok(false);
        }
        let kind = self.token(start)?;
        if self.unicode_before_uescape() {
            if self.bytes.get(start) != Some(&b'\'') {
                return Err(self.uescape_error(start));
            }
            return self.join_uescape(start).map(|()| true);
        }
        self.push(kind, start);
        Ok(true)
    }

    fn token(&mut self, start: usize) -> Lex<TokenKind> {
        let first = self.byte(0);
        match first {
            b'\'' if self.strings == PlainStrings::Escapes => {
                self.string(start, TokenKind::EscapeString, 0)
            }
            b'\'' => self.string(start, TokenKind::String, 0),
            b'e' | b'E' if self.byte(1) == b'\'' => self.string(start, TokenKind::EscapeString, 1),
            b'b' | b'B' if self.byte(1) == b'\'' => self.string(start, TokenKind::BitString, 1),
            b'x' | b'X' if self.byte(1) == b'\'' => self.string(start, TokenKind::HexString, 1),
            // The word NCHAR, and a string after it.
            b'n' | b'N' if self.byte(1) == b'\'' => {
                self.at += 1;
                Ok(TokenKind::Keyword(Keyword::Nchar))
            }
            b'u' | b'U' if self.byte(1) == b'&' && self.byte(2) == b'\'' => {
                self.check_unicode_string(start)?;
                self.string(start, TokenKind::UnicodeString, 2)
            }
            b'u' | b'U' if self.byte(1) == b'&' && self.byte(2) == b'"' => {
                self.quoted_ident(start, TokenKind::UnicodeIdent, 2)
            }
            b'"' => self.quoted_ident(start, TokenKind::QuotedIdent, 0),
            b'$' => self.dollar(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte(1).is_ascii_digit() => self.number(start),
            _ if is_ident_start(first) => Ok(self.word(start)),
            _ => self.punctuation(start),
        }
    }

    fn word(&mut self, start: usize) -> TokenKind {
        let rest = self.bytes.get(start + 1..).unwrap_or_default();
        let end = rest.iter().position(|byte| !CONTINUES[usize::from(*byte)]);
        self.at = start + 1 + end.unwrap_or(rest.len());
        let word = self.text.get(start..self.at).unwrap_or_default();
        match Keyword::find(word) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None => TokenKind::Ident,
        }
    }

    fn punctuation(&mut self, start: usize) -> Lex<TokenKind> {
        let two = match (self.byte(0), self.byte(1)) {
            (b':', b':') => Some(TokenKind::Typecast),
            (b':', b'=') => Some(TokenKind::ColonEquals),
            (b'.', b'.') => Some(TokenKind::DotDot),
            _ => None,
        };
        if let Some(kind) = two {
            self.at += 2;
            return Ok(kind);
        }
        if operator::is_operator(self.byte(0)) {
            return self.operator(start);
        }
        let first = self.byte(0);
        self.at += 1;
        Ok(TokenKind::Char(first))
    }
}

const fn is_ident_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

const fn is_ident_continue(byte: u8) -> bool {
    is_ident_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// For each byte whether [`is_ident_continue`] holds.
const CONTINUES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_ident_continue(byte as u8);
        byte += 1;
    }
    table
};

/// What PostgreSQL's scanner takes for space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests;
