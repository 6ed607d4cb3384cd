//! LIRS: pages with a short distance between their last two uses stay; others pass a small queue.
//!
//! S. Jiang and X. Zhang, LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy,
//! SIGMETRICS 2002. As in the paper, the queue has one hundredth of the pages. The paper does not
//! bound the numbers kept of pages that left memory; here they are at most twice the pages.

use super::lists::Lists;
use super::{Access, Policy};

/// The state of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Unknown: neither in memory nor in the stack.
    Unknown,
    /// Low inter-reference recency: in memory and in the stack.
    Low,
    /// High inter-reference recency: in memory, in the queue, perhaps in the stack.
    High,
    /// In the stack only.
    Gone,
}

/// High pages in memory, in eviction order.
const QUEUE: usize = 0;
/// Pages that left memory but are still in the stack.
const NAMES: usize = 1;

/// LIRS.
#[derive(Debug)]
pub struct Lirs {
    low_limit: usize,
    queue_limit: usize,
    name_limit: usize,
    low: usize,
    state: Vec<State>,
    /// The recency stack; its top is the front. If there are low pages, one is at the bottom.
    stack: Lists<1>,
    others: Lists<2>,
}

impl Lirs {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        let queue_limit = (capacity / 100).max(1);
        Self {
            low_limit: capacity - queue_limit,
            queue_limit,
            name_limit: capacity * 2,
            low: 0,
            state: vec![State::Unknown; distinct],
            stack: Lists::new(distinct),
            others: Lists::new(distinct),
        }
    }

    fn in_stack(&self, page: u32) -> bool {
        self.stack.list_of(page).is_some()
    }

    fn set(&mut self, page: u32, state: State) {
        self.state[page as usize] = state;
    }

    /// Makes a page low. If there are then too many low pages, the one at the bottom becomes high.
    fn make_low(&mut self, page: u32) {
        self.others.remove(page);
        self.set(page, State::Low);
        self.stack.push_front(0, page);
        self.low += 1;
        if self.low > self.low_limit {
            self.demote_bottom();
        }
        self.prune();
    }

    fn demote_bottom(&mut self) {
        if let Some(bottom) = self.stack.pop_back(0) {
            self.set(bottom, State::High);
            self.others.push_front(QUEUE, bottom);
            self.low -= 1;
        }
    }

    /// Removes pages from the bottom until a low page is there.
    fn prune(&mut self) {
        while let Some(page) = self.stack.back(0) {
            match self.state[page as usize] {
                State::Low => return,
                State::Gone => self.forget(page),
                State::High | State::Unknown => self.stack.remove(page),
            }
        }
    }

    fn forget(&mut self, page: u32) {
        self.stack.remove(page);
        self.others.remove(page);
        self.set(page, State::Unknown);
    }

    /// Evicts a high page.
    fn evict(&mut self) {
        let Some(page) = self.others.pop_back(QUEUE) else { return };
        if !self.in_stack(page) {
            self.set(page, State::Unknown);
            return;
        }
        self.set(page, State::Gone);
        self.others.push_front(NAMES, page);
        if self.others.len(NAMES) > self.name_limit {
            if let Some(oldest) = self.others.back(NAMES) {
                self.forget(oldest);
            }
        }
    }

    fn hit_high(&mut self, page: u32) {
        if self.in_stack(page) && self.low_limit > 0 {
            self.make_low(page);
        } else {
            self.stack.push_front(0, page);
            self.others.push_front(QUEUE, page);
        }
    }

    fn miss(&mut self, page: u32) {
        if self.low < self.low_limit && self.others.len(QUEUE) == 0 {
            // The first pages of a trace become low.
            return self.make_low(page);
        }
        if self.low + self.others.len(QUEUE) >= self.low_limit + self.queue_limit {
            self.evict();
        }
        // Checked only here, because the eviction may have dropped the page from the stack.
        if self.state[page as usize] == State::Gone && self.low_limit > 0 {
            return self.make_low(page);
        }
        self.others.remove(page);
        self.set(page, State::High);
        self.stack.push_front(0, page);
        self.others.push_front(QUEUE, page);
        if self.low == 0 {
            // A stack without a low page has no bottom to prune from.
            self.stack.remove(page);
        }
    }
}

impl Policy for Lirs {
    fn access(&mut self, access: Access) -> bool {
        let page = access.page;
        match self.state[page as usize] {
            State::Low => {
                self.stack.push_front(0, page);
                self.prune();
                true
            }
            State::High => {
                self.hit_high(page);
                true
            }
            State::Unknown | State::Gone => {
                self.miss(page);
                false
            }
        }
    }
}
