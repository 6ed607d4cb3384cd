//! Plans by the key that the lexer leaves of a text.
//!
//! The cache belongs to one connection, so finding a plan takes no lock. What it finds is shared
//! with other connections (`shared_plans` of millpond), keys included. A connection keeps a hash
//! and a pointer of each text. So hundreds of connections that run the same statements use the same
//! memory. To leave even the pointer's reference count alone, a statement takes the pointer out
//! while it runs and puts it back.
//!
//! It is bounded, by the number of its texts and by their bytes: a plan is some eight times as
//! large as its text. When it is full, the entry that has gone longest without use goes.

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
    /// The most that the keys may take together. One that is longer is kept alone.
    most_bytes: usize,
    /// What the keys take, those that are out included.
    bytes: usize,
}

struct Slot<T> {
    /// `None` while it is taken out, and in an empty slot.
    value: Option<Arc<T>>,
    /// 0 in an empty slot.
    used: u64,
    /// The bytes of its key.
    bytes: usize,
}

impl<T: Keyed> Cache<T> {
    /// A cache of at most `capacity` values, whose keys take at most `most_bytes` together.
    pub fn new(capacity: usize, most_bytes: usize) -> Self {
        let (hashes, slots) = (SmallVec::new(), SmallVec::new());
        Cache { hashes, slots, clock: 0, capacity, most_bytes, bytes: 0 }
    }

    /// Takes what is under a key, and says where to put it back.
    pub fn take(&mut self, key: &[u8]) -> Option<(usize, Arc<T>)> {
        let at = self.position(hash_of(key), key)?;
        self.clock += 1;
        let slot = self.slots.get_mut(at)?;
        let value = slot.value.take()?;
        slot.used = self.clock;
        Some((at, value))
    }

    /// Puts back what was taken from there. If the place was emptied meanwhile, it stays so.
    pub fn put_back(&mut self, at: usize, value: Arc<T>) {
        let out = |slot: &&mut Slot<T>| slot.value.is_none() && slot.used > 0;
        if let Some(slot) = self.slots.get_mut(at).filter(out) {
            slot.value = Some(value);
        }
    }

    /// Empties the slot of a value that was taken out and will not come back.
    pub fn forget(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at) {
            self.bytes -= slot.bytes;
            *slot = Slot { value: None, used: 0, bytes: 0 };
        }
    }

    /// Puts something under its key.
    pub fn put(&mut self, value: Arc<T>) {
        let (hash, bytes) = (hash_of(value.key()), value.key().len());
        self.clock += 1;
        let used = self.clock;
        let at = match self.position(hash, value.key()) {
            Some(at) => at,
            None if self.slots.len() < self.capacity => self.slots.len(),
            None => self.oldest(|_| true).unwrap_or(0),
        };
        let slot = Slot { value: Some(value), used, bytes };
        self.bytes += bytes;
        match (self.hashes.get_mut(at), self.slots.get_mut(at)) {
            (Some(old_hash), Some(old)) => {
                self.bytes -= old.bytes;
                (*old_hash, *old) = (hash, slot);
            }
            _ => {
                self.hashes.push(hash);
                self.slots.push(slot);
            }
        }
        while self.bytes > self.most_bytes
            && let Some(oldest) = self.oldest(|slot| slot.value.is_some() && slot.used < used)
        {
            self.forget(oldest);
        }
    }

    /// Which of these slots has gone longest without use.
    fn oldest(&self, of_these: impl Fn(&Slot<T>) -> bool) -> Option<usize> {
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| of_these(slot));
        slots.min_by_key(|(_, slot)| slot.used).map(|(at, _)| at)
    }

    /// What the keys take together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn clear(&mut self) {
        self.hashes.clear();
        self.slots.clear();
        self.bytes = 0;
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
