//! CLOCK, or second chance: FIFO, but a page used since its last inspection stays one more round.
//!
//! F. J. Corbató, A Paging Experiment with the Multics System, 1968. Only a hit sets a page's bit.

use super::lists::Lists;
use super::{Access, Policy};

/// CLOCK.
#[derive(Debug)]
pub struct Clock {
    capacity: usize,
    pages: Lists<1>,
    used: Vec<bool>,
}

impl Clock {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        Self { capacity, pages: Lists::new(distinct), used: vec![false; distinct] }
    }

    fn evict(&mut self) {
        while let Some(page) = self.pages.pop_back(0) {
            if !std::mem::take(&mut self.used[page as usize]) {
                return;
            }
            self.pages.push_front(0, page);
        }
    }
}

impl Policy for Clock {
    fn access(&mut self, access: Access) -> bool {
        if self.pages.list_of(access.page).is_some() {
            self.used[access.page as usize] = true;
            return true;
        }
        if self.pages.len(0) == self.capacity {
            self.evict();
        }
        self.pages.push_front(0, access.page);
        false
    }
}
