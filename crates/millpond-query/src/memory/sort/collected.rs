//! Rows in memory that are sorted by their keys.

use std::cmp::Ordering;
use std::mem;

use super::Look;
use crate::error::{Result, SqlError, SqlState};

/// Runs are merged as they are if there are at most `FEW_RUNS`, and one more for each `LEAST_RUN`
/// rows. Otherwise the rows are sorted anew.
const FEW_RUNS: usize = 4;
const LEAST_RUN: usize = 256;
/// Rows that are sorted without a look whether the statement is to stop.
const ROWS_BETWEEN_LOOKS: usize = 1 << 14;

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
    pub(super) fn reserve(&mut self, rows: usize, length: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
