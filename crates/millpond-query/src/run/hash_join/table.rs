//! The inner rows of a hash join that are in memory.
//!
//! Rows lie one behind the other with what finds them, so that a row costs few cache misses:
//!
//! ```text
//! record: length of the record before, next record of its bucket, hash of the key,
//!         length of the key, length of the row (4 bytes each), key, row, padding
//! ```
//!
//! A record begins at a multiple of 8 bytes, and its number is that multiple. The buckets are made
//! when all rows are there: their number is known then, and nothing is moved before. Where the next
//! record has the same key, the length of the key says so: of a key with many rows only the first
//! is compared.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use millpond_sync::prefetch::prefetch;

use super::gives_inner;
use super::last_matches::LastMatches;
use crate::error::{Result, SqlError, SqlState};
use crate::plan::query::node::HashJoin;
use crate::run::Work;

/// No record.
pub(in crate::run) const NONE: u32 = 0;
/// What the numbers of records count.
const UNIT: usize = 8;
const HEADER: usize = 20;
/// The places of the fields of a header.
const BEFORE: usize = 0;
const NEXT: usize = 4;
const HASH: usize = 8;
const KEY_LENGTH: usize = 12;
const ROW_LENGTH: usize = 16;
/// The bit of a key's length: the next record has the same key.
const IS_NEXT_SAME: u32 = 1 << 31;
/// Bits of a word of `matches`.
const BITS: usize = u64::BITS as usize;
/// What a row takes of the buckets, at most.
const BYTES_OF_BUCKET: usize = 2 * size_of::<Bucket>();
/// Records between two looks whether the statement is to stop.
const RECORDS_BETWEEN_LOOKS: usize = 1 << 12;

/// Rows by their keys.
#[derive(Default)]
pub(in crate::run) struct JoinTable {
    bytes: Vec<u8>,
    count: usize,
    /// The record added last.
    last: u32,
    /// By the lower bits of hashes. A power of two of them.
    buckets: Vec<Bucket>,
    /// The hash of all keys so far, if it is the same.
    only_hash: Option<u32>,
    /// A bit for each record, by its number: it has a match. Empty if the join does not need it.
    /// Threads set bits, and the session reads them when the threads have ended. So they order
    /// nothing.
    matches: Vec<AtomicU64>,
    /// Empty if no search begins where another has ended.
    last_matches: LastMatches,
    hasher: RandomState,
}

/// Records whose hashes have the same lower bits.
#[derive(Clone, Copy, Default)]
struct Bucket {
    /// The first record, or [`NONE`].
    first: u32,
    /// A bit for the upper bits of each record's hash. Most keys that are not there are found out
    /// by it, without a look at a record, which would most often be a cache miss.
    tags: u32,
}

fn tag(hash: u32) -> u32 {
    1 << (hash >> 27)
}

struct Record<'t> {
    key: &'t [u8],
    row: &'t [u8],
    /// The number of the record that was added after it.
    after: u32,
}

impl JoinTable {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there are different keys.
    pub(super) fn has_keys_to_part(&self) -> bool {
        self.count > 0 && self.only_hash.is_none()
    }

    /// About how many bytes it takes.
    pub(super) fn used(&self) -> usize {
        self.bytes.len() + self.bytes.len() / (UNIT * 8) + self.count * BYTES_OF_BUCKET
    }

