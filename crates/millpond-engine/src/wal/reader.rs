//! Reading the log from front to back, and telling a torn tail from damage.
//!
//! The log ends at the first position without a valid record. There are two possible reasons. The
//! engine may have gone down while later bytes were being written. That is no loss: the log had not
//! reported them durable. Or bytes that had been durable are damaged. To tell the two apart, every
//! record says up to where the log was durable when the record was inserted. If a valid record
//! behind the end calls the end durable, this is damage, and an error (wal rule 6).
//!
//! Records of an earlier start of the engine may lie behind the end: an earlier recovery cut off
//! their tail. They are valid by themselves, and could even begin exactly where the log ends. The
//! reader recognizes them by their start number, which never falls along the log.

use std::sync::Arc;

use millpond_buffer::Lsn;
use millpond_sync::mutant;

use super::record::{self, DecodeError, Decoded, HEADER_BYTES};
use super::store::LogStore;
use crate::error::WalError;

const READ_BYTES: usize = 1 << 18;

/// What the reader found. (Large, and never stored.)
#[allow(clippy::large_enum_variant)]
pub enum Step<'a> {
    /// A record.
    Record(Decoded<'a>),
    /// No valid record: the log ends here.
    End {
        /// The end of the log.
        at: Lsn,
        /// The end of the invalid bytes, as far as the reader looked at them.
        upto: Lsn,
        /// Why there is no valid record.
        why: String,
    },
}

/// Reads records in order.
pub struct LogReader {
    bytes: LogBytes,
    at: Lsn,
    start_no: u32,
}

impl LogReader {
    /// Reads from `at`, the start of a record.
    pub fn new(store: Arc<dyn LogStore>, at: Lsn) -> Result<Self, WalError> {
        Ok(Self { bytes: LogBytes::new(store)?, at, start_no: 0 })
    }

    /// Where the next record should start.
    pub fn position(&self) -> Lsn {
        self.at
    }

    /// The next record, or the end of the log. An I/O error is an error, not the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Step<'_>, WalError> {
        let at = self.at;
        let end = |bytes: usize, why: String| {
            Ok(Step::End { at, upto: Lsn(at.get() + bytes as u64), why })
        };
        let total = match self.bytes.at(at, HEADER_BYTES)? {
            None => return end(HEADER_BYTES, "the segment is missing".into()),
            Some(bytes) => record::claimed_bytes(bytes, at),
        };
        let total = match total {
            Ok(total) => total,
            Err(error) => return end(HEADER_BYTES, error.to_string()),
        };
        let Some(bytes) = self.bytes.at(at, total)? else {
            return end(total, "the rest of the record is missing".into());
        };
        match record::decode(bytes, at) {
            Err(error) => end(total, error.to_string()),
            // (wal rule 10)
            Ok(found)
                if found.start_no < self.start_no && !mutant!("wal-record-of-an-earlier-start") =>
            {
                end(total, "a record left by an earlier start".into())
            }
            Ok(found) => {
                self.start_no = found.start_no;
                self.at = found.end;
                Ok(Step::Record(found))
            }
        }
    }

    /// The position of the first record behind the end that calls the end durable.
    pub fn find_claim_beyond(&mut self, end: Lsn) -> Result<Option<Lsn>, WalError> {
        let segment_bytes = self.bytes.store.segment_bytes();
        let segments = self.bytes.segments.clone();
        for segment in segments {
            let stop = (segment + 1) * segment_bytes;
            let mut at = (segment * segment_bytes).max(end.get() + record::ALIGN);
            while at + record::ALIGN <= stop {
                let bytes = ((stop - at) as usize).min(READ_BYTES);
                let candidates = match self.bytes.at(Lsn(at), bytes)? {
                    Some(bytes) => positions_that_name_themselves(bytes, at),
                    None => break,
                };
                for candidate in candidates {
                    if self.is_claim(candidate, end)? {
                        return Ok(Some(candidate));
                    }
                }
                // The header of a record that starts near the end continues in the next part.
                at += (bytes as u64).saturating_sub(16).max(record::ALIGN);
            }
        }
        Ok(None)
    }

    fn is_claim(&mut self, at: Lsn, end: Lsn) -> Result<bool, WalError> {
        let Some(bytes) = self.bytes.at(at, HEADER_BYTES)? else { return Ok(false) };
        let Ok(total) = record::claimed_bytes(bytes, at) else { return Ok(false) };
        let Some(bytes) = self.bytes.at(at, total)? else { return Ok(false) };
        match record::decode(bytes, at) {
            Ok(found) => Ok(found.flushed > end),
            Err(DecodeError::Malformed(what)) => Err(WalError::Corrupt {
                at,
                what: format!("a record with a valid checksum: {what}"),
            }),
            Err(_) => Ok(false),
        }
    }
}

/// The positions in `bytes`, which start at `at`, where a record's header would name that position.
fn positions_that_name_themselves(bytes: &[u8], at: u64) -> Vec<Lsn> {
    let step = record::ALIGN as usize;
    (0..bytes.len().saturating_sub(15))
        .step_by(step)
        .filter(|offset| bytes[offset + 8..offset + 16] == (at + *offset as u64).to_le_bytes())
        .map(|offset| Lsn(at + offset as u64))
        .collect()
}

/// The log's bytes across segments, read ahead in parts.
struct LogBytes {
    store: Arc<dyn LogStore>,
    segments: Vec<u64>,
    buffer: Vec<u8>,
    start: u64,
}

impl LogBytes {
    fn new(store: Arc<dyn LogStore>) -> Result<Self, WalError> {
        let segments = store
            .segments()
            .map_err(|source| WalError::io("could not list the log's segments", source))?;
        Ok(Self { store, segments, buffer: Vec::new(), start: 0 })
    }

    /// `bytes` bytes at a position; `None` if a segment is missing.
    fn at(&mut self, at: Lsn, bytes: usize) -> Result<Option<&[u8]>, WalError> {
        let at = at.get();
        let have = self.start..self.start + self.buffer.len() as u64;
        if at < have.start || at + bytes as u64 > have.end {
            self.start = at;
            self.buffer.clear();
            while self.buffer.len() < bytes.max(READ_BYTES) {
                if !self.read_part(bytes.max(READ_BYTES) - self.buffer.len())? {
                    break;
                }
            }
        }
        let offset = (at - self.start) as usize;
        Ok(self.buffer.get(offset..offset + bytes))
    }

    /// Appends up to `bytes` bytes from one segment. Returns whether the segment exists.
    fn read_part(&mut self, bytes: usize) -> Result<bool, WalError> {
        let segment_bytes = self.store.segment_bytes();
        let at = self.start + self.buffer.len() as u64;
        let (segment, offset) = (at / segment_bytes, at % segment_bytes);
        if self.segments.binary_search(&segment).is_err() {
            return Ok(false);
        }
        let part = (bytes as u64).min(segment_bytes - offset) as usize;
        let filled = self.buffer.len();
        self.buffer.resize(filled + part, 0);
        self.store.read(segment, offset, &mut self.buffer[filled..]).map_err(|source| {
            WalError::io(format!("could not read log segment {segment:016x}"), source)
        })?;
        Ok(true)
    }
}
