//! Rows that wait in a temporary file until their partition's turn comes: what a hash table has no
//! room for.
//!
//! All partitions share one file. Each collects rows in memory, and writes them as one piece:
//!
//! ```text
//! piece: row row ...
//! row:   length of the head (4 bytes), length of the body (4 bytes), head, body
//! ```
//!
//! The body is the row as its operator stores it. The head is what the operator wants to know
//! first, such as the row's key.

use std::sync::Arc;
use std::vec;

use millpond_engine::{EngineError, TempFile};

use super::{Held, Resources, row_bytes};
use crate::error::{Result, SqlError, SqlState};

/// The bytes of a piece: less if partitions are many and memory is little.
const LEAST_PIECE: usize = 1 << 10;
const LARGEST_PIECE: usize = 32 << 10;
/// Which part of a hash table's memory the pieces in memory may take.
const PART_OF_MEMORY: usize = 4;
/// A length before a row.
const LENGTH: usize = size_of::<u32>();

/// Rows by their partitions, numbered from 0.
pub(crate) struct Partitions {
    resources: Arc<Resources>,
    file: Option<Arc<dyn TempFile>>,
    file_length: u64,
    parts: Vec<Part>,
    piece_bytes: usize,
    /// What the pieces in memory take.
    buffered: usize,
    held: Held,
}

#[derive(Default)]
struct Part {
    pieces: Vec<Piece>,
    /// The piece that is not in the file yet.
    last: Vec<u8>,
}

/// A place in the file.
struct Piece {
    start: u64,
    length: usize,
}

/// The rows of one partition, which has been taken out.
#[derive(Default)]
pub(crate) struct PartRows {
    pieces: vec::IntoIter<Piece>,
    /// What comes after the pieces.
    last: Vec<u8>,
    piece: Vec<u8>,
    at: usize,
}

impl Partitions {
    /// `count` empty ones. Errors of memory name `operator`.
    pub(crate) fn new(resources: &Arc<Resources>, operator: &'static str, count: usize) -> Self {
        let mut partitions = Self {
            file: None,
            file_length: 0,
            parts: Vec::new(),
            piece_bytes: 0,
            buffered: 0,
            held: Held::new(&resources.memory, operator),
            resources: Arc::clone(resources),
        };
        partitions.extend(count);
        partitions
    }

    /// Adds empty ones, so that there are `count`.
    pub(crate) fn extend(&mut self, count: usize) {
        self.parts.resize_with(count, Part::default);
        let memory = self.resources.memory.hash_work() / PART_OF_MEMORY;
        self.piece_bytes = (memory / count.max(1)).clamp(LEAST_PIECE, LARGEST_PIECE);
    }

    pub(crate) fn count(&self) -> usize {
        self.parts.len()
    }

    /// Whether a partition has no rows.
    pub(crate) fn is_empty(&self, number: usize) -> bool {
        self.parts.get(number).is_none_or(|part| part.pieces.is_empty() && part.last.is_empty())
    }

    /// Adds a row of two parts to a partition.
    pub(crate) fn push(&mut self, number: usize, head: &[u8], body: &[u8]) -> Result<()> {
        let part = self.parts.get_mut(number);
        let part = part.ok_or_else(|| SqlError::internal("a partition out of range"))?;
        let before = part.last.capacity();
        part.last.extend_from_slice(&length(head)?);
        part.last.extend_from_slice(&length(body)?);
        part.last.extend_from_slice(head);
        part.last.extend_from_slice(body);
        let is_full = part.last.len() >= self.piece_bytes;
        if part.last.capacity() != before {
            self.buffered += part.last.capacity() - before;
            if self.held.resize(self.buffered).is_err() {
                // A hash table may have taken all there is. Rows go to the file one by one then.
                self.write(number)?;
                return self.free(number);
            }
        }
        if is_full { self.write(number) } else { Ok(()) }
    }

    fn write(&mut self, number: usize) -> Result<()> {
        let Some(part) = self.parts.get_mut(number) else { return Ok(()) };
        let file = match &self.file {
            Some(file) => file,
            None => {
                let Resources { temp_files, temp_space, .. } = &*self.resources;
                self.file.insert(temp_files.make(temp_space)?)
            }
        };
        file.write_all_at(&part.last, self.file_length)
            .map_err(|source| EngineError::TemporaryFile { what: "write to", source })?;
        part.pieces.push(Piece { start: self.file_length, length: part.last.len() });
        self.file_length += part.last.len() as u64;
        part.last.clear();
        // The memory of a long row is not for short ones to keep.
        let is_large = part.last.capacity() > 2 * LARGEST_PIECE;
        if is_large { self.free(number) } else { Ok(()) }
    }

    /// Gives back the memory of a partition that has been written.
    fn free(&mut self, number: usize) -> Result<()> {
        let Some(part) = self.parts.get_mut(number) else { return Ok(()) };
        self.buffered -= part.last.capacity();
        part.last = Vec::new();
        self.held.resize(self.buffered)
    }

