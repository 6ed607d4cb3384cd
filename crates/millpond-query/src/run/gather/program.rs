//! What the threads of a fragment do with each row of the table: its filter, and what the nodes
//! above the scan do, up to the rows that the session gets.
//!
//! A thread has no session. So a program has a copy of the expressions, with constants computed.
//! It has the hash tables of joins once all inner rows are in them. Indexes are read under the
//! snapshot of the session's statement.

use std::ops::Range;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_types::ColumnOffsets;

use super::index_join::IndexJoin;
use super::probe::Probe;
use crate::analyze::tree::Slot;
use crate::error::Result;
use crate::expr::{Env, Expr, Row};
use crate::plan::external::Surroundings;
use crate::plan::query::node::{KeptColumns, SlotKind};
use crate::run::aggregate::PartialAggregation;
use crate::run::sort::PartialSort;

/// A fragment of a plan, for all threads.
pub(super) struct Program {
    pub(super) table: Arc<TableDef>,
    pub(super) slot: Slot,
    /// Of a row as the table has it.
    pub(super) filter: Option<Expr>,
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// The slots whose rows the session gets.
    pub(super) output: Vec<Slot>,
    pub(super) kinds: Arc<[SlotKind]>,
    pub(super) window: Range<usize>,
    pub(super) kept: KeptColumns,
    pub(super) surroundings: Arc<Surroundings>,
}

/// What becomes of the rows that have passed all steps.
pub(crate) enum End {
    /// The session gets them.
    Rows,
    /// The session gets their groups.
    Groups(PartialAggregation),
    /// The session gets them in sorted runs.
    Sorted(PartialSort),
}

/// What is done with a row that has passed the steps before.
pub(crate) enum Step {
    Filter(Expr),
    /// Computes a row into a slot.
    Project(Slot, Vec<Expr>),
    Probe(Probe),
    Index(IndexJoin),
}

impl Program {
    /// Whether a row of the table meets the filter.
    #[inline]
    pub(super) fn admits(
        &self,
        row: &[u8],
        env: &Env<'_>,
        offsets: &ColumnOffsets,
    ) -> Result<bool> {
        let Some(filter) = &self.filter else { return Ok(true) };
        offsets.clear();
        filter.holds(&env.with_row(Row::Scanned(&self.table.layout, row, offsets)))
    }
}
