//! `min` and `max` of columns: each is in the first row of an order.

use super::Planning;
use super::node::{Limit, Node};
use super::problem::{Problem, Relation};
use super::select::Path;
use super::wanted::Wanted;
use crate::Value;
use crate::analyze::tree::{AggregateFunction, Grouping, Slot, slot_of};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::SortKey;

/// An aggregate's order, and what leaves out NULLs, which count for nothing.
struct Extreme {
    key: SortKey,
    no_nulls: Option<Expr>,
}

impl Planning<'_> {
    /// The rows that decide the only values asked for, if these are `min` and `max` of columns of a
    /// table, and indexes have their orders: for each value the first row of its order. A value is
    /// the same among these rows as among all, so they are aggregated together. All rows, if
    /// reading them once costs less than several such looks. `None` if something else is asked for,
    /// or no index has an order.
    pub(super) fn extremes(
        &mut self,
        grouping: &Grouping,
        problem: &Problem<'_>,
    ) -> Result<Option<Path>> {
        let Some((slot, extremes)) = self.all_extremes(grouping, problem)? else { return Ok(None) };
        let (mut inputs, mut cost) = (Vec::new(), 0.0);
        for Extreme { key, no_nulls } in extremes {
            let wanted = Wanted { sort: &[key], limit: Some(1.0), or_hashed: true };
            let found = self.solve(problem, no_nulls.as_slice(), wanted)?;
            if !found.ordered {
                return Ok(None);
            }
            cost += found.cost / found.rows;
            let limit = Some(Expr::Const(Value::Int8(1)));
            let limit = Limit { input: found.node, limit, offset: None, ties: None };
            inputs.push((Node::Limit(Box::new(limit)), slot));
        }
        let rows = inputs.len() as f64;
        let node = match (inputs.len(), inputs.pop()) {
            (1, Some((one, _))) => one,
            (_, last) => {
                let whole = self.solve(problem, &[], Wanted::default())?;
                if whole.cost < cost {
                    return Ok(Some(whole));
                }
                inputs.extend(last);
                Node::Append { slot, inputs }
            }
        };
        Ok(Some(Path {
            node,
            targets: Vec::new(),
            rows,
            cost,
            ordered: false,
            presorted: 0,
            all_sorted: false,
            one_row: rows == 1.0,
        }))
    }

    /// The table's slot, and the orders of all aggregates; `None` if one of them is another.
    fn all_extremes(
        &mut self,
        grouping: &Grouping,
        problem: &Problem<'_>,
    ) -> Result<Option<(Slot, Vec<Extreme>)>> {
        let ([item], [], [], None) =
            (&*problem.items, &*problem.dependents, &*grouping.keys, &grouping.sets)
        else {
            return Ok(None);
        };
        let Relation::Table { slot, table, .. } = &item.relation else { return Ok(None) };
        if grouping.aggregates.len() > 1 && problem.conjuncts.iter().any(Expr::is_volatile) {
            return Ok(None);
        }
        let mut extremes: Vec<Extreme> = Vec::with_capacity(grouping.aggregates.len());
        for call in &grouping.aggregates {
            let descending = match call.function {
                AggregateFunction::Min => false,
                AggregateFunction::Max => true,
                _ => return Ok(None),
            };
            let ([arg], None) = (&*call.args, &call.filter) else { return Ok(None) };
            let expr = self.resolve(arg)?;
            let Expr::Column(column) = &expr else { return Ok(None) };
            let (own, place) = slot_of(*column);
            if own != *slot {
                return Ok(None);
            }
            let has_nulls = table.columns.get(place).is_none_or(|column| !column.not_null);
            let no_nulls = has_nulls.then(|| Expr::IsNull(Box::new(expr.clone()), true));
            let key = SortKey { expr, descending, nulls_first: descending };
            if !extremes.iter().any(|other| other.key == key) {
                extremes.push(Extreme { key, no_nulls });
            }
        }
        Ok((!extremes.is_empty()).then_some((*slot, extremes)))
    }
}
