//! The rows that a plan's nodes have at a time, one for each slot.

use std::ops::Range;

use millpond_engine::access::Tid;
use millpond_engine::table::RowBuf;
use millpond_types::Int;

use super::kept::out_of_range;
use crate::analyze::tree::{Slot, SystemColumn, slot_of};
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
    pub(crate) rows: &'a SlotRows,
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

/// The rows of a plan's slots. A plan within a large statement has few of the statement's slots: it
/// has rows for those from its first to its last.
#[derive(Debug, Default)]
pub(crate) struct SlotRows {
    first: usize,
    rows: Vec<SlotRow>,
}

impl SlotRows {
    /// Has rows for the slots at these places.
    pub(crate) fn fit(&mut self, window: &Range<usize>) {
        self.first = window.start;
        self.rows.resize_with(window.len(), SlotRow::default);
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<&SlotRow> {
        self.rows.get(slot.index().wrapping_sub(self.first))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut SlotRow> {
        self.rows.get_mut(slot.index().wrapping_sub(self.first))
    }

    pub(crate) fn into_rows(self) -> impl Iterator<Item = SlotRow> {
        self.rows.into_iter()
    }

    /// The memory of the rows without what they hold.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<SlotRow>()
    }
}

impl<'a> Slots<'a> {
    /// The value of a column that is an integer: see [`Expr::int`](crate::expr::Expr::int).
    #[inline]
    pub(crate) fn int(&self, column: usize) -> Option<Int> {
        let (slot, place) = slot_of(column);
        match (self.rows.get(slot)?, self.kinds.get(slot.index())?) {
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
        match (self.rows.get(slot)?, self.kinds.get(slot.index())?) {
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
        match self.rows.get(slot) {
            Some(SlotRow::Stored(row)) => match self.kinds.get(slot.index()) {
                Some(SlotKind::Stored(table)) if place < table.layout.types().len() => {
                    table.layout.column_noting(row.bytes(), row.offsets(), place).map_err(damaged)
                }
                kind => system_column(kind, row.tid(), place),
            },
            Some(SlotRow::Values(values)) => match values.get(place) {
                Some(value) => Ok(value.as_datum()),
                None => system_column(self.kinds.get(slot.index()), None, place),
            },
            Some(SlotRow::Null) => Ok(Datum::Null),
            None => Err(out_of_range()),
        }
    }
}

/// A system column of a row of a table, which is at a place.
#[cold]
fn system_column(
    kind: Option<&SlotKind>,
    tid: Option<Tid>,
    place: usize,
) -> Result<Datum<'static>> {
    match (kind, SystemColumn::at_place(place), tid) {
        (Some(SlotKind::Stored(table)), Some(SystemColumn::Tableoid), _) => {
            Ok(Datum::Int8(i64::from(table.oid)))
        }
        (_, Some(SystemColumn::Ctid), Some(tid)) => Ok(Datum::Int8(tid.to_u64().cast_signed())),
        _ => Err(SqlError::internal("column out of range")),
    }
}
