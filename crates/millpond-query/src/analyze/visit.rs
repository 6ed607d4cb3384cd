//! Looking at all expressions of a query, at its slots, and at all queries of WITH that it reads.

use super::tree::{
    Body, Bound, CteId, CteQuery, Distinct, FromItem, JoinKind, Query, Select, Slot,
};
use crate::expr::Expr;
use crate::plan::SortKey;

/// What is told of a query's parts.
trait Visitor {
    /// An expression, with all its parts.
    fn expr(&mut self, expr: &Expr);
    /// A query of WITH is read.
    fn cte(&mut self, _cte: CteId) {}
    /// Two items of FROM are joined.
    fn join(&mut self, _kind: JoinKind) {}
    /// A relation of the query has this slot.
    fn slot(&mut self, _slot: Slot) {}
}

struct Exprs<'v>(&'v mut dyn FnMut(&Expr));

impl Visitor for Exprs<'_> {
    fn expr(&mut self, expr: &Expr) {
        expr.walk_all(self.0);
    }
}

struct Ctes<'v>(&'v mut dyn FnMut(CteId));

impl Visitor for Ctes<'_> {
    fn expr(&mut self, expr: &Expr) {
        inner_queries(expr, self);
    }

    fn cte(&mut self, cte: CteId) {
        (self.0)(cte);
    }
}

struct Slots<'v>(&'v mut dyn FnMut(Slot));

impl Visitor for Slots<'_> {
    fn expr(&mut self, expr: &Expr) {
        inner_queries(expr, self);
    }

    fn slot(&mut self, slot: Slot) {
        (self.0)(slot);
    }
}

fn inner_queries(expr: &Expr, visitor: &mut dyn Visitor) {
    expr.walk(&mut |e| {
        if let Expr::Subquery(subquery) = e {
            query(&subquery.query, visitor);
        }
    });
}

impl Query {
    /// Calls `visit` for all expressions in it and in the queries inside of it.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        query(self, &mut Exprs(visit));
    }

    /// Calls `visit` for each time that a query of WITH is read.
    pub(crate) fn walk_ctes(&self, visit: &mut dyn FnMut(CteId)) {
        query(self, &mut Ctes(visit));
    }

    /// Calls `visit` for each slot that belongs to it or to a query inside of it.
    pub(crate) fn walk_slots(&self, visit: &mut dyn FnMut(Slot)) {
        query(self, &mut Slots(visit));
    }
}

impl Select {
    /// Calls `visit` for all expressions over its rows: all but those of FROM and WHERE.
    pub(crate) fn walk_over_rows(&self, visit: &mut dyn FnMut(&Expr)) {
        over_rows(self, &mut Exprs(visit));
    }
}

fn query(of: &Query, visitor: &mut dyn Visitor) {
    for cte in &of.ctes {
        match &cte.query {
            CteQuery::Plain(inner) => query(inner, visitor),
            CteQuery::Recursive { start, step, .. } => {
                query(start, visitor);
                query(step, visitor);
            }
            CteQuery::Modification(modification) => query(&modification.query, visitor),
        }
    }
    match &of.body {
        Body::Select(inner) => select(inner, visitor),
        Body::SetOperation(operation) => {
            visitor.slot(operation.slot);
            query(&operation.left, visitor);
            query(&operation.right, visitor);
        }
        Body::Values(values) => {
            visitor.slot(values.slot);
            values.rows.iter().flatten().for_each(|e| visitor.expr(e));
        }
    }
    sort(&of.order_by, visitor);
    of.limit.iter().chain(&of.offset).for_each(|e| visitor.expr(e));
}

fn select(of: &Select, visitor: &mut dyn Visitor) {
    of.from.iter().for_each(|item| from(item, visitor));
    of.condition.iter().for_each(|e| visitor.expr(e));
    over_rows(of, visitor);
}

fn over_rows(of: &Select, visitor: &mut dyn Visitor) {
    of.having.iter().chain(&of.targets).for_each(|e| visitor.expr(e));
    if let Some(grouping) = &of.grouping {
        visitor.slot(grouping.slot);
        grouping.keys.iter().for_each(|e| visitor.expr(e));
        for call in &grouping.aggregates {
            call.args.iter().chain(&call.filter).for_each(|e| visitor.expr(e));
            sort(&call.order_by, visitor);
        }
    }
    for window in &of.windows {
        visitor.slot(window.slot);
        window.partition_by.iter().for_each(|e| visitor.expr(e));
        sort(&window.order_by, visitor);
        for bound in [&window.frame.start, &window.frame.end] {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                visitor.expr(e);
            }
        }
        for call in &window.calls {
            call.args.iter().chain(&call.filter).for_each(|e| visitor.expr(e));
        }
    }
    for step in of.sets_before_windows.iter().chain(&of.sets) {
        visitor.slot(step.slot);
        step.functions.iter().flat_map(|function| &function.args).for_each(|e| visitor.expr(e));
    }
    if let Distinct::On(list) = &of.distinct {
        list.iter().for_each(|e| visitor.expr(e));
    }
}

fn from(item: &FromItem, visitor: &mut dyn Visitor) {
    match item {
        FromItem::Table { slot, .. } | FromItem::WorkTable { slot, .. } => visitor.slot(*slot),
        FromItem::Sample { slot, sample, .. } => {
            visitor.slot(*slot);
            std::iter::once(&sample.percent).chain(&sample.seed).for_each(|e| visitor.expr(e));
        }
        FromItem::Cte { slot, cte, .. } => {
            visitor.slot(*slot);
            visitor.cte(cte.id);
        }
        FromItem::Subquery { slot, query: inner, .. } => {
            visitor.slot(*slot);
            query(inner, visitor);
        }
        FromItem::Functions { slot, functions, .. } => {
            visitor.slot(*slot);
            functions.iter().flat_map(|function| &function.args).for_each(|e| visitor.expr(e));
        }
        FromItem::Join(join) => {
            visitor.join(join.kind);
            from(&join.left, visitor);
            from(&join.right, visitor);
            join.on.iter().for_each(|e| visitor.expr(e));
        }
    }
}

fn sort(keys: &[SortKey], visitor: &mut dyn Visitor) {
    keys.iter().for_each(|key| visitor.expr(&key.expr));
}
