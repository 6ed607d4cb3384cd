//! What the plan of a query has beside its nodes: slots, subplans, and queries of WITH.

use std::ops::Range;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;

use super::Node;
use crate::analyze::tree::{CteId, Slot, SubqueryKind};
use crate::expr::Expr;
use crate::plan::Output;

/// The plan of a query.
#[derive(Debug)]
pub struct QueryPlan {
    pub(crate) root: Node,
    pub(crate) output: Output,
    /// Of each slot of the statement what it holds.
    pub(crate) slots: Arc<[SlotKind]>,
    /// The places of its own slots, and of others between them.
    pub(crate) window: Range<usize>,
    /// Of some slots the columns that are kept where rows are kept: see `kept_columns`.
    pub(crate) kept: KeptColumns,
    /// Plans of subqueries within expressions: see [`Expr::SubPlan`].
    pub(crate) subplans: Vec<SubPlan>,
    /// Queries of WITH that are run once and kept.
    pub(crate) ctes: Vec<CtePlan>,
    /// All tables, also those of subplans, to be locked before the snapshot is taken.
    pub tables: Vec<Arc<TableDef>>,
    /// Rows are locked, or something in it waits: it starts where it may wait.
    pub(crate) waits: bool,
}

/// Slots of which not all columns are kept, and those that are, in ascending order.
pub(crate) type KeptColumns = Vec<(Slot, Box<[usize]>)>;

/// What a slot holds.
#[derive(Debug, Clone)]
pub enum SlotKind {
    /// Rows of a table, as they are stored.
    Stored(Arc<TableDef>),
    /// Computed rows of that many columns.
    Computed(usize),
}

/// A subquery within an expression. It has slots and a state of its own: the columns of the query
/// around it that it uses come as parameters. It may read a query of WITH that is not among its
/// plan's own. That is one of a plan around it, and is run once for both.
#[derive(Debug)]
pub(crate) struct SubPlan {
    pub(crate) kind: SubqueryKind,
    pub(crate) plan: QueryPlan,
    /// The number of the first parameter that is an argument of the call. Those before it are the
    /// statement's, which all plans of the statement have.
    pub(crate) first_arg: usize,
    /// Whether nothing of the query around it is used: then it runs once (an InitPlan).
    pub(crate) once: bool,
    /// Whether EXPLAIN shows it. Not if only rows that have changed meanwhile need it.
    pub(crate) shown: bool,
}

/// A query of WITH that is run once.
#[derive(Debug)]
pub(crate) struct CtePlan {
    pub(crate) id: CteId,
    pub(crate) name: String,
    pub(crate) kind: CteKind,
    /// What the columns of its rows are called.
    pub(crate) columns: Vec<String>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a plan has few of them")]
pub(crate) enum CteKind {
    /// A node whose row is in this slot.
    Plain(Node, Slot),
    /// The rows of the start, then those that the step makes of the rows of the round before.
    Recursive {
        start: (Node, Slot),
        step: (Node, Slot),
        all: bool,
        /// The queries of WITH within the step: each round runs them again.
        step_ctes: Vec<CteId>,
    },
    /// It is run once, whether it is read or not.
    Modify(Box<Modify>),
}

/// A query of WITH that inserts, updates or deletes rows.
#[derive(Debug)]
pub(crate) struct Modify {
    /// What gives the rows to be changed or inserted.
    pub(crate) input: Node,
    pub(crate) table: Arc<TableDef>,
    pub(crate) alias: String,
    /// Where the table's row is: as it was found, then as it is stored.
    pub(crate) target: Slot,
    pub(crate) change: RowChange,
    /// WHERE, for rows that have changed meanwhile.
    pub(crate) recheck: Option<Expr>,
    /// The columns of RETURNING, if there is one.
    pub(crate) returned: Option<Vec<Expr>>,
}

/// What becomes of a row.
#[derive(Debug)]
pub(crate) enum RowChange {
    /// A row of these values is stored.
    Insert(Vec<Expr>),
    /// Columns with their new values.
    Update(Vec<(usize, Expr)>),
    Delete,
}

impl Modify {
    /// The expressions that are computed of each row.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (inserted, set): (&[Expr], &[_]) = match &self.change {
            RowChange::Insert(values) => (values, &[]),
            RowChange::Update(set) => (&[], set),
            RowChange::Delete => (&[], &[]),
        };
        let values = inserted.iter().chain(set.iter().map(|(_, value)| value));
        values.chain(self.returned.iter().flatten())
    }

    /// The same, to be changed.
    pub(crate) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (inserted, set): (&mut [Expr], &mut [_]) = match &mut self.change {
            RowChange::Insert(values) => (values, &mut []),
            RowChange::Update(set) => (&mut [], set),
            RowChange::Delete => (&mut [], &mut []),
        };
        let values = inserted.iter_mut().chain(set.iter_mut().map(|(_, value)| value));
        values.chain(self.returned.iter_mut().flatten())
    }
}

impl QueryPlan {
    /// Its queries of WITH that change rows. The plan of a subquery has none.
    pub(crate) fn modifications(&self) -> impl Iterator<Item = &Modify> {
        self.ctes.iter().filter_map(|cte| match &cte.kind {
            CteKind::Modify(modify) => Some(&**modify),
            CteKind::Plain(..) | CteKind::Recursive { .. } => None,
        })
    }
}
