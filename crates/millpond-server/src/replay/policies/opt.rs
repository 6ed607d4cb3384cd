//! The optimum: the page that will be used again last leaves. It needs to know the future.
//!
//! L. A. Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5(2),
//! 1966. No policy that loads every page that is missed has more hits.

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
    /// For every access, where its page is used again.
    next_uses: Vec<u32>,
    at: usize,
    /// For every page in memory, where it is used again.
    next_use: Vec<u32>,
    /// Next uses and pages, the latest on top. What `next_use` contradicts is out of date.
    latest: BinaryHeap<(u32, u32)>,
}

impl Opt {
    /// For `capacity` pages and this trace.
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
        // A use is never the trace's first access again, so 0 is free to mean "out".
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
