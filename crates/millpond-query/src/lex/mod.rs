//! The one-pass lexer of the simple protocol's fast path.
//!
//! [`scan`] walks a statement once. It lifts number and string literals out and writes what is left
//! to a key. The key is the text byte for byte, with a marker byte in place of each literal. The
//! marker says the literal's type. Two texts with the same key are the same statement with other
//! values. So a plan can be kept under the key and run with the literals as its parameters. No
//! parser looks at the text.
//!
//! The lexer gives up ([`None`]) on anything whose literals it would have to understand better.
//! These are comments, dollar quotes, parameters, prefixed strings (`E'..'`, `X'..'`), several
//! statements, and control bytes. Such texts take the way through the parser. Property tests hold
//! it against that one.

pub mod cache;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

/// Stands in the key for an integer literal that fits `integer`.
const MARK_INT4: u8 = 1;
/// Stands in the key for an integer literal that fits `bigint`.
const MARK_INT8: u8 = 2;
/// Stands in the key for any other number.
const MARK_NUMERIC: u8 = 3;
/// Stands in the key for a string.
const MARK_STRING: u8 = 4;
/// Longer texts are not worth keeping a plan for.
const MAX_TEXT: usize = 16 << 10;
const MAX_LITERALS: usize = 200;

/// What a literal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralKind {
    /// An integer that fits `integer`.
    Int4(i32),
    /// An integer that fits `bigint` only.
    Int8(i64),
    /// A number with a point or an exponent, or too large for `bigint`.
    Numeric,
    /// A string without its quotes; `true` when it has doubled quotes inside.
    String(bool),
}

/// A literal and where it stands in the text (strings without their quotes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal {
    pub kind: LiteralKind,
    pub start: u32,
    pub end: u32,
}

/// The literals of a text.
pub type Literals = SmallVec<[Literal; 8]>;

impl Literal {
    /// The literal's text; doubled quotes still doubled.
    pub fn text<'a>(&self, sql: &'a str) -> &'a str {
        sql.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// Classes of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Word,
    Digit,
    Quote,
    Special,
    Stop,
}

const CLASSES: [Class; 256] = {
    let mut table = [Class::Plain; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'\t' | b'\n' | b'\r' | 0x0c => Class::Plain,
            0..=31 | 127 | b'$' => Class::Stop,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128..=255 => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b'\'' => Class::Quote,
            b'"' | b'-' | b'/' | b'.' | b';' => Class::Special,
            _ => Class::Plain,
        };
        byte += 1;
    }
    table
};

/// Scans one statement. The key and the literals are written over.
pub fn scan(sql: &str, key: &mut Vec<u8>, literals: &mut Literals) -> Option<()> {
    let bytes = sql.as_bytes();
    key.clear();
    literals.clear();
    if bytes.len() > MAX_TEXT {
        return None;
    }
    // Everything before `copied` is in the key.
    let mut copied = 0;
    let mut at = 0;
    loop {
        at = skip_plain(bytes, at);
        let Some(&byte) = bytes.get(at) else { break };
        match CLASSES[usize::from(byte)] {
            Class::Plain | Class::Word => at += 1,
            Class::Digit if ends_word(bytes, at) => at = word_end(bytes, at),
            Class::Digit => {
                let literal = number(bytes, at)?;
                key.extend_from_slice(&bytes[copied..at]);
                key.push(match literal.kind {
                    LiteralKind::Int4(_) => MARK_INT4,
                    LiteralKind::Int8(_) => MARK_INT8,
                    _ => MARK_NUMERIC,
                });
                at = literal.end as usize;
                copied = at;
                literals.push(literal);
            }
            Class::Quote => {
                if ends_word(bytes, at) || at > 0 && bytes[at - 1] == b'&' {
                    return None;
                }
                let literal = string(bytes, at)?;
                key.extend_from_slice(&bytes[copied..at]);
                key.push(MARK_STRING);
                at = literal.end as usize + 1;
                copied = at;
                literals.push(literal);
            }
            Class::Special => match special(bytes, at)? {
                Some(next) => at = next,
                None => break,
            },
            Class::Stop => return None,
        }
        if literals.len() > MAX_LITERALS {
            return None;
        }
    }
    key.extend_from_slice(&bytes[copied..at]);
    Some(())
}

