//! Rows as bytes that are added at the end: in memory up to `work_mem`, then in a temporary file.
//! They go there earlier if the queries of all sessions leave too little memory.

use std::sync::Arc;

use millpond_engine::{EngineError, TempFile};

use super::{Held, Resources};
use crate::error::{Result, SqlError};

/// How much is kept in memory at least.
pub(super) const LEAST_BYTES: usize = 64 << 10;
/// What stands before a row: its length.
pub(super) const LENGTH: usize = size_of::<u32>();

/// What the stores of rows have in common.
pub(super) struct Spill {
    resources: Arc<Resources>,
    pub(super) bound: usize,
    pub(super) file: Option<Arc<dyn TempFile>>,
    pub(super) file_length: u64,
    /// Rows that are not in the file: they come after those that are.
    pub(super) tail: Vec<u8>,
    pub(super) held: Held,
}

impl Spill {
    /// An empty one. Errors of memory name `operator`.
    pub(super) fn new(resources: &Arc<Resources>, operator: &'static str) -> Self {
        Self {
            bound: resources.memory.work().max(LEAST_BYTES),
            file: None,
            file_length: 0,
            tail: Vec::new(),
            held: Held::new(&resources.memory, operator),
            resources: Arc::clone(resources),
        }
    }

    /// Counts the memory of the tail after a row was added, or moves the tail to the file.
    pub(super) fn count(&mut self) -> Result<()> {
        let is_refused = self.held.resize(self.tail.capacity()).is_err();
        if is_refused || self.tail.len() >= self.bound {
            self.flush()?;
        }
        if is_refused {
            self.free_tail();
        }
        Ok(())
    }

    /// Moves the tail to the file.
    pub(super) fn flush(&mut self) -> Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                let Resources { temp_files, temp_space, .. } = &*self.resources;
                self.file.insert(temp_files.make(temp_space)?)
            }
        };
        file.write_all_at(&self.tail, self.file_length)
            .map_err(|source| EngineError::TemporaryFile { what: "write to", source })?;
        self.file_length += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// Gives back the memory of the tail, with the rows that are in it.
    pub(super) fn free_tail(&mut self) {
        self.tail = Vec::new();
        self.held.clear();
    }
}

/// Fills `bytes` from a place of a file.
pub(super) fn read(file: &dyn TempFile, bytes: &mut [u8], place: u64) -> Result<()> {
    file.read_exact_at(bytes, place)
        .map_err(|source| EngineError::TemporaryFile { what: "read from", source })
        .map_err(SqlError::from)
}
