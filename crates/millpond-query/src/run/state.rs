//! The state of a plan's nodes.
//!
//! A state does not know its node: both are given to [`State::next`]. So a plan is shared by all
//! sessions, and a state holds no reference to it.

use super::aggregate::AggregateState;
use super::distinct::DistinctState;
use super::functions::FunctionsState;
use super::gather::{Begun, Fragment};
use super::hash_join::HashJoinState;
use super::limit::LimitState;
use super::lock_rows::LockRowsState;
use super::materialize::MaterializeState;
use super::nested_loop::NestedLoopState;
use super::sample::SampleState;
use super::scan::ScanState;
use super::set_operation::{AppendState, SetOpState};
use super::sort::{Keys, SortState};
use super::system_scan::SystemScanState;
use super::window::WindowState;
use super::{Context, cte};
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::memory::Cursor;
use crate::plan::query::node::Node;
use crate::system_relations::is_system;

/// What a node has come to.
pub(super) enum State {
    /// How many rows have been given of those that are in the plan.
    Given(usize),
    Scan(Box<ScanState>),
    Sample(Box<SampleState>),
    /// Of a scan of a system relation.
    SystemScan(SystemScanState),
    /// Of a node that is nothing but its input's state.
    Input(Box<State>),
    /// Of a condition that reads no row.
    Gate(Box<GateState>),
    NestedLoop(Box<NestedLoopState>),
    /// Of a reader of a query of WITH.
    Reader(Cursor),
    Limit(Box<LimitState>),
    Sort(Box<SortState>),
    Aggregate(Box<AggregateState>),
    HashJoin(Box<HashJoinState>),
    Materialize(Box<MaterializeState>),
    Distinct(Box<DistinctState>),
    Append(Box<AppendState>),
    SetOp(Box<SetOpState>),
    Functions(FunctionsState),
    Window(Box<WindowState>),
    LockRows(Box<LockRowsState>),
    /// Of a node that threads run.
    Fragment(Box<Fragment>),
}

/// Rows under a condition that reads none of them: it is computed once, before them.
pub(super) struct GateState {
    input: State,
    /// Whether it holds, once that is known.
    is_open: Option<bool>,
}

impl GateState {
    fn is_open(&mut self, condition: &Expr, cx: &Context<'_>) -> Result<bool> {
        if let Some(is_open) = self.is_open {
            return Ok(is_open);
        }
        let is_open = condition.holds(&cx.env())?;
        self.is_open = Some(is_open);
        Ok(is_open)
    }
}

impl State {
    /// The state of a node that has not begun.
    pub(super) fn new(node: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(match node {
            Node::Result { .. } | Node::Values { .. } => Self::Given(0),
            Node::Scan(scan) if is_system(&scan.table) => Self::SystemScan(Default::default()),
            Node::Scan(_) => Self::Scan(Box::default()),
            Node::Sample(_) => Self::Sample(Box::default()),
            Node::Filter { input, condition } if condition.is_same_for_all_rows() => {
                Self::Gate(boxed(|| Ok(GateState { input: Self::new(input, cx)?, is_open: None }))?)
            }
            Node::Project { input, .. } | Node::Filter { input, .. } => {
                Self::Input(Box::new(Self::new(input, cx)?))
            }
            Node::LockRows(lock) => Self::LockRows(Box::new(LockRowsState::new(lock, cx)?)),
            Node::Cte { .. } | Node::WorkTable { .. } => Self::Reader(Cursor::default()),
            Node::NestedLoop(join) => Self::NestedLoop(boxed(|| NestedLoopState::new(join, cx))?),
            Node::Limit(limit) => Self::Limit(Box::new(LimitState::new(limit, cx)?)),
            Node::Sort { input, .. } => Self::Sort(boxed(|| SortState::new(input, cx))?),
            Node::Aggregate(aggregate) => {
                Self::Aggregate(boxed(|| AggregateState::new(aggregate, cx))?)
            }
            Node::HashJoin(join) => Self::HashJoin(boxed(|| HashJoinState::new(join, cx))?),
            Node::Materialize { input } => {
                Self::Materialize(boxed(|| MaterializeState::new(input, cx))?)
            }
            Node::Distinct { input, .. } => {
                Self::Distinct(boxed(|| DistinctState::new(input, cx))?)
            }
            Node::Append { inputs, .. } => Self::Append(Box::new(AppendState::new(inputs, cx)?)),
            Node::SetOp { left, right, .. } => {
                Self::SetOp(Box::new(SetOpState::new(&left.0, &right.0, cx)?))
            }
            Node::Functions { .. } => Self::Functions(FunctionsState::new(cx)),
            Node::Window { input, window } => {
                Self::Window(boxed(|| WindowState::new(input, window, cx))?)
            }
        })
    }

