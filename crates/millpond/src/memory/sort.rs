//! Sorting rows within `work_mem`: an external merge sort.
//!
//! Rows are collected in memory. What does not fit is sorted and kept in a temporary file as a run.
//! At the end the runs are merged. Runs are of levels: as many as are merged at a time make one of
//! the next level, so that each row is written once a level.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::tuplestore::{Rows, Tuplestore};
use super::{Held, Resources, bytes_of};
use crate::error::Result;
use crate::{Datum, Value};

/// Runs that are merged at a time.
const FAN_IN: usize = 16;

/// The order of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyOrder {
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// How two rows compare by their keys.
pub(crate) fn compare_keys(order: &[KeyOrder], a: &[Value], b: &[Value]) -> Ordering {
    for (key, (a, b)) in order.iter().zip(a.iter().zip(b)) {
        let order = match (a.is_null(), b.is_null()) {
            (true, true) => continue,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let order = a.as_datum().sort_cmp(&b.as_datum());
                if key.descending { order.reverse() } else { order }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Takes rows in any order. Rows whose keys are equal stay in the order in which they came.
pub(crate) struct Sorter {
    resources: Arc<Resources>,
    order: Arc<[KeyOrder]>,
    bound: usize,
    rows: Vec<(Vec<Value>, Vec<Value>)>,
    bytes: usize,
    held: Held,
    /// The runs of each level, oldest first.
    runs: Vec<Vec<Rows>>,
}

impl Sorter {
    /// An empty one, for rows with a key for each of `order`.
    pub(crate) fn new(resources: &Arc<Resources>, order: impl Iterator<Item = KeyOrder>) -> Self {
        let held = Held::new(&resources.memory, "Sort");
        let bound = resources.memory.work();
        let (rows, bytes, runs) = Default::default();
        let (resources, order) = (Arc::clone(resources), order.collect());
        Self { resources, order, bound, rows, bytes, held, runs }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, keys: Vec<Value>, row: Vec<Value>) -> Result<()> {
        let bytes = bytes_of(&keys) + bytes_of(&row);
        if self.bytes + bytes > self.bound && !self.rows.is_empty() {
            self.end_run()?;
        }
        if self.held.grow(bytes).is_err() {
            if !self.rows.is_empty() {
                self.end_run()?;
            }
            self.held.grow(bytes)?;
        }
        self.bytes += bytes;
        self.rows.push((keys, row));
        Ok(())
    }

    /// Sorts what is in memory, and puts it into a file.
    fn end_run(&mut self) -> Result<()> {
        let order = &self.order;
        self.rows.sort_by(|(a, _), (b, _)| compare_keys(order, a, b));
        let mut run = Tuplestore::in_file(&self.resources, "Sort");
        for (keys, row) in self.rows.drain(..) {
            let row: Vec<Datum<'_>> = keys.iter().chain(&row).map(Value::as_datum).collect();
            run.push(&row)?;
        }
        self.held.clear();
        self.bytes = 0;
        self.add_run(run.into_rows()?)
    }

    fn add_run(&mut self, mut run: Rows) -> Result<()> {
        for level in 0.. {
            if self.runs.len() == level {
                self.runs.push(Vec::new());
            }
            let Some(runs) = self.runs.get_mut(level) else { break };
            runs.push(run);
            if runs.len() < FAN_IN {
                break;
            }
            let mut merge = Merge::new(std::mem::take(runs), &self.order)?;
            let mut longer = Tuplestore::in_file(&self.resources, "Sort");
            while let Some((keys, row)) = merge.next()? {
                let row: Vec<Datum<'_>> = keys.iter().chain(&row).map(Value::as_datum).collect();
                longer.push(&row)?;
            }
            run = longer.into_rows()?;
        }
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            let order = &self.order;
            self.rows.sort_by(|(a, _), (b, _)| compare_keys(order, a, b));
            return Ok(Sorted::InMemory { rows: self.rows.into_iter(), _held: self.held });
        }
        if !self.rows.is_empty() {
            self.end_run()?;
        }
        // Runs of higher levels are older.
        let runs = self.runs.into_iter().rev().flatten().collect();
        Ok(Sorted::Merged(Merge::new(runs, &self.order)?))
    }
}

/// Rows in order.
pub(crate) enum Sorted {
    InMemory { rows: std::vec::IntoIter<(Vec<Value>, Vec<Value>)>, _held: Held },
    Merged(Merge),
}

impl Sorted {
    /// The next row, without its keys.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Value>>> {
        let row = match self {
            Self::InMemory { rows, .. } => rows.next(),
            Self::Merged(merge) => merge.next()?,
        };
        Ok(row.map(|(_, row)| row))
    }
}

/// Merges runs.
pub(crate) struct Merge {
    runs: Vec<Rows>,
    /// The first row of each run that has one left.
    heads: BinaryHeap<Head>,
    order: Arc<[KeyOrder]>,
}

impl Merge {
    fn new(runs: Vec<Rows>, order: &Arc<[KeyOrder]>) -> Result<Self> {
        let heads = BinaryHeap::with_capacity(runs.len());
        let mut merge = Self { runs, heads, order: Arc::clone(order) };
        for run in 0..merge.runs.len() {
            merge.read(run)?;
        }
        Ok(merge)
    }

    /// Reads a run's next row.
    fn read(&mut self, run: usize) -> Result<()> {
        let Some(rows) = self.runs.get_mut(run) else { return Ok(()) };
        if let Some(row) = rows.next()? {
            let mut keys: Vec<Value> = row.iter().map(Datum::to_value).collect();
            let row = keys.split_off(self.order.len().min(keys.len()));
            self.heads.push(Head { keys, row, run, order: Arc::clone(&self.order) });
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(Vec<Value>, Vec<Value>)>> {
        let Some(head) = self.heads.pop() else { return Ok(None) };
        self.read(head.run)?;
        Ok(Some((head.keys, head.row)))
    }
}

/// The first row of a run. The greatest one in the heap is the first in order.
struct Head {
    keys: Vec<Value>,
    row: Vec<Value>,
    run: usize,
    order: Arc<[KeyOrder]>,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_keys(&self.order, &other.keys, &self.keys).then(other.run.cmp(&self.run))
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

#[cfg(test)]
mod tests {
    use super::super::tuplestore::tests::resources;
    use super::*;

    #[test]
    fn many_runs_are_merged_and_equal_keys_keep_their_order() {
        let order = [KeyOrder { descending: false, nulls_first: false }];
        // As many rows in memory as the bound of 64 kB holds; then two runs; then two levels of
        // them.
        for count in [0, 100, 1_000, 50_000] {
            let resources = resources(8 << 20);
            let mut sorter = Sorter::new(&resources, order.into_iter());
            let key = |i: i32| i.wrapping_mul(7919) % 1000;
            for i in 0..count {
                sorter.push(vec![Value::Int4(key(i))], vec![Value::Int4(i)]).unwrap();
            }
            assert_eq!(sorter.runs.is_empty(), count <= 100);
            assert_eq!(sorter.runs.len() > 1, count == 50_000);
            let mut sorted = sorter.finish().unwrap();
            let mut found = Vec::new();
            while let Some(row) = sorted.next().unwrap() {
                let [Value::Int4(i)] = row.as_slice() else { panic!("{row:?}") };
                found.push(*i);
            }
            let mut wanted: Vec<i32> = (0..count).collect();
            wanted.sort_by_key(|i| key(*i));
            assert_eq!(found, wanted);
            drop(sorted);
            assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
        }
    }
}
