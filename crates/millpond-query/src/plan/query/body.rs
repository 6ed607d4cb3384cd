//! A query: its body, then DISTINCT, ORDER BY, row locks, LIMIT.

use super::estimate::{UNKNOWN_ROWS, sort_cost};
use super::first_of_union::FirstRows;
use super::node::{Bound, Limit, Node};
use super::push_down::pushed_inside;
use super::select::{Path, ascending};
use super::{Planning, too_complex};
use crate::Value;
use crate::analyze::tree::{
    Body, Distinct, Query, Select, SetOperation, SetOperator, SetStep, Slot, Values, column,
    slot_of,
};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::SortKey;

/// Whether functions of a select list give their rows behind DISTINCT ON and ORDER BY: these do not
/// use them.
fn has_sets_later(query: &Query, select: &Select) -> bool {
    let on: &[Expr] = match &select.distinct {
        Distinct::No => &[],
        Distinct::All => return false,
        Distinct::On(list) => list,
    };
    let is_set = |slot| select.sets.iter().any(|step| step.slot == slot);
    let mut uses_sets = false;
    for key in query.order_by.iter().map(|key| &key.expr).chain(on) {
        key.walk_all(&mut |e| {
            uses_sets |= matches!(e, Expr::Column(c) if is_set(slot_of(*c).0));
        });
    }
    let keys = query.order_by.iter().map(|key| &key.expr);
    // What changes each time is computed once, before rows are sorted.
    let is_volatile = keys.chain(&select.targets).any(Expr::is_volatile);
    !select.sets.is_empty() && !query.order_by.is_empty() && !uses_sets && !is_volatile
}

/// How many queries one chain of set operations may have.
const MAX_CHAIN: usize = 10_000;

