//! 2Q: a FIFO for pages seen once, and an LRU list for pages that return after they left it.
//!
//! T. Johnson and D. Shasha, 2Q: A Low Overhead High Performance Buffer Management Replacement
//! Algorithm, VLDB 1994. This is the full version with the paper's recommended sizes. Kin is a
//! quarter of the pages. Kout is half as many numbers as there are pages.

use super::lists::Lists;
use super::{Access, Policy};

/// Pages seen once, in memory.
const A1_IN: usize = 0;
/// Numbers of pages that left it.
const A1_OUT: usize = 1;
/// Pages that were used again after that.
const AM: usize = 2;

/// 2Q.
#[derive(Debug)]
pub struct TwoQ {
    capacity: usize,
    in_limit: usize,
    out_limit: usize,
    pages: Lists<3>,
}

impl TwoQ {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        let (in_limit, out_limit) = ((capacity / 4).max(1), (capacity / 2).max(1));
        Self { capacity, in_limit, out_limit, pages: Lists::new(distinct) }
    }

    fn reclaim(&mut self) {
        let (once, often) = (self.pages.len(A1_IN), self.pages.len(AM));
        if once + often < self.capacity {
            return;
        }
        if once > self.in_limit || often == 0 {
            if let Some(page) = self.pages.pop_back(A1_IN) {
                self.pages.push_front(A1_OUT, page);
            }
            if self.pages.len(A1_OUT) > self.out_limit {
                self.pages.pop_back(A1_OUT);
            }
        } else {
            self.pages.pop_back(AM);
        }
    }
}

impl Policy for TwoQ {
    fn access(&mut self, access: Access) -> bool {
        match self.pages.list_of(access.page) {
            Some(AM) => {
                self.pages.push_front(AM, access.page);
                true
            }
            Some(A1_IN) => true,
            Some(_) => {
                // Removed first, so that making room does not drop this page's number.
                self.pages.remove(access.page);
                self.reclaim();
                self.pages.push_front(AM, access.page);
                false
            }
            None => {
                self.reclaim();
                self.pages.push_front(A1_IN, access.page);
                false
            }
        }
    }
}
