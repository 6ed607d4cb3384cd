//! An external merge sort of index entries within a memory budget (`maintenance_work_mem`).
//!
//! The sorter collects entries in memory. When the budget is used up, it sorts them and writes them
//! to a temporary file as a *run*. At the end it merges the runs. The budget limits how many runs
//! one merge can take, because each run needs memory to read ahead. If all entries fit in memory,
//! no file is created.
//!
//! ```text
//! add -> [batch in memory] -full-> sort -> run 1, run 2, ... -> merge passes -> last merge
//! ```
//!
//! Order: by key bytes, then by tid. Entries are distinct, because no two have the same tid.
//!
//! Failure: a temporary file has a name only for a moment ([`temp`]). So an error or a cancelled
//! statement leaves none behind, and the next start removes what a crash leaves. An error of a file
//! is [`EngineError::TemporaryFile`](crate::EngineError::TemporaryFile).

mod batch;
pub(crate) mod heap;
mod merge;
mod runs;
pub(crate) mod temp;
#[cfg(test)]
mod tests;

use crate::EngineResult;
use batch::Batch;
use heap::MergeHeap;
use runs::{RunReader, Runs};
use temp::MakeFile;

/// An index entry that is being sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tid: u64,
    /// Whether no other entry may have this key (it has no NULLs).
    pub(crate) unique: bool,
}

/// The same with memory of its own.
#[derive(Default)]
pub(crate) struct OwnedEntry {
    key: Vec<u8>,
    tid: u64,
    unique: bool,
}

impl OwnedEntry {
    fn borrow(&self) -> Entry<'_> {
        Entry { key: &self.key, tid: self.tid, unique: self.unique }
    }
}

/// Called regularly; an error ends the sort.
pub(crate) type Check<'a> = &'a dyn Fn() -> EngineResult<()>;

/// Takes entries in any order.
pub(crate) struct Sorter<'a> {
    batch: Batch,
    runs: Option<Runs>,
    budget: usize,
    make_file: MakeFile<'a>,
}

impl<'a> Sorter<'a> {
    /// A sort that uses about `budget` bytes of memory and creates its temporary files with
    /// `make_file`.
    pub(crate) fn new(budget: usize, make_file: MakeFile<'a>) -> Self {
        Self { batch: Batch::default(), runs: None, budget, make_file }
    }

    pub(crate) fn add(&mut self, entry: Entry<'_>) -> EngineResult<()> {
        if !self.batch.has_room(entry.key.len(), self.budget) {
            self.spill()?;
        }
        self.batch.push(entry);
        Ok(())
    }

    fn spill(&mut self) -> EngineResult<()> {
        self.batch.sort();
        let runs = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::new((self.make_file)()?)),
        };
        for entry in self.batch.iter() {
            runs.push(entry)?;
        }
        runs.end_run()?;
        self.batch.clear();
        Ok(())
    }

    /// Ends the input and returns the entries in order.
    pub(crate) fn finish(mut self, check: Check<'_>) -> EngineResult<Sorted> {
        check()?;
        if self.runs.is_some() {
            self.spill()?;
        }
        let Some(runs) = self.runs else {
            self.batch.sort();
            return Ok(Sorted::InMemory { batch: self.batch, next: 0 });
        };
        // The merge uses its memory budget from now on.
        drop(self.batch);
        let runs = merge::until_few(runs, self.budget, self.make_file, check)?;
        Ok(Sorted::Merged(Box::new(merge::all(runs, self.budget)?)))
    }
}

/// Entries in order.
pub(crate) enum Sorted {
    InMemory { batch: Batch, next: usize },
    Merged(Box<MergeHeap<RunReader>>),
}

impl Sorted {
    pub(crate) fn next(&mut self) -> EngineResult<Option<Entry<'_>>> {
        match self {
            Sorted::InMemory { batch, next } => {
                let entry = batch.get(*next);
                *next += 1;
                Ok(entry)
            }
            Sorted::Merged(merge) => Ok(merge.next()?.map(OwnedEntry::borrow)),
        }
    }
}
