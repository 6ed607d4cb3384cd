//! Traces that are sequences of 32-bit block numbers.

use super::{DecodeError, read_record};
use crate::replay::trace::{AccessKind, TraceBuilder};
use std::io::BufRead;

/// Reads numbers until the input ends.
pub fn decode(
    input: &mut dyn BufRead,
    number: fn([u8; 4]) -> u32,
    trace: &mut TraceBuilder,
) -> Result<(), DecodeError> {
    let mut offset = 0;
    loop {
        let mut record = [0; 4];
        match read_record(input, &mut record, offset)? {
            0 => return Ok(()),
            4 => trace.push(u64::from(number(record)), AccessKind::Normal)?,
            some => {
                let what = format!("{some} byte(s) are left over: a number has 4");
                return Err(DecodeError::malformed(what, offset));
            }
        }
        offset += 4;
    }
}