    /// Puts the next row into the node's slots. False at the end.
    pub(super) fn next(&mut self, node: &Node, cx: &mut Context<'_>) -> Result<bool> {
        match (self, node) {
            (Self::Given(given), Node::Result { filter }) => {
                *given += 1;
                Ok(*given == 1 && cx.holds(filter.as_ref())?)
            }
            (Self::Given(given), Node::Values { slot, rows }) => {
                next_of_values(given, *slot, rows, cx)
            }
            (Self::Scan(state), Node::Scan(scan)) => state.next(scan, cx),
            (Self::Sample(state), Node::Sample(sample)) => state.next(sample, cx),
            (Self::SystemScan(state), Node::Scan(scan)) => state.next(scan, cx),
            (Self::Input(state), Node::Project { input, slot, exprs }) => {
                if !state.next(input, cx)? {
                    return Ok(false);
                }
                cx.compute(*slot, exprs)?;
                Ok(true)
            }
            (Self::Input(state), Node::Filter { input, condition }) => loop {
                if !state.next(input, cx)? {
                    return Ok(false);
                }
                if condition.holds(&cx.env())? {
                    return Ok(true);
                }
                cx.work().tick()?;
            },
            (Self::Gate(gate), Node::Filter { input, condition }) => {
                Ok(gate.is_open(condition, cx)? && gate.input.next(input, cx)?)
            }
            (Self::Reader(cursor), Node::Cte { slot, cte, .. }) => {
                cte::scan(*cte, *slot, cursor, cx)
            }
            (Self::Reader(cursor), Node::WorkTable { slot, cte }) => {
                cte::scan_work_table(*cte, *slot, cursor, cx)
            }
            (Self::NestedLoop(state), Node::NestedLoop(join)) => state.next(join, cx),
            (Self::Limit(state), Node::Limit(limit)) => state.next(limit, cx),
            (Self::Sort(state), Node::Sort { input, keys, presorted, bound, in_parts }) => {
                let keys = Keys { all: keys, presorted: *presorted, in_parts: *in_parts };
                state.next(input, keys, bound.as_ref(), cx)
            }
            (Self::Aggregate(state), Node::Aggregate(aggregate)) => state.next(aggregate, cx),
            (Self::HashJoin(state), Node::HashJoin(join)) => state.next(join, cx),
            (Self::Materialize(state), Node::Materialize { input }) => state.next(input, cx),
            (Self::Distinct(state), Node::Distinct { input, keys, sorted }) => {
                state.next(input, keys, *sorted, cx)
            }
            (Self::Append(state), Node::Append { slot, inputs }) => state.next(*slot, inputs, cx),
            (Self::SetOp(state), Node::SetOp { .. }) => state.next(node, cx),
            (Self::Functions(state), Node::Functions { slot, functions, with_ordinality }) => {
                state.next(*slot, functions, *with_ordinality, cx)
            }
            (Self::Window(state), Node::Window { input, window }) => state.next(input, window, cx),
            (Self::Fragment(fragment), _) => fragment.next(cx),
            (Self::LockRows(state), Node::LockRows(lock)) => state.next(lock, cx),
            _ => Err(SqlError::internal("a state of another node")),
        }
    }

    /// Begins anew, with other outer rows or parameters.
    pub(super) fn rescan(&mut self) {
        match self {
            Self::Given(given) => *given = 0,
            Self::Scan(state) => state.rescan(),
            Self::Sample(state) => state.rescan(),
            Self::SystemScan(state) => state.rescan(),
            Self::Input(state) => state.rescan(),
            Self::Gate(gate) => {
                gate.is_open = None;
                gate.input.rescan();
            }
            Self::Reader(cursor) => cursor.reset(),
            Self::NestedLoop(state) => state.rescan(),
            Self::Limit(state) => state.rescan(),
            Self::Sort(state) => state.rescan(),
            Self::Aggregate(state) => state.rescan(),
            Self::HashJoin(state) => state.rescan(),
            Self::Materialize(state) => state.rescan(),
            Self::Distinct(state) => state.rescan(),
            Self::Append(state) => state.rescan(),
            Self::SetOp(state) => state.rescan(),
            Self::Functions(state) => state.rescan(),
            Self::Window(state) => state.rescan(),
            Self::LockRows(state) => state.rescan(),
            // What is above it begins another one.
            Self::Fragment(_) => {}
        }
    }

    /// Whether threads run the node.
    pub(super) fn is_fragment(&self) -> bool {
        matches!(self, Self::Fragment(_))
    }

    /// The node as the beginning of a fragment, if threads are worth it. If not, or if a fragment
    /// ends below the node, the node goes on by itself.
    pub(super) fn begin_fragment<'p>(
        &mut self,
        node: &'p Node,
        cx: &mut Context<'_>,
    ) -> Result<Option<Begun<'p>>> {
        match (self, node) {
            (Self::Scan(_), Node::Scan(scan)) => Begun::of_scan(scan, cx.work()),
            (Self::HashJoin(state), Node::HashJoin(join)) => state.begin(join, cx),
            (Self::NestedLoop(state), Node::NestedLoop(join)) => state.begin(join, cx),
            (Self::Input(state), Node::Filter { input, condition }) => {
                let Some(mut begun) = state.begin_fragment(input, cx)? else { return Ok(None) };
                begun.filter(condition, cx)?;
                Ok(Some(begun))
            }
            (Self::Gate(gate), Node::Filter { input, condition }) => {
                match gate.is_open(condition, cx)? {
                    true => gate.input.begin_fragment(input, cx),
                    false => Ok(None),
                }
            }
            (Self::Input(state), Node::Project { input, slot, exprs }) => {
                let Some(mut begun) = state.begin_fragment(input, cx)? else { return Ok(None) };
                begun.project(*slot, exprs, cx)?;
                Ok(Some(begun))
            }
            _ => Ok(None),
        }
    }
}

/// A state in memory of its own. [`State::new`] calls itself for each node on the way down, so its
/// frame must not have room for a state of each kind.
#[inline(never)]
fn boxed<S>(new: impl FnOnce() -> Result<S>) -> Result<Box<S>> {
    Ok(Box::new(new()?))
}

fn next_of_values(
    given: &mut usize,
    slot: Slot,
    rows: &[Vec<Expr>],
    cx: &mut Context<'_>,
) -> Result<bool> {
    let Some(row) = rows.get(*given) else { return Ok(false) };
    *given += 1;
    cx.work().tick()?;
    cx.compute(slot, row)?;
    Ok(true)
}
