//! Where searches among the rows of keys have ended: see [`first_match`](super::first_match).

use std::sync::atomic::{AtomicU64, Ordering};

/// How many keys can have a place to begin.
const PLACES: usize = 1 << 10;

/// Where searches have ended: the first row of a key and the row that matched, by the first row.
/// Threads share them. A place is a pair in one word, and either pair will do, so they order
/// nothing.
#[derive(Default)]
pub(super) struct LastMatches(Vec<AtomicU64>);

impl LastMatches {
    pub(super) fn new() -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(PLACES).collect())
    }

    pub(super) fn of(&self, first: u32) -> Option<u32> {
        let pair = self.0.get(first as usize % PLACES)?.load(Ordering::Relaxed);
        (pair >> 32 == u64::from(first)).then_some(pair as u32)
    }

    pub(super) fn note(&self, first: u32, number: u32) {
        if let Some(place) = self.0.get(first as usize % PLACES) {
            place.store(u64::from(first) << 32 | u64::from(number), Ordering::Relaxed);
        }
    }
}
