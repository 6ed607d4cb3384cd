//! Merging the runs of files within a budget.

use super::Check;
use super::heap::MergeHeap;
use super::runs::{RunReader, Runs};
use super::temp::MakeFile;
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

/// Merges all runs of a file.
pub(super) fn all(runs: Runs, budget: usize) -> EngineResult<MergeHeap<RunReader>> {
    let ahead = ahead(budget, runs.count());
    MergeHeap::new(runs.readers(ahead).collect())
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
            let mut merge = MergeHeap::new(readers.by_ref().take(most).collect())?;
            let mut done = 0usize;
            while let Some(entry) = merge.next()? {
                if done.is_multiple_of(CHECK_EVERY) {
                    check()?;
                }
                done += 1;
                longer.push(entry.borrow())?;
            }
            longer.end_run()?;
        }
        drop(readers);
        runs = longer;
    }
    Ok(runs)
}
