//! The expressions of a query, to look at and to change.

use std::sync::Arc;

use super::tree::{
    AggregateCall, Body, Bound, Cte, CteQuery, Distinct, FromItem, Grouping, Query, Select,
    SetStep, SubqueryKind, Window,
};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::SortKey;

/// What is called for each expression.
pub(crate) type Visit<'f> = dyn FnMut(&mut Expr) -> Result<()> + 'f;

impl Expr {
    /// Calls `visit` for the expressions that it is directly made of. Those of a query within it
    /// are not among them: see [`Query::exprs_mut`].
    pub(crate) fn parts_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) => Ok(()),
            Expr::Neg(e)
            | Expr::Not(e)
            | Expr::IsNull(e, _)
            | Expr::IsBool(e, ..)
            | Expr::Cast(e, ..) => visit(e),
            Expr::Arith(_, pair)
            | Expr::Compare(_, pair)
            | Expr::Distinct(pair, _)
            | Expr::Concat(pair) => {
                visit(&mut pair.0)?;
                visit(&mut pair.1)
            }
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list) | Expr::Func(_, list) => {
                list.iter_mut().try_for_each(visit)
            }
            Expr::In(e, list, _) => {
                visit(e)?;
                list.iter_mut().try_for_each(visit)
            }
            Expr::Among(among) => visit(&mut among.value),
            Expr::Case(whens, otherwise) => {
                for (when, then) in whens {
                    visit(when)?;
                    visit(then)?;
                }
                otherwise.as_deref_mut().map_or(Ok(()), visit)
            }
            Expr::Like(like) => {
                visit(&mut like.value)?;
                visit(&mut like.pattern)?;
                like.escape.as_mut().map_or(Ok(()), visit)
            }
            Expr::Subquery(subquery) => match &mut subquery.kind {
                SubqueryKind::Scalar
                | SubqueryKind::Column(_)
                | SubqueryKind::Array(_)
                | SubqueryKind::Exists => Ok(()),
                SubqueryKind::Any(left, _) | SubqueryKind::All(left, _) => {
                    left.iter_mut().try_for_each(visit)
                }
            },
            Expr::SubPlan(call) => {
                let call = call.as_mut();
                call.args.iter_mut().chain(&mut call.left).try_for_each(visit)
            }
        }
    }

    /// Calls `change` for the expression and all its parts, from the outside in, also for those of
    /// queries within it. Where `change` says `true`, it has seen to the parts.
    pub(crate) fn change(
        &mut self,
        change: &mut dyn FnMut(&mut Expr) -> Result<bool>,
    ) -> Result<()> {
        if change(self)? {
            return Ok(());
        }
        self.parts_mut(&mut |part| part.change(change))?;
        if let Expr::Subquery(subquery) = self {
            Arc::make_mut(&mut subquery.query).exprs_mut(&mut |e| e.change(change))?;
        }
        Ok(())
    }
}

impl Query {
    /// Calls `visit` for each expression of the query, also of queries in its FROM and WITH, but
    /// not for the parts of expressions.
    pub(crate) fn exprs_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        let mut changed = Vec::new();
        self.visit(visit, &mut changed)
    }

    /// References to queries of WITH are to what those have become, which is in `ctes`.
    fn visit(&mut self, visit: &mut Visit<'_>, ctes: &mut Vec<Arc<Cte>>) -> Result<()> {
        let outer = ctes.len();
        for cte in &mut self.ctes {
            let own = Arc::make_mut(cte);
            match &mut own.query {
                CteQuery::Plain(query) => query.visit(visit, ctes)?,
                CteQuery::Recursive { start, step, .. } => {
                    start.visit(visit, ctes)?;
                    step.visit(visit, ctes)?;
                }
                CteQuery::Modification(modification) => modification.query.visit(visit, ctes)?,
            }
            ctes.push(Arc::clone(cte));
        }
        match &mut self.body {
            Body::Select(select) => select.visit(visit, ctes)?,
            Body::SetOperation(operation) => {
                operation.left.visit(visit, ctes)?;
                operation.right.visit(visit, ctes)?;
            }
            Body::Values(values) => values.rows.iter_mut().flatten().try_for_each(&mut *visit)?,
        }
        sort_keys(&mut self.order_by, visit)?;
        self.limit.as_mut().map_or(Ok(()), &mut *visit)?;
        self.offset.as_mut().map_or(Ok(()), &mut *visit)?;
        ctes.truncate(outer);
        Ok(())
    }
}

