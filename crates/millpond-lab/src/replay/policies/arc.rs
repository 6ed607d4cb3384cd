//! ARC: two LRU lists, of pages seen once and of pages seen again. Misses of pages that have left
//! one of the lists lately make that list larger.
//!
//! N. Megiddo and D. Modha, ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST 2003, figure
//! 4. The cases have the numbers of that figure.

use super::lists::Lists;
use super::{Access, Policy};

/// Pages seen once, in memory.
const T1: usize = 0;
/// Pages seen again, in memory.
const T2: usize = 1;
/// Numbers of pages that left T1.
const B1: usize = 2;
/// Numbers of pages that left T2.
const B2: usize = 3;

/// ARC.
#[derive(Debug)]
pub struct Arc {
    capacity: usize,
    /// The target size of T1.
    target: usize,
    pages: Lists<4>,
}

impl Arc {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        Self { capacity, target: 0, pages: Lists::new(distinct) }
    }

    fn replace(&mut self, in_b2: bool) {
        let once = self.pages.len(T1);
        let (from, to) = if once > 0 && (once > self.target || (in_b2 && once == self.target)) {
            (T1, B1)
        } else {
            (T2, B2)
        };
        if let Some(page) = self.pages.pop_back(from) {
            self.pages.push_front(to, page);
        }
    }

    /// Case IV: a page in none of the lists.
    fn make_room_for_new(&mut self) {
        let len = |list| self.pages.len(list);
        let once = len(T1) + len(B1);
        let all = once + len(T2) + len(B2);
        if once == self.capacity {
            if len(T1) < self.capacity {
                self.pages.pop_back(B1);
                self.replace(false);
            } else {
                self.pages.pop_back(T1);
            }
        } else if all >= self.capacity {
            if all == 2 * self.capacity {
                self.pages.pop_back(B2);
            }
            self.replace(false);
        }
    }
}

impl Policy for Arc {
    fn access(&mut self, access: Access) -> bool {
        let page = access.page;
        let (names1, names2) = (self.pages.len(B1), self.pages.len(B2));
        let hit = match self.pages.list_of(page) {
            Some(T1 | T2) => true,
            Some(B1) => {
                let step = if names1 >= names2 { 1 } else { names2 / names1 };
                self.target = (self.target + step).min(self.capacity);
                self.replace(false);
                false
            }
            Some(_) => {
                let step = if names2 >= names1 { 1 } else { names1 / names2 };
                self.target = self.target.saturating_sub(step);
                self.replace(true);
                false
            }
            None => {
                self.make_room_for_new();
                self.pages.push_front(T1, page);
                return false;
            }
        };
        self.pages.push_front(T2, page);
        hit
    }
}
