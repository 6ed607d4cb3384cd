//! The file format of a page trace, as [docs/trace-format.md] gives it byte by byte.
//!
//! [docs/trace-format.md]: https://github.com/millpond/millpond/blob/main/docs/trace-format.md
//!
//! [`TraceReader`] reads a file of that format back.

use super::{CHUNK_RECORDS, TraceChunk, TraceFlags, TraceRecord};
use crate::PAGE_SIZE;
use crate::ids::{PageId, RelFork};
use crc_fast::CrcAlgorithm;
use std::io::{self, Read};
use thiserror::Error;

/// The first bytes of a trace.
pub const MAGIC: [u8; 8] = *b"MPONDTRC";
/// The first bytes of a chunk.
pub const CHUNK_MAGIC: [u8; 4] = *b"CHNK";
/// The version of this format.
pub const VERSION: u16 = 1;
/// The number of bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// The number of bytes of a chunk before its records.
pub const CHUNK_HEADER_BYTES: usize = 44;
/// The session number that stands for no session.
pub const NO_SESSION: u32 = u32::MAX;

/// The number of places for relation forks.
pub(super) const PLACES: usize = 15;
/// The offset of the checksum.
pub(super) const CRC_AT: usize = 40;

/// The header of a trace of this version.
#[must_use]
pub fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[12..].copy_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
    header
}

