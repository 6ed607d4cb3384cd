//! Doubly linked lists in arrays with one element per page.

/// No page.
const NIL: u32 = u32::MAX;
/// In no list.
const NOWHERE: u8 = u8::MAX;

/// `N` lists over the pages `0..pages`; a page is in at most one. All operations take constant
/// time.
///
/// Pages enter a list at the front and leave it at the back.
#[derive(Debug)]
pub struct Lists<const N: usize> {
    /// The neighbour towards the front.
    ahead: Vec<u32>,
    /// The neighbour towards the back.
    behind: Vec<u32>,
    list: Vec<u8>,
    fronts: [u32; N],
    backs: [u32; N],
    lens: [usize; N],
}

impl<const N: usize> Lists<N> {
    /// Empty lists.
    #[must_use]
    pub fn new(pages: usize) -> Self {
        const { assert!(N < NOWHERE as usize, "lists are numbered in a byte") };
        Self {
            ahead: vec![NIL; pages],
            behind: vec![NIL; pages],
            list: vec![NOWHERE; pages],
            fronts: [NIL; N],
            backs: [NIL; N],
            lens: [0; N],
        }
    }

    /// The number of pages in a list.
    #[must_use]
    pub fn len(&self, list: usize) -> usize {
        self.lens[list]
    }

    /// The list that has the page.
    #[must_use]
    pub fn list_of(&self, page: u32) -> Option<usize> {
        let list = self.list[page as usize];
        (list != NOWHERE).then_some(usize::from(list))
    }

    /// The page at the back of a list.
    #[must_use]
    pub fn back(&self, list: usize) -> Option<u32> {
        some(self.backs[list])
    }

    /// The page before `page` in its list, towards the front.
    #[must_use]
    pub fn ahead_of(&self, page: u32) -> Option<u32> {
        some(self.ahead[page as usize])
    }

    /// Moves a page to the front of a list.
    pub fn push_front(&mut self, list: usize, page: u32) {
        self.remove(page);
        let first = self.fronts[list];
        self.behind[page as usize] = first;
        match some(first) {
            Some(first) => self.ahead[first as usize] = page,
            None => self.backs[list] = page,
        }
        self.fronts[list] = page;
        self.list[page as usize] = list as u8;
        self.lens[list] += 1;
    }

    /// Removes and returns the page at the back of a list.
    pub fn pop_back(&mut self, list: usize) -> Option<u32> {
        let page = self.back(list)?;
        self.remove(page);
        Some(page)
    }

    /// Removes a page from its list, if it is in one.
    pub fn remove(&mut self, page: u32) {
        let Some(list) = self.list_of(page) else { return };
        let at = page as usize;
        let (ahead, behind) = (self.ahead[at], self.behind[at]);
        match some(ahead) {
            Some(ahead) => self.behind[ahead as usize] = behind,
            None => self.fronts[list] = behind,
        }
        match some(behind) {
            Some(behind) => self.ahead[behind as usize] = ahead,
            None => self.backs[list] = ahead,
        }
        (self.ahead[at], self.behind[at]) = (NIL, NIL);
        self.list[at] = NOWHERE;
        self.lens[list] -= 1;
    }
}

fn some(page: u32) -> Option<u32> {
    (page != NIL).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Compares the lists with deques.
        #[test]
        fn lists_behave_like_deques(steps in prop::collection::vec((0u8..3, 0usize..2, 0u32..8), 0..200)) {
            let mut lists = Lists::<2>::new(8);
            let mut deques = [VecDeque::new(), VecDeque::new()];
            for (step, list, page) in steps {
                match step {
                    0 => {
                        lists.push_front(list, page);
                        deques.iter_mut().for_each(|deque| deque.retain(|other| *other != page));
                        deques[list].push_front(page);
                    }
                    1 => prop_assert_eq!(lists.pop_back(list), deques[list].pop_back()),
                    _ => {
                        lists.remove(page);
                        deques.iter_mut().for_each(|deque| deque.retain(|other| *other != page));
                    }
                }
                for (list, deque) in deques.iter().enumerate() {
                    let mut seen = Vec::new();
                    let mut at = lists.back(list);
                    while let Some(page) = at {
                        prop_assert_eq!(lists.list_of(page), Some(list));
                        seen.push(page);
                        at = lists.ahead_of(page);
                    }
                    prop_assert_eq!(lists.len(list), seen.len());
                    prop_assert_eq!(seen, deque.iter().rev().copied().collect::<Vec<_>>());
                }
            }
        }
    }
}
