//! First in, first out: evicts the page that was loaded the longest ago.

use super::lists::Lists;
use super::{Access, Policy};

/// FIFO.
#[derive(Debug)]
pub struct Fifo {
    capacity: usize,
    pages: Lists<1>,
}

impl Fifo {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        Self { capacity, pages: Lists::new(distinct) }
    }
}

impl Policy for Fifo {
    fn access(&mut self, access: Access) -> bool {
        if self.pages.list_of(access.page).is_some() {
            return true;
        }
        if self.pages.len(0) == self.capacity {
            self.pages.pop_back(0);
        }
        self.pages.push_front(0, access.page);
        false
    }
}
