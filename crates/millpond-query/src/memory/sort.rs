//! Sorting rows within `work_mem`: an external merge sort.
//!
//! A row comes with its key: bytes whose order is the wanted one (see [`encode_sort_column`]). Rows
//! are collected in memory. What does not fit is sorted and kept in a temporary file as a run. At
//! the end the runs are merged. Runs are of levels. As many as are merged at a time make one of the
//! next level, so each row is written once a level.
//!
//! [`encode_sort_column`]: millpond_types::key::encode_sort_column

use std::cmp::Ordering;
use std::mem;
use std::sync::Arc;

use millpond_engine::{MergeHeap, SortedRun};

use super::tuplestore::{Rows, Tuplestore};
use super::{Held, Resources, row_bytes};
use crate::Datum;
use crate::error::{Result, SqlError, SqlState};

/// Runs that are merged at a time.
const FAN_IN: usize = 16;

/// Rows that there is room for at first.
const FIRST_ROWS: usize = 16;
/// Runs are merged as they are if there are at most `FEW_RUNS`, and one more for each `LEAST_RUN`
/// rows. Otherwise the rows are sorted anew.
const FEW_RUNS: usize = 4;
const LEAST_RUN: usize = 256;
/// Rows that are sorted without a look whether the statement is to stop.
const ROWS_BETWEEN_LOOKS: usize = 1 << 14;

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

/// Rows in memory.
#[derive(Default)]
pub(crate) struct Collected {
    /// Of each row the key and the row itself.
    bytes: Vec<u8>,
    rows: Vec<Place>,
}

/// Where a row is among the collected bytes.
#[derive(Clone, Copy)]
struct Place {
    /// The first bytes of the key: they decide most comparisons.
    prefix: u64,
    start: usize,
    key_length: u32,
    row_length: u32,
}

/// Appends bytes that are there.
pub(crate) fn appending(part: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> Result<()> {
    |out| {
        out.extend_from_slice(part);
        Ok(())
    }
}

impl Collected {
    /// Makes room for rows of about that length.
    fn reserve(&mut self, rows: usize, length: usize) {
        self.rows.reserve(rows);
        self.bytes.reserve(rows * 2 * length);
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        self.push_with(appending(key), appending(row))
    }

    /// Adds a row whose key and whose own bytes are appended by functions. After an error the rows
    /// must not be used.
    pub(crate) fn push_with(
        &mut self,
        write_key: impl FnOnce(&mut Vec<u8>) -> Result<()>,
        write_row: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let length = |bytes: usize| {
            let too_long = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too long");
            u32::try_from(bytes).map_err(too_long)
        };
        let start = self.bytes.len();
        write_key(&mut self.bytes)?;
        let row = self.bytes.len();
        write_row(&mut self.bytes)?;
        let prefix = prefix(self.bytes.get(start..row).unwrap_or_default());
        let (key_length, row_length) = (length(row - start)?, length(self.bytes.len() - row)?);
        self.rows.push(Place { prefix, start, key_length, row_length });
        Ok(())
    }

    fn key(&self, place: &Place) -> &[u8] {
        self.piece(place.start, place.key_length)
    }

    fn row(&self, place: &Place) -> &[u8] {
        self.piece(place.start + place.key_length as usize, place.row_length)
    }

    fn piece(&self, start: usize, length: u32) -> &[u8] {
        self.bytes.get(start..start + length as usize).unwrap_or_default()
    }

    /// How many bytes the rows take, and how many there is room for.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let of_rows = |count: usize| count * size_of::<Place>();
        (
            self.bytes.len() + of_rows(self.rows.len()),
            self.bytes.capacity() + of_rows(self.rows.capacity()),
        )
    }

    /// Sorts the rows, and looks meanwhile. Sorted pieces are merged two by two.
    pub(crate) fn sort(&mut self, look: Look<'_>) -> Result<()> {
        let mut rows = mem::take(&mut self.rows);
        let compare = |a: &Place, b: &Place| {
            let by_key = || self.key(a).cmp(self.key(b));
            a.prefix.cmp(&b.prefix).then_with(by_key).then(a.start.cmp(&b.start))
        };
        let mut ends = match sorted_runs(&rows, compare, look)? {
            Some(ends) => ends,
            None => {
                let mut end = 0;
                let pieces = rows.chunks_mut(ROWS_BETWEEN_LOOKS).map(|piece| {
                    look()?;
                    piece.sort_unstable_by(compare);
                    end += piece.len();
                    Ok(end)
                });
                pieces.collect::<Result<Vec<usize>>>()?
            }
        };
        let mut left = Vec::new();
        while ends.len() > 1 {
            let (mut start, mut longer) = (0, Vec::with_capacity(ends.len().div_ceil(2)));
            for pair in ends.chunks(2) {
                let end = pair.last().copied().unwrap_or(start);
                if let (&[middle, _], Some(pieces)) = (pair, rows.get_mut(start..end)) {
                    look()?;
                    merge_pieces(pieces, middle - start, &mut left, compare, look)?;
                }
                longer.push(end);
                start = end;
            }
            ends = longer;
        }
        self.rows = rows;
        Ok(())
    }

    /// Forgets the rows.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.bytes.clear();
    }

    /// The keys, in order once they are sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|place| self.key(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// A row by its place in the order, once they are sorted.
    pub(crate) fn row_at(&self, place: usize) -> Option<&[u8]> {
        self.rows.get(place).map(|place| self.row(place))
    }

    /// The rows, in order once they are sorted.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|place| self.row(place))
    }
}

