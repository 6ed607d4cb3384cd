//! Sorting index entries within a bound of memory (`maintenance_work_mem`): an external merge sort.
//!
//! Entries are collected in memory. What does not fit is sorted and written to a temporary file as a *run*; at the end
//! the runs are merged, as many at a time as the bound leaves room to read ahead, until one merge gives the
//! entries in order. If all fits, no file is made.
//!
//! ```text
//! add -> [batch in memory] -full-> sort -> run 1, run 2, ... -> merge passes -> one last merge -> entries
//! ```
//!
//! Order: by key bytes, then by tid; entries are distinct, because no two have the same tid.
//!
//! Failure: a temporary file has no name but for a moment ([`temp`]), so that none is left behind by an error, a
//! cancelled statement or a crash. An error of a file is [`EngineError::TemporaryFile`].

mod batch;
mod merge;
mod runs;
pub(crate) mod temp;
#[cfg(test)]
mod tests;

use crate::EngineResult;
use batch::Batch;
use merge::Merge;
use runs::Runs;
use temp::MakeFile;

/// An index entry on its way into the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tid: u64,
    /// No other entry may have this key (it has no NULLs).
    pub(crate) unique: bool,
}

/// Called now and then: an error ends the sort.
pub(crate) type Check<'a> = &'a dyn Fn() -> EngineResult<()>;

/// Takes entries in any order.
pub(crate) struct Sorter<'a> {
    batch: Batch,
    runs: Option<Runs>,
    budget: usize,
    make_file: MakeFile<'a>,
}

impl<'a> Sorter<'a> {
    /// A sort that takes about `budget` bytes of memory, and makes its temporary files with `make_file`.
    pub(crate) fn new(budget: usize, make_file: MakeFile<'a>) -> Self {
        Self { batch: Batch::default(), runs: None, budget, make_file }
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, entry: Entry<'_>) -> EngineResult<()> {
        if !self.batch.has_room(entry.key.len(), self.budget) {
            self.spill()?;
        }
        self.batch.push(entry);
        Ok(())
    }

    /// Writes what is in memory to a file.
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

    /// The entries in order.
    pub(crate) fn finish(mut self, check: Check<'_>) -> EngineResult<Sorted> {
        check()?;
        if self.runs.is_some() {
            self.spill()?;
        }
        let Some(runs) = self.runs else {
            self.batch.sort();
            return Ok(Sorted::InMemory { batch: self.batch, next: 0 });
        };
        // Its memory is the merge's from now on.
        drop(self.batch);
        let runs = merge::until_few(runs, self.budget, self.make_file, check)?;
        Ok(Sorted::Merged(Box::new(Merge::of_all(runs, self.budget)?)))
    }
}

/// Entries in order.
pub(crate) enum Sorted {
    InMemory { batch: Batch, next: usize },
    Merged(Box<Merge>),
}

impl Sorted {
    /// The next entry.
    pub(crate) fn next(&mut self) -> EngineResult<Option<Entry<'_>>> {
        match self {
            Sorted::InMemory { batch, next } => {
                let entry = batch.get(*next);
                *next += 1;
                Ok(entry)
            }
            Sorted::Merged(merge) => merge.next(),
        }
    }
}
