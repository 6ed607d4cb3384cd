//! Text traces: one block number a line, or the ARC papers' requests for runs of blocks. Such a
//! request is a line of four numbers: first block, number of blocks, ignored, request's number.
//!
//! Empty lines and lines that begin with `#` are skipped. Lines end in LF or CRLF.

use super::{DecodeError, Format};
use crate::replay::trace::{AccessKind, TraceBuilder};
use std::io::{BufRead, Read};

/// The longest line.
const MAX_LINE_BYTES: u64 = 4096;

/// The longest run of blocks that one request may ask for: 8 GiB.
const MAX_RUN_BLOCKS: u64 = 1 << 20;

/// The text format that the first line with contents has, if any.
pub fn detect(start: &[u8]) -> Option<Format> {
    // The last line in `start` may be incomplete.
    let lines =
        start.split(|byte| *byte == b'\n').map(|line| std::str::from_utf8(line).unwrap_or("?"));
    let line = lines.map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    if !fields.iter().all(|field| field.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    match fields.len() {
        1 => Some(Format::Text),
        4 => Some(Format::Lis),
        _ => None,
    }
}

/// Reads one block number from each line.
pub fn decode_numbers(
    input: &mut dyn BufRead,
    trace: &mut TraceBuilder,
) -> Result<(), DecodeError> {
    each_line(input, |line| {
        let block = number(line, "block number")?;
        Ok(trace.push(block, AccessKind::Normal)?)
    })
}

/// Reads requests: first block, number of blocks, an ignored field, the request's number.
pub fn decode_lis(input: &mut dyn BufRead, trace: &mut TraceBuilder) -> Result<(), DecodeError> {
    each_line(input, |line| {
        let mut fields = line.split_ascii_whitespace();
        let mut field = |name| fields.next().ok_or_else(|| Fault::Bad(format!("no {name}")));
        let first = number(field("first block")?, "first block")?;
        let count = number(field("number of blocks")?, "number of blocks")?;
        if count > MAX_RUN_BLOCKS {
            return Err(Fault::Bad(format!("a request for {count} blocks is too long")));
        }
        let Some(end) = first.checked_add(count) else {
            return Err(Fault::Bad(format!("block {first} is too large")));
        };
        for block in first..end {
            trace.push(block, AccessKind::Normal)?;
        }
        Ok(())
    })
}

/// What is wrong with a line.
enum Fault {
    Bad(String),
    TooLong(super::TooLong),
}

impl From<super::TooLong> for Fault {
    fn from(error: super::TooLong) -> Self {
        Self::TooLong(error)
    }
}

fn number(text: &str, name: &str) -> Result<u64, Fault> {
    text.parse().map_err(|_| Fault::Bad(format!("{:?} is no {name}", shortened(text))))
}

fn shortened(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    if start.len() < text.len() { start + "..." } else { start }
}

/// Calls `use_line` for every line with contents.
fn each_line(
    input: &mut dyn BufRead,
    mut use_line: impl FnMut(&str) -> Result<(), Fault>,
) -> Result<(), DecodeError> {
    let (mut line, mut number, mut offset) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        let mut limited = Read::take(&mut *input, MAX_LINE_BYTES);
        let read = limited.read_until(b'\n', &mut line);
        let count = read.map_err(|source| DecodeError::Io { offset, source })? as u64;
        if count == 0 {
            return Ok(());
        }
        number += 1;
        let bad = |what| DecodeError::Line { what, line: number, offset };
        if count == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
            return Err(bad("not text: the line is too long".to_owned()));
        }
        let text = std::str::from_utf8(&line).map_err(|_| bad("not text".to_owned()))?.trim();
        if !text.is_empty() && !text.starts_with('#') {
            use_line(text).map_err(|fault| match fault {
                Fault::Bad(what) => bad(what),
                Fault::TooLong(error) => error.into(),
            })?;
        }
        offset += count;
    }
}
