//! How many rows of each scan are read, as far as a plan says: see [`Demand`].

use super::node::{CteKind, Demand, Node, QueryPlan, Strategy};
use super::node_walk::inputs_mut;
use crate::analyze::tree::{JoinKind, SubqueryKind};
use crate::expr::Compare;

/// Notes at each scan of a plan how many of its rows are read. `is_drained`: all rows of the plan
/// are.
pub(super) fn mark(plan: &mut QueryPlan, is_drained: bool) {
    below(&mut plan.root, is_drained);
    for cte in &mut plan.ctes {
        match &mut cte.kind {
            CteKind::Plain(node, _) => below(node, is_drained),
            CteKind::Recursive { start, step, .. } => {
                below(&mut start.0, is_drained);
                below(&mut step.0, is_drained);
            }
            CteKind::Modify(modify) => below(&mut modify.input, true),
        }
    }
    for subplan in &mut plan.subplans {
        let is_drained = match subplan.kind {
            SubqueryKind::Scalar | SubqueryKind::Column(_) | SubqueryKind::Array(_) => true,
            // Its rows become a hash table.
            SubqueryKind::Any(_, Compare::Eq) => subplan.once,
            SubqueryKind::Exists | SubqueryKind::Any(..) | SubqueryKind::All(..) => false,
        };
        mark(&mut subplan.plan, is_drained);
    }
}

fn below(node: &mut Node, is_drained: bool) {
    match node {
        Node::Scan(scan) => {
            scan.demand = match (is_drained, &scan.filter) {
                (true, _) => Demand::All,
                (false, Some(_)) => Demand::Few,
                (false, None) => Demand::First,
            };
        }
        Node::Limit(limit) => below(&mut limit.input, false),
        Node::NestedLoop(join) => {
            below(&mut join.outer, is_drained);
            let is_one_enough = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
            below(&mut join.inner, is_drained && !is_one_enough);
        }
        Node::HashJoin(join) => {
            below(&mut join.outer, is_drained);
            below(&mut join.inner, true);
        }
        Node::Sort { input, presorted, .. } => below(input, is_drained || *presorted == 0),
        Node::Aggregate(aggregate) => {
            let is_read = matches!(aggregate.strategy, Strategy::Plain | Strategy::Hashed);
            below(&mut aggregate.input, is_drained || is_read);
        }
        other => inputs_mut(other).into_iter().for_each(|input| below(input, is_drained)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Value;
    use crate::analyze::tree::Slot;
    use crate::expr::Expr;
    use crate::parse::Name;
    use crate::plan::Access;
    use crate::plan::query::node::{HashJoin, Limit, NestedLoop, Scan};
    use crate::plan::query::node_walk::each_scan;
    use crate::system_relations::find_definition;

    fn scan(filter: Option<Expr>) -> Node {
        let name = Name { schema: None, name: "pg_class".into(), location: None };
        let table = Arc::clone(find_definition(&name).expect("a relation"));
        let (alias, access, demand) = (String::new(), Access::Heap, Demand::First);
        Node::Scan(Scan { slot: Slot(0), table, alias, access, filter, gathers: false, demand })
    }

    fn limited(input: Node) -> Node {
        Node::Limit(Box::new(Limit { input, limit: None, offset: None, ties: None }))
    }

    fn sorted(input: Node) -> Node {
        Node::Sort {
            input: Box::new(input),
            keys: Vec::new(),
            presorted: 0,
            bound: None,
            in_parts: false,
        }
    }

    fn looped(kind: JoinKind, inner: Node) -> Node {
        Node::NestedLoop(Box::new(NestedLoop::new(kind, scan(None), inner, None)))
    }

    /// The demands of a node's scans, from the outside in.
    fn demands(mut node: Node) -> Vec<Demand> {
        below(&mut node, true);
        let mut found = Vec::new();
        each_scan(&node, &mut |scan| found.push(scan.demand));
        found
    }

    #[test]
    fn a_scan_is_read_to_its_end_unless_something_above_it_stops() {
        use Demand::{All, Few, First};
        let filtered = || scan(Some(Expr::Const(Value::Bool(true))));
        assert_eq!(demands(filtered()), [All]);
        assert_eq!(demands(limited(scan(None))), [First]);
        assert_eq!(demands(limited(filtered())), [Few]);
        assert_eq!(demands(limited(sorted(filtered()))), [All]);
        assert_eq!(demands(looped(JoinKind::Left, scan(None))), [All, All]);
        assert_eq!(demands(looped(JoinKind::Semi, scan(None))), [All, First]);
        assert_eq!(demands(looped(JoinKind::Anti, filtered())), [All, Few]);
        assert_eq!(demands(limited(looped(JoinKind::Inner, scan(None)))), [First, First]);
        let sides = (scan(None), scan(None));
        let hashed = HashJoin::new(JoinKind::Inner, sides, Vec::new(), None);
        assert_eq!(demands(limited(Node::HashJoin(Box::new(hashed)))), [First, All]);
    }
}