impl Planning<'_> {
    /// A query; `pushed` are conditions on its columns, which are named as those of a slot.
    pub(super) fn query(&mut self, query: &Query, pushed: &[(Slot, Expr)]) -> Result<Path> {
        let path = self.nested(|planning| planning.query_here(query, pushed))?;
        self.check_depth(&path.node)?;
        Ok(path)
    }

    /// A query under conditions on its columns, which are those of a slot.
    pub(super) fn query_under(
        &mut self,
        query: &Query,
        slot: Slot,
        pushed: &[Expr],
    ) -> Result<Path> {
        let pushed: Vec<(Slot, Expr)> = pushed.iter().map(|e| (slot, e.clone())).collect();
        self.query(query, &pushed)
    }

    fn query_here(&mut self, query: &Query, pushed: &[(Slot, Expr)]) -> Result<Path> {
        let wanted = self.rows_wanted.take().filter(|_| query.order_by.is_empty());
        self.plan_ctes(query)?;
        let limit = self.limit_guess(query).or(wanted);
        let (mut distinct, mut sets_later): (_, &[SetStep]) = (&Distinct::No, &[]);
        let mut path = match &query.body {
            Body::Select(select) => {
                distinct = &select.distinct;
                let mut more = Vec::new();
                for (slot, condition) in pushed {
                    more.push(pushed_inside(select, *slot, condition.clone())?);
                }
                if !query.locks.is_empty() {
                    return self.locked(query, select, more, limit);
                }
                if has_sets_later(query, select) {
                    sets_later = &select.sets;
                }
                self.select(select, more, &query.order_by, limit, !sets_later.is_empty())?
            }
            Body::SetOperation(operation) => {
                let limit = limit.filter(|_| query.order_by.is_empty());
                let first = FirstRows::of(query, operation);
                self.set_operation(operation, pushed, limit, first.as_ref())?
            }
            Body::Values(values) => self.values(values)?,
        };
        // Only now it is known what has been pulled up.
        let sort = self.sort_keys(&query.order_by)?;
        let sort = self.computed_once(&mut path, sort, distinct)?;
        self.distinct(&mut path, distinct, &sort)?;
        self.sorted(&mut path, query, &sort, sets_later.is_empty())?;
        self.set_steps(&mut path, sets_later)?;
        self.limited(&mut path, query, &sort)?;
        Ok(path)
    }

    /// How many rows of a query are wanted.
    fn limit_guess(&self, query: &Query) -> Option<f64> {
        let count = |e: &Expr| match e {
            Expr::Const(count) => count.as_datum().as_i64().map_or(UNKNOWN_ROWS, |n| n as f64),
            _ => UNKNOWN_ROWS,
        };
        let limit = query.limit.as_ref().map(count)?;
        Some(limit + query.offset.as_ref().map_or(0.0, count))
    }

    /// What has another value each time is computed once, before rows are sorted by it or dropped.
    fn computed_once(
        &mut self,
        path: &mut Path,
        mut sort: Vec<SortKey>,
        distinct: &Distinct,
    ) -> Result<Vec<SortKey>> {
        let needless = sort.is_empty() && matches!(distinct, Distinct::No);
        let volatile = path.targets.iter().any(Expr::is_volatile)
            || sort.iter().any(|key| key.expr.is_volatile());
        if needless || !volatile || matches!(distinct, Distinct::On(_)) {
            return Ok(sort);
        }
        let mut exprs = path.targets.clone();
        let mut places = Vec::with_capacity(sort.len());
        for key in &sort {
            places.push(match exprs.iter().position(|e| *e == key.expr) {
                Some(place) => place,
                None => {
                    exprs.push(key.expr.clone());
                    exprs.len() - 1
                }
            });
        }
        let slot = self.new_slot(exprs.len())?;
        for (key, place) in sort.iter_mut().zip(places) {
            key.expr = Expr::Column(column(slot, place));
        }
        let count = path.targets.len();
        path.targets = (0..count).map(|place| Expr::Column(column(slot, place))).collect();
        path.wrap(|input| Node::Project { input: Box::new(input), slot, exprs });
        Ok(sort)
    }

    fn distinct(&mut self, path: &mut Path, distinct: &Distinct, sort: &[SortKey]) -> Result<()> {
        let (keys, sorted) = match distinct {
            Distinct::No => return Ok(()),
            Distinct::All => (path.targets.clone(), path.all_sorted),
            Distinct::On(list) => {
                let on = self.resolve_all(list)?;
                let mut order = sort.to_vec();
                for key in &on {
                    if !order.iter().any(|other| other.expr == *key) {
                        order.push(ascending(key.clone()));
                    }
                }
                let is_ordered = path.ordered && order.len() == sort.len().max(on.len());
                if !is_ordered && !order.is_empty() {
                    path.cost += sort_cost(path.rows);
                    path.wrap(|input| Node::Sort {
                        input: Box::new(input),
                        keys: order,
                        presorted: 0,
                        bound: None,
                        in_parts: false,
                    });
                }
                path.ordered = true;
                (on, true)
            }
        };
        path.rows = (path.rows / 2.0).max(1.0);
        path.cost += path.rows;
        if !keys.is_empty() {
            path.wrap(|input| Node::Distinct { input: Box::new(input), keys, sorted });
        } else {
            // All rows are equal.
            let limit = Some(Expr::Const(Value::Int8(1)));
            path.wrap(|input| {
                Node::Limit(Box::new(Limit { input, limit, offset: None, ties: None }))
            });
        }
        if !sorted {
            (path.ordered, path.presorted) = (false, 0);
        }
        Ok(())
    }

    /// Sorts rows. `is_last`: what is behind it only counts them.
    pub(super) fn sorted(
        &mut self,
        path: &mut Path,
        query: &Query,
        sort: &[SortKey],
        is_last: bool,
    ) -> Result<()> {
        if sort.is_empty() || path.ordered || path.one_row {
            return Ok(());
        }
        let bound = match &query.limit {
            Some(limit) if is_last && !query.with_ties && query.locks.is_empty() => Some(Bound {
                limit: self.resolve(limit)?,
                offset: query.offset.as_ref().map(|e| self.resolve(e)).transpose()?,
            }),
            _ => None,
        };
        path.cost += sort_cost(path.rows);
        let (keys, presorted) = (sort.to_vec(), path.presorted);
        path.wrap(|input| Node::Sort {
            input: Box::new(input),
            keys,
            presorted,
            bound,
            in_parts: false,
        });
        path.ordered = true;
        Ok(())
    }

    pub(super) fn limited(
        &mut self,
        path: &mut Path,
        query: &Query,
        sort: &[SortKey],
    ) -> Result<()> {
        if query.limit.is_none() && query.offset.is_none() {
            return Ok(());
        }
        let limit = query.limit.as_ref().map(|e| self.resolve(e)).transpose()?;
        let offset = query.offset.as_ref().map(|e| self.resolve(e)).transpose()?;
        let ties = query.with_ties.then(|| sort.to_vec());
        if let Some(limit) = self.limit_guess(query) {
            if gives_rows_at_once(&path.node) {
                path.cost *= (limit / path.rows).min(1.0);
            }
            path.rows = path.rows.min(limit).max(1.0);
        }
        path.wrap(|input| Node::Limit(Box::new(Limit { input, limit, offset, ties })));
        Ok(())
    }

    fn values(&mut self, values: &Values) -> Result<Path> {
        let slot = values.slot;
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            rows.push(self.resolve_all(row)?);
        }
        let count = rows.len() as f64;
        let width = rows.first().map_or(0, Vec::len);
        let targets = columns_of(slot, width);
        let node = Node::Values { slot, rows };
        Ok(Path { one_row: count <= 1.0, ..Path::of(node, targets, count.max(1.0), count) })
    }

    fn set_operation(
        &mut self,
        operation: &SetOperation,
        pushed: &[(Slot, Expr)],
        limit: Option<f64>,
        first: Option<&FirstRows<'_>>,
    ) -> Result<Path> {
        let slot = operation.slot;
        let width = operation.left.columns.len();
        let (node, rows, cost) = match operation.operator {
            SetOperator::Union => {
                let mut sides = Vec::new();
                self.union_sides(operation, &mut sides)?;
                let (mut inputs, mut rows, mut cost) = (Vec::new(), 0.0, 0.0);
                for side in sides {
                    self.rows_wanted = limit.filter(|_| operation.all);
                    let bounded = first.and_then(|first| first.of_side(side));
                    let (path, slot) = self.side(bounded.as_ref().unwrap_or(side), pushed)?;
                    rows += path.rows;
                    cost += path.cost;
                    inputs.push((path.node, slot));
                }
                let append = Node::Append { slot, inputs };
                if operation.all {
                    (append, rows, cost)
                } else {
                    let (input, keys) = (Box::new(append), columns_of(slot, width));
                    (Node::Distinct { input, keys, sorted: false }, rows, cost + rows)
                }
            }
            operator => {
                let (left, left_slot) = self.side(&operation.left, pushed)?;
                let (right, right_slot) = self.side(&operation.right, pushed)?;
                let (rows, cost) = (left.rows, left.cost + right.cost + left.rows + right.rows);
                let (left, right) =
                    (Box::new((left.node, left_slot)), Box::new((right.node, right_slot)));
                (Node::SetOp { slot, operator, all: operation.all, left, right }, rows, cost)
            }
        };
        let targets = columns_of(slot, width);
        Ok(Path::of(node, targets, rows.max(1.0), cost))
    }

    /// The queries of a chain of UNIONs whose duplicates are treated alike.
    fn union_sides<'q>(
        &self,
        operation: &'q SetOperation,
        sides: &mut Vec<&'q Query>,
    ) -> Result<()> {
        let mut rest = operation;
        let mut rights = vec![&operation.right];
        while let Some(inner) = chained(&rest.left)
            && inner.operator == SetOperator::Union
            && (inner.all || !operation.all)
        {
            rights.push(&inner.right);
            rest = inner;
            if rights.len() > MAX_CHAIN {
                return Err(too_complex());
            }
        }
        sides.push(&rest.left);
        sides.extend(rights.into_iter().rev());
        Ok(())
    }

    /// One side of a set operation, with the slot that its rows are in.
    fn side(&mut self, query: &Query, pushed: &[(Slot, Expr)]) -> Result<(Path, Slot)> {
        let mut path = self.query(query, pushed)?;
        let slot = self.new_slot(path.targets.len())?;
        let exprs = std::mem::take(&mut path.targets);
        path.wrap(|input| Node::Project { input: Box::new(input), slot, exprs });
        Ok((path, slot))
    }
}

