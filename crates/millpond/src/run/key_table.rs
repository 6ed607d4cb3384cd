//! A hash table of keys as bytes: those of a hash join, of groups, of DISTINCT.
//!
//! The keys lie one behind the other, and the table has their numbers. So a table of any size is
//! freed at once, and grows without a look at the keys: a cancelled statement waits for neither.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::Work;
use crate::error::{Result, SqlError, SqlState};
use crate::memory::ByteRows;

/// The places of the smallest table that is not empty.
const LEAST_PLACES: usize = 16;
/// A larger table is freed when its keys are taken out.
const MOST_PLACES_KEPT: usize = 1024;
/// Keys between two looks whether the statement is to stop, while the table grows.
const KEYS_BETWEEN_LOOKS: usize = 1 << 16;
/// Beside its bytes, a key takes its hash here.
const BYTES_OF_HASH: usize = size_of::<u32>();

/// Keys, numbered from 0 in the order in which they came.
#[derive(Default)]
pub(super) struct KeyTable {
    /// Numbers of keys plus 1, and 0 where none is. A power of two of them, of which at most three
    /// quarters are in use. A key is at the place that its hash says, or behind it.
    places: Vec<u32>,
    hashes: Vec<u32>,
    keys: ByteRows,
    hasher: RandomState,
}

/// A key that has been looked for, and added where it was not found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entered {
    pub(super) number: usize,
    /// How many bytes it has taken; 0 if the key was there.
    pub(super) grown: usize,
}

impl Entered {
    pub(super) fn is_new(&self) -> bool {
        self.grown > 0
    }
}

impl KeyTable {
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// A key by its number.
    pub(super) fn key(&self, number: usize) -> Option<&[u8]> {
        self.keys.get(number)
    }

    /// The number of a key.
    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        self.look_up(key, self.hash(key)).ok()
    }

    /// The number of a key, which is added if it is new. An error if the statement was told to
    /// stop.
    pub(super) fn enter(&mut self, key: &[u8], work: &Work<'_>) -> Result<Entered> {
        let hash = self.hash(key);
        let place = match self.look_up(key, hash) {
            Ok(number) => return Ok(Entered { number, grown: 0 }),
            Err(place) => place,
        };
        let number = self.len();
        let too_many = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many rows to hash");
        let number_at_place = u32::try_from(number + 1).map_err(too_many)?;
        let mut grown = self.keys.push(key) + BYTES_OF_HASH;
        self.hashes.push(hash);
        let has_room = self.has_room();
        match self.places.get_mut(place) {
            Some(free) if has_room => *free = number_at_place,
            _ => grown += self.grow(work)?,
        }
        Ok(Entered { number, grown })
    }

    pub(super) fn clear(&mut self) {
        if self.places.len() > MOST_PLACES_KEPT {
            self.places = Vec::new();
        }
        self.places.fill(0);
        self.hashes = Vec::new();
        self.keys = ByteRows::default();
    }

    fn hash(&self, key: &[u8]) -> u32 {
        // Half of the hash is enough to tell keys apart before their bytes do.
        self.hasher.hash_one(key) as u32
    }

    /// The number of a key, or else the place for it.
    fn look_up(&self, key: &[u8], hash: u32) -> Result<usize, usize> {
        let mask = self.places.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        while let Some(entry) = self.places.get(place) {
            let Some(number) = entry.checked_sub(1) else { break };
            let number = number as usize;
            if self.hashes.get(number) == Some(&hash) && self.keys.get(number) == Some(key) {
                return Ok(number);
            }
            place = (place + 1) & mask;
        }
        Err(place)
    }

    fn has_room(&self) -> bool {
        self.len() <= self.places.len() / 4 * 3
    }

    /// Doubles the places and puts all keys there. Says how many bytes the table has grown by.
    fn grow(&mut self, work: &Work<'_>) -> Result<usize> {
        let before = self.places.len();
        self.places = Vec::new();
        let mut places = vec![0u32; (before * 2).max(LEAST_PLACES)];
        let mask = places.len() - 1;
        for (entry, hash) in (1u32..).zip(&self.hashes) {
            if (entry as usize).is_multiple_of(KEYS_BETWEEN_LOOKS) {
                work.tick()?;
            }
            let mut place = *hash as usize & mask;
            while places.get(place).is_some_and(|taken| *taken != 0) {
                place = (place + 1) & mask;
            }
            if let Some(free) = places.get_mut(place) {
                *free = entry;
            }
        }
        self.places = places;
        Ok((self.places.len() - before) * size_of::<u32>())
    }
}
