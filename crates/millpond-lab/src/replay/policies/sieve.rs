//! SIEVE: like CLOCK, but a spared page keeps its position, and new pages enter at the front.
//!
//! Y. Zhang and others, SIEVE is Simpler than LRU, NSDI 2024. The hand moves from the back to the
//! front. It soon reaches new pages, so those without another use leave quickly.

use super::lists::Lists;
use super::{Access, Policy};

/// SIEVE.
#[derive(Debug)]
pub struct Sieve {
    capacity: usize,
    pages: Lists<1>,
    visited: Vec<bool>,
    /// The next page to inspect; `None` means the one at the back.
    hand: Option<u32>,
}

impl Sieve {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        Self { capacity, pages: Lists::new(distinct), visited: vec![false; distinct], hand: None }
    }

    fn evict(&mut self) {
        while let Some(page) = self.hand.or_else(|| self.pages.back(0)) {
            self.hand = self.pages.ahead_of(page);
            if !std::mem::take(&mut self.visited[page as usize]) {
                self.pages.remove(page);
                return;
            }
        }
    }
}

impl Policy for Sieve {
    fn access(&mut self, access: Access) -> bool {
        if self.pages.list_of(access.page).is_some() {
            self.visited[access.page as usize] = true;
            return true;
        }
        if self.pages.len(0) == self.capacity {
            self.evict();
        }
        self.pages.push_front(0, access.page);
        false
    }
}