/// The ends of the sorted runs that rows consist of, such as threads make. `None` if there are many
/// short ones.
fn sorted_runs(
    rows: &[Place],
    compare: impl Fn(&Place, &Place) -> Ordering,
    look: Look<'_>,
) -> Result<Option<Vec<usize>>> {
    let mut ends = Vec::new();
    for (before, pair) in rows.windows(2).enumerate() {
        if before.is_multiple_of(ROWS_BETWEEN_LOOKS) {
            look()?;
        }
        if let [a, b] = pair
            && compare(a, b).is_gt()
        {
            ends.push(before + 1);
            if ends.len() > FEW_RUNS + before / LEAST_RUN {
                return Ok(None);
            }
        }
    }
    ends.push(rows.len());
    Ok(Some(ends))
}

/// Merges the first `middle` rows with the others; both parts are sorted. The first part is copied
/// to `left`, so that there is room for the result. Looks after every [`ROWS_BETWEEN_LOOKS`] rows.
fn merge_pieces(
    rows: &mut [Place],
    middle: usize,
    left: &mut Vec<Place>,
    compare: impl Fn(&Place, &Place) -> Ordering,
    look: Look<'_>,
) -> Result<()> {
    let Some((first, others)) = rows.split_at_checked(middle) else { return Ok(()) };
    let in_order = match (first.last(), others.first()) {
        (Some(last), Some(next)) => compare(last, next).is_lt(),
        _ => true,
    };
    if in_order {
        return Ok(());
    }
    left.clear();
    left.extend_from_slice(first);
    let (mut taken, mut right) = (0, middle);
    // Once the left part is used up, what remains of the right one is in its place.
    while let Some(&place) = left.get(taken) {
        let to = taken + right - middle;
        if to.is_multiple_of(ROWS_BETWEEN_LOOKS) {
            look()?;
        }
        let next = match rows.get(right) {
            Some(&other) if compare(&other, &place).is_lt() => {
                right += 1;
                other
            }
            _ => {
                taken += 1;
                place
            }
        };
        rows[to] = next;
    }
    Ok(())
}

/// The first bytes of a key, as a number in the same order.
fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    key.iter().chain([&0; 8]).take(8).fold(0, |prefix, byte| prefix << 8 | u64::from(*byte))
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
        if self.collected.rows.capacity() == 0 {
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
        for place in &self.collected.rows {
            look()?;
            let (key, row) = (self.collected.key(place), self.collected.row(place));
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
        if !self.collected.rows.is_empty() {
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
                let Some(place) = collected.rows.get(*given) else { return Ok(None) };
                *given += 1;
                Ok(Some(collected.row(place)))
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

    /// A merge of many rows takes long, too.
    #[test]
    fn merges_look_whether_the_statement_is_to_stop() {
        let count = 16 * ROWS_BETWEEN_LOOKS;
        let mut collected = Collected::default();
        for i in (0..count as u32).rev() {
            collected.push(&i.to_be_bytes(), &i.to_le_bytes()).unwrap();
        }
        let looks = std::cell::Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            Ok(())
        };
        collected.sort(&look).unwrap();
        // The pieces, and four rounds of merging them.
        assert!(looks.get() >= 5 * 16, "{} looks", looks.get());
        assert!(collected.rows().eq((0..count as u32).map(u32::to_le_bytes)));
    }

    /// Rows that are sorted in runs are as good as others: short and long runs, in any order.
    #[test]
    fn sorted_runs_are_merged() {
        for lengths in [&[5000usize, 3000, 1, 700][..], &[300; 40], &[1, 2, 3, 4], &[0], &[9000]] {
            let mut collected = Collected::default();
            let mut wanted = Vec::new();
            for (run, length) in lengths.iter().enumerate() {
                for i in 0..*length as u32 {
                    // Some are equal to others of the run, and to those of other runs.
                    let key = (i / 3 * 7 + run as u32 % 2).to_be_bytes();
                    let row = (wanted.len() as u32).to_le_bytes();
                    collected.push(&key, &row).unwrap();
                    wanted.push((key, row));
                }
            }
            wanted.sort_by_key(|(key, _)| *key);
            collected.sort(&|| Ok(())).unwrap();
            assert!(collected.keys().eq(wanted.iter().map(|(key, _)| key)), "{lengths:?}");
            assert!(collected.rows().eq(wanted.iter().map(|(_, row)| row)), "{lengths:?}");
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
