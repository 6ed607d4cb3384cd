//! Nodes: scans, joins, subqueries, aggregations within.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use millpond_query::expr::{Compare, Expr};
use millpond_query::plan::external::{
    Access, Aggregate, JoinKind, KeyBounds, KeyList, Node, Scan, Slot, conjuncts, packed, slot_of,
};
use millpond_types::DataType;

use super::{Translated, Translator, name_of, relation};
use crate::errors::Failure;
use crate::table::{Source, Table};
use crate::types::arrow_type;

/// A node's rows, and conditions that the join above has to check.
pub(super) struct Rows {
    pub(super) plan: LogicalPlan,
    pub(super) conditions: Vec<Expr>,
}

impl Rows {
    fn without_conditions(self) -> Translated<LogicalPlan> {
        if self.conditions.is_empty() { Ok(self.plan) } else { Err(Failure::Declined) }
    }
}

impl Translator<'_> {
    pub(super) fn node(&mut self, node: &Node) -> Translated<Rows> {
        match node {
            Node::Scan(scan) => self.scan(scan),
            Node::Materialize { input } | Node::Sort { input, bound: None, .. } => self.node(input),
            Node::Filter { input, condition } => {
                let Rows { plan, conditions } = self.node(input)?;
                let condition = self.condition(condition)?;
                let plan = LogicalPlanBuilder::from(plan).filter(condition)?.build()?;
                Ok(Rows { plan, conditions })
            }
            Node::Project { input, slot, exprs } => self.project(input, *slot, exprs),
            Node::NestedLoop(join) => {
                let on = join.on.iter().cloned().collect();
                self.join(join.kind, &join.outer, &join.inner, on)
            }
            Node::HashJoin(join) => {
                let equal = |(outer, inner): &(Expr, Expr)| {
                    Expr::Compare(Compare::Eq, Box::new((outer.clone(), inner.clone())))
                };
                let on = join.keys.iter().map(equal).chain(join.on.iter().cloned()).collect();
                match join.gives_inner {
                    true => self.join(join.kind, &join.inner, &join.outer, on),
                    false => self.join(join.kind, &join.outer, &join.inner, on),
                }
            }
            Node::Aggregate(aggregate) => self.inner_aggregate(aggregate),
            _ => Err(Failure::Declined),
        }
    }

    fn scan(&mut self, scan: &Scan) -> Translated<Rows> {
        let slot = scan.slot.0;
        let mut all: Vec<Expr> = Vec::new();
        for condition in conjuncts(scan.filter.as_ref()) {
            all.push(condition.clone());
        }
        all.extend(access_condition(scan)?);
        let is_own = |condition: &Expr| {
            let mut own = true;
            condition.walk(&mut |e| {
                if let Expr::Column(column) = e {
                    own &= slot_of(*column).0.0 == slot;
                }
            });
            own
        };
        let (own, conditions): (Vec<_>, Vec<_>) = all.into_iter().partition(is_own);
        let place_only = |condition: Expr| {
            let placed = condition.map_columns(&mut |column| slot_of(column).1)?;
            Ok(self.local.with(|env| placed.folded(env))?)
        };
        let own = own.into_iter().map(place_only).collect::<Translated<Vec<_>>>()?;
        let def = &scan.table;
        let types = def.columns.iter().map(|column| {
            let ty = column.ty;
            arrow_type(ty).is_some().then_some(ty)
        });
        self.types.insert(slot, types.collect());
        let source = Source {
            def: Arc::clone(def),
            scanner: Arc::clone(self.scanner),
            conditions: own.into(),
            surroundings: Arc::clone(self.surroundings),
        };
        let table = provider_as_source(Arc::new(Table::new(source, name_of)));
        let plan = LogicalPlanBuilder::scan(relation(slot), table, None)?.build()?;
        Ok(Rows { plan, conditions })
    }

    fn project(&mut self, input: &Node, slot: Slot, exprs: &[Expr]) -> Translated<Rows> {
        let input = self.node(input)?.without_conditions()?;
        let mut columns = Vec::new();
        let mut types = Vec::new();
        for (place, expr) in exprs.iter().enumerate() {
            let typed = self.value(expr)?;
            columns.push(typed.expr.alias(name_of(place)));
            types.push(Some(typed.ty));
        }
        self.types.insert(slot.0, types);
        let builder = LogicalPlanBuilder::from(input).project(columns)?;
        Ok(Rows { plan: builder.alias(relation(slot.0))?.build()?, conditions: Vec::new() })
    }

    fn join(
        &mut self,
        kind: JoinKind,
        outer: &Node,
        inner: &Node,
        mut on: Vec<Expr>,
    ) -> Translated<Rows> {
        let outer = self.node(outer)?;
        let inner = self.node(inner)?;
        let mut conditions = outer.conditions;
        // An inner join may leave to the one above what it does not know.
        let here = [outer.plan.schema(), inner.plan.schema()];
        for condition in inner.conditions {
            let mut known = true;
            condition.walk(&mut |e| {
                if let Expr::Column(column) = e {
                    let relation = relation(slot_of(*column).0.0);
                    known &= here.iter().any(|schema| {
                        schema.iter().any(|(qualifier, _)| qualifier == Some(&relation))
                    });
                }
            });
            match (known, kind) {
                (true, _) => on.push(condition),
                (false, JoinKind::Inner) => conditions.push(condition),
                (false, _) => return Err(Failure::Declined),
            }
        }
        if !conditions.is_empty() && kind != JoinKind::Inner {
            return Err(Failure::Declined);
        }
        let on =
            on.iter().map(|condition| self.condition(condition)).collect::<Translated<Vec<_>>>()?;
        let kind = match kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
            JoinKind::Semi => JoinType::LeftSemi,
            JoinKind::Anti => JoinType::LeftAnti,
        };
        let builder = LogicalPlanBuilder::from(outer.plan);
        let plan = builder.join_on(inner.plan, kind, on)?.build()?;
        Ok(Rows { plan, conditions })
    }

    /// An aggregation whose groups are rows of another one.
    fn inner_aggregate(&mut self, aggregate: &Aggregate) -> Translated<Rows> {
        let translation = self.aggregation(aggregate)?;
        let mut columns = Vec::new();
        let mut types = Vec::new();
        for (place, result) in translation.results.iter().enumerate() {
            let at = result.plain().ok_or(Failure::Declined)?;
            let (qualifier, field) = translation.plan.schema().qualified_field(at);
            let column = datafusion::common::Column::from((qualifier, field));
            columns.push(datafusion::logical_expr::Expr::Column(column).alias(name_of(place)));
            types.push(translation.types.get(at).copied());
        }
        // GROUPING() of keys that are all there.
        for _ in &aggregate.grouping {
            let place = columns.len();
            columns.push(datafusion::logical_expr::lit(0i32).alias(name_of(place)));
            types.push(Some(DataType::Int4));
        }
        let slot = aggregate.slot.0;
        self.types.insert(slot, types);
        let builder = LogicalPlanBuilder::from(translation.plan).project(columns)?;
        Ok(Rows { plan: builder.alias(relation(slot))?.build()?, conditions: Vec::new() })
    }
}

