//! Runs: sorted entries in a temporary file, one run after the other.
//!
//! | bytes | part of an entry |
//! |---|---|
//! | 2 | length of the key, little-endian; the highest bit: the key must be unique |
//! | 8 | tid, little-endian |
//! | | the key |

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::heap::SortedRun;
use super::temp::{TempFile, failed};
use super::{Entry, OwnedEntry};
use crate::{EngineError, EngineResult};

const HEAD_BYTES: usize = 10;
const UNIQUE: u16 = 1 << 15;
const WRITE_BYTES: usize = 64 << 10;

/// A file of runs during writing.
pub(super) struct Runs {
    file: Arc<dyn TempFile>,
    buffer: Vec<u8>,
    /// The file position of the buffer.
    position: u64,
    /// The file position at which the current run began.
    start: u64,
    runs: Vec<Range<u64>>,
}

impl Runs {
    pub(super) fn new(file: Arc<dyn TempFile>) -> Self {
        let buffer = Vec::with_capacity(WRITE_BYTES);
        Self { file, buffer, position: 0, start: 0, runs: Vec::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Adds an entry to the current run.
    pub(super) fn push(&mut self, entry: Entry<'_>) -> EngineResult<()> {
        if self.buffer.len() + HEAD_BYTES + entry.key.len() > WRITE_BYTES {
            self.flush()?;
        }
        let length = u16::try_from(entry.key.len()).ok().filter(|length| length & UNIQUE == 0);
        let Some(length) = length else {
            return Err(EngineError::Internal { what: "a key is too long to be sorted" });
        };
        let head = if entry.unique { length | UNIQUE } else { length };
        self.buffer.extend_from_slice(&head.to_le_bytes());
        self.buffer.extend_from_slice(&entry.tid.to_le_bytes());
        self.buffer.extend_from_slice(entry.key);
        Ok(())
    }

    /// Ends the current run; another may begin.
    pub(super) fn end_run(&mut self) -> EngineResult<()> {
        self.flush()?;
        self.runs.push(self.start..self.position);
        self.start = self.position;
        Ok(())
    }

    fn flush(&mut self) -> EngineResult<()> {
        self.file.write_all_at(&self.buffer, self.position).map_err(failed("write to"))?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Readers of all runs, which read `ahead` bytes at a time.
    pub(super) fn readers(self, ahead: usize) -> impl Iterator<Item = RunReader> {
        let file = self.file;
        self.runs.into_iter().map(move |rest| RunReader {
            file: Arc::clone(&file),
            rest,
            buffer: Vec::new(),
            at: 0,
            ahead,
        })
    }
}

pub(crate) struct RunReader {
    file: Arc<dyn TempFile>,
    /// The part of the run that has not been read yet.
    rest: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
    ahead: usize,
}

impl SortedRun for RunReader {
    type Item = OwnedEntry;
    type Error = EngineError;

    fn read(&mut self, entry: &mut OwnedEntry) -> EngineResult<bool> {
        if self.at == self.buffer.len() && self.rest.is_empty() {
            return Ok(false);
        }
        self.want(HEAD_BYTES)?;
        let Some((head, rest)) = self.buffer[self.at..].split_first_chunk::<2>() else {
            return Err(ENDS_EARLY);
        };
        let Some(tid) = rest.first_chunk::<8>() else { return Err(ENDS_EARLY) };
        let (head, tid) = (u16::from_le_bytes(*head), u64::from_le_bytes(*tid));
        let length = usize::from(head & !UNIQUE);
        self.want(HEAD_BYTES + length)?;
        let start = self.at + HEAD_BYTES;
        let found = self.buffer.get(start..start + length).ok_or(ENDS_EARLY)?;
        entry.key.clear();
        entry.key.extend_from_slice(found);
        (entry.tid, entry.unique) = (tid, head & UNIQUE != 0);
        self.at = start + length;
        Ok(true)
    }

    fn compare(a: &OwnedEntry, b: &OwnedEntry) -> Ordering {
        a.key.cmp(&b.key).then(a.tid.cmp(&b.tid))
    }
}

impl RunReader {
    /// Fills the buffer until it holds `bytes` bytes from the current position, if the run has
    /// them.
    fn want(&mut self, bytes: usize) -> EngineResult<()> {
        let there = self.buffer.len() - self.at;
        if there >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let left = self.rest.end - self.rest.start;
        let more = left.min(self.ahead.max(bytes - there) as u64);
        self.buffer.resize(there + more as usize, 0);
        let read = self.file.read_exact_at(&mut self.buffer[there..], self.rest.start);
        read.map_err(failed("read"))?;
        self.rest.start += more;
        Ok(())
    }
}

const ENDS_EARLY: EngineError =
    EngineError::Internal { what: "a temporary sort file ends in the middle of an entry" };
