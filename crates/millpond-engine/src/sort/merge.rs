//! Merging runs.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::runs::{RunReader, Runs};
use super::temp::MakeFile;
use super::{Check, Entry};
use crate::EngineResult;

/// The least that a run reads ahead: smaller reads are not worth a call.
const LEAST_AHEAD: usize = 16 << 10;
/// The most that a run reads ahead: more does not help.
const MOST_AHEAD: usize = 256 << 10;
/// The number of entries after which a merge checks for cancellation.
const CHECK_EVERY: usize = 1024;

/// How many runs one merge can take within a budget.
fn most_runs(budget: usize) -> usize {
    (budget / LEAST_AHEAD).max(2)
}

/// The first entry of a run that has not been returned yet.
struct Head {
    key: Vec<u8>,
    tid: u64,
    unique: bool,
    run: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.tid.cmp(&other.tid))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Returns the entries of several runs in order.
pub(crate) struct Merge {
    readers: Vec<RunReader>,
    heads: BinaryHeap<Reverse<Head>>,
    /// The key that was returned last.
    key: Vec<u8>,
}

impl Merge {
    /// Merges all runs of a file.
    pub(super) fn of_all(runs: Runs, budget: usize) -> EngineResult<Self> {
        let ahead = ahead(budget, runs.count());
        Self::new(runs.readers(ahead).collect())
    }

    fn new(mut readers: Vec<RunReader>) -> EngineResult<Self> {
        let mut heads = BinaryHeap::with_capacity(readers.len());
        for (run, reader) in readers.iter_mut().enumerate() {
            let mut key = Vec::new();
            if let Some((tid, unique)) = reader.next(&mut key)? {
                heads.push(Reverse(Head { key, tid, unique, run }));
            }
        }
        Ok(Self { readers, heads, key: Vec::new() })
    }

    pub(super) fn next(&mut self) -> EngineResult<Option<Entry<'_>>> {
        let Some(mut least) = self.heads.peek_mut() else { return Ok(None) };
        let head = &mut least.0;
        std::mem::swap(&mut self.key, &mut head.key);
        let (tid, unique) = (head.tid, head.unique);
        match self.readers[head.run].next(&mut head.key)? {
            Some(next) => (head.tid, head.unique) = next,
            None => {
                PeekMut::pop(least);
            }
        }
        Ok(Some(Entry { key: &self.key, tid, unique }))
    }
}

/// The number of bytes that each run reads ahead.
fn ahead(budget: usize, runs: usize) -> usize {
    (budget / runs.max(1)).clamp(LEAST_AHEAD, MOST_AHEAD)
}

/// Merges runs until one merge can take all that are left.
pub(super) fn until_few(
    mut runs: Runs,
    budget: usize,
    make_file: MakeFile<'_>,
    check: Check<'_>,
) -> EngineResult<Runs> {
    let most = most_runs(budget);
    while runs.count() > most {
        let mut longer = Runs::new(make_file()?);
        let mut readers = runs.readers(LEAST_AHEAD).peekable();
        while readers.peek().is_some() {
            let mut merge = Merge::new(readers.by_ref().take(most).collect())?;
            let mut done = 0usize;
            while let Some(entry) = merge.next()? {
                if done.is_multiple_of(CHECK_EVERY) {
                    check()?;
                }
                done += 1;
                longer.push(entry)?;
            }
            longer.end_run()?;
        }
        drop(readers);
        runs = longer;
    }
    Ok(runs)
}
