//! The rows that a plan's nodes have at a time, one for each slot.

use millpond_engine::table::RowBuf;
use millpond_types::Int;

use super::kept::out_of_range;
use crate::analyze::tree::slot_of;
use crate::error::{Result, SqlError};
use crate::exec::damaged;
use crate::expr::int::of_value;
use crate::plan::query::node::SlotKind;
use crate::{DataType, Datum, Value};

/// The rows of a plan, beside the plan's description of its slots. (The rows do not hold the
/// description: to count a reference to it would write to memory that all sessions share.)
#[derive(Debug, Clone, Copy)]
pub struct Slots<'a> {
    pub(crate) kinds: &'a [SlotKind],
    pub(crate) rows: &'a [SlotRow],
}

/// The row of a slot.
#[derive(Debug, Default)]
pub(crate) enum SlotRow {
    /// All columns are NULL: an outer join has found no match.
    #[default]
    Null,
    /// A row of a table.
    Stored(RowBuf),
    /// Computed values.
    Values(Vec<Value>),
}

impl<'a> Slots<'a> {
    /// The value of a column that is an integer: see [`Expr::int`](crate::expr::Expr::int).
    #[inline]
    pub(crate) fn int(&self, column: usize) -> Option<Int> {
        let (slot, place) = slot_of(column);
        match (self.rows.get(slot.index())?, self.kinds.get(slot.index())?) {
            (SlotRow::Stored(row), SlotKind::Stored(table)) => {
                table.layout.int_noting(row.bytes(), row.offsets(), place)
            }
            (SlotRow::Values(values), _) => of_value(values.get(place)?),
            _ => None,
        }
    }

    /// The type and the bytes of a column of a table that is not NULL.
    #[inline]
    pub(crate) fn stored_value(&self, column: usize) -> Option<(DataType, &'a [u8])> {
        let (slot, place) = slot_of(column);
        match (self.rows.get(slot.index())?, self.kinds.get(slot.index())?) {
            (SlotRow::Stored(row), SlotKind::Stored(table)) => {
                table.layout.stored_value(row.bytes(), row.offsets(), place)
            }
            _ => None,
        }
    }

    /// The value of a column, by its packed number.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Result<Datum<'a>> {
        let (slot, place) = slot_of(column);
        match self.rows.get(slot.index()) {
            Some(SlotRow::Stored(row)) => match self.kinds.get(slot.index()) {
                Some(SlotKind::Stored(table)) => {
                    table.layout.column_noting(row.bytes(), row.offsets(), place).map_err(damaged)
                }
                _ => Err(out_of_range()),
            },
            Some(SlotRow::Values(values)) => match values.get(place) {
                Some(value) => Ok(value.as_datum()),
                None => Err(SqlError::internal("column out of range")),
            },
            Some(SlotRow::Null) => Ok(Datum::Null),
            None => Err(out_of_range()),
        }
    }
}
