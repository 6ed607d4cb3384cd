//! A trace in memory: the accessed pages in order, and the kind of work of each access.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use thiserror::Error;

/// The kind of work that asked for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum AccessKind {
    /// Transactions, and everything else that isn't bulk work.
    #[default]
    Normal,
    /// A large sequential scan.
    BulkRead,
    /// COPY and similar work.
    BulkWrite,
    /// VACUUM.
    Vacuum,
}

/// The error for more accesses than a trace can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the trace has more than {MAX_ACCESSES} accesses")]
pub struct TooLong;

/// The most accesses in a trace, so that positions fit in 32 bits.
pub const MAX_ACCESSES: usize = u32::MAX as usize - 1;

/// A trace. Pages are numbered from 0 in the order of their first access, so that simulations use
/// arrays instead of hash tables.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The name of the trace.
    pub name: String,
    /// The pages, in order of access.
    pub pages: Vec<u32>,
    /// The kinds of work, one per access; empty if all are normal.
    pub kinds: Vec<AccessKind>,
    /// The number of different pages.
    pub distinct: usize,
    /// The number of accesses that hit when the trace was recorded, if known.
    pub recorded_hits: Option<u64>,
    /// What the user should know, for example dropped records or a missing end.
    pub notes: Vec<String>,
}

impl Trace {
    /// A trace of normal accesses to pages with arbitrary numbers.
    #[must_use]
    pub fn of(name: &str, pages: &[u64]) -> Self {
        let mut builder = TraceBuilder::default();
        for &page in pages.iter().take(MAX_ACCESSES) {
            // Can't fail, because there are not too many.
            let _ = builder.push(page, AccessKind::Normal);
        }
        builder.finish(name)
    }

    /// The number of accesses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there are no accesses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// For every access, the position of the page's next access, or `u32::MAX` if there is none.
    #[must_use]
    pub fn next_uses(&self) -> Vec<u32> {
        let mut next = vec![u32::MAX; self.pages.len()];
        let mut last = vec![u32::MAX; self.distinct];
        for (at, &page) in self.pages.iter().enumerate().rev() {
            let last = &mut last[page as usize];
            next[at] = *last;
            *last = at as u32;
        }
        next
    }

    /// The trace without bulk work.
    #[must_use]
    pub fn without_bulk(self) -> Self {
        if self.kinds.is_empty() {
            return self;
        }
        let accesses = self.pages.iter().zip(&self.kinds);
        let normal = accesses.filter(|(_, kind)| **kind == AccessKind::Normal);
        let pages: Vec<u64> = normal.map(|(page, _)| u64::from(*page)).collect();
        Self { notes: self.notes, ..Self::of(&self.name, &pages) }
    }
}

/// Builds a trace access by access.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    numbers: HashMap<u64, u32>,
    pages: Vec<u32>,
    kinds: Vec<AccessKind>,
    recorded_hits: Option<u64>,
    notes: Vec<String>,
}

impl TraceBuilder {
    /// Adds an access to the page with the name `key`.
    pub fn push(&mut self, key: u64, kind: AccessKind) -> Result<(), TooLong> {
        if self.pages.len() >= MAX_ACCESSES {
            return Err(TooLong);
        }
        let number = self.numbers.len() as u32;
        let number = match self.numbers.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(number),
        };
        if kind != AccessKind::Normal && self.kinds.is_empty() {
            self.kinds = vec![AccessKind::Normal; self.pages.len()];
        }
        self.pages.push(number);
        if kind != AccessKind::Normal || !self.kinds.is_empty() {
            self.kinds.push(kind);
        }
        Ok(())
    }

    /// Adds to the number of accesses that found their page in memory when they were recorded.
    pub fn hits(&mut self, hits: u64) {
        *self.recorded_hits.get_or_insert(0) += hits;
    }

    /// Adds a note for the user.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Finishes the trace.
    #[must_use]
    pub fn finish(self, name: &str) -> Trace {
        Trace {
            name: name.to_owned(),
            pages: self.pages,
            kinds: self.kinds,
            distinct: self.numbers.len(),
            recorded_hits: self.recorded_hits,
            notes: self.notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbered_in_order_of_appearance() {
        let trace = Trace::of("t", &[70, 9, 70, u64::MAX]);
        assert_eq!((trace.pages.as_slice(), trace.distinct), ([0, 1, 0, 2].as_slice(), 3));
        assert_eq!(trace.next_uses(), [2, u32::MAX, u32::MAX, u32::MAX]);
        assert!(trace.kinds.is_empty());
    }

    #[test]
    fn bulk_work_can_be_left_out() {
        let mut builder = TraceBuilder::default();
        for (page, kind) in [
            (1, AccessKind::Normal),
            (2, AccessKind::BulkRead),
            (3, AccessKind::Normal),
            (2, AccessKind::Vacuum),
        ] {
            builder.push(page, kind).unwrap();
        }
        let trace = builder.finish("t");
        assert_eq!((trace.kinds.len(), trace.distinct), (4, 3));
        let trace = trace.without_bulk();
        assert_eq!((trace.pages.as_slice(), trace.distinct), ([0, 1].as_slice(), 2));
    }
}