/// Appends a chunk's bytes.
pub fn encode(chunk: &TraceChunk, to: &mut Vec<u8>) {
    let start = to.len();
    to.resize(start + CHUNK_HEADER_BYTES, 0);
    encode_records(chunk.records(), to);
    let length = to.len() - start - CHUNK_HEADER_BYTES;
    let (started, ended) = chunk.span_nanos();
    let fields: [&[u8]; 8] = [
        &CHUNK_MAGIC,
        &(length as u32).to_le_bytes(),
        &(chunk.records().len() as u32).to_le_bytes(),
        &chunk.session().to_le_bytes(),
        &started.to_le_bytes(),
        &ended.to_le_bytes(),
        &chunk.dropped().to_le_bytes(),
        &[0; 4],
    ];
    let mut at = start;
    for field in fields {
        to[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
    let crc = crc(&to[start..]);
    to[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// The checksum of a chunk.
pub(super) fn crc(chunk: &[u8]) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(chunk.get(..CRC_AT).unwrap_or_default());
    digest.update(chunk.get(CHUNK_HEADER_BYTES..).unwrap_or_default());
    digest.finalize() as u32
}

fn encode_records(records: impl Iterator<Item = TraceRecord>, to: &mut Vec<u8>) {
    let mut places: [Option<(RelFork, u32)>; PLACES] = [None; PLACES];
    let mut named = 0;
    for TraceRecord { page, flags } in records {
        let rel = page.rel_fork();
        let known = places.iter().position(|place| place.is_some_and(|(other, _)| other == rel));
        let place = known.unwrap_or(named % PLACES);
        if known.is_some() {
            to.push(flags.0 | (place as u8) << 4);
        } else {
            to.push(flags.0 | (PLACES as u8) << 4);
            put_varint(u64::from(rel.relation.get()) << 2 | rel.fork as u64, to);
            places[place] = Some((rel, 0));
            named += 1;
        }
        if let Some((_, last)) = &mut places[place] {
            let block = page.block().get();
            put_varint(zigzag(i64::from(block) - i64::from(*last)), to);
            *last = block;
        }
    }
}

fn zigzag(n: i64) -> u64 {
    (n << 1 ^ n >> 63) as u64
}

pub(super) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

fn put_varint(mut n: u64, to: &mut Vec<u8>) {
    while n >= 0x80 {
        to.push(n as u8 | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

/// Takes a varint of at most five bytes from the front.
pub(super) fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// The page of a block, in the relation fork whose number a record has.
pub(super) fn page(rel: u64, block: u32) -> Option<PageId> {
    if rel >> 30 != 0 {
        return None;
    }
    PageId::from_raw((rel >> 2) << 36 | (rel & 3) << 32 | u64::from(block))
}

/// The most bytes that a chunk's records can take, or more: a byte and two varints each.
const MAX_CHUNK_BYTES: usize = CHUNK_RECORDS * 11;

/// Why a trace could not be read. Offsets are in bytes from the trace's beginning.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Reading failed.
    #[error("{source}, after {offset} bytes")]
    Io {
        /// How much had been read.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// It is not a trace.
    #[error("not a Millpond page trace: it does not begin with MPONDTRC")]
    NoTrace,
    /// It is a trace of another version.
    #[error("a page trace of version {version}, but only version 1 is known")]
    Version {
        /// Its version.
        version: u16,
    },
    /// A chunk is damaged.
    #[error("{what}, in the chunk at byte {offset}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
        /// Where the chunk begins.
        offset: u64,
    },
}

/// A chunk, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedChunk {
    /// The session that recorded it (numbers are used again); `None` if it only reports lost
    /// records.
    pub session: Option<u32>,
    /// When it was begun and when it ended, in nanoseconds since recording began.
    pub span_nanos: (u64, u64),
    /// Records that were lost before it.
    pub dropped: u32,
    /// The records, oldest first.
    pub records: Vec<TraceRecord>,
}

/// Reads a trace, chunk by chunk.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    offset: u64,
    broken_off: bool,
    bytes: Vec<u8>,
}

impl<R: Read> TraceReader<R> {
    /// Reads the header.
    pub fn new(mut input: R) -> Result<Self, TraceError> {
        let mut header = [0; HEADER_BYTES];
        let read =
            fill(&mut input, &mut header).map_err(|source| TraceError::Io { offset: 0, source })?;
        if read < HEADER_BYTES || header[..8] != MAGIC {
            return Err(TraceError::NoTrace);
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != VERSION {
            return Err(TraceError::Version { version });
        }
        Ok(Self { input, offset: HEADER_BYTES as u64, broken_off: false, bytes: Vec::new() })
    }

    /// Whether the trace ended within a chunk, which is left out.
    pub fn broken_off(&self) -> bool {
        self.broken_off
    }

    /// The next chunk; `None` at the end.
    pub fn next_chunk(&mut self) -> Result<Option<TracedChunk>, TraceError> {
        if self.broken_off || !self.fill_to(0, CHUNK_HEADER_BYTES)? {
            return Ok(None);
        }
        let damaged = |what| TraceError::Damaged { what, offset: self.offset };
        if self.bytes[..4] != CHUNK_MAGIC {
            return Err(damaged("it does not begin with CHNK"));
        }
        let (length, count) = (self.u32_at(4) as usize, self.u32_at(8) as usize);
        if length > MAX_CHUNK_BYTES || count > CHUNK_RECORDS {
            return Err(damaged("it is too long"));
        }
        if !self.fill_to(CHUNK_HEADER_BYTES, CHUNK_HEADER_BYTES + length)? {
            return Ok(None);
        }
        let damaged = |what| TraceError::Damaged { what, offset: self.offset };
        if self.u32_at(CRC_AT) != crc(&self.bytes) {
            return Err(damaged("its checksum is wrong"));
        }
        let records = decode_records(&self.bytes[CHUNK_HEADER_BYTES..], count).map_err(damaged)?;
        let session = self.u32_at(12);
        let chunk = TracedChunk {
            session: (session != NO_SESSION).then_some(session),
            span_nanos: (self.u64_at(16), self.u64_at(24)),
            dropped: self.u32_at(32),
            records,
        };
        self.offset += self.bytes.len() as u64;
        Ok(Some(chunk))
    }

    /// Reads up to `end` bytes of a chunk, of which there are `have`; `false` if the trace ends
    /// before.
    fn fill_to(&mut self, have: usize, end: usize) -> Result<bool, TraceError> {
        self.bytes.resize(end, 0);
        let read = fill(&mut self.input, &mut self.bytes[have..])
            .map_err(|source| TraceError::Io { offset: self.offset, source })?;
        // The end of the trace is at the end of a chunk, or it has been broken off.
        self.broken_off = have + read < end && have + read > 0;
        Ok(have + read == end)
    }

    fn u32_at(&self, at: usize) -> u32 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn u64_at(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Fills as much of `buffer` as the input has.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn decode_records(mut from: &[u8], count: usize) -> Result<Vec<TraceRecord>, &'static str> {
    let mut places: [Option<(u64, u32)>; PLACES] = [None; PLACES];
    let mut named = 0;
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        let (&first, rest) = from.split_first().ok_or("a record is missing")?;
        from = rest;
        let mut place = usize::from(first >> 4);
        if place == PLACES {
            let rel = take_varint(&mut from).ok_or("a relation is cut off")?;
            place = named % PLACES;
            places[place] = Some((rel, 0));
            named += 1;
        }
        let step = take_varint(&mut from).ok_or("a block is cut off")?;
        let known = places.get_mut(place).and_then(Option::as_mut);
        let (rel, last) = known.ok_or("a record refers to a relation that was not named")?;
        let block = u32::try_from(i64::from(*last) + unzigzag(step));
        *last = block.map_err(|_| "a block is out of range")?;
        let page = page(*rel, *last).ok_or("a relation is out of range")?;
        records.push(TraceRecord { page, flags: TraceFlags(first & TraceFlags::MASK) });
    }
    if from.is_empty() { Ok(records) } else { Err("bytes are left over") }
}
