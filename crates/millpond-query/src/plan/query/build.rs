//! The nodes of a join whose order has been decided.

use std::sync::Arc;

use super::Planning;
use super::conditions::{Conditions, Places, Progress};
use super::method::{Joined, Method};
use super::node::{HashJoin, NestedLoop, Node, Sample, Scan};
use super::order::{Part, Way};
use super::problem::{Alone, Dependent, FullJoin, Item, Problem, Relation};
use super::select::Path;
use super::slot_set::SlotSet;
use super::wanted::{Read, Wanted};
use crate::analyze::tree::{JoinKind, Query, Slot};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::access::{Choice, all_of};
use crate::plan::{Access, SortKey};

impl Planning<'_> {
    /// The rows of a problem, under further conditions, which may use rows that are there already.
    pub(super) fn solve(
        &mut self,
        problem: &Problem<'_>,
        more: &[Expr],
        wanted: Wanted<'_>,
    ) -> Result<Path> {
        let conditions = Conditions::new(self, problem, more);
        let read = match (wanted.limit, wanted.sort) {
            (None, _) => Read::All,
            (Some(_), []) => Read::First,
            (Some(_), _) => Read::FirstInOrder,
        };
        let around = std::mem::replace(&mut self.read, read);
        let path = self.solve_under(problem, &conditions, wanted);
        self.read = around;
        path
    }

    fn solve_under(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Path> {
        let way = self.way(problem, conditions, wanted)?;
        let sort = wanted.sort.get(..way.presorted).unwrap_or_default();
        let mut progress = Progress::new(conditions);
        let mut node: Option<Node> = None;
        for step in &way.steps {
            let sides = (node.take(), step.method);
            node = Some(match step.part {
                Part::Item(at) => {
                    let slots = &problem.items[at].slots;
                    let ready = progress.take(conditions, slots);
                    progress.bound.add(slots);
                    self.join_item(sides, problem, at, &ready, conditions, sort)?
                }
                Part::Dependent(at) => {
                    let dependent = &problem.dependents[at];
                    let ready = progress.take(conditions, &dependent.adds);
                    progress.bound.add(&dependent.adds);
                    let joined = self.join_dependent(sides, dependent, &conditions.slots)?;
                    filtered(joined, conditions.cloned(&ready))
                }
            });
        }
        let rest = progress.take(conditions, &conditions.slots);
        let rest = conditions.cloned(&rest);
        let node = match node {
            Some(node) => filtered(filtered(node, rest), conditions.gates.clone()),
            None => Node::Result { filter: all_of(rest) },
        };
        let (ordered, presorted) = (wanted.is_met(&way), way.presorted);
        let Way { rows, cost, one_row, .. } = way;
        let targets = Vec::new();
        Ok(Path { node, targets, rows, cost, ordered, presorted, all_sorted: false, one_row })
    }

    fn join_item(
        &mut self,
        (outer, method): (Option<Node>, Method),
        problem: &Problem<'_>,
        at: usize,
        ready: &[usize],
        conditions: &Conditions<'_>,
        sort: &[SortKey],
    ) -> Result<Node> {
        let (item, own) = (&problem.items[at], &*conditions.own[at]);
        let Some(outer) = outer else {
            return self.item_node(item, conditions, ready, own, sort);
        };
        if method == Method::Inner {
            let inner = self.item_node(item, conditions, ready, own, &[])?;
            let kind = JoinKind::Inner;
            return Ok(Node::NestedLoop(Box::new(NestedLoop::new(kind, outer, inner, None))));
        }
        let (local, on): (Places, Places) =
            ready.iter().copied().partition(|place| own.contains(place));
        let inner = self.item_node(item, conditions, &local, own, &[])?;
        let on = conditions.cloned(&on);
        let joined = Joined { own: &item.slots, all: &conditions.slots };
        Ok(self.join_nodes(JoinKind::Inner, method, (outer, inner), on, joined))
    }

    fn join_dependent(
        &mut self,
        (outer, method): (Option<Node>, Method),
        dependent: &Dependent<'_>,
        all: &SlotSet,
    ) -> Result<Node> {
        let kind = dependent.kind;
        let outer = outer.unwrap_or(Node::Result { filter: None });
        let on = if method == Method::Inner { dependent.on.as_slice() } else { &[] };
        let inner = self.nested(|p| p.solve(&dependent.right, on, Wanted::default()))?.node;
        if method == Method::Inner {
            return Ok(Node::NestedLoop(Box::new(NestedLoop::new(kind, outer, inner, None))));
        }
        let joined = Joined { own: &dependent.slots, all };
        Ok(self.join_nodes(kind, method, (outer, inner), dependent.on.clone(), joined))
    }

    /// A join whose inner side knows nothing of the outer one.
    fn join_nodes(
        &self,
        kind: JoinKind,
        method: Method,
        (outer, inner): (Node, Node),
        conditions: Vec<Expr>,
        slots: Joined<'_>,
    ) -> Node {
        let Method::Hash { swapped } = method else {
            let inner = Node::Materialize { input: Box::new(inner) };
            let on = all_of(conditions);
            return Node::NestedLoop(Box::new(NestedLoop::new(kind, outer, inner, on)));
        };
        let (keys, on) = self.split_keys(conditions, slots);
        if !swapped {
            return Node::HashJoin(Box::new(HashJoin::new(kind, (outer, inner), keys, on)));
        }
        let kind = if kind == JoinKind::Left { JoinKind::Right } else { kind };
        let gives_inner = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let keys = keys.into_iter().map(|(outer, inner)| (inner, outer)).collect();
        let join = HashJoin::new(kind, (inner, outer), keys, on);
        Node::HashJoin(Box::new(HashJoin { gives_inner, ..join }))
    }

    /// The equalities of the two sides of a join, and all other conditions.
    fn split_keys(
        &self,
        conditions: Vec<Expr>,
        slots: Joined<'_>,
    ) -> (Vec<(Expr, Expr)>, Option<Expr>) {
        let (mut keys, mut rest) = (Vec::new(), Vec::new());
        for conjunct in conditions {
            match self.join_key(&conjunct, slots) {
                Some((outer, inner)) => keys.push((outer.clone(), inner.clone())),
                None => rest.push(conjunct),
            }
        }
        (keys, all_of(rest))
    }

    /// The rows of an item under the conditions of some places. `own` are the places of those on
    /// the item alone.
    fn item_node(
        &mut self,
        item: &Item<'_>,
        conditions: &Conditions<'_>,
        ready: &[usize],
        own: &[usize],
        sort: &[SortKey],
    ) -> Result<Node> {
        if let Relation::Table { slot, table, alias } = &item.relation {
            let ready = conditions.all(ready);
            let path = self.table_path(*slot, table, &ready, sort);
            let Choice { is_ordered, is_contested, .. } = path.choice;
            if self.read == Read::FirstInOrder && !sort.is_empty() && is_ordered {
                self.ranges.follow_order(table, is_contested);
            }
            let node = self.table_node((*slot, table, alias), &ready, path);
            if let Node::Scan(Scan { access: Access::Heap, .. }) = &node {
                self.read_through += self.live_rows(table) as f64;
            }
            return Ok(node);
        }
        let more: Places = ready.iter().filter(|place| !own.contains(place)).copied().collect();
        if !more.is_empty()
            && let Relation::Query { slot, query } = &item.relation
        {
            let all = conditions.all(own).into_iter().chain(conditions.all(&more));
            let (pushed, rest): (Vec<Expr>, Vec<Expr>) =
                all.cloned().partition(|e| self.can_push(query, *slot, e));
            let path = self.query_into(query, *slot, &pushed)?;
            return Ok(filtered(path.node, rest));
        }
        self.alone(item, conditions, own)?;
        let path = item.alone.take().and_then(|alone| alone.path);
        let path = path.ok_or_else(|| SqlError::internal("a relation was planned twice"))?;
        Ok(filtered(path.node, conditions.cloned(&more)))
    }

    /// The rows and the cost of an item, which is no table, under conditions on it alone.
    pub(super) fn alone(
        &mut self,
        item: &Item<'_>,
        conditions: &Conditions<'_>,
        own: &[usize],
    ) -> Result<(f64, f64)> {
        if let Some(alone) = &*item.alone.borrow() {
            return Ok((alone.rows, alone.cost));
        }
        let own = conditions.cloned(own);
        let path = self.nested(|planning| planning.relation(&item.relation, own))?;
        let (rows, cost) = (path.rows, path.cost);
        item.alone.replace(Some(Alone { path: Some(path), rows, cost }));
        Ok((rows, cost))
    }

    fn relation(&mut self, relation: &Relation<'_>, own: Vec<Expr>) -> Result<Path> {
        let (node, rows) = match relation {
            Relation::Table { .. } => return Err(SqlError::internal("a table has a path")),
            Relation::Sample { slot, table, alias, sample } => {
                let rows = self.live_rows(table) as f64;
                self.read_through += rows;
                let node = Node::Sample(Box::new(Sample {
                    slot: *slot,
                    table: Arc::clone(table),
                    alias: (*alias).to_owned(),
                    is_system: sample.is_system,
                    percent: self.resolve(&sample.percent)?,
                    seed: sample.seed.as_ref().map(|seed| self.resolve(seed)).transpose()?,
                }));
                (node, rows.max(1.0))
            }
            Relation::Query { slot, query } => {
                let (pushed, rest): (Vec<Expr>, Vec<Expr>) =
                    own.into_iter().partition(|e| self.can_push(query, *slot, e));
                let mut path = self.query_into(query, *slot, &pushed)?;
                path.node = filtered(path.node, rest);
                return Ok(path);
            }
            Relation::Full(join) => return self.full(join, own),
            Relation::Unique(unique) => {
                let mut path = self.solve(&unique.problem, &own, Wanted::default())?;
                let keys = unique.keys.clone();
                path.cost += path.rows;
                path.wrap(|input| Node::Distinct { input: Box::new(input), keys, sorted: false });
                return Ok(path);
            }
            Relation::Cte { slot, cte } => {
                let varies = self.step_ctes.contains(cte);
                (Node::Cte { slot: *slot, cte: *cte, varies }, super::estimate::UNKNOWN_ROWS)
            }
            Relation::WorkTable { slot, cte } => {
                (Node::WorkTable { slot: *slot, cte: *cte }, super::estimate::UNKNOWN_ROWS)
            }
            Relation::Functions { slot, functions, with_ordinality } => {
                let functions = self.functions(functions)?;
                let (slot, with_ordinality) = (*slot, *with_ordinality);
                let node = Node::Functions { slot, functions, with_ordinality };
                (node, super::estimate::UNKNOWN_ROWS)
            }
        };
        let node = filtered(node, own);
        Ok(Path::of(node, Vec::new(), rows, rows))
    }

    /// A full join. Without a pair of keys all rows of the right side stand under one key. Each row
    /// of the left side is compared with each of them.
    fn full(&mut self, join: &FullJoin<'_>, own: Vec<Expr>) -> Result<Path> {
        let outer = self.solve(&join.left, &[], Wanted::default())?;
        let inner = self.solve(&join.right, &[], Wanted::default())?;
        let right = join.right.slots();
        let mut all = join.left.slots();
        all.add(&right);
        let (keys, on) = self.split_keys(join.on.clone(), Joined { own: &right, all: &all });
        let (rows, cost) = (outer.rows + inner.rows, outer.cost + inner.cost);
        let join = HashJoin::new(JoinKind::Full, (outer.node, inner.node), keys, on);
        let node = Node::HashJoin(Box::new(join));
        let node = filtered(node, own);
        Ok(Path::of(node, Vec::new(), rows, cost))
    }

    /// The rows and the cost of a query for a row that is there, if conditions on both can be told
    /// inside of it.
    pub(super) fn try_keyed(
        &mut self,
        slot: Slot,
        query: &Query,
        own: &[&Expr],
        more: &[&Expr],
    ) -> Result<Option<(f64, f64)>> {
        let can_push = |e: &&Expr| self.can_push(query, slot, e);
        if self.tries >= super::MAX_TRIES || !more.iter().any(can_push) {
            return Ok(None);
        }
        let all = own.iter().chain(more).copied();
        let pushed: Vec<Expr> = all.filter(can_push).cloned().collect();
        self.tries += 1;
        let before = self.read_through;
        let path = self.query_into(query, slot, &pushed)?;
        self.read_through = before;
        Ok(Some((path.rows, path.cost)))
    }

    /// A query whose rows are computed into a slot.
    pub(super) fn query_into(
        &mut self,
        query: &Query,
        slot: Slot,
        pushed: &[Expr],
    ) -> Result<Path> {
        let mut path = self.nested(|planning| planning.query_under(query, slot, pushed))?;
        let exprs = std::mem::take(&mut path.targets);
        path.node = Node::Project { input: Box::new(path.node), slot, exprs };
        Ok(path)
    }
}

/// The rows of a node that meet conditions.
pub(super) fn filtered(node: Node, conditions: Vec<Expr>) -> Node {
    match all_of(conditions) {
        Some(condition) => Node::Filter { input: Box::new(node), condition },
        None => node,
    }
}
