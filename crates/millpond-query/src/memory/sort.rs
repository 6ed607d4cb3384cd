//! Sorting rows within `work_mem`: an external merge sort.
//!
//! A row comes with its key: bytes whose order is the wanted one (see [`encode_sort_column`]). Rows
//! are collected in memory. What does not fit is sorted and kept in a temporary file as a run. At
//! the end the runs are merged. Runs are of levels. As many as are merged at a time make one of the
//! next level, so each row is written once a level.
//!
//! [`encode_sort_column`]: millpond_types::key::encode_sort_column

mod collected;

use std::cmp::Ordering;
use std::mem;
use std::sync::Arc;

use millpond_engine::{MergeHeap, SortedRun};

pub(crate) use collected::{Collected, appending};

use super::tuplestore::{Rows, Tuplestore};
use super::{Held, Resources, row_bytes};
use crate::Datum;
use crate::error::{Result, SqlError};

/// Runs that are merged at a time.
const FAN_IN: usize = 16;

/// Rows that there is room for at first.
const FIRST_ROWS: usize = 16;
/// An error if the statement was told to stop.
pub(crate) type Look<'l> = &'l dyn Fn() -> Result<()>;

/// Takes rows in any order. Rows whose keys are equal stay in the order in which they came.
pub(crate) struct Sorter {
    resources: Arc<Resources>,
    bound: usize,
    collected: Collected,
    held: Held,
    /// The runs of each level, oldest first.
    runs: Vec<Vec<Rows>>,
}

impl Sorter {
    /// An empty one.
    pub(crate) fn new(resources: &Arc<Resources>) -> Self {
        let held = Held::new(&resources.memory, "Sort");
        let bound = resources.memory.work();
        let (collected, runs) = Default::default();
        Self { resources: Arc::clone(resources), bound, collected, held, runs }
    }

    /// Adds a row. This takes long where a run ends, and looks meanwhile.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8], look: Look<'_>) -> Result<()> {
        if self.collected.sizes().1 == 0 {
            self.collected.reserve(FIRST_ROWS, key.len() + row.len());
        }
        self.collected.push(key, row)?;
        let (used, memory) = self.collected.sizes();
        let is_refused = self.held.resize(memory).is_err();
        if is_refused || used > self.bound {
            self.end_run(look)?;
        }
        if is_refused {
            self.collected = Collected::default();
            self.held.clear();
        }
        Ok(())
    }

    /// Sorts what is in memory, and puts it into a file.
    fn end_run(&mut self, look: Look<'_>) -> Result<()> {
        self.collected.sort(look)?;
        let mut run = Tuplestore::in_file(&self.resources, "Sort");
        for (key, row) in self.collected.keys().zip(self.collected.rows()) {
            look()?;
            run.push(&[Datum::Bytea(key), Datum::Bytea(row)])?;
        }
        self.collected.clear();
        self.add_run(run.into_rows()?, look)
    }

    fn add_run(&mut self, mut run: Rows, look: Look<'_>) -> Result<()> {
        for level in 0.. {
            if self.runs.len() == level {
                self.runs.push(Vec::new());
            }
            let Some(runs) = self.runs.get_mut(level) else { break };
            runs.push(run);
            if runs.len() < FAN_IN {
                break;
            }
            let mut merge = MergeHeap::new(mem::take(runs))?;
            let mut longer = Tuplestore::in_file(&self.resources, "Sort");
            while let Some(item) = merge.next()? {
                look()?;
                longer.push(&[Datum::Bytea(&item.key), Datum::Bytea(&item.row)])?;
            }
            run = longer.into_rows()?;
        }
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self, look: Look<'_>) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.collected.sort(look)?;
            let Self { collected, held, .. } = self;
            return Ok(Sorted::InMemory { collected, given: 0, _held: held });
        }
        if self.collected.len() > 0 {
            self.end_run(look)?;
        }
        // Runs of higher levels are older.
        let runs = self.runs.into_iter().rev().flatten().collect();
        Ok(Sorted::Merged(MergeHeap::new(runs)?))
    }
}

/// Rows in order.
pub(crate) enum Sorted {
    InMemory { collected: Collected, given: usize, _held: Held },
    Merged(MergeHeap<Rows>),
}

impl Sorted {
    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Self::InMemory { collected, given, .. } => {
                let row = collected.row_at(*given);
                *given += 1;
                Ok(row)
            }
            Self::Merged(merge) => Ok(merge.next()?.map(|item| item.row.as_slice())),
        }
    }
}

/// A row in a run.
#[derive(Default)]
pub struct Keyed {
    key: Vec<u8>,
    row: Vec<u8>,
}

impl SortedRun for Rows {
    type Item = Keyed;
    type Error = SqlError;

    fn read(&mut self, item: &mut Keyed) -> Result<bool> {
        let Some(row) = self.next()? else { return Ok(false) };
        let [Datum::Bytea(key), Datum::Bytea(row)] = row.as_slice() else {
            return Err(row_bytes::damaged());
        };
        item.key.clear();
        item.key.extend_from_slice(key);
        item.row.clear();
        item.row.extend_from_slice(row);
        Ok(true)
    }

    fn compare(a: &Keyed, b: &Keyed) -> Ordering {
        a.key.cmp(&b.key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tuplestore::tests::resources;
    use super::*;

    #[test]
    fn many_runs_are_merged_and_equal_keys_keep_their_order() {
        // As many rows in memory as the bound of 64 kB holds; then two runs; then two levels of
        // them.
        for count in [0u32, 100, 3_000, 50_000] {
            let resources = resources(8 << 20);
            let mut sorter = Sorter::new(&resources);
            // Keys of one length, but for some that are longer than what is compared first.
            let key = |i: u32| {
                let key = i.wrapping_mul(7919) % 1000;
                let mut bytes = key.to_be_bytes().to_vec();
                bytes.extend_from_slice(if key.is_multiple_of(3) { b"a long end" } else { b"b" });
                bytes
            };
            for i in 0..count {
                sorter.push(&key(i), &i.to_le_bytes(), &|| Ok(())).unwrap();
            }
            assert_eq!(sorter.runs.is_empty(), count <= 100);
            assert_eq!(sorter.runs.len() > 1, count == 50_000);
            let mut sorted = sorter.finish(&|| Ok(())).unwrap();
            let mut found = Vec::new();
            while let Some(row) = sorted.next().unwrap() {
                found.push(u32::from_le_bytes(row.try_into().unwrap()));
            }
            let mut wanted: Vec<u32> = (0..count).collect();
            wanted.sort_by_key(|i| key(*i));
            assert_eq!(found, wanted);
            drop(sorted);
            assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
        }
    }

    #[test]
    fn short_keys_are_before_longer_ones_of_the_same_bytes() {
        let resources = resources(8 << 20);
        let mut sorter = Sorter::new(&resources);
        let keys: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0\0\0\0", b"\x01"];
        for key in keys.iter().rev() {
            sorter.push(key, key, &|| Ok(())).unwrap();
        }
        let mut sorted = sorter.finish(&|| Ok(())).unwrap();
        for key in keys {
            assert_eq!(sorted.next().unwrap(), Some(key));
        }
    }
}
