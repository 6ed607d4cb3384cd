//! The rows that a program is at, on one thread, and what its expressions see of them.

use millpond_engine::session::ScanWorker;
use millpond_engine::table::RowBuf;

use super::exchange::{Exchange, stopped};
use super::program::Program;
use crate::analyze::tree::Slot;
use crate::error::Result;
use crate::expr::{Env, Expr, Row};
use crate::run::kept::{self, Keeping};
use crate::run::{SlotRow, SlotRows, Slots};

/// The rows in the slots, and what surrounds them.
pub(super) struct Current<'r> {
    pub(super) program: &'r Program,
    pub(super) exchange: &'r Exchange,
    pub(super) scan: &'r mut ScanWorker,
    pub(super) env: &'r Env<'r>,
    pub(super) rows: &'r mut SlotRows,
}

impl<'r> Current<'r> {
    pub(super) fn env(&self) -> Env<'_> {
        self.env.with_row(Row::Slots(Slots { kinds: &self.program.kinds, rows: self.rows }))
    }

    pub(super) fn holds(&self, condition: Option<&Expr>) -> Result<bool> {
        condition.map_or(Ok(true), |condition| condition.holds(&self.env()))
    }

    /// An error if the session wants no more rows.
    pub(super) fn check(&self) -> Result<()> {
        if self.exchange.is_stopped() {
            return Err(stopped());
        }
        Ok(self.scan.check_stop()?)
    }

    pub(super) fn keeping(&self) -> Keeping<'r> {
        Keeping { kinds: &self.program.kinds, kept: &self.program.kept }
    }

    pub(super) fn load(&mut self, row: &[u8], slots: &[Slot]) -> Result<()> {
        kept::load(row, slots, self.rows)
    }

    /// Computes a row into a slot.
    pub(super) fn compute(&mut self, slot: Slot, exprs: &[Expr]) -> Result<()> {
        let mut values = kept::take_values(self.slot(slot)?);
        for expr in exprs {
            values.push(expr.eval(&self.env())?.into_value());
        }
        *self.slot(slot)? = SlotRow::Values(values);
        Ok(())
    }

    /// Makes all columns of some slots NULL.
    pub(super) fn nullify(&mut self, slots: &[Slot]) -> Result<()> {
        for slot in slots {
            *self.slot(*slot)? = SlotRow::Null;
        }
        Ok(())
    }

    fn slot(&mut self, slot: Slot) -> Result<&mut SlotRow> {
        self.rows.get_mut(slot).ok_or_else(kept::out_of_range)
    }

    /// A table's row in its slot, for the next one.
    pub(super) fn stored(&mut self, slot: Slot) -> Result<&mut RowBuf> {
        stored(self.rows, slot)
    }
}

/// A table's row in its slot, for the next one.
pub(super) fn stored(rows: &mut SlotRows, slot: Slot) -> Result<&mut RowBuf> {
    let row = rows.get_mut(slot).ok_or_else(kept::out_of_range)?;
    if !matches!(row, SlotRow::Stored(_)) {
        *row = SlotRow::Stored(RowBuf::default());
    }
    match row {
        SlotRow::Stored(row) => Ok(row),
        _ => Err(kept::out_of_range()),
    }
}
