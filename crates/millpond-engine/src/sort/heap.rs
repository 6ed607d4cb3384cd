//! Merging sorted runs: a heap of the items that come next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::mem;

/// Items in order.
pub trait SortedRun {
    /// What it gives.
    type Item: Default;
    /// Why it can't be read.
    type Error;

    /// Reads the next item into `item`, whose memory it may use again. `false`: there is none.
    fn read(&mut self, item: &mut Self::Item) -> Result<bool, Self::Error>;

    /// The order of items.
    fn compare(a: &Self::Item, b: &Self::Item) -> Ordering;
}

/// Gives the items of several runs in order. Of equal items, that of the earlier run is first.
pub struct MergeHeap<R: SortedRun> {
    runs: Vec<R>,
    heads: BinaryHeap<Head<R>>,
    /// The item that was given last.
    given: R::Item,
}

/// The next item of a run. The greatest one in the heap is the first in order.
struct Head<R: SortedRun> {
    item: R::Item,
    run: usize,
}

impl<R: SortedRun> MergeHeap<R> {
    /// Merges runs. Reads the first item of each.
    pub fn new(mut runs: Vec<R>) -> Result<Self, R::Error> {
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (run, items) in runs.iter_mut().enumerate() {
            let mut item = R::Item::default();
            if items.read(&mut item)? {
                heads.push(Head { item, run });
            }
        }
        Ok(Self { runs, heads, given: R::Item::default() })
    }

    /// The next item.
    #[expect(clippy::should_implement_trait, reason = "an iterator can't lend its memory")]
    pub fn next(&mut self) -> Result<Option<&R::Item>, R::Error> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Head { item, run } = &mut *head;
        mem::swap(&mut self.given, item);
        if !self.runs[*run].read(item)? {
            PeekMut::pop(head);
        }
        Ok(Some(&self.given))
    }
}

impl<R: SortedRun> Ord for Head<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        R::compare(&other.item, &self.item).then(other.run.cmp(&self.run))
    }
}

impl<R: SortedRun> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: SortedRun> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R: SortedRun> Eq for Head<R> {}
