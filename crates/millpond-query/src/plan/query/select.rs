//! A SELECT: FROM and WHERE, then groups, HAVING, windows.

use super::Planning;
use super::build::filtered;
use super::estimate::UNKNOWN_ROWS;
use super::node::{Acceleration, Aggregate, NestedLoop, Node, Strategy};
use super::problem::Problem;
use super::push_down::parted_having;
use super::shared_states::shared_states;
use super::wanted::Wanted;
use crate::analyze::tree::{
    AggregateCall, Bound, Distinct, Frame, Grouping, JoinKind, Select, SetFunction, SetStep,
    Window, WindowCall, column,
};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::SortKey;

/// A node, what a query returns of its rows, and what is known of it.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) node: Node,
    pub(super) targets: Vec<Expr>,
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Rows come in the order that was wanted.
    pub(super) ordered: bool,
    /// Rows come in the order of that many of the first keys that were wanted.
    pub(super) presorted: usize,
    /// Rows that are equal in all targets come one after the other.
    pub(super) all_sorted: bool,
    pub(super) one_row: bool,
}

impl Planning<'_> {
    /// A SELECT under further conditions on what its targets are computed from, before DISTINCT.
    /// `sets_later`: without its last functions that return rows.
    pub(super) fn select(
        &mut self,
        select: &Select,
        more: Vec<Expr>,
        sort: &[SortKey],
        limit: Option<f64>,
        sets_later: bool,
    ) -> Result<Path> {
        let (of_rows, having) = parted_having(select)?;
        let mut problem = self.problem(select, more.into_iter().chain(of_rows).collect())?;
        let sort = &*self.sort_keys(sort)?;
        self.drop_unused_joins(&mut problem, select, sort);
        let mut path = match &select.grouping {
            Some(grouping) => {
                let limit = limit.filter(|_| having.is_empty());
                self.grouped(grouping, select, &problem, sort, limit)?
            }
            None => {
                let limit = limit.filter(|_| select.windows.is_empty());
                let (order, limit, or_hashed) = match &select.distinct {
                    Distinct::All if select.windows.is_empty() => {
                        let order = self.order_of_all(select, sort)?;
                        let limit = self.rows_of_first_groups(&problem, &order, limit);
                        (order, limit, true)
                    }
                    distinct => {
                        let limit = limit.filter(|_| matches!(distinct, Distinct::No));
                        (self.order_before(select, sort)?, limit, false)
                    }
                };
                let wanted = Wanted { sort: &order, limit, or_hashed };
                let path = self.solve(&problem, &[], wanted)?;
                Path { all_sorted: or_hashed && path.ordered, ..path }
            }
        };
        let mut conditions = Vec::new();
        for condition in having {
            conditions.extend(self.resolved_conjuncts(Some(condition))?);
        }
        path.node = filtered(path.node, conditions);
        let mut sorted = if path.ordered && select.grouping.is_none() {
            self.order_before(select, sort)?
        } else {
            Vec::new()
        };
        self.set_steps(&mut path, &select.sets_before_windows)?;
        for window in &select.windows {
            path.node = self.window(path.node, window, &mut sorted)?;
        }
        if !select.windows.is_empty() {
            (path.ordered, path.presorted) = (!sort.is_empty() && sorted.starts_with(sort), 0);
        }
        if !sets_later {
            self.set_steps(&mut path, &select.sets)?;
        }
        path.targets = self.resolve_all(&select.targets)?;
        Ok(path)
    }

    /// Functions that are called for each row, and give theirs beside it.
    pub(super) fn set_steps(&mut self, path: &mut Path, steps: &[SetStep]) -> Result<()> {
        for SetStep { slot, functions } in steps {
            let (slot, functions) = (*slot, self.functions(functions)?);
            let inner = Node::Functions { slot, functions, with_ordinality: false };
            path.wrap(|outer| {
                Node::NestedLoop(Box::new(NestedLoop::new(JoinKind::Inner, outer, inner, None)))
            });
            (path.one_row, path.rows) = (false, path.rows * UNKNOWN_ROWS);
        }
        Ok(())
    }

    /// The order in which a SELECT without groups takes its rows best.
    fn order_before(&mut self, select: &Select, sort: &[SortKey]) -> Result<Vec<SortKey>> {
        if let Some(window) = select.windows.first() {
            return self.window_order(window);
        }
        match &select.distinct {
            Distinct::All => Ok(Vec::new()),
            Distinct::On(list) if sort.is_empty() => {
                Ok(self.resolve_all(list)?.into_iter().map(ascending).collect())
            }
            Distinct::No | Distinct::On(_) => Ok(sort.to_vec()),
        }
    }

    /// The order of all different rows: that of the query, then that of the columns.
    fn order_of_all(&mut self, select: &Select, sort: &[SortKey]) -> Result<Vec<SortKey>> {
        let mut order = sort.to_vec();
        for target in self.resolve_all(&select.targets)? {
            if !order.iter().any(|key| key.expr == target) {
                order.push(ascending(target));
            }
        }
        Ok(order)
    }

    fn grouped(
        &mut self,
        grouping: &Grouping,
        select: &Select,
        problem: &Problem<'_>,
        sort: &[SortKey],
        limit: Option<f64>,
    ) -> Result<Path> {
        let keys = self.resolve_all(&grouping.keys)?;
        let plain = grouping.sets.is_none() && select.windows.is_empty();
        // Groups in the order of their rows are in the query's order, if that is one of keys.
        let place = |key: &SortKey| {
            (0..keys.len()).find(|place| key.expr == Expr::Column(column(grouping.slot, *place)))
        };
        let by_keys: Option<Vec<usize>> = sort.iter().map(place).collect();
        let mut order: Vec<SortKey> = Vec::new();
        if let Some(places) = by_keys.as_ref().filter(|_| plain) {
            for (key, place) in sort.iter().zip(places) {
                order.push(SortKey { expr: keys[*place].clone(), ..*key });
            }
        }
        for key in &keys {
            if !order.iter().any(|other| other.expr == *key) {
                order.push(ascending(key.clone()));
            }
        }
        if grouping.sets.is_some() {
            order.clear();
        }
        let path = match self.extremes(grouping, problem)? {
            Some(path) => path,
            None => {
                let gives_groups = plain && by_keys.is_some();
                let groups =
                    limit.filter(|_| gives_groups && matches!(select.distinct, Distinct::No));
                let limit = self.rows_of_first_groups(problem, &order, groups);
                self.solve(problem, &[], Wanted { sort: &order, limit, or_hashed: true })?
            }
        };
        let is_sorted = !order.is_empty() && (path.ordered || path.one_row);
        let strategy = match () {
            () if keys.is_empty() && grouping.sets.is_none() => Strategy::Plain,
            () if is_sorted => Strategy::Sorted,
            () => Strategy::Hashed,
        };
        let calls: Vec<_> = grouping
            .aggregates
            .iter()
            .map(|call| self.aggregate_call(call))
            .collect::<Result<_>>()?;
        let one_row = strategy == Strategy::Plain;
        let rows = if one_row { 1.0 } else { path.rows.sqrt().max(1.0) };
        let cost = path.cost + path.rows;
        let node = Node::Aggregate(Box::new(Aggregate {
            input: path.node,
            slot: grouping.slot,
            keys,
            sets: grouping.sets.clone(),
            states: shared_states(&calls),
            calls,
            grouping: grouping.grouping.clone(),
            strategy,
            input_rows: path.rows,
            accelerated: Acceleration::No,
            in_parts: false,
        }));
        let ordered = is_sorted && plain && by_keys.is_some() && !sort.is_empty();
        let presorted = 0;
        let targets = Vec::new();
        Ok(Path { node, targets, rows, cost, ordered, presorted, all_sorted: false, one_row })
    }

    fn aggregate_call(&mut self, call: &AggregateCall) -> Result<AggregateCall> {
        Ok(AggregateCall {
            args: self.resolve_all(&call.args)?,
            order_by: self.sort_keys(&call.order_by)?,
            filter: call.filter.as_ref().map(|e| self.resolve(e)).transpose()?,
            ..call.clone()
        })
    }

    pub(super) fn sort_keys(&mut self, keys: &[SortKey]) -> Result<Vec<SortKey>> {
        keys.iter().map(|key| Ok(SortKey { expr: self.resolve(&key.expr)?, ..*key })).collect()
    }

    fn window_order(&mut self, window: &Window) -> Result<Vec<SortKey>> {
        let partition = self.resolve_all(&window.partition_by)?;
        let mut keys: Vec<SortKey> = partition.into_iter().map(ascending).collect();
        keys.extend(self.sort_keys(&window.order_by)?);
        Ok(keys)
    }

    fn window(&mut self, input: Node, window: &Window, sorted: &mut Vec<SortKey>) -> Result<Node> {
        let keys = self.window_order(window)?;
        let input = if keys.is_empty() || sorted.starts_with(&keys) {
            input
        } else {
            sorted.clone_from(&keys);
            Node::Sort { input: Box::new(input), keys, presorted: 0, bound: None, in_parts: false }
        };
        let mut calls = Vec::with_capacity(window.calls.len());
        for call in &window.calls {
            calls.push(WindowCall {
                function: call.function,
                args: self.resolve_all(&call.args)?,
                filter: call.filter.as_ref().map(|e| self.resolve(e)).transpose()?,
                ty: call.ty,
            });
        }
        let frame = Frame {
            start: self.bound(&window.frame.start)?,
            end: self.bound(&window.frame.end)?,
            ..window.frame.clone()
        };
        let window = Window {
            slot: window.slot,
            partition_by: self.resolve_all(&window.partition_by)?,
            order_by: self.sort_keys(&window.order_by)?,
            frame,
            calls,
        };
        Ok(Node::Window { input: Box::new(input), window })
    }

    fn bound(&mut self, bound: &Bound) -> Result<Bound> {
        Ok(match bound {
            Bound::Preceding(e) => Bound::Preceding(self.resolve(e)?),
            Bound::Following(e) => Bound::Following(self.resolve(e)?),
            other => other.clone(),
        })
    }

    pub(super) fn functions(&mut self, functions: &[SetFunction]) -> Result<Vec<SetFunction>> {
        functions
            .iter()
            .map(|function| {
                let args = self.resolve_all(&function.args)?;
                Ok(SetFunction { kind: function.kind.clone(), args, columns: function.columns })
            })
            .collect()
    }
}

pub(super) fn ascending(expr: Expr) -> SortKey {
    SortKey { expr, descending: false, nulls_first: false }
}
