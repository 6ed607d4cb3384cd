//! A queue of pages, of which the last one leaves. First in, first out: a use changes nothing.
//! Least recently used: a use moves the page to the front.

use super::lists::Lists;
use super::{Access, Policy};

/// FIFO and LRU.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    moves_used: bool,
    pages: Lists<1>,
}

impl Queue {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize, moves_used: bool) -> Self {
        Self { capacity, moves_used, pages: Lists::new(distinct) }
    }
}

impl Policy for Queue {
    fn access(&mut self, access: Access) -> bool {
        let hit = self.pages.list_of(access.page).is_some();
        if !hit && self.pages.len(0) == self.capacity {
            self.pages.pop_back(0);
        }
        if !hit || self.moves_used {
            self.pages.push_front(0, access.page);
        }
        hit
    }
}
