//! Nodes: scans, filters, subqueries, aggregations within.

use std::sync::Arc;

use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::projection::ProjectionExec;
use millpond_query::expr::{Compare, Expr};
use millpond_query::plan::external::{
    Access, Aggregate, KeyBounds, KeyList, Node, Scan, Slot, conjuncts, each_scan, packed, slot_of,
};
use millpond_types::DataType;

use super::{Columns, Operators, Translated, Translator, add_columns, name_of, physical};
use crate::errors::Failure;
use crate::table::{self, Source};
use crate::types::arrow_type;

/// A node's rows.
pub(super) struct Rows {
    pub(super) plan: Operators,
    /// The columns of the plan, in order.
    pub(super) columns: Vec<usize>,
    /// What the join above has to check.
    pub(super) conditions: Vec<Expr>,
}

impl Rows {
    pub(super) fn without_conditions(self) -> Translated<Self> {
        if self.conditions.is_empty() { Ok(self) } else { Err(Failure::Declined) }
    }
}

impl Translator<'_> {
    /// The rows of a node. They have its columns that are `wanted` above it, and may have others.
    pub(super) fn node(&mut self, node: &Node, wanted: &Columns) -> Translated<Rows> {
        match node {
            Node::Scan(scan) => self.scan(scan, wanted),
            Node::Materialize { input } | Node::Sort { input, bound: None, .. } => {
                self.node(input, wanted)
            }
            Node::Filter { input, condition } => {
                let mut below = wanted.clone();
                add_columns(condition, &mut below);
                let Rows { plan, columns, conditions } = self.node(input, &below)?;
                let condition = physical(&self.condition(condition)?, &plan.schema())?;
                let plan = Arc::new(FilterExec::try_new(condition, plan)?);
                Ok(Rows { plan, columns, conditions })
            }
            Node::Project { input, slot, exprs } => self.project(input, *slot, exprs, wanted),
            Node::NestedLoop(join) => self.nested_loop(join, wanted),
            Node::HashJoin(join) => self.hash_join(join, wanted),
            Node::Aggregate(aggregate) => self.inner_aggregate(aggregate),
            _ => Err(Failure::Declined),
        }
    }

    fn scan(&mut self, scan: &Scan, wanted: &Columns) -> Translated<Rows> {
        let slot = scan.slot;
        let (own, conditions) = conditions_of(scan)?;
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
        let types: Vec<_> = types.collect();
        let columns: Vec<usize> = (0..types.len())
            .map(|place| packed(slot, place))
            .filter(|column| wanted.contains(column))
            .collect();
        let mut read = Vec::new();
        for column in &columns {
            let place = slot_of(*column).1;
            // A column of a type that is not computed here.
            let ty = types.get(place).copied().flatten().ok_or(Failure::Declined)?;
            read.push((place, name_of(*column), ty));
        }
        self.types.insert(slot.0, types);
        let source = Source {
            def: Arc::clone(def),
            scanner: Arc::clone(self.scanner),
            conditions: own.into(),
            surroundings: Arc::clone(self.surroundings),
        };
        Ok(Rows { plan: table::scan(source, &read, self.parts)?, columns, conditions })
    }

    fn project(
        &mut self,
        input: &Node,
        slot: Slot,
        exprs: &[Expr],
        wanted: &Columns,
    ) -> Translated<Rows> {
        let is_wanted = |place| wanted.contains(&packed(slot, place));
        let mut below = self.passed.clone();
        for (_, expr) in exprs.iter().enumerate().filter(|(place, _)| is_wanted(*place)) {
            add_columns(expr, &mut below);
        }
        let input = self.node(input, &below)?.without_conditions()?;
        let (mut types, mut columns, mut computed) = (Vec::new(), Vec::new(), Vec::new());
        for (place, expr) in exprs.iter().enumerate() {
            types.push(None);
            if is_wanted(place) {
                let typed = self.value(expr)?;
                let column = packed(slot, place);
                computed.push((physical(&typed.expr, &input.plan.schema())?, name_of(column)));
                columns.push(column);
                types[place] = Some(typed.ty);
            }
        }
        self.types.insert(slot.0, types);
        let plan = Arc::new(ProjectionExec::try_new(computed, input.plan)?);
        Ok(Rows { plan, columns, conditions: Vec::new() })
    }

    /// An aggregation whose groups are rows of another one.
    fn inner_aggregate(&mut self, aggregate: &Aggregate) -> Translated<Rows> {
        let translation = self.aggregation(aggregate)?;
        let schema = translation.plan.schema();
        let (mut types, mut columns, mut computed) = (Vec::new(), Vec::new(), Vec::new());
        for result in &translation.results {
            let at = result.plain().ok_or(Failure::Declined)?;
            let column = datafusion_common::Column::new_unqualified(schema.field(at).name());
            computed.push(datafusion_expr::Expr::Column(column));
            types.push(translation.types.get(at).copied());
        }
        // GROUPING() of keys that are all there.
        for _ in &aggregate.grouping {
            computed.push(datafusion_expr::lit(0i32));
            types.push(Some(DataType::Int4));
        }
        let mut named = Vec::new();
        for (place, expr) in computed.iter().enumerate() {
            let column = packed(aggregate.slot, place);
            named.push((physical(expr, &schema)?, name_of(column)));
            columns.push(column);
        }
        self.types.insert(aggregate.slot.0, types);
        let plan = Arc::new(ProjectionExec::try_new(named, translation.plan)?);
        Ok(Rows { plan, columns, conditions: Vec::new() })
    }
}

/// The columns that conditions of scans use, and that a scan can't decide alone.
pub(super) fn passed_columns(node: &Node) -> Translated<Columns> {
    let mut columns = Columns::new();
    let mut result = Ok(());
    each_scan(node, &mut |scan| match conditions_of(scan) {
        Ok((_, passed)) => passed.iter().for_each(|e| add_columns(e, &mut columns)),
        Err(failure) => result = Err(failure),
    });
    result.map(|()| columns)
}

/// The conditions of a scan: those about its own columns alone, and the others.
fn conditions_of(scan: &Scan) -> Translated<(Vec<Expr>, Vec<Expr>)> {
    let mut all = conjuncts(scan.filter.as_ref()).to_vec();
    all.extend(access_condition(scan)?);
    let is_own = |condition: &Expr| {
        let mut columns = Columns::new();
        add_columns(condition, &mut columns);
        columns.iter().all(|column| slot_of(*column).0 == scan.slot)
    };
    Ok(all.into_iter().partition(is_own))
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
