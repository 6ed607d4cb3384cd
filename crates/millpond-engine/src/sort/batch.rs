//! Index entries collected in memory.

use super::Entry;

/// The location of an entry. The first bytes of the key, as a number, decide most comparisons.
struct Place {
    prefix: u64,
    start: u64,
    tid: u64,
    length: u16,
    unique: bool,
}

/// Entries, in their order of arrival until they are sorted.
#[derive(Default)]
pub(crate) struct Batch {
    keys: Vec<u8>,
    places: Vec<Place>,
}

fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

/// The capacity of a vector after it has taken `more` elements.
fn grown<T>(vector: &Vec<T>, more: usize) -> usize {
    let needed = vector.len() + more;
    if needed <= vector.capacity() { vector.capacity() } else { needed.max(vector.capacity() * 2) }
}

impl Batch {
    /// Whether the batch stays within `budget` bytes with one more entry. The first entry always
    /// fits.
    pub(super) fn has_room(&self, key_bytes: usize, budget: usize) -> bool {
        let places = grown(&self.places, 1) * size_of::<Place>();
        self.places.is_empty() || grown(&self.keys, key_bytes) + places <= budget
    }

    pub(super) fn push(&mut self, entry: Entry<'_>) {
        self.places.push(Place {
            prefix: prefix(entry.key),
            start: self.keys.len() as u64,
            tid: entry.tid,
            // Index keys are much shorter than that.
            length: entry.key.len() as u16,
            unique: entry.unique,
        });
        self.keys.extend_from_slice(entry.key);
    }

    /// Removes the entries and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.places.clear();
    }

    pub(super) fn sort(&mut self) {
        let keys = &self.keys;
        self.places.sort_unstable_by(|a, b| {
            let by_prefix = a.prefix.cmp(&b.prefix);
            by_prefix.then_with(|| key(keys, a).cmp(key(keys, b))).then(a.tid.cmp(&b.tid))
        });
    }

    pub(super) fn get(&self, index: usize) -> Option<Entry<'_>> {
        let place = self.places.get(index)?;
        Some(Entry { key: key(&self.keys, place), tid: place.tid, unique: place.unique })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.places.len()).filter_map(|index| self.get(index))
    }
}

fn key<'k>(keys: &'k [u8], place: &Place) -> &'k [u8] {
    let start = place.start as usize;
    &keys[start..start + usize::from(place.length)]
}
