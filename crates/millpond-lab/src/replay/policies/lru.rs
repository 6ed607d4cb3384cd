//! Least recently used: evicts the page whose last use is the longest ago.

use super::lists::Lists;
use super::{Access, Policy};

/// LRU.
#[derive(Debug)]
pub struct Lru {
    capacity: usize,
    pages: Lists<1>,
}

impl Lru {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        Self { capacity, pages: Lists::new(distinct) }
    }
}

impl Policy for Lru {
    fn access(&mut self, access: Access) -> bool {
        let hit = self.pages.list_of(access.page).is_some();
        if !hit && self.pages.len(0) == self.capacity {
            self.pages.pop_back(0);
        }
        self.pages.push_front(0, access.page);
        hit
    }
}
