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
/// Places between two looks whether the statement is to stop, while the table grows.
const PLACES_BETWEEN_LOOKS: usize = 1 << 16;

/// Keys, numbered from 0 in the order in which they came.
#[derive(Default)]
pub(super) struct KeyTable {
    /// A power of two of them, of which at most three quarters are in use. A key is at the place
    /// that its hash says, or behind it.
    places: Vec<Place>,
    count: usize,
    keys: ByteRows,
    hasher: RandomState,
}

/// Where a key may be. Its hash is here, too: most keys that are another one differ in it, and
/// their bytes need not be looked at.
#[derive(Clone, Copy, Default)]
struct Place {
    hash: u32,
    /// The number of the key plus 1, or 0 if there is none.
    entry: u32,
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
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
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
        let entry = u32::try_from(number + 1).map_err(too_many)?;
        let mut grown = self.keys.push(key);
        self.count += 1;
        if self.has_room() {
            self.put(place, Place { hash, entry });
        } else {
            grown += self.grow(work)?;
            self.put(hash as usize, Place { hash, entry });
        }
        Ok(Entered { number, grown })
    }

    pub(super) fn clear(&mut self) {
        if self.places.len() > MOST_PLACES_KEPT {
            self.places = Vec::new();
        }
        self.places.fill(Place::default());
        self.count = 0;
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
            let Some(number) = entry.entry.checked_sub(1) else { break };
            if entry.hash == hash && self.keys.get(number as usize) == Some(key) {
                return Ok(number as usize);
            }
            place = (place + 1) & mask;
        }
        Err(place)
    }

    fn has_room(&self) -> bool {
        self.len() <= self.places.len() / 4 * 3
    }

    /// Doubles the places and puts the keys there that had one. Says how many bytes the table has
    /// grown by.
    fn grow(&mut self, work: &Work<'_>) -> Result<usize> {
        let places = (self.places.len() * 2).max(LEAST_PLACES);
        let before = std::mem::replace(&mut self.places, vec![Place::default(); places]);
        for (number, place) in before.iter().enumerate() {
            if number.is_multiple_of(PLACES_BETWEEN_LOOKS) {
                work.tick()?;
            }
            if place.entry != 0 {
                self.put(place.hash as usize, *place);
            }
        }
        Ok((places - before.len()) * size_of::<Place>())
    }

    /// Puts a key at the first free place from one on.
    fn put(&mut self, from: usize, key: Place) {
        let mask = self.places.len().wrapping_sub(1);
        let mut place = from & mask;
        while let Some(found) = self.places.get_mut(place) {
            if found.entry == 0 {
                *found = key;
                return;
            }
            place = (place + 1) & mask;
        }
    }
}
