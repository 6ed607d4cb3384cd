//! Which columns of tables a plan needs where it keeps rows.
//!
//! A hash join, a sort or an aggregate in a file keeps rows of tables as they are stored. It keeps
//! only the columns that some expression of the plan uses. Columns that only the scan's own
//! condition uses do not count, because the scan has evaluated it by then.

use std::collections::{BTreeMap, BTreeSet};

use super::node::{CteKind, CtePlan, KeptColumns, Node, SlotKind};
use super::node_walk::{each_own, inputs};
use super::slot_set::SlotSet;
use crate::analyze::tree::{Slot, SystemColumn, slot_of};
use crate::expr::Expr;
use crate::plan::Access;

/// The bytes that a value of variable width is thought to take.
const VARIABLE_WIDTH: usize = 12;
/// Columns are left out if they take at least this many bytes.
const LEAST_SPARED: usize = 16;

/// The columns to be kept of those of the plan's own slots that don't keep all.
pub(super) fn kept_columns(
    root: &Node,
    ctes: &[CtePlan],
    output: &[Expr],
    (own, kinds): (&SlotSet, &[SlotKind]),
) -> KeptColumns {
    // What is changed needs its whole row.
    let changes = ctes.iter().any(|cte| matches!(cte.kind, CteKind::Modify(_)));
    if changes || ctes.is_empty() && !may_keep(root) {
        return Vec::new();
    }
    let of_slots = own.iter().map(|slot| (slot, Some(BTreeSet::new()))).collect();
    let mut uses = Uses { of_slots };
    uses.of_node(root);
    output.iter().for_each(|e| uses.of_expr(e, None));
    for cte in ctes {
        match &cte.kind {
            CteKind::Plain(node, slot) => uses.of_whole(node, *slot),
            CteKind::Recursive { start, step, .. } => {
                uses.of_whole(&start.0, start.1);
                uses.of_whole(&step.0, step.1);
            }
            CteKind::Modify(_) => {}
        }
    }
    let kept = |(slot, used): (Slot, Option<BTreeSet<usize>>)| {
        Some((slot, worth_it(used?, kinds.get(slot.index())?)?))
    };
    uses.of_slots.into_iter().filter_map(kept).collect()
}

/// Whether a node, or one below it, may keep rows. A scan of pages may hand them to another thread.
fn may_keep(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => matches!(scan.access, Access::Heap),
        Node::Result { .. }
        | Node::Values { .. }
        | Node::Functions { .. }
        | Node::Project { .. }
        | Node::Filter { .. }
        | Node::NestedLoop(_)
        | Node::Limit(_)
        | Node::Append { .. } => inputs(node).into_iter().any(may_keep),
        _ => true,
    }
}

/// The columns that some slots' rows are used by. `None`: all.
struct Uses {
    of_slots: BTreeMap<Slot, Option<BTreeSet<usize>>>,
}

impl Uses {
    fn of_node(&mut self, node: &Node) {
        let scanned = match node {
            Node::Scan(scan) => Some(scan.slot),
            _ => None,
        };
        each_own(node, &mut |e| self.of_expr(e, scanned));
        match node {
            Node::Append { slot, inputs } => {
                let others = inputs.iter().filter(|(_, input)| input != slot);
                others.for_each(|(_, input)| self.add_all(*input));
            }
            Node::SetOp { left, right, .. } => {
                self.add_all(left.1);
                self.add_all(right.1);
            }
            _ => {}
        }
        inputs(node).into_iter().for_each(|input| self.of_node(input));
    }

    fn of_whole(&mut self, node: &Node, slot: Slot) {
        self.of_node(node);
        self.add_all(slot);
    }

    fn of_expr(&mut self, expr: &Expr, except: Option<Slot>) {
        expr.walk(&mut |e| {
            if let Expr::Column(column) = e
                && let (slot, place) = slot_of(*column)
                && Some(slot) != except
                && SystemColumn::at_place(place).is_none()
                && let Some(Some(used)) = self.of_slots.get_mut(&slot)
            {
                used.insert(place);
            }
        });
    }

    fn add_all(&mut self, slot: Slot) {
        if let Some(used) = self.of_slots.get_mut(&slot) {
            *used = None;
        }
    }
}

/// The used columns, if the others take so much that it pays to leave them out.
fn worth_it(used: BTreeSet<usize>, kind: &SlotKind) -> Option<Box<[usize]>> {
    let SlotKind::Stored(table) = kind else { return None };
    let types = table.layout.types().iter().enumerate();
    let spared = types.filter(|(place, _)| !used.contains(place));
    let bytes: usize = spared.map(|(_, ty)| ty.fixed_width().unwrap_or(VARIABLE_WIDTH)).sum();
    (bytes >= LEAST_SPARED).then(|| used.into_iter().collect())
}
