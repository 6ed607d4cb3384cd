//! S3-FIFO: a small FIFO for new pages, a main FIFO with second chances, and a ghost queue.
//!
//! J. Yang and others, FIFO Queues are All You Need for Cache Eviction, SOSP 2023, algorithm 1. The
//! small queue has one tenth of the pages. The ghost queue has the numbers of as many evicted pages
//! as the main queue has pages. A page's counter goes up to 3.

use super::lists::Lists;
use super::{Access, Policy};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;
/// The highest count.
const MAX_USES: u8 = 3;

/// S3-FIFO.
#[derive(Debug)]
pub struct S3Fifo {
    capacity: usize,
    small_limit: usize,
    pages: Lists<3>,
    uses: Vec<u8>,
}

impl S3Fifo {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        let small_limit = (capacity / 10).max(1);
        Self { capacity, small_limit, pages: Lists::new(distinct), uses: vec![0; distinct] }
    }

    fn evict(&mut self) {
        while self.pages.len(SMALL) + self.pages.len(MAIN) >= self.capacity {
            if self.pages.len(SMALL) >= self.small_limit || self.pages.len(MAIN) == 0 {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
    }

    /// Takes pages from the end of the small queue until one is evicted.
    fn evict_small(&mut self) {
        while let Some(page) = self.pages.pop_back(SMALL) {
            if self.uses[page as usize] > 1 {
                self.uses[page as usize] = 0;
                self.pages.push_front(MAIN, page);
                continue;
            }
            self.pages.push_front(GHOST, page);
            if self.pages.len(GHOST) > self.capacity.saturating_sub(self.small_limit).max(1) {
                self.pages.pop_back(GHOST);
            }
            return;
        }
    }

    fn evict_main(&mut self) {
        while let Some(page) = self.pages.pop_back(MAIN) {
            let uses = &mut self.uses[page as usize];
            if *uses == 0 {
                return;
            }
            *uses -= 1;
            self.pages.push_front(MAIN, page);
        }
    }
}

impl Policy for S3Fifo {
    fn access(&mut self, access: Access) -> bool {
        let page = access.page;
        let list = match self.pages.list_of(page) {
            Some(SMALL | MAIN) => {
                let uses = &mut self.uses[page as usize];
                *uses = (*uses + 1).min(MAX_USES);
                return true;
            }
            Some(_) => MAIN,
            None => SMALL,
        };
        self.pages.remove(page);
        self.evict();
        self.uses[page as usize] = 0;
        self.pages.push_front(list, page);
        false
    }
}
