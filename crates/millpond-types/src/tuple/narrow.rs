//! Stored rows without the columns that are not needed.
//!
//! What keeps many rows, as a hash join does, keeps fewer bytes this way. The columns that are left
//! out read as NULL.

use super::{ColumnOffsets, Header, TupleLayout, variable_bounds};

impl TupleLayout {
    /// Appends a row with only these columns, which are in ascending order. `None` if it is
    /// damaged; then `out` may have a part of it.
    pub fn narrow(
        &self,
        tuple: &[u8],
        offsets: &ColumnOffsets,
        columns: &[usize],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let header = Header::read(tuple)?;
        let count = columns.last().map_or(0, |last| last + 1);
        if header.columns <= count && header.columns < self.types.len() {
            // It has few columns already, perhaps because it was narrowed before.
            out.extend_from_slice(tuple);
            return Some(());
        }
        let has_gaps = header.has_nulls || columns.len() < count;
        let packed = (count.min(header.columns) as u16) << 1 | u16::from(has_gaps);
        out.extend_from_slice(&packed.to_le_bytes());
        let bitmap = out.len();
        if has_gaps {
            out.resize(bitmap + count.div_ceil(8), u8::MAX);
        }
        for &column in columns {
            if header.is_null(tuple, column)? {
                continue;
            }
            let start = offsets.find(self, header, tuple, column)?;
            let end = match self.widths.get(column)? {
                0 => variable_bounds(tuple, start)?.1,
                width => start + usize::from(*width),
            };
            out.extend_from_slice(tuple.get(start..end)?);
            if has_gaps {
                *out.get_mut(bitmap + column / 8)? &= !(1 << (column % 8));
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Datum};

    const TYPES: [DataType; 4] = [DataType::Int4, DataType::Text, DataType::Date, DataType::Int8];

    /// Every set of columns of a row with NULLs and of one without.
    #[test]
    fn kept_columns_stay_and_others_are_null() {
        let layout = TupleLayout::new((0..10).map(|i| TYPES[i % 4]));
        let full: Vec<Datum<'_>> = (0..10)
            .map(|i| match i % 4 {
                0 => Datum::Int4(i),
                1 => Datum::Text("some text"),
                2 => Datum::Date(-i),
                _ => Datum::Int8(i.into()),
            })
            .collect();
        let mut gaps = full.clone();
        (gaps[0], gaps[5]) = (Datum::Null, Datum::Null);
        for row in [full, gaps] {
            let mut tuple = Vec::new();
            layout.encode(&row, &mut tuple).unwrap();
            for set in 0..1usize << row.len() {
                let columns: Vec<usize> = (0..row.len()).filter(|i| set >> i & 1 == 1).collect();
                let mut narrowed = Vec::new();
                let offsets = ColumnOffsets::default();
                layout.narrow(&tuple, &offsets, &columns, &mut narrowed).unwrap();
                let mut again = Vec::new();
                offsets.clear();
                layout.narrow(&narrowed, &offsets, &columns, &mut again).unwrap();
                for bytes in [narrowed, again] {
                    assert!(bytes.len() <= tuple.len() + 2, "{columns:?}");
                    for (i, value) in row.iter().enumerate() {
                        let kept = if columns.contains(&i) { *value } else { Datum::Null };
                        assert_eq!(layout.column(&bytes, i).unwrap(), kept, "{columns:?}");
                    }
                }
            }
        }
    }

    /// Columns that were added after the row was stored.
    #[test]
    fn a_row_of_fewer_columns_stays_one() {
        let (old, new) = (TupleLayout::new(TYPES), TupleLayout::new([TYPES, TYPES].concat()));
        let mut tuple = Vec::new();
        let row = [Datum::Int4(1), Datum::Text("a"), Datum::Date(2), Datum::Int8(3)];
        old.encode(&row, &mut tuple).unwrap();
        for (columns, first) in [([0, 6], Datum::Int4(1)), ([1, 2], Datum::Null)] {
            let mut narrowed = Vec::new();
            new.narrow(&tuple, &ColumnOffsets::default(), &columns, &mut narrowed).unwrap();
            assert_eq!(new.column(&narrowed, 0).unwrap(), first);
            assert_eq!(new.column(&narrowed, 2).unwrap(), Datum::Date(2));
            assert_eq!(new.column(&narrowed, 6).unwrap(), Datum::Null);
        }
    }
}
