//! Recordings of PostgreSQL's buffer reads, in records of 8 bytes.
//! | bytes | |
//! |---|---|
//! | 0 | process |
//! | 1 | relation |
//! | 2 | fork |
//! | 3 | 1 if the relation was extended by the block |
//! | 4 to 7 | block, little-endian |

use super::{DecodeError, read_record};
use crate::replay::trace::{AccessKind, TraceBuilder};
use std::io::BufRead;

/// PostgreSQL's last fork number.
const MAX_FORK: u8 = 3;

/// Reads records until the input ends.
pub fn decode(input: &mut dyn BufRead, trace: &mut TraceBuilder) -> Result<(), DecodeError> {
    let mut offset = 0;
    loop {
        let mut record = [0; 8];
        match read_record(input, &mut record, offset)? {
            0 => return Ok(()),
            8 => {}
            some => {
                let what = format!("{some} byte(s) are left over: a record has 8");
                return Err(DecodeError::malformed(what, offset));
            }
        }
        let [_, relation, fork, extend, block @ ..] = record;
        if fork > MAX_FORK || extend > 1 {
            let what = format!("not a PostgreSQL recording: fork {fork}, extend {extend}");
            return Err(DecodeError::malformed(what, offset));
        }
        let file = u64::from(relation) << 8 | u64::from(fork);
        trace.push(file << 32 | u64::from(u32::from_le_bytes(block)), AccessKind::Normal)?;
        offset += 8;
    }
}
