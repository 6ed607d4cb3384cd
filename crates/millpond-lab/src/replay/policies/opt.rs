//! The optimum: evicts the page whose next use is the furthest away. It must know the future.
//!
//! L. A. Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems
//! Journal 5(2), 1966. No policy that loads every missed page has more hits.

use super::{Access, Policy};
use crate::replay::trace::Trace;
use std::collections::BinaryHeap;

/// Not in memory.
const OUT: u32 = 0;

/// The optimum.
#[derive(Debug)]
pub struct Opt {
    capacity: usize,
    resident: usize,
    /// For every access, the position of the next use of its page.
    next_uses: Vec<u32>,
    at: usize,
    /// For every page in memory, the position of its next use.
    next_use: Vec<u32>,
    /// Next uses and pages, the latest on top. An entry that differs from `next_use` is outdated.
    latest: BinaryHeap<(u32, u32)>,
}

impl Opt {
    /// A cache of `capacity` pages for this trace.
    #[must_use]
    pub fn new(capacity: usize, trace: &Trace) -> Self {
        Self {
            capacity,
            resident: 0,
            next_uses: trace.next_uses(),
            at: 0,
            next_use: vec![OUT; trace.distinct],
            latest: BinaryHeap::new(),
        }
    }

    fn evict(&mut self) {
        while let Some((next_use, page)) = self.latest.pop() {
            if self.next_use[page as usize] == next_use {
                self.next_use[page as usize] = OUT;
                self.resident -= 1;
                return;
            }
        }
    }
}

impl Policy for Opt {
    fn access(&mut self, access: Access) -> bool {
        // A next use is never the trace's first access, so 0 can mean "out".
        let next_use = self.next_uses[self.at];
        self.at += 1;
        let hit = self.next_use[access.page as usize] != OUT;
        if !hit {
            if self.resident == self.capacity {
                self.evict();
            }
            self.resident += 1;
        }
        self.next_use[access.page as usize] = next_use;
        self.latest.push((next_use, access.page));
        hit
    }
}
