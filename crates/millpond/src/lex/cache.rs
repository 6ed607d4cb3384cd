//! Plans by the key that the lexer leaves of a text.
//!
//! The cache belongs to one connection, so finding a plan takes no lock. It is bounded: when it is full,
//! the entry that has gone longest without use goes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A fast hash for short texts. The map is small and its own connection's, so nobody can be hurt by collisions
/// but who makes them.
#[derive(Default)]
pub(crate) struct TextHasher(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut hash = self.0;
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.0 = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

/// A bounded map from keys to plans.
pub(crate) struct Cache<T> {
    entries: HashMap<Box<[u8]>, Entry<T>, BuildHasherDefault<TextHasher>>,
    clock: u64,
    capacity: usize,
}

struct Entry<T> {
    value: T,
    used: u64,
}

impl<T> Cache<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Cache { entries: HashMap::default(), clock: 0, capacity }
    }

    /// The value under a key.
    pub(crate) fn get(&mut self, key: &[u8]) -> Option<&T> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&entry.value)
    }

    /// Puts a value under a key.
    pub(crate) fn put(&mut self, key: &[u8], value: T) {
        if self.entries.len() >= self.capacity && !self.entries.contains_key(key) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.clock += 1;
        self.entries.insert(key.into(), Entry { value, used: self.clock });
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

impl<T> std::fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}
