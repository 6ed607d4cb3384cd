//! First in, first out: the page that was loaded longest ago leaves.

use super::lists::Lists;
use super::{Access, Policy};

/// FIFO.
#[derive(Debug)]
pub struct Fifo {
    capacity: usize,
    pages: Lists<1>,
}

impl Fifo {
    /// For `capacity` pages out of `distinct`.
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
