//! Rows that a statement keeps to read once, in the order in which they came.

use std::fmt;
use std::sync::Arc;

use millpond_engine::TempFile;

use super::row_bytes::{self, Datums};
use super::spill::{self, LEAST_BYTES, LENGTH, Spill};
use super::{Held, Resources};
use crate::Datum;
use crate::error::Result;

/// How much is read at a time.
const READ_BYTES: usize = 64 << 10;

/// Takes rows.
pub struct Tuplestore(Spill);

impl Tuplestore {
    /// An empty one. Errors of memory name `operator`.
    pub fn new(resources: &Arc<Resources>, operator: &'static str) -> Self {
        Self(Spill::new(resources, operator))
    }

    /// One that keeps next to nothing in memory: for rows that will wait for a long time.
    pub(crate) fn in_file(resources: &Arc<Resources>, operator: &'static str) -> Self {
        let mut spill = Spill::new(resources, operator);
        spill.bound = LEAST_BYTES;
        Self(spill)
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[Datum<'_>]) -> Result<()> {
        let start = self.0.tail.len();
        self.0.tail.extend_from_slice(&[0; LENGTH]);
        row_bytes::push(row, &mut self.0.tail)?;
        let length = (self.0.tail.len() - start - LENGTH) as u32;
        if let Some(place) = self.0.tail.get_mut(start..start + LENGTH) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        self.0.count()
    }

    /// Takes out all rows.
    pub fn clear(&mut self) {
        (self.0.file, self.0.file_length) = (None, 0);
        self.0.free_tail();
    }

    /// Whether rows are in a file.
    #[cfg(test)]
    pub(crate) fn has_spilled(&self) -> bool {
        self.0.file.is_some()
    }

    /// The rows, from the first on.
    pub fn into_rows(mut self) -> Result<Rows> {
        if self.0.file.is_some() {
            self.0.flush()?;
            self.0.free_tail();
            self.0.held.grow(READ_BYTES)?;
        }
        let Spill { file, file_length, tail: bytes, held, .. } = self.0;
        Ok(Rows { file, file_length, file_at: 0, bytes, at: 0, held })
    }
}

/// Gives the rows of a [`Tuplestore`].
pub struct Rows {
    file: Option<Arc<dyn TempFile>>,
    file_length: u64,
    /// What has been read of the file.
    file_at: u64,
    /// What has been read, and how much of it has been given.
    bytes: Vec<u8>,
    at: usize,
    held: Held,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.file_length - self.file_at + (self.bytes.len() - self.at) as u64;
        write!(f, "Rows({left} bytes)")
    }
}

impl Rows {
    /// The next row.
    #[expect(clippy::should_implement_trait, reason = "an iterator can't lend its memory")]
    pub fn next(&mut self) -> Result<Option<Datums<'_>>> {
        if !self.fill(LENGTH)? {
            return Ok(None);
        }
        let length = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<LENGTH>());
        let length = u32::from_le_bytes(*length.ok_or_else(row_bytes::damaged)?) as usize;
        if !self.fill(LENGTH + length)? {
            return Err(row_bytes::damaged());
        }
        let start = self.at + LENGTH;
        self.at = start + length;
        let row = self.bytes.get(start..self.at).ok_or_else(row_bytes::damaged)?;
        row_bytes::read(row).map(Some)
    }

    /// Reads on until `wanted` bytes are there; `false` at the end.
    fn fill(&mut self, wanted: usize) -> Result<bool> {
        let there = self.bytes.len() - self.at;
        if there >= wanted {
            return Ok(true);
        }
        let left = self.file_length - self.file_at;
        let Some(file) = self.file.as_ref().filter(|_| left > 0) else {
            return if there == 0 { Ok(false) } else { Err(row_bytes::damaged()) };
        };
        self.bytes.drain(..self.at);
        self.at = 0;
        let more = left.min((wanted - there).max(READ_BYTES) as u64) as usize;
        self.bytes.resize(there + more, 0);
        self.held.resize(self.bytes.capacity())?;
        let piece = self.bytes.get_mut(there..).unwrap_or_default();
        spill::read(&**file, piece, self.file_at)?;
        self.file_at += more as u64;
        Ok(self.bytes.len() >= wanted)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::SqlState;
    use crate::memory::{QueryMemory, SessionMemory};

    pub(crate) fn resources(limit: usize) -> Arc<Resources> {
        let memory = SessionMemory::new(&QueryMemory::new(limit));
        memory.set_work(LEAST_BYTES, 1.0);
        Arc::new(Resources { memory, temp_files: Arc::default(), temp_space: Arc::default() })
    }

    fn numbers(store: Tuplestore) -> Vec<(i32, usize)> {
        let mut rows = store.into_rows().unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let [Datum::Int4(number), Datum::Text(text)] = row.as_slice() else {
                panic!("{row:?}")
            };
            found.push((*number, text.len()));
        }
        found
    }

    #[test]
    fn rows_come_in_order_from_memory_and_from_a_file() {
        let resources = resources(1 << 20);
        for count in [0, 1, 10, 1000] {
            let mut store = Tuplestore::new(&resources, "rows");
            let text = "x".repeat(150_000);
            // Rows of no length, rows of some, and one longer than a piece.
            let length = |i: i32| if i == 7 { 150_000 } else { (i % 300) as usize };
            for i in 0..count {
                store.push(&[Datum::Int4(i), Datum::Text(&text[..length(i)])]).unwrap();
            }
            assert_eq!(store.has_spilled(), count > 7);
            let wanted: Vec<_> = (0..count).map(|i| (i, length(i))).collect();
            assert_eq!(numbers(store), wanted);
        }
        assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    }

    #[test]
    fn limits_of_memory_and_of_files_are_errors() {
        let text = "x".repeat(100_000);
        let row = [Datum::Int4(1), Datum::Text(&text)];
        let scarce = resources(50_000);
        let mut store = Tuplestore::new(&scarce, "Insert");
        store.push(&row).unwrap();
        assert!(store.has_spilled(), "what finds no memory goes to the file");
        let error = store.into_rows().unwrap_err();
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY);
        assert_eq!((scarce.memory.used(), scarce.temp_space.used_bytes()), (0, 0));

        let resources = resources(1 << 20);
        resources.temp_space.set_limit_kb(Some(300));
        let mut store = Tuplestore::new(&resources, "Insert");
        let error = (0..9).find_map(|_| store.push(&row).err()).unwrap();
        assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED);
    }
}
