//! The operators of an aggregation.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::Column;
use datafusion_expr::{AggregateUDF, Cast, Expr as Planned};
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};

use super::join::{distributed, in_one_part};
use super::share::shared;
use super::{Operators, Translated, parts_of, physical};
use crate::errors::Failure;
use crate::sum;

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) function: Arc<AggregateUDF>,
    pub(super) arg: Planned,
    pub(super) filter: Option<Planned>,
    pub(super) is_distinct: bool,
}

impl Call {
    fn function(&self, number: usize, schema: &SchemaRef) -> Translated<AggregateFunctionExpr> {
        let args = vec![physical(&self.arg, schema)?];
        let builder = AggregateExprBuilder::new(Arc::clone(&self.function), args)
            .schema(Arc::clone(schema))
            .alias(format!("a{number}"))
            .with_distinct(self.is_distinct);
        Ok(builder.build()?)
    }
}

/// Keys and calls. The rows that they give have the keys first.
#[derive(Debug)]
pub(super) struct Grouping {
    pub(super) keys: Vec<Planned>,
    pub(super) calls: Vec<Call>,
}

impl Grouping {
    /// The aggregation of rows, in parts.
    pub(super) fn over(mut self, input: Operators, parts: usize) -> Translated<Operators> {
        let args = self
            .calls
            .iter_mut()
            .flat_map(|call| [&mut call.arg].into_iter().chain(&mut call.filter));
        let input = shared(input, self.keys.iter_mut().chain(args).collect())?;
        if let Some(value) = self.distinct_value() {
            return self.over_distinct(value, input, parts);
        }
        if self.calls.iter().any(|call| call.is_distinct && sum::is_exact(&call.function)) {
            return Err(Failure::Declined);
        }
        self.aggregated(input, parts)
    }

    /// The value whose distinct ones all calls are about.
    fn distinct_value(&self) -> Option<Planned> {
        let first = converted(&self.calls.first()?.arg);
        let is_alike = |call: &Call| {
            call.is_distinct && converted(&call.arg) == first && call.filter.is_none()
        };
        self.calls.iter().all(is_alike).then(|| first.clone())
    }

    /// Groups by the value first: its groups are distinct. Calls would keep a table for each group.
    fn over_distinct(
        self,
        value: Planned,
        input: Operators,
        parts: usize,
    ) -> Translated<Operators> {
        let key = |number| Planned::Column(Column::new_unqualified(format!("k{number}")));
        let count = self.keys.len();
        let keys = self.keys.into_iter().chain([value]).collect();
        let distinct = Grouping { keys, calls: Vec::new() }.aggregated(input, parts)?;
        let call = |call: Call| {
            let arg = with_value(call.arg, key(count));
            Call { arg, is_distinct: false, ..call }
        };
        let calls = self.calls.into_iter().map(call).collect();
        Grouping { keys: (0..count).map(key).collect(), calls }.aggregated(distinct, parts)
    }

    fn aggregated(&self, input: Operators, parts: usize) -> Translated<Operators> {
        let schema = input.schema();
        let key =
            |(number, key): (usize, &Planned)| Ok((physical(key, &schema)?, format!("k{number}")));
        let keys = self.keys.iter().enumerate().map(key).collect::<Translated<Vec<_>>>()?;
        let keys = PhysicalGroupBy::new_single(keys);
        let (mut calls, mut filters) = (Vec::new(), Vec::new());
        for (number, call) in self.calls.iter().enumerate() {
            calls.push(Arc::new(call.function(number, &schema)?));
            filters.push(call.filter.as_ref().map(|e| physical(e, &schema)).transpose()?);
        }
        let aggregate = |mode, keys, input| {
            let (calls, filters) = (calls.clone(), filters.clone());
            let aggregate =
                AggregateExec::try_new(mode, keys, calls, filters, input, Arc::clone(&schema))?;
            Translated::Ok(aggregate)
        };
        if parts_of(&input) == 1 {
            return Ok(Arc::new(aggregate(AggregateMode::Single, keys, input)?));
        }
        let partial = aggregate(AggregateMode::Partial, keys, input)?;
        let (keys, of_keys) = (partial.group_expr().as_final(), partial.output_group_expr());
        let partial: Operators = Arc::new(partial);
        let (mode, partial) = if self.keys.is_empty() {
            (AggregateMode::Final, in_one_part(partial))
        } else {
            (AggregateMode::FinalPartitioned, distributed(partial, of_keys, parts)?)
        };
        Ok(Arc::new(aggregate(mode, keys, partial)?))
    }
}

/// What a value was before its conversions, which lose nothing.
fn converted(value: &Planned) -> &Planned {
    match value {
        Planned::Cast(cast) => converted(&cast.expr),
        value => value,
    }
}

/// The conversions of another value.
fn with_value(converted: Planned, value: Planned) -> Planned {
    match converted {
        Planned::Cast(cast) => {
            Planned::Cast(Cast { expr: Box::new(with_value(*cast.expr, value)), ..cast })
        }
        _ => value,
    }
}