    /// Takes out a partition's rows. Their last piece stays counted until all partitions are gone.
    pub(crate) fn take(&mut self, number: usize) -> PartRows {
        let part = self.parts.get_mut(number).map(std::mem::take).unwrap_or_default();
        let (piece, at) = Default::default();
        PartRows { pieces: part.pieces.into_iter(), last: part.last, piece, at }
    }

    /// The next of the rows that were taken out, in the order in which they came: head and body.
    pub(crate) fn next<'r>(&self, rows: &'r mut PartRows) -> Result<Option<(&'r [u8], &'r [u8])>> {
        while rows.at >= rows.piece.len() {
            rows.at = 0;
            match rows.pieces.next() {
                Some(piece) => self.read(&piece, &mut rows.piece)?,
                None => {
                    rows.piece = std::mem::take(&mut rows.last);
                    if rows.piece.is_empty() {
                        return Ok(None);
                    }
                }
            }
        }
        let rest = rows.piece.get(rows.at..).unwrap_or_default();
        let (head, body) = first_row(rest).ok_or_else(row_bytes::damaged)?;
        rows.at += 2 * LENGTH + head.len() + body.len();
        Ok(Some((head, body)))
    }

    fn read(&self, piece: &Piece, into: &mut Vec<u8>) -> Result<()> {
        let file = self.file.as_ref().ok_or_else(row_bytes::damaged)?;
        into.resize(piece.length, 0);
        file.read_exact_at(into, piece.start)
            .map_err(|source| EngineError::TemporaryFile { what: "read from", source })
            .map_err(SqlError::from)
    }
}

fn length(bytes: &[u8]) -> Result<[u8; LENGTH]> {
    let too_long = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too long");
    Ok(u32::try_from(bytes.len()).map_err(too_long)?.to_le_bytes())
}

fn first_row(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<LENGTH>()?;
    let (body, rest) = rest.split_first_chunk::<LENGTH>()?;
    let (head, rest) = rest.split_at_checked(u32::from_le_bytes(*head) as usize)?;
    Some((head, rest.get(..u32::from_le_bytes(*body) as usize)?))
}

#[cfg(test)]
mod tests {
    use super::super::tuplestore::tests::resources;
    use super::*;

    #[test]
    fn partitions_give_their_rows_in_order() {
        let resources = resources(4 << 20);
        let mut partitions = Partitions::new(&resources, "rows", 3);
        let body = |i: usize| vec![i as u8; if i == 7 { 150_000 } else { i % 300 }];
        for i in 0..3000usize {
            partitions.push(i % 3, &i.to_le_bytes(), &body(i)).unwrap();
        }
        partitions.extend(5);
        assert_eq!((partitions.count(), partitions.is_empty(4)), (5, true));
        for number in 0..3 {
            assert!(!partitions.is_empty(number));
            let mut rows = partitions.take(number);
            assert!(partitions.is_empty(number));
            for i in (number..3000).step_by(3) {
                let (head, found) = partitions.next(&mut rows).unwrap().unwrap();
                assert_eq!((head, found), (&i.to_le_bytes()[..], &body(i)[..]));
                // What is read may go to a later partition.
                if i < 30 {
                    partitions.push(4, head, found).unwrap();
                }
            }
            assert!(partitions.next(&mut rows).unwrap().is_none());
        }
        let mut rows = partitions.take(4);
        assert_eq!(partitions.next(&mut rows).unwrap().unwrap(), (&[0; 8][..], &[][..]));
        assert!(resources.temp_space.used_bytes() > 0);
        drop(partitions);
        assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    }

    #[test]
    fn rows_go_to_the_file_where_there_is_no_memory_to_collect_them() {
        let resources = resources(4 << 20);
        let mut partitions = Partitions::new(&resources, "rows", 3);
        let mut others = Held::new(&resources.memory, "others");
        for i in 0..300usize {
            // It takes what is left, and more rows come.
            while i == 100 && others.grow(64 << 10).is_ok() {}
            partitions.push(i % 3, &i.to_le_bytes(), &[i as u8; 2000]).unwrap();
        }
        for number in 0..3 {
            let mut rows = partitions.take(number);
            for i in (number..300).step_by(3) {
                let row = partitions.next(&mut rows).unwrap().unwrap();
                assert_eq!(row, (&i.to_le_bytes()[..], &[i as u8; 2000][..]));
            }
            assert!(partitions.next(&mut rows).unwrap().is_none());
        }
        drop((partitions, others));
        assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    }

    #[test]
    fn limit_of_files_is_an_error() {
        let resources = resources(4 << 20);
        resources.temp_space.set_limit_kb(Some(100));
        let mut partitions = Partitions::new(&resources, "rows", 2);
        let error = (0..999).find_map(|_| partitions.push(1, &[], &[7; 1000]).err()).unwrap();
        assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED);
        drop(partitions);
        assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    }
}
