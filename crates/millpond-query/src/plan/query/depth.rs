//! How deep a plan is: running it recurses through its nodes, on stacks of a fixed size.
//!
//! A node that reads a query of WITH runs that query's nodes, and an expression those of a subplan.
//! So the depth of a query of WITH has that of the subplans in its expressions, and counts where it
//! is read. It is complete once its expressions are finished, which is before those that read it.

use super::node::{CteKind, CtePlan, Node};
use super::node_walk::inputs;
use super::{Planning, too_complex};
use crate::error::Result;

/// How deep the nodes of a statement may be. An event loop's stack of 2 MB has room for more than
/// these, also without optimization.
const MAX_NODES: usize = 120;

impl Planning<'_> {
    /// Refuses a join of more relations than the stack has room for.
    pub(super) fn check_relations(&self, count: usize) -> Result<()> {
        if count > MAX_NODES { Err(too_complex()) } else { Ok(()) }
    }

    /// How deep a node is, with the subplans of this level that have been noted. An error if it is
    /// too deep.
    pub(super) fn check_depth(&self, root: &Node) -> Result<usize> {
        let depth = self.depth_of(root) + self.level.subplan_depth;
        if depth > MAX_NODES { Err(too_complex()) } else { Ok(depth) }
    }

    /// Notes how deep a query of WITH is, with the subplans that have been noted.
    pub(super) fn note_cte(&mut self, cte: &CtePlan) -> Result<()> {
        let depth = match &cte.kind {
            CteKind::Plain(node, _) => self.check_depth(node)?,
            CteKind::Modify(modify) => self.check_depth(&modify.input)?,
            CteKind::Recursive { start, step, .. } => {
                self.check_depth(&start.0)?.max(self.check_depth(&step.0)?)
            }
        };
        self.cte_depths.insert(cte.id, depth);
        Ok(())
    }

    /// Notes the depth of a subplan that is called.
    pub(super) fn note_subplan(&mut self, depth: usize) {
        self.level.subplan_depth = self.level.subplan_depth.max(depth);
    }

    /// How deep a node is, without subplans.
    pub(super) fn depth_of(&self, node: &Node) -> usize {
        let below = match node {
            Node::Cte { cte, .. } => self.cte_depths.get(cte).copied(),
            other => inputs(other).into_iter().map(|input| self.depth_of(input)).max(),
        };
        1 + below.unwrap_or_default()
    }
}
