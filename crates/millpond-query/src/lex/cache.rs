//! Plans by the key that the lexer leaves of a text.
//!
//! The cache belongs to one connection, so finding a plan takes no lock. What it finds is shared
//! with other connections (`shared_plans` of millpond), keys included. A connection keeps a hash
//! and a pointer of each text. So hundreds of connections that run the same statements use the same
//! memory. To leave even the pointer's reference count alone, a statement takes the pointer out
//! while it runs and puts it back.
//!
//! It is bounded: when it is full, the entry that has gone longest without use goes.

use std::sync::Arc;

use smallvec::SmallVec;

/// Most connections run no more different texts than this; the entries are then part of the
/// connection.
const INLINE: usize = 4;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A fast hash for short texts. The cache is small and belongs to one connection, so a client that
/// makes collisions slows down only itself.
fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = 0u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    hash ^ (hash >> 29)
}

/// What knows its own key.
pub trait Keyed {
    fn key(&self) -> &[u8];
}

/// A bounded map from keys to what is shared under them.
pub struct Cache<T> {
    hashes: SmallVec<[u64; INLINE]>,
    slots: SmallVec<[Slot<T>; INLINE]>,
    clock: u64,
    capacity: usize,
}

struct Slot<T> {
    /// `None` while it is taken out.
    value: Option<Arc<T>>,
    used: u64,
}

impl<T: Keyed> Cache<T> {
    pub fn new(capacity: usize) -> Self {
        Cache { hashes: SmallVec::new(), slots: SmallVec::new(), clock: 0, capacity }
    }

    /// Takes what is under a key, and says where to put it back.
    pub fn take(&mut self, key: &[u8]) -> Option<(usize, Arc<T>)> {
        let at = self.position(hash_of(key), key)?;
        self.clock += 1;
        let slot = self.slots.get_mut(at)?;
        slot.used = self.clock;
        slot.value.take().map(|value| (at, value))
    }

    /// Puts back what was taken from there. If the cache was emptied meanwhile, it stays so.
    pub fn put_back(&mut self, at: usize, value: Arc<T>) {
        if let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.value.is_none()) {
            slot.value = Some(value);
        }
    }

    /// Puts something under its key.
    pub fn put(&mut self, value: Arc<T>) {
        let hash = hash_of(value.key());
        self.clock += 1;
        let used = self.clock;
        let at = match self.position(hash, value.key()) {
            Some(at) => at,
            None if self.slots.len() < self.capacity => self.slots.len(),
            None => {
                let ages = self.slots.iter().enumerate();
                ages.min_by_key(|(_, slot)| slot.used).map_or(0, |(at, _)| at)
            }
        };
        let slot = Slot { value: Some(value), used };
        match (self.hashes.get_mut(at), self.slots.get_mut(at)) {
            (Some(old_hash), Some(old)) => (*old_hash, *old) = (hash, slot),
            _ => {
                self.hashes.push(hash);
                self.slots.push(slot);
            }
        }
    }

    pub fn clear(&mut self) {
        self.hashes.clear();
        self.slots.clear();
    }

    /// Where a key is, or was before it was taken out.
    fn position(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let same = self.hashes.iter().enumerate().filter(|(_, known)| **known == hash);
        same.map(|(at, _)| at).find(|at| {
            let value = self.slots.get(*at).and_then(|slot| slot.value.as_ref());
            value.is_none_or(|value| value.key() == key)
        })
    }
}

impl<T> std::fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("entries", &self.slots.len()).finish_non_exhaustive()
    }
}
