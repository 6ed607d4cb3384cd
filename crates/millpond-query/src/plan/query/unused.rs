//! Columns of subqueries that nothing uses: they are not computed, so they can't fail either.

use std::collections::HashSet;

use super::Planning;
use super::node::{CteKind, CtePlan, Node, SlotKind};
use super::node_walk::{each_own, inputs, inputs_mut};
use crate::analyze::tree::{Slot, column, slot_of};
use crate::expr::Expr;

impl Planning<'_> {
    /// Makes NULL of what subqueries compute and no expression uses. Expressions still have their
    /// queries. What has another value each time is computed nevertheless.
    pub(super) fn drop_unused(&self, root: &mut Node, output: &[Expr], ctes: &mut [CtePlan]) {
        if ctes.is_empty() && !may_drop(root) {
            return;
        }
        let mut uses = Uses::default();
        let mut passed = Passed::default();
        output.iter().for_each(|e| self.add_columns(e, &mut uses));
        self.add_node(root, &mut uses, &mut passed);
        for cte in &*ctes {
            self.add_cte(&cte.kind, &mut uses, &mut passed);
        }
        self.add_passed(passed, &mut uses);
        drop_in(root, &uses);
        for cte in ctes {
            match &mut cte.kind {
                CteKind::Plain(node, _) => drop_in(node, &uses),
                CteKind::Recursive { start, step, .. } => {
                    drop_in(&mut start.0, &uses);
                    drop_in(&mut step.0, &uses);
                }
                CteKind::Modify(modify) => drop_in(&mut modify.input, &uses),
            }
        }
    }

    fn add_cte<'n>(&self, kind: &'n CteKind, uses: &mut Uses, passed: &mut Passed<'n>) {
        match kind {
            CteKind::Plain(node, slot) => {
                self.add_node(node, uses, passed);
                uses.whole.insert(*slot);
            }
            CteKind::Recursive { start, step, .. } => {
                for (node, slot) in [start, step] {
                    self.add_node(node, uses, passed);
                    uses.whole.insert(*slot);
                }
            }
            CteKind::Modify(modify) => {
                self.add_node(&modify.input, uses, passed);
                modify.exprs().chain(&modify.recheck).for_each(|e| self.add_columns(e, uses));
            }
        }
    }

    /// Adds what a node and those below it use. What they only pass on is noted.
    fn add_node<'n>(&self, node: &'n Node, uses: &mut Uses, passed: &mut Passed<'n>) {
        match node {
            Node::Project { slot, exprs, .. } => {
                for (place, e) in exprs.iter().enumerate() {
                    if e.is_volatile() {
                        self.add_columns(e, uses);
                    } else {
                        passed.exprs.push((column(*slot, place), e));
                    }
                }
            }
            Node::Append { slot, inputs } => {
                passed.rows.extend(inputs.iter().map(|(_, input)| (*slot, *input)));
            }
            Node::SetOp { left, right, .. } => uses.whole.extend([left.1, right.1]),
            _ => each_own(node, &mut |e| self.add_columns(e, uses)),
        }
        inputs(node).into_iter().for_each(|input| self.add_node(input, uses, passed));
    }

    /// What is passed on is used if it is used where it arrives.
    fn add_passed(&self, mut passed: Passed<'_>, uses: &mut Uses) {
        loop {
            let before = (uses.columns.len(), uses.whole.len());
            passed.exprs.retain(|(column, e)| {
                let is_used = uses.has(*column);
                if is_used {
                    self.add_columns(e, uses);
                }
                !is_used
            });
            for (slot, input) in &passed.rows {
                if uses.whole.contains(slot) {
                    uses.whole.insert(*input);
                }
                let Some(SlotKind::Computed(width)) = self.kinds.get(slot.index()) else {
                    continue;
                };
                for place in 0..*width {
                    if uses.columns.contains(&column(*slot, place)) {
                        uses.columns.insert(column(*input, place));
                    }
                }
            }
            if before == (uses.columns.len(), uses.whole.len()) {
                return;
            }
        }
    }

    fn add_columns(&self, e: &Expr, uses: &mut Uses) {
        e.walk_all(&mut |part| {
            let Expr::Column(column) = part else { return };
            let (slot, place) = slot_of(*column);
            match self.substituted.get(&slot).and_then(|targets| targets.get(place)) {
                Some(target) => self.add_columns(target, uses),
                None => {
                    uses.columns.insert(*column);
                }
            }
        });
    }
}

/// What expressions use.
#[derive(Default)]
struct Uses {
    columns: HashSet<usize>,
    /// Slots whose rows are used as they are.
    whole: HashSet<Slot>,
}

impl Uses {
    fn has(&self, column: usize) -> bool {
        self.columns.contains(&column) || self.whole.contains(&slot_of(column).0)
    }
}

/// What nodes pass on.
#[derive(Default)]
struct Passed<'n> {
    /// Columns and what they are computed from.
    exprs: Vec<(usize, &'n Expr)>,
    /// Slots of rows, and those that they come from.
    rows: Vec<(Slot, Slot)>,
}

fn drop_in(node: &mut Node, uses: &Uses) {
    if let Node::Project { slot, exprs, .. } = node {
        for (place, e) in exprs.iter_mut().enumerate() {
            if is_worth_dropping(e) && !uses.has(column(*slot, place)) {
                *e = Expr::NULL;
            }
        }
    }
    inputs_mut(node).into_iter().for_each(|input| drop_in(input, uses));
}

/// Whether something at a node or below it would be dropped if nothing used it.
fn may_drop(node: &Node) -> bool {
    let computes = match node {
        Node::Project { exprs, .. } => exprs.iter().any(is_worth_dropping),
        _ => false,
    };
    computes || inputs(node).into_iter().any(may_drop)
}

fn is_worth_dropping(e: &Expr) -> bool {
    let is_simple = matches!(e, Expr::Const(_) | Expr::Param(_) | Expr::Column(_));
    !is_simple && !e.is_volatile()
}
