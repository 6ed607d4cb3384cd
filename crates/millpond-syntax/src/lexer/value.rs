//! The values of tokens: names folded and cut, strings with their escapes resolved.

use smol_str::StrExt;

use super::comment::next_part;
use super::operator::NAME_LENGTH;
use super::{Lex, TokenKind};
use crate::error::{SqlState, SyntaxError};
use crate::tree::{Name, Text};

/// The name that `text` (a token's, not in quotes) stands for.
pub fn fold(text: &str) -> Name {
    cut(text).to_ascii_lowercase_smolstr()
}

/// As much of a name as PostgreSQL keeps: 63 bytes, whole characters.
pub fn cut(name: &str) -> &str {
    if name.len() < NAME_LENGTH {
        return name;
    }
    let mut end = NAME_LENGTH - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}

/// The name that a token in double quotes stands for.
pub fn quoted_ident(kind: TokenKind, text: &str, start: u32) -> Lex<Name> {
    if kind == TokenKind::QuotedIdent {
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        if !inside.contains('"') {
            return Ok(cut(inside).into());
        }
        return Ok(cut(&inside.replace("\"\"", "\"")).into());
    }
    let mut end = 3;
    let bytes = text.as_bytes();
    while end < bytes.len() && (bytes[end] != b'"' || bytes.get(end + 1) == Some(&b'"')) {
        end += if bytes[end] == b'"' { 2 } else { 1 };
    }
    let inside = text.get(3..end).unwrap_or_default().replace("\"\"", "\"");
    let escape = uescape(text, end + 1);
    let decoded = unicode(&inside, escape, start)?;
    Ok(cut(&decoded).into())
}

/// The string that a token of one of the kinds of strings stands for. A bit string keeps
/// PostgreSQL's form: a letter, b or x, and the digits.
pub fn string(kind: TokenKind, text: &str, start: u32) -> Lex<Text> {
    match kind {
        TokenKind::DollarString => {
            let tag = text.get(1..).and_then(|rest| rest.find('$')).unwrap_or_default() + 2;
            Ok(text.get(tag..text.len() - tag).unwrap_or_default().into())
        }
        TokenKind::BitString => Ok(format!("b{}", parts(text, 1, kind).0).into()),
        TokenKind::HexString => Ok(format!("x{}", parts(text, 1, kind).0).into()),
        TokenKind::EscapeString => {
            let prefix = usize::from(!text.starts_with('\''));
            escaped(&parts(text, prefix, kind).0, start, prefix)
        }
        TokenKind::UnicodeString => {
            let (inside, end) = parts(text, 2, kind);
            unicode(&inside, uescape(text, end), start).map(Into::into)
        }
        _ => {
            let inside = text.get(1..text.len() - 1).unwrap_or_default();
            if !inside.contains('\'') {
                return Ok(inside.into());
            }
            Ok(parts(text, 0, kind).0.into())
        }
    }
}

/// The parts of a literal as one, quotes no longer doubled, and the byte after its last quote.
fn parts(text: &str, prefix: usize, kind: TokenKind) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut whole = String::with_capacity(text.len());
    let mut at = prefix;
    loop {
        at += 1;
        let mut from = at;
        while let Some(&byte) = bytes.get(at) {
            if byte == b'\\' && kind == TokenKind::EscapeString {
                at += 2;
            } else if byte != b'\'' {
                at += 1;
            } else if bytes.get(at + 1) == Some(&b'\'') {
                whole.push_str(text.get(from..=at).unwrap_or_default());
                at += 2;
                from = at;
            } else {
                break;
            }
        }
        whole.push_str(text.get(from..at).unwrap_or_default());
        at += 1;
        match next_part(bytes, at) {
            Some(quote) => at = quote,
            None => return (whole, at),
        }
    }
}

/// The escape character: what UESCAPE behind the literal says, or a backslash.
fn uescape(text: &str, end: usize) -> u8 {
    let bytes = text.as_bytes();
    match bytes.get(bytes.len().wrapping_sub(2)) {
        Some(&escape) if end < bytes.len() => escape,
        _ => b'\\',
    }
}