/// What the rows of an access path have in common.
fn access_condition(scan: &Scan) -> Translated<Option<Expr>> {
    let range = match &scan.access {
        Access::Heap => return Ok(None),
        Access::Nothing | Access::Tids(_) => return Err(Failure::Declined),
        Access::Point { index, key } => {
            let columns = index.columns.iter().map(|column| packed(scan.slot, column.column));
            let equal =
                columns.zip(key).map(|(column, part)| compare(Compare::Eq, column, &part.expr));
            return Ok(Some(Expr::And(equal.collect())));
        }
        Access::Range(range) => range,
    };
    let columns: Vec<usize> =
        range.index.columns.iter().map(|column| packed(scan.slot, column.column)).collect();
    let any_of = range.any_of.iter().map(|bounds| bounds_condition(bounds, &columns));
    let mut any_of = any_of.collect::<Translated<Vec<_>>>()?;
    Ok(match any_of.len() {
        0 => return Err(Failure::Declined),
        1 => any_of.pop(),
        _ => Some(Expr::Or(any_of)),
    })
}

fn bounds_condition(bounds: &KeyBounds, columns: &[usize]) -> Translated<Expr> {
    let mut all: Vec<Expr> = columns
        .iter()
        .zip(&bounds.equal)
        .map(|(column, part)| compare(Compare::Eq, *column, &part.expr))
        .collect();
    let next = columns.get(bounds.equal.len()).copied();
    let ranges = [
        bounds.from.as_ref().map(|(part, inclusive)| (part, [Compare::Gt, Compare::Ge], inclusive)),
        bounds.to.as_ref().map(|(part, inclusive)| (part, [Compare::Lt, Compare::Le], inclusive)),
    ];
    for (part, operators, inclusive) in ranges.into_iter().flatten() {
        let column = next.ok_or(Failure::Declined)?;
        all.push(compare(operators[usize::from(*inclusive)], column, &part.expr));
    }
    match &bounds.list {
        None => {}
        Some(KeyList::Items(items)) => {
            let column = next.ok_or(Failure::Declined)?;
            let items = items.iter().map(|item| item.expr.clone()).collect();
            all.push(Expr::In(Box::new(Expr::Column(column)), items, false));
        }
        Some(KeyList::Array(_)) => return Err(Failure::Declined),
    }
    Ok(Expr::And(all))
}

fn compare(operator: Compare, column: usize, with: &Expr) -> Expr {
    Expr::Compare(operator, Box::new((Expr::Column(column), with.clone())))
}
