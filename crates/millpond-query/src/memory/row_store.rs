//! Rows that a statement keeps to read more than once, from any place.
//!
//! A row is bytes of which the store knows the length alone. Rows may be added while others are
//! read.

use std::sync::Arc;

use super::spill::{self, LEAST_BYTES, LENGTH, Spill};
use super::{Resources, row_bytes};
use crate::error::{Result, SqlError, SqlState};

/// How much is read at a time, where one row is read after the other.
const READ_BYTES: u64 = 64 << 10;
/// How much is read where a reader has jumped.
const JUMP_BYTES: u64 = 4 << 10;
/// What the first row takes: most stores stay small, and growing them step by step costs more.
const FIRST_BYTES: usize = 1 << 10;

/// Keeps rows.
pub(crate) struct RowStore(Spill);

/// A place in a [`RowStore`], with what was read of its file there.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    place: u64,
    piece: Vec<u8>,
    piece_start: u64,
}

impl Cursor {
    /// Goes to a row, by its place. The first row's place is 0.
    pub(crate) fn seek(&mut self, place: u64) {
        self.place = place;
    }

    /// Goes to the first row of other rows.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl RowStore {
    /// An empty one. Errors of memory name `operator`.
    pub(crate) fn new(resources: &Arc<Resources>, operator: &'static str) -> Self {
        Self(Spill::new(resources, operator))
    }

    /// The place behind the last row.
    pub(crate) fn end(&self) -> u64 {
        self.0.file_length + self.0.tail.len() as u64
    }

    /// Adds a row, and says its place.
    pub(crate) fn push(&mut self, row: &[u8]) -> Result<u64> {
        let too_long = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too long");
        let length = u32::try_from(row.len()).map_err(too_long)?;
        let place = self.end();
        if self.0.tail.capacity() == 0 {
            self.0.tail.reserve(FIRST_BYTES);
        }
        self.0.tail.extend_from_slice(&length.to_le_bytes());
        self.0.tail.extend_from_slice(row);
        self.0.count()?;
        Ok(place)
    }

    /// Takes out all rows. Some memory is kept.
    pub(crate) fn clear(&mut self) -> Result<()> {
        (self.0.file, self.0.file_length) = (None, 0);
        self.0.tail.clear();
        if self.0.tail.capacity() > LEAST_BYTES {
            self.0.tail = Vec::new();
        }
        self.0.held.resize(self.0.tail.capacity())
    }

    /// The row at a cursor's place, which goes on to the next; `None` at the end.
    pub(crate) fn next<'r>(&'r self, cursor: &'r mut Cursor) -> Result<Option<&'r [u8]>> {
        if cursor.place >= self.end() {
            return Ok(None);
        }
        if let Some(at) = cursor.place.checked_sub(self.0.file_length) {
            let rest = self.0.tail.get(at as usize..).ok_or_else(row_bytes::damaged)?;
            let (row, length) = first_row(rest).ok_or_else(row_bytes::damaged)?;
            cursor.place += length as u64;
            return Ok(Some(row));
        }
        if self.held_row(cursor).is_none() {
            self.read(cursor)?;
        }
        let start = (cursor.place - cursor.piece_start) as usize;
        let rest = cursor.piece.get(start..).ok_or_else(row_bytes::damaged)?;
        let (row, length) = first_row(rest).ok_or_else(row_bytes::damaged)?;
        cursor.place += length as u64;
        Ok(Some(row))
    }

    /// The length of the row at the cursor, if all of it has been read.
    fn held_row(&self, cursor: &Cursor) -> Option<usize> {
        let start = cursor.place.checked_sub(cursor.piece_start)?;
        first_row(cursor.piece.get(start as usize..)?).map(|(_, length)| length)
    }

    /// Reads the row at the cursor, and what follows.
    fn read(&self, cursor: &mut Cursor) -> Result<()> {
        let file = self.0.file.as_ref().ok_or_else(row_bytes::damaged)?;
        let read_to = cursor.piece_start + cursor.piece.len() as u64;
        let goes_on = (cursor.piece_start..=read_to).contains(&cursor.place);
        let mut wanted = if goes_on { READ_BYTES } else { JUMP_BYTES };
        loop {
            let length = wanted.min(self.0.file_length - cursor.place);
            cursor.piece.resize(length as usize, 0);
            cursor.piece_start = cursor.place;
            spill::read(&**file, &mut cursor.piece, cursor.place)?;
            if self.held_row(cursor).is_some() {
                return Ok(());
            }
            let Some(length) = cursor.piece.first_chunk::<LENGTH>() else {
                return Err(row_bytes::damaged());
            };
            let longer = LENGTH as u64 + u64::from(u32::from_le_bytes(*length));
            if longer <= wanted {
                return Err(row_bytes::damaged());
            }
            wanted = longer;
        }
    }
}

/// The first row of some bytes, and how long it is with its length.
fn first_row(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let length = u32::from_le_bytes(*bytes.first_chunk::<LENGTH>()?) as usize;
    let end = LENGTH.checked_add(length)?;
    Some((bytes.get(LENGTH..end)?, end))
}

#[cfg(test)]
mod tests {
    use super::super::tuplestore::tests::resources;
    use super::*;

    #[test]
    fn rows_are_read_again_and_from_any_place() {
        let resources = resources(1 << 20);
        for count in [0usize, 1, 10, 3000] {
            let mut store = RowStore::new(&resources, "rows");
            let row = |i: usize| vec![i as u8; if i == 7 { 150_000 } else { i % 300 }];
            let mut places = Vec::new();
            let mut early = Cursor::default();
            for i in 0..count {
                places.push(store.push(&row(i)).unwrap());
                assert_eq!(store.next(&mut early).unwrap().unwrap(), row(i), "while it grows");
            }
            assert_eq!(store.0.file.is_some(), count > 7);
            let mut cursor = Cursor::default();
            for _ in 0..2 {
                cursor.reset();
                for i in 0..count {
                    assert_eq!(store.next(&mut cursor).unwrap().unwrap(), row(i));
                }
                assert!(store.next(&mut cursor).unwrap().is_none());
            }
            for i in (0..count).rev() {
                cursor.seek(places[i]);
                assert_eq!(store.next(&mut cursor).unwrap().unwrap(), row(i));
            }
            store.clear().unwrap();
            cursor.reset();
            assert!(store.next(&mut cursor).unwrap().is_none());
        }
        assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    }
}