/// Resolves the escapes of a string that begins at `start`, with a letter or none.
fn escaped(inside: &str, start: u32, prefix: usize) -> Lex<Text> {
    let mut bytes: Vec<u8> = Vec::with_capacity(inside.len());
    let mut halves =
        Halves { text: inside, first: start + prefix as u32 + 1, high: None, named: true };
    let source = inside.as_bytes();
    let mut at = 0;
    while let Some(&byte) = source.get(at) {
        let follow = if byte == b'\\' { source.get(at + 1).copied() } else { None };
        let Some(follow) = follow else {
            halves.none_open(at, 1)?;
            bytes.push(byte);
            at += 1;
            continue;
        };
        if matches!(follow, b'u' | b'U') {
            let length = if follow == b'u' { 6 } else { 10 };
            let digits = inside.get(at + 2..at + length);
            let Some(code) = digits.and_then(hex) else {
                return Err(halves
                    .error("invalid Unicode escape", at, None)
                    .with_code(SqlState::InvalidEscapeSequence)
                    .with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."));
            };
            if let Some(point) = halves.join(code, at, length)? {
                bytes.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
            }
            at += length;
            continue;
        }
        halves.none_open(at, 1)?;
        let (byte, length) = byte_escape(source.get(at + 1..).unwrap_or_default(), follow);
        bytes.push(byte);
        at += 1 + length;
    }
    halves.none_open(inside.len(), 0)?;
    checked(bytes, start)
}

/// The byte that what follows a backslash stands for, and the length of it.
fn byte_escape(rest: &[u8], first: u8) -> (u8, usize) {
    let digits = |from: usize, radix: u32, most: usize| {
        let digits = rest.iter().skip(from).take(most);
        digits.map_while(|&digit| char::from(digit).to_digit(radix)).collect::<Vec<u32>>()
    };
    let value = |digits: &[u32], radix| {
        (digits.iter().fold(0, |code: u32, &digit| code * radix + digit) & 0xff) as u8
    };
    match first {
        b'b' => (0x08, 1),
        b'f' => (0x0c, 1),
        b'n' => (b'\n', 1),
        b'r' => (b'\r', 1),
        b't' => (b'\t', 1),
        b'0'..=b'7' => {
            let octal = digits(0, 8, 3);
            (value(&octal, 8), octal.len())
        }
        b'x' => match digits(1, 16, 2) {
            none if none.is_empty() => (b'x', 1),
            hex => (value(&hex, 16), 1 + hex.len()),
        },
        other => (other, 1),
    }
}

fn hex(digits: &str) -> Option<u32> {
    // Of the signs that a number may have in Rust, none is a digit.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// PostgreSQL's text is UTF-8 without zeros.
fn checked(bytes: Vec<u8>, start: u32) -> Lex<Text> {
    let wrong = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => return Ok(text.into()),
        Ok(_) => "0x00".to_owned(),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes();
            // As many bytes as the first says, as PostgreSQL shows them.
            let length = match bytes.get(at) {
                Some(0xc0..=0xdf) => 2,
                Some(0xe0..=0xef) => 3,
                Some(0xf0..=0xf7) => 4,
                _ => 1,
            };
            let shown = bytes.iter().skip(at).take(length);
            shown.map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(" ")
        }
    };
    Err(SyntaxError::new(
        SqlState::CharacterNotInRepertoire,
        format!("invalid byte sequence for encoding \"UTF8\": {wrong}"),
        start,
    )
    .without_location())
}

/// Characters beyond 16 bits may be written as two escapes, which must be neighbours.
struct Halves<'a> {
    /// What is inside the quotes.
    text: &'a str,
    /// The place of its first byte.
    first: u32,
    /// The first half, while the second is missing.
    high: Option<u32>,
    /// Whether errors name a piece of the text, as the scanner's own do.
    named: bool,
}

impl Halves<'_> {
    fn error(&self, message: &str, at: usize, length: Option<usize>) -> Box<SyntaxError> {
        let place = self.first + at as u32;
        let Some(length) = length.filter(|_| self.named) else {
            return SyntaxError::new(SqlState::SyntaxError, message, place);
        };
        // Behind the text is its closing quote.
        let near = match self.text.get(at..) {
            None | Some("") => "'",
            Some(rest) if length > 1 => rest.get(..length).unwrap_or(rest),
            Some(rest) => rest.get(..rest.chars().next().map_or(0, char::len_utf8)).unwrap_or(rest),
        };
        let message = format!("{message} at or near \"{near}\"");
        SyntaxError::new(SqlState::SyntaxError, message, place)
    }

    /// What comes at `at` is no second half.
    fn none_open(&self, at: usize, length: usize) -> Lex<()> {
        match self.high {
            None => Ok(()),
            Some(_) => Err(self.error("invalid Unicode surrogate pair", at, Some(length))),
        }
    }

    /// The character of a code; none after a first half.
    fn join(&mut self, code: u32, at: usize, length: usize) -> Lex<Option<char>> {
        let code = match (self.high, code) {
            (None, 0xd800..=0xdbff) => {
                self.high = Some(code);
                return Ok(None);
            }
            (Some(high), 0xdc00..=0xdfff) => {
                self.high = None;
                0x10000 + ((high & 0x3ff) << 10 | code & 0x3ff)
            }
            (Some(_), _) => return self.none_open(at, length).map(|()| None),
            (None, 0xdc00..=0xdfff) => {
                return Err(self.error("invalid Unicode surrogate pair", at, Some(length)));
            }
            (None, code) => code,
        };
        match char::from_u32(code) {
            Some(point) if code != 0 => Ok(Some(point)),
            _ => Err(self.error("invalid Unicode escape value", at, Some(length))),
        }
    }
}

/// Resolves the escapes of `U&'...'` and `U&"..."`, whose first byte is at `start`.
fn unicode(inside: &str, escape: u8, start: u32) -> Lex<String> {
    let escape = char::from(escape);
    let mut out = String::with_capacity(inside.len());
    let mut halves = Halves { text: inside, first: start + 3, high: None, named: false };
    let mut at = 0;
    while let Some(rest) = inside.get(at..).filter(|rest| !rest.is_empty()) {
        let letter = rest.chars().next().unwrap_or_default();
        if letter != escape {
            halves.none_open(at, 1)?;
            out.push(letter);
            at += letter.len_utf8();
            continue;
        }
        let bytes = rest.as_bytes();
        if bytes.get(1).copied().map(char::from) == Some(escape) {
            halves.none_open(at, 1)?;
            out.push(escape);
            at += 2;
            continue;
        }
        let long = bytes.get(1) == Some(&b'+');
        let (from, to) = if long { (2, 8) } else { (1, 5) };
        let Some(code) = rest.get(from..to).and_then(hex) else {
            return Err(halves
                .error("invalid Unicode escape", at, None)
                .with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX."));
        };
        if let Some(point) = halves.join(code, at, to)? {
            out.push(point);
        }
        at += to;
    }
    halves.none_open(inside.len(), 0)?;
    Ok(out)
}
