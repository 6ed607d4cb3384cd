//! The line of a node.

use super::{Explain, called};
use crate::analyze::tree::{JoinKind, SetOperator};
use crate::plan::query::node::{Node, Strategy};

impl Explain<'_> {
    /// A node's line.
    pub(super) fn title(&self, node: &Node) -> String {
        match node {
            Node::Result { .. } => "Result".into(),
            Node::Sample(sample) => {
                format!("Sample Scan on {}", called(&sample.table, &sample.alias))
            }
            Node::Values { rows, .. } if rows.len() == 1 => "Result".into(),
            Node::Values { .. } => "Values Scan on \"*VALUES*\"".into(),
            Node::Functions { functions, .. } => {
                match functions.first().and_then(|function| function.kind.name()) {
                    Some(name) => format!("Function Scan on {name}"),
                    None => "Function Scan".into(),
                }
            }
            Node::Cte { slot, .. } => format!("CTE Scan on {}", self.names.relation(*slot)),
            Node::WorkTable { slot, .. } => {
                format!("WorkTable Scan on {}", self.names.relation(*slot))
            }
            Node::NestedLoop(join) => format!("Nested Loop{}", kind(join.kind, true)),
            Node::HashJoin(join) if join.gives_inner => {
                format!("Hash Right{}", kind(join.kind, false))
            }
            Node::HashJoin(join) => format!("Hash{}", kind(join.kind, false)),
            Node::Materialize { .. } => "Materialize".into(),
            Node::Sort { presorted: 0, .. } => "Sort".into(),
            Node::Sort { .. } => "Incremental Sort".into(),
            Node::Limit(_) => "Limit".into(),
            Node::Distinct { sorted: true, .. } => "Unique".into(),
            Node::Distinct { .. } => "HashAggregate".into(),
            Node::Aggregate(aggregate) => match (aggregate.strategy, &aggregate.sets) {
                (Strategy::Plain, _) => "Aggregate".into(),
                (Strategy::Sorted, _) => "GroupAggregate".into(),
                (Strategy::Hashed, None) => "HashAggregate".into(),
                (Strategy::Hashed, Some(_)) => "MixedAggregate".into(),
            },
            Node::Window { .. } => "WindowAgg".into(),
            Node::Append { .. } => "Append".into(),
            Node::SetOp { operator, all, .. } => {
                let operator = match operator {
                    SetOperator::Union => "Union",
                    SetOperator::Intersect => "Intersect",
                    SetOperator::Except => "Except",
                };
                format!("HashSetOp {operator}{}", if *all { " All" } else { "" })
            }
            Node::LockRows(_) => "LockRows".into(),
            Node::Scan(_) | Node::Filter { .. } | Node::Project { .. } => String::new(),
        }
    }
}

fn kind(kind: JoinKind, loops: bool) -> &'static str {
    match kind {
        JoinKind::Inner if loops => "",
        JoinKind::Inner => " Join",
        JoinKind::Left => " Left Join",
        JoinKind::Right => " Right Join",
        JoinKind::Full => " Full Join",
        JoinKind::Semi => " Semi Join",
        JoinKind::Anti => " Anti Join",
    }
}