/// Whether a node gives its first rows before it has read all of its input.
fn gives_rows_at_once(node: &Node) -> bool {
    match node {
        Node::Scan(_) | Node::Values { .. } | Node::Result { .. } => true,
        Node::Filter { input, .. } | Node::Project { input, .. } => gives_rows_at_once(input),
        Node::Sort { input, presorted, .. } => *presorted > 0 && gives_rows_at_once(input),
        Node::NestedLoop(join) => {
            let is_kept_first = matches!(join.inner, Node::Materialize { .. });
            gives_rows_at_once(&join.outer) && !is_kept_first
        }
        Node::Limit(limit) => gives_rows_at_once(&limit.input),
        _ => false,
    }
}

/// The set operation that a query is nothing but.
fn chained(query: &Query) -> Option<&SetOperation> {
    let plain = query.ctes.is_empty()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none();
    match &query.body {
        Body::SetOperation(operation) if plain => Some(operation),
        _ => None,
    }
}

fn columns_of(slot: Slot, width: usize) -> Vec<Expr> {
    (0..width).map(|place| Expr::Column(column(slot, place))).collect()
}

impl Path {
    /// Any number of rows in any order.
    pub(super) fn of(node: Node, targets: Vec<Expr>, rows: f64, cost: f64) -> Self {
        Self {
            node,
            targets,
            rows,
            cost,
            ordered: false,
            presorted: 0,
            all_sorted: false,
            one_row: false,
        }
    }

    /// Puts a node on top.
    pub(super) fn wrap(&mut self, make: impl FnOnce(Node) -> Node) {
        let input = std::mem::replace(&mut self.node, Node::Result { filter: None });
        self.node = make(input);
    }
}
