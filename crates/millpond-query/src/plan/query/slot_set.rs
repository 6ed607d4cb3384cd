//! Sets of slots.

use std::ops::Range;

use smallvec::SmallVec;

use crate::analyze::tree::Slot;

/// A set of slots, a bit each. Few statements have more than fit in without memory of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotSet(SmallVec<[u64; 2]>);

impl SlotSet {
    pub(super) fn one(slot: Slot) -> Self {
        let mut set = Self::default();
        set.insert(slot);
        set
    }

    pub(super) fn insert(&mut self, slot: Slot) {
        let (word, bit) = place(slot);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    pub(super) fn contains(&self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub(super) fn add(&mut self, other: &SlotSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, bits) in self.0.iter_mut().zip(&other.0) {
            *own |= bits;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let of_word = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(of_word).map(|place| Slot(place as u16))
    }

    /// From the first to the last, by their places.
    pub(super) fn window(&self) -> Range<usize> {
        let mut places = self.iter().map(Slot::index);
        let Some(first) = places.next() else { return 0..0 };
        first..places.last().unwrap_or(first) + 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }

    pub(super) fn intersects(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether each of its slots is in one of these two sets.
    pub(super) fn is_within(&self, one: &SlotSet, other: &SlotSet) -> bool {
        let bits = |set: &SlotSet, word: usize| set.0.get(word).copied().unwrap_or(0);
        self.0
            .iter()
            .enumerate()
            .all(|(word, own)| own & !(bits(one, word) | bits(other, word)) == 0)
    }

    /// Those that are not in the other set.
    pub(super) fn without(&self, other: &SlotSet) -> SlotSet {
        let bits = |word: usize| other.0.get(word).copied().unwrap_or(0);
        SlotSet(self.0.iter().enumerate().map(|(word, own)| own & !bits(word)).collect())
    }

    /// Those that are in the other set, too.
    pub(super) fn and(&self, other: &SlotSet) -> SlotSet {
        SlotSet(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }
}

fn place(slot: Slot) -> (usize, u64) {
    (slot.index() / 64, 1 << (slot.index() % 64))
}