/// Quoted names, comments, points and semicolons: where to go on, or `Some(None)` at the
/// statement's end.
fn special(bytes: &[u8], at: usize) -> Option<Option<usize>> {
    let next = bytes.get(at + 1);
    match bytes[at] {
        b'-' if next == Some(&b'-') => None,
        b'/' if next == Some(&b'*') => None,
        b'.' if next.is_some_and(u8::is_ascii_digit) => None,
        b'"' => {
            let mut end = at + 1;
            loop {
                match *bytes.get(end)? {
                    b'"' if bytes.get(end + 1) == Some(&b'"') => end += 2,
                    b'"' => break,
                    0..=31 => return None,
                    _ => end += 1,
                }
            }
            // A string prefix can't be quoted, but leave such oddities to the parser.
            if bytes.get(end + 1) == Some(&b'\'') { None } else { Some(Some(end + 1)) }
        }
        b';' => bytes[at..].iter().all(|b| *b == b';' || b.is_ascii_whitespace()).then_some(None),
        _ => Some(Some(at + 1)),
    }
}

/// Where the next byte is that may begin or end something: neither in a word nor plain.
fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let stops = stops(u64::from_le_bytes(*chunk));
        if stops != 0 {
            return at + (stops.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !may_stop(*byte)) {
        at += 1;
    }
    at
}

/// Of eight bytes those of another class than words and what is plain. Each has its high bit set in
/// the result. Some that are plain count, too.
#[inline]
fn stops(bytes: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // The high bit of each byte says whether the lower seven are at least that. No sum of two bytes
    // reaches the next one.
    let low = bytes & all(0x7f);
    let from = |least: u8| low + all(0x80 - least);
    let control = !from(b' ');
    let quotes = from(b'"') & !from(b'\'' + 1);
    let numbers = from(b'-') & !from(b';' + 1);
    (control | quotes | numbers | from(127)) & !bytes & all(0x80)
}

fn may_stop(byte: u8) -> bool {
    stops(u64::from(byte)) & 0x80 != 0
}

/// Whether the byte before is one of a word.
fn ends_word(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_some_and(|byte| matches!(CLASSES[usize::from(*byte)], Class::Word | Class::Digit))
}

fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match CLASSES[usize::from(byte)] {
            Class::Word | Class::Digit => at += 1,
            _ => break,
        }
    }
    at
}

fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

fn number(bytes: &[u8], start: usize) -> Option<Literal> {
    let mut value: u64 = 0;
    let mut fits = true;
    let mut at = start;
    while let Some(digit) = bytes.get(at).filter(|b| b.is_ascii_digit()) {
        match value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) {
            Some(next) => value = next,
            None => fits = false,
        }
        at += 1;
    }
    let mut whole = true;
    if bytes.get(at) == Some(&b'.') {
        let end = digits_end(bytes, at + 1);
        if end == at + 1 {
            return None;
        }
        (whole, at) = (false, end);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits_end(bytes, at + 1 + sign);
        if end == at + 1 + sign {
            return None;
        }
        (whole, at) = (false, end);
    }
    // `1x`, `1.2.3`, `1'`: not ours to understand.
    if let Some(&byte) = bytes.get(at)
        && (byte == b'.' || matches!(CLASSES[usize::from(byte)], Class::Word | Class::Quote))
    {
        return None;
    }
    let kind = match (whole && fits, i32::try_from(value), i64::try_from(value)) {
        (true, Ok(int), _) => LiteralKind::Int4(int),
        (true, _, Ok(int)) => LiteralKind::Int8(int),
        _ => LiteralKind::Numeric,
    };
    Some(Literal { kind, start: start as u32, end: at as u32 })
}

fn string(bytes: &[u8], quote: usize) -> Option<Literal> {
    let mut doubled = false;
    let mut at = quote + 1;
    loop {
        match *bytes.get(at)? {
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => {
                doubled = true;
                at += 2;
            }
            b'\'' => break,
            0 => return None,
            _ => at += 1,
        }
    }
    let kind = LiteralKind::String(doubled);
    Some(Literal { kind, start: quote as u32 + 1, end: at as u32 })
}
