//! Cuts a line into fields and takes escapes and quotes away.

use std::ops::Range;

use smallvec::SmallVec;

use super::encoding::{invalid_text, valid_prefix};
use super::{CopyRow, RowFormat, bad_format};
use millpond_query::error::Result;

/// Fields without their escapes and quotes.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    fields: Vec<Option<Range<usize>>>,
}

fn flag(list: &[bool], column: usize) -> bool {
    list.get(column).copied().unwrap_or(false)
}

/// A line without escapes and quotes.
pub(super) fn split_plain<'a>(text: &'a str, format: &RowFormat, row: &mut CopyRow<'a>) {
    let mut push = |field: &'a str| {
        let is_null = field.len() == format.null.len() && field.bytes().eq(format.null.bytes());
        let is_null = is_null && !flag(&format.force_not_null, row.len());
        row.push((!is_null).then_some(field));
    };
    // Fields are short: looking for their ends byte by byte is fastest.
    let mut rest = text;
    while let Some(end) = rest.bytes().position(|byte| byte == format.delimiter) {
        push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    push(rest);
}

impl Scratch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    pub(super) fn fill<'s>(&'s self, row: &mut CopyRow<'s>) -> Result<()> {
        // All fields at once are checked faster than one by one.
        let checked = valid_prefix(&self.bytes);
        for field in &self.fields {
            row.push(match field {
                None => None,
                Some(range) => Some(match checked.get(range.clone()) {
                    Some(text) => text,
                    None => whole_text(&self.bytes[range.clone()])?,
                }),
            });
        }
        Ok(())
    }
}

#[cold]
fn whole_text(bytes: &[u8]) -> Result<&str> {
    let text = valid_prefix(bytes);
    if text.len() == bytes.len() { Ok(text) } else { Err(invalid_text(&bytes[text.len()..])) }
}

/// A line of the text format with backslashes.
pub(super) fn unescape(text: &[u8], format: &RowFormat, scratch: &mut Scratch) -> Result<()> {
    scratch.clear();
    // A backslash with which the data ends stands for nothing.
    let end = text.len() - usize::from(ends_in_escape(text));
    let mut at = 0;
    loop {
        let (field_start, out_start) = (at, scratch.bytes.len());
        while let Some(&byte) = text[..end].get(at).filter(|&&byte| byte != format.delimiter) {
            at += 1;
            if byte == b'\\' {
                at = unescape_one(text, at, &mut scratch.bytes);
            } else {
                scratch.bytes.push(byte);
            }
        }
        // The null string is compared before escapes are taken away.
        let null = &text[field_start..at] == format.null.as_bytes();
        scratch.fields.push((!null).then_some(out_start..scratch.bytes.len()));
        if at >= end {
            return Ok(());
        }
        at += 1;
    }
}

/// Whether the last byte is a backslash that is not escaped itself.
fn ends_in_escape(text: &[u8]) -> bool {
    text.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// The character after a backslash, at `at`; returns where the text goes on.
fn unescape_one(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let Some(&byte) = text.get(at) else { return at };
    let digits = |from: usize, radix: u32, most: usize| {
        let run = text[from..].iter().take(most);
        run.map_while(|&b| char::from(b).to_digit(radix)).collect::<SmallVec<[u32; 3]>>()
    };
    let value = |digits: &[u32], radix| digits.iter().fold(0u32, |v, d| v * radix + d) as u8;
    match byte {
        b'b' => out.push(8),
        b'f' => out.push(12),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'v' => out.push(11),
        b'0'..=b'7' => {
            let octal = digits(at, 8, 3);
            out.push(value(&octal, 8));
            return at + octal.len();
        }
        b'x' => {
            let hex = digits(at + 1, 16, 2);
            if !hex.is_empty() {
                out.push(value(&hex, 16));
                return at + 1 + hex.len();
            }
            out.push(b'x');
        }
        other => out.push(other),
    }
    at + 1
}

/// A line of a csv with quotes.
pub(super) fn unquote(text: &[u8], format: &RowFormat, scratch: &mut Scratch) -> Result<()> {
    scratch.clear();
    let mut at = 0;
    loop {
        let out_start = scratch.bytes.len();
        let mut had_quotes = false;
        let mut quoted = false;
        while let Some(&byte) = text.get(at) {
            let next = text.get(at + 1).copied();
            if quoted
                && byte == format.escape
                && next.is_some_and(|next| next == format.quote || next == format.escape)
            {
                scratch.bytes.extend(next);
                at += 2;
            } else if byte == format.quote {
                quoted = !quoted;
                had_quotes = true;
                at += 1;
            } else if byte == format.delimiter && !quoted {
                break;
            } else {
                scratch.bytes.push(byte);
                at += 1;
            }
        }
        if quoted {
            return Err(bad_format("unterminated CSV quoted field"));
        }
        let column = scratch.fields.len();
        let is_null_string = &scratch.bytes[out_start..] == format.null.as_bytes();
        let may_be_null = if had_quotes {
            flag(&format.force_null, column)
        } else {
            !flag(&format.force_not_null, column)
        };
        let null = is_null_string && may_be_null;
        scratch.fields.push((!null).then_some(out_start..scratch.bytes.len()));
        if at >= text.len() {
            return Ok(());
        }
        at += 1;
    }
}