    /// Adds a row. Says how many bytes it takes.
    pub(super) fn push(&mut self, key: &[u8], row: &[u8]) -> Result<usize> {
        let too_many = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many rows to hash");
        let before = self.used();
        if self.bytes.is_empty() {
            // No record has the number of none.
            self.bytes.extend_from_slice(&[0; UNIT]);
        }
        let number = u32::try_from(self.bytes.len() / UNIT).map_err(too_many)?;
        let hash = self.hasher.hash_one(key) as u32;
        let lengths = [key, row].map(|part| u32::try_from(part.len()).map_err(too_many));
        let [key_length, row_length] = lengths;
        let (key_length, row_length) = (key_length?, row_length?);
        if key_length >= IS_NEXT_SAME {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "a key is too long to hash",
            ));
        }
        let header = [number - self.last, NONE, hash, key_length, row_length];
        header.iter().for_each(|field| self.bytes.extend_from_slice(&field.to_le_bytes()));
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row);
        self.bytes.resize(self.bytes.len().next_multiple_of(UNIT), 0);
        self.only_hash = if self.count == 0 { Some(hash) } else { self.only_hash };
        self.only_hash = self.only_hash.filter(|only| *only == hash);
        self.count += 1;
        self.last = number;
        Ok(self.used() - before)
    }

    /// Makes the buckets, when all rows have been added. Rows of a key come in the order in which
    /// they were added: so they are linked from the last one on.
    pub(super) fn link(&mut self, work: &Work<'_>, join: &HashJoin) -> Result<()> {
        if join.seeks_one() {
            self.last_matches = LastMatches::new();
        }
        if gives_inner(join) {
            let words = (self.bytes.len() / UNIT).div_ceil(BITS);
            self.matches = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        }
        self.buckets = vec![Bucket::default(); self.count.next_power_of_two()];
        let mut number = self.last;
        for done in 1..=self.count {
            if done.is_multiple_of(RECORDS_BETWEEN_LOOKS) {
                work.tick()?;
            }
            let hash = self.field(number, HASH);
            let bucket = hash as usize & (self.buckets.len() - 1);
            if let Some(bucket) = self.buckets.get_mut(bucket) {
                bucket.tags |= tag(hash);
                let next = std::mem::replace(&mut bucket.first, number);
                self.set_field(number, NEXT, next);
                if self.have_same_key(number, next) {
                    let length = self.field(number, KEY_LENGTH);
                    self.set_field(number, KEY_LENGTH, length | IS_NEXT_SAME);
                }
            }
            number -= self.field(number, BEFORE);
        }
        Ok(())
    }

    fn have_same_key(&self, number: u32, other: u32) -> bool {
        other != NONE
            && self.field(number, HASH) == self.field(other, HASH)
            && match (self.record(number), self.record(other)) {
                (Some(record), Some(other)) => record.key == other.key,
                _ => false,
            }
    }

    pub(super) fn last_matches(&self) -> &LastMatches {
        &self.last_matches
    }

    /// The first row with a key, or [`NONE`].
    pub(in crate::run) fn first(&self, key: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(key) as u32;
        let bucket = hash as usize & self.buckets.len().wrapping_sub(1);
        match self.buckets.get(bucket) {
            Some(bucket) if bucket.tags & tag(hash) != 0 => self.find(bucket.first, hash, key),
            _ => NONE,
        }
    }

    /// The next row with the key of a row, or [`NONE`].
    pub(in crate::run) fn next(&self, number: u32) -> u32 {
        let next = self.field(number, NEXT);
        if self.field(number, KEY_LENGTH) & IS_NEXT_SAME != 0 {
            // It will be looked at when this row has been worked on.
            let start = next as usize * UNIT;
            self.bytes.get(start..start + HEADER).into_iter().for_each(prefetch);
            return next;
        }
        match self.record(number) {
            Some(record) if next != NONE => self.find(next, self.field(number, HASH), record.key),
            _ => NONE,
        }
    }

    /// The first record with a key from one on, in its bucket.
    fn find(&self, mut number: u32, hash: u32, key: &[u8]) -> u32 {
        while number != NONE {
            let is_it = self.field(number, HASH) == hash
                && self.record(number).is_some_and(|record| record.key == key);
            if is_it {
                return number;
            }
            number = self.field(number, NEXT);
        }
        NONE
    }

    /// A row by its number.
    pub(in crate::run) fn row(&self, number: u32) -> Option<&[u8]> {
        Some(self.record(number)?.row)
    }

    /// Notes that a row has a match.
    pub(in crate::run) fn set_match(&self, number: u32) {
        let bit = 1 << (number as usize % BITS);
        if let Some(word) = self.matches.get(number as usize / BITS)
            && word.load(Ordering::Relaxed) & bit == 0
        {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether a row has a match, as far as is known.
    pub(in crate::run) fn has_match(&self, number: u32) -> bool {
        let word = self.matches.get(number as usize / BITS);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (number as usize % BITS) & 1 != 0)
    }

    /// The first row with a match, or without one, behind a row or from the first one on; or
    /// [`NONE`].
    pub(super) fn next_with(&self, behind: u32, has_match: bool) -> u32 {
        let mut number = self.after(behind);
        while number != NONE && self.has_match(number) != has_match {
            number = self.after(number);
        }
        number
    }

    /// As if no row had a match.
    pub(super) fn forget_matches(&mut self) {
        self.matches.iter_mut().for_each(|word| *word.get_mut() = 0);
    }

    /// Calls a function for each key and row, in the order in which they were added.
    pub(super) fn each(&self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut number = self.after(NONE);
        while let Some(record) = self.record(number) {
            visit(record.key, record.row)?;
            number = self.after(number);
        }
        Ok(())
    }

    /// The record that was added after one, or the first one.
    fn after(&self, number: u32) -> u32 {
        match self.record(number) {
            _ if number == self.last => NONE,
            Some(record) => record.after,
            None => 1,
        }
    }

    fn record(&self, number: u32) -> Option<Record<'_>> {
        if number == NONE {
            return None;
        }
        let start = number as usize * UNIT + HEADER;
        let row = start + (self.field(number, KEY_LENGTH) & !IS_NEXT_SAME) as usize;
        let end = row + self.field(number, ROW_LENGTH) as usize;
        let (key, row) = (self.bytes.get(start..row)?, self.bytes.get(row..end)?);
        Some(Record { key, row, after: end.div_ceil(UNIT) as u32 })
    }

    fn field(&self, number: u32, field: usize) -> u32 {
        let bytes = self.bytes.get(number as usize * UNIT + field..);
        bytes.and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn set_field(&mut self, number: u32, field: usize, value: u32) {
        let bytes = self.bytes.get_mut(number as usize * UNIT + field..);
        if let Some(bytes) = bytes.and_then(<[u8]>::first_chunk_mut) {
            *bytes = value.to_le_bytes();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
