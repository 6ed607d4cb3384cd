//! The rows of some slots as bytes, to be put back later.
//!
//! ```text
//! slot: NULLS
//!       STORED, the row's place (8 bytes), length (4 bytes), the row as it is stored
//!       VALUES, length (4 bytes), the values as memory::row_bytes has them
//! ```

use millpond_engine::access::Tid;
use millpond_engine::table::RowBuf;

use super::{Context, SlotRow, SlotRows, Slots};
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError, SqlState};
use crate::memory::row_bytes;
use crate::plan::query::node::{QueryPlan, SlotKind};
use crate::{Datum, Value};

/// Room for a small row: growing to it step by step is slower.
pub(super) const SMALL_ROW: usize = 64;

const NULLS: u8 = 0;
const STORED: u8 = 1;
const VALUES: u8 = 2;

/// What a plan says about the rows that are kept.
#[derive(Clone, Copy)]
pub(super) struct Keeping<'p> {
    /// Of each slot what it holds.
    pub(super) kinds: &'p [SlotKind],
    /// Of some slots the columns that are needed: see [`QueryPlan::kept`].
    pub(super) kept: &'p [(Slot, Box<[usize]>)],
}

/// Appends what is in some slots: of rows of tables the columns that the plan needs.
pub(super) fn save(cx: &Context<'_>, slots: &[Slot], out: &mut Vec<u8>) -> Result<()> {
    let QueryPlan { slots: kinds, kept, .. } = cx.plan.plan;
    save_rows(&cx.rows, Keeping { kinds, kept }, slots, out)
}

/// The same without a context.
pub(super) fn save_rows(
    rows: &SlotRows,
    keeping: Keeping<'_>,
    slots: &[Slot],
    out: &mut Vec<u8>,
) -> Result<()> {
    for slot in slots {
        match rows.get(*slot) {
            Some(SlotRow::Null) => out.push(NULLS),
            Some(SlotRow::Stored(row)) => save_stored(row, *slot, keeping, out)?,
            Some(SlotRow::Values(values)) => {
                out.push(VALUES);
                let start = begin_sized(out);
                let datums: row_bytes::Datums<'_> = values.iter().map(Value::as_datum).collect();
                row_bytes::push(&datums, out)?;
                end_sized(start, out)?;
            }
            None => return Err(out_of_range()),
        }
    }
    Ok(())
}

fn save_stored(
    row: &RowBuf,
    slot: Slot,
    Keeping { kinds, kept }: Keeping<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let tid = row.tid().ok_or_else(|| SqlError::internal("a row without a place"))?;
    out.push(STORED);
    out.extend_from_slice(&tid.to_u64().to_le_bytes());
    let start = begin_sized(out);
    if let Some((_, columns)) = kept.iter().find(|(of, _)| *of == slot)
        && let Some(SlotKind::Stored(table)) = kinds.get(slot.index())
    {
        if table.layout.narrow(row.bytes(), row.offsets(), columns, out).is_some() {
            return end_sized(start, out);
        }
        // It is damaged. The expression that needs one of its columns reports that.
        out.truncate(start);
    }
    out.extend_from_slice(row.bytes());
    end_sized(start, out)
}

/// Leaves room for the length of what follows. The place behind it.
fn begin_sized(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len()
}

fn end_sized(start: usize, out: &mut [u8]) -> Result<()> {
    let too_long = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too long");
    let length = u32::try_from(out.len() - start).map_err(too_long)?;
    if let Some(place) = out.get_mut(start - 4..start) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// Puts back what [`save`] has kept of the same slots.
pub(super) fn load(mut bytes: &[u8], slots: &[Slot], rows: &mut SlotRows) -> Result<()> {
    for slot in slots {
        let row = rows.get_mut(*slot).ok_or_else(out_of_range)?;
        load_slot(&mut bytes, row).ok_or_else(row_bytes::damaged)??;
    }
    Ok(())
}

fn load_slot(rest: &mut &[u8], row: &mut SlotRow) -> Option<Result<()>> {
    let (tag, after) = rest.split_first()?;
    *rest = after;
    match *tag {
        NULLS => *row = SlotRow::Null,
        STORED => {
            let (tid, after) = rest.split_first_chunk::<8>()?;
            *rest = after;
            let bytes = sized(rest)?;
            if !matches!(row, SlotRow::Stored(_)) {
                *row = SlotRow::Stored(RowBuf::default());
            }
            if let SlotRow::Stored(row) = row {
                row.set(Tid::from_u64(u64::from_le_bytes(*tid)), bytes);
            }
        }
        VALUES => {
            let datums = match row_bytes::read(sized(rest)?) {
                Ok(datums) => datums,
                Err(error) => return Some(Err(error)),
            };
            let mut values = take_values(row);
            values.extend(datums.iter().map(Datum::to_value));
            *row = SlotRow::Values(values);
        }
        _ => return None,
    }
    Some(Ok(()))
}

fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(bytes)
}

/// The memory of a slot's row, for a row of values. The slot is NULL until it is put back.
pub(super) fn take_values(row: &mut SlotRow) -> Vec<Value> {
    let mut values = match row {
        SlotRow::Values(values) => std::mem::take(values),
        _ => Vec::new(),
    };
    *row = SlotRow::Null;
    values.clear();
    values
}

/// The values of a slot's row.
pub(super) fn values(slots: Slots<'_>, slot: Slot) -> Result<Vec<Value>> {
    let (row, kind) = (slots.rows.get(slot), slots.kinds.get(slot.index()));
    let count = match (row, kind) {
        (Some(SlotRow::Values(values)), _) => return Ok(values.clone()),
        (Some(_), Some(SlotKind::Stored(table))) => table.layout.types().len(),
        (Some(_), Some(SlotKind::Computed(count))) => *count,
        _ => return Err(out_of_range()),
    };
    let first = slot.first_column();
    (first..first + count).map(|column| Ok(slots.column(column)?.to_value())).collect()
}

#[cold]
pub(super) fn out_of_range() -> SqlError {
    SqlError::internal("slot out of range")
}