impl Select {
    fn visit(&mut self, visit: &mut Visit<'_>, ctes: &mut Vec<Arc<Cte>>) -> Result<()> {
        for item in &mut self.from {
            item.visit(visit, ctes)?;
        }
        self.condition.as_mut().map_or(Ok(()), &mut *visit)?;
        if let Some(Grouping { keys, aggregates, .. }) = &mut self.grouping {
            keys.iter_mut().try_for_each(&mut *visit)?;
            aggregates.iter_mut().try_for_each(|call| call.exprs_mut(visit))?;
        }
        self.having.as_mut().map_or(Ok(()), &mut *visit)?;
        self.windows.iter_mut().try_for_each(|window| window.exprs_mut(visit))?;
        let mut sets = self.sets_before_windows.iter_mut().chain(&mut self.sets);
        sets.try_for_each(|step| step.exprs_mut(visit))?;
        self.targets.iter_mut().try_for_each(&mut *visit)?;
        match &mut self.distinct {
            Distinct::On(keys) => keys.iter_mut().try_for_each(visit),
            Distinct::No | Distinct::All => Ok(()),
        }
    }
}

impl FromItem {
    fn visit(&mut self, visit: &mut Visit<'_>, ctes: &mut Vec<Arc<Cte>>) -> Result<()> {
        match self {
            FromItem::Table { .. } | FromItem::WorkTable { .. } => Ok(()),
            FromItem::Sample { sample, .. } => {
                visit(&mut sample.percent)?;
                sample.seed.as_mut().map_or(Ok(()), visit)
            }
            FromItem::Subquery { query, .. } => query.visit(visit, ctes),
            FromItem::Cte { cte, .. } => {
                if let Some(changed) = ctes.iter().find(|changed| changed.id == cte.id) {
                    *cte = Arc::clone(changed);
                }
                Ok(())
            }
            FromItem::Functions { functions, .. } => {
                functions.iter_mut().flat_map(|function| &mut function.args).try_for_each(visit)
            }
            FromItem::Join(join) => {
                join.left.visit(visit, ctes)?;
                join.right.visit(visit, ctes)?;
                join.on.as_mut().map_or(Ok(()), visit)
            }
        }
    }
}

impl AggregateCall {
    /// Calls `visit` for each of its expressions.
    pub(crate) fn exprs_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.args.iter_mut().try_for_each(&mut *visit)?;
        sort_keys(&mut self.order_by, visit)?;
        self.filter.as_mut().map_or(Ok(()), visit)
    }
}

impl SetStep {
    /// Calls `visit` for each of its expressions.
    pub(crate) fn exprs_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.functions.iter_mut().flat_map(|function| &mut function.args).try_for_each(visit)
    }
}

impl Window {
    /// Calls `visit` for each of its expressions.
    pub(crate) fn exprs_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.partition_by.iter_mut().try_for_each(&mut *visit)?;
        sort_keys(&mut self.order_by, visit)?;
        for bound in [&mut self.frame.start, &mut self.frame.end] {
            if let Bound::Preceding(e) | Bound::Following(e) = bound {
                visit(e)?;
            }
        }
        for call in &mut self.calls {
            call.args.iter_mut().try_for_each(&mut *visit)?;
            call.filter.as_mut().map_or(Ok(()), &mut *visit)?;
        }
        Ok(())
    }
}

fn sort_keys(keys: &mut [SortKey], visit: &mut Visit<'_>) -> Result<()> {
    keys.iter_mut().map(|key| &mut key.expr).try_for_each(visit)
}
