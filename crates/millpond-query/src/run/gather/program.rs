//! What the threads of a fragment do with each row of the table: its filter, and what the nodes
//! above the scan do, up to the rows that the session gets.
//!
//! A thread has no session. So a program has a copy of the expressions, with constants computed,
//! and the hash tables of joins as they are when all inner rows are in them. Indexes are read under
//! the snapshot of the session's statement.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_types::ColumnOffsets;

use super::index_join::IndexJoin;
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::Result;
use crate::expr::{Env, Expr, Row};
use crate::plan::Access;
use crate::plan::external::Surroundings;
use crate::plan::query::node::SlotKind;
use crate::run::hash_join::JoinTable;

/// A fragment of a plan, for all threads.
pub(super) struct Program {
    pub(super) table: Arc<TableDef>,
    pub(super) slot: Slot,
    /// Of a row as the table has it.
    pub(super) filter: Option<Expr>,
    pub(super) steps: Vec<Step>,
    /// The slots whose rows the session gets.
    pub(super) output: Vec<Slot>,
    pub(super) kinds: Vec<SlotKind>,
    pub(super) kept: Vec<Option<Box<[usize]>>>,
    pub(super) surroundings: Arc<Surroundings>,
}

/// What is done with a row that has passed the steps before.
pub(crate) enum Step {
    Filter(Expr),
    /// Computes a row into a slot.
    Project(Slot, Vec<Expr>),
    Probe(Probe),
    Index(IndexJoin),
}

/// A hash join whose inner rows are all in memory.
pub(crate) struct Probe {
    /// Inner, Left, Semi or Anti.
    pub(crate) kind: JoinKind,
    /// It gives no rows, but notes which inner rows have a match.
    pub(crate) gives_inner: bool,
    pub(crate) keys: Vec<Expr>,
    pub(crate) on: Option<Expr>,
    pub(crate) inner: Vec<Slot>,
    pub(crate) table: Arc<JoinTable>,
}

impl Step {
    /// Whether a row gives one row at most.
    fn gives_one_row(&self) -> bool {
        match self {
            Step::Filter(_) | Step::Project(..) => true,
            Step::Probe(probe) => only_drops(probe.kind) || !probe.table.has_equal_keys(),
            Step::Index(join) => {
                only_drops(join.kind) || matches!(join.scan.access, Access::Point { .. })
            }
        }
    }
}

/// Whether a join gives an outer row or nothing.
pub(super) fn only_drops(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Semi | JoinKind::Anti)
}

impl Program {
    /// Whether each row of the table gives one row at most.
    pub(super) fn gives_one_row(&self) -> bool {
        self.steps.iter().all(Step::gives_one_row)
    }

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
