//! Where the columns of a stored row begin, noted as they are looked for.
//!
//! A column behind one of variable width is found by skipping the columns before it. A statement
//! that uses several such columns of a row would skip the same ones for each. With
//! [`ColumnOffsets`] it goes on from the last column that was found.

use std::cell::Cell;

use super::{DamagedTuple, Header, TupleLayout, read_value, variable_bounds};
use crate::{DataType, Datum};

/// How many columns are noted. Those behind are found by skipping from the last of these.
const MOST: usize = 24;

/// Offsets of columns of one row. [`ColumnOffsets::clear`] makes them ready for another row.
#[derive(Clone, Debug, Default)]
pub struct ColumnOffsets {
    /// The offsets of columns before this one are noted. Those of [direct](TupleLayout::direct)
    /// columns are only used in a row with NULLs, behind the first eight columns.
    end: Cell<u8>,
    offsets: [Cell<u16>; MOST],
}

impl ColumnOffsets {
    /// Forgets the row.
    #[inline]
    pub fn clear(&self) {
        self.end.set(0);
    }

    /// Where a column that is not NULL begins.
    #[inline]
    pub(super) fn find(
        &self,
        layout: &TupleLayout,
        header: Header,
        tuple: &[u8],
        column: usize,
    ) -> Option<usize> {
        if let Some(direct) = layout.direct.get(column)
            && let Some(offset) = layout.direct_offset(*direct, header, tuple, column)
        {
            return Some(offset);
        }
        if column < usize::from(self.end.get()) {
            return Some(self.offsets.get(column)?.get().into());
        }
        self.skip_to(layout, header, tuple, column)
    }

    /// Skips the columns from the last one that is known, and notes where each begins.
    fn skip_to(
        &self,
        layout: &TupleLayout,
        header: Header,
        tuple: &[u8],
        column: usize,
    ) -> Option<usize> {
        let (mut at, mut offset) = match self.end.get().checked_sub(1) {
            Some(last) => {
                let last = usize::from(last);
                (last, usize::from(self.offsets.get(last)?.get()))
            }
            None if header.has_nulls => (0, header.values()),
            None => {
                let last = layout.direct.len().checked_sub(1)?;
                (last, usize::from(layout.direct.get(last)?.offset))
            }
        };
        let widths = layout.widths.get(at..column)?;
        self.note(at, offset)?;
        for width in widths {
            if !header.is_null(tuple, at)? {
                offset = match width {
                    0 => variable_bounds(tuple, offset)?.1,
                    width => offset + usize::from(*width),
                };
            }
            at += 1;
            self.note(at, offset)?;
        }
        self.end.set((column + 1).min(MOST) as u8);
        Some(offset)
    }

    #[inline]
    fn note(&self, column: usize, offset: usize) -> Option<()> {
        if let Some(place) = self.offsets.get(column) {
            place.set(u16::try_from(offset).ok()?);
        }
        Some(())
    }
}

impl TupleLayout {
    /// One column of the row whose offsets are noted. Like [`TupleLayout::column`].
    #[inline]
    pub fn column_noting<'t>(
        &self,
        tuple: &'t [u8],
        offsets: &ColumnOffsets,
        column: usize,
    ) -> Result<Datum<'t>, DamagedTuple> {
        match self.direct_column(tuple, column) {
            Some(datum) => Ok(datum),
            None => self.noted_column(tuple, offsets, column),
        }
    }

    fn noted_column<'t>(
        &self,
        tuple: &'t [u8],
        offsets: &ColumnOffsets,
        column: usize,
    ) -> Result<Datum<'t>, DamagedTuple> {
        let damaged = || DamagedTuple { column, columns: self.types.len() };
        let ty = *self.types.get(column).ok_or_else(damaged)?;
        let header = Header::read(tuple).ok_or_else(damaged)?;
        if column >= header.columns || header.is_null(tuple, column).ok_or_else(damaged)? {
            return Ok(Datum::Null);
        }
        let offset = offsets.find(self, header, tuple, column).ok_or_else(damaged)?;
        read_value(tuple, offset, ty).map(|(datum, _)| datum).ok_or_else(damaged)
    }

    /// The type and the bytes of a column, without the length of a value of variable width. `None`
    /// if the column is NULL or damaged.
    #[inline]
    pub fn stored_value<'t>(
        &self,
        tuple: &'t [u8],
        offsets: &ColumnOffsets,
        column: usize,
    ) -> Option<(DataType, &'t [u8])> {
        let ty = *self.types.get(column)?;
        let header = Header::read(tuple)?;
        if column >= header.columns || header.is_null(tuple, column)? {
            return None;
        }
        let offset = offsets.find(self, header, tuple, column)?;
        let (start, end) = match self.widths.get(column)? {
            0 => variable_bounds(tuple, offset)?,
            width => (offset, offset + usize::from(*width)),
        };
        Some((ty, tuple.get(start..end)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of more columns than are noted, with NULLs and without.
    #[test]
    fn columns_are_found_in_any_order() {
        let types = [DataType::Int4, DataType::Text, DataType::Date, DataType::Int8];
        let count = MOST + 9;
        let layout = TupleLayout::new((0..count).map(|i| types[i % types.len()]));
        let offsets = ColumnOffsets::default();
        for nulls in [0, 2, 7] {
            let value = |i: usize| match i % types.len() {
                _ if nulls > 0 && i.is_multiple_of(nulls) => Datum::Null,
                0 => Datum::Int4(i as i32),
                1 => Datum::Text(&"some text"[..i % 9]),
                2 => Datum::Date(-(i as i32)),
                _ => Datum::Int8(i as i64),
            };
            let row: Vec<Datum<'_>> = (0..count).map(value).collect();
            let mut tuple = Vec::new();
            layout.encode(&row, &mut tuple).unwrap();
            for step in [1, 5, 17, count - 1] {
                offsets.clear();
                for column in (0..count).map(|i| i * step % count) {
                    let found = layout.column_noting(&tuple, &offsets, column).unwrap();
                    assert_eq!(found, row[column], "column {column}, step {step}");
                    let stored = layout.stored_value(&tuple, &offsets, column);
                    assert_eq!(stored.is_none(), row[column].is_null());
                    let int = layout.int_noting(&tuple, &offsets, column);
                    assert_eq!(int.map(|int| int.value), row[column].as_i64());
                }
            }
        }
    }

    #[test]
    fn a_row_cut_short_is_damaged() {
        let layout = TupleLayout::new([DataType::Text, DataType::Text, DataType::Int4]);
        let mut tuple = Vec::new();
        layout
            .encode(&[Datum::Text("abc"), Datum::Text("de"), Datum::Int4(1)], &mut tuple)
            .unwrap();
        for end in 0..tuple.len() {
            let offsets = ColumnOffsets::default();
            assert!(layout.column_noting(&tuple[..end], &offsets, 2).is_err(), "{end}");
            assert_eq!(layout.stored_value(&tuple[..end], &offsets, 2), None);
        }
    }
}
