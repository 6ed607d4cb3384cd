//! Calls of aggregate functions, and of GROUPING().

pub(super) mod types;

use millpond_syntax::tree::{self, FuncCall};

use self::types::resolve;
use super::level::{Clause, Level};
use super::order::sort_key;
use super::ordered_set::{hypothetical_of, is_ordered_set, without_group};
use super::tree::{AggregateCall, AggregateFunction, JsonKind, Regression, column, slot_of};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, beyond, start_of};
use crate::expr::types::Ty;
use crate::plan::SortKey;

/// Until it is known how many keys a SELECT's groups have, the places of aggregates are counted
/// from here.
pub(super) const AGGREGATES: usize = 1 << 14;
/// The same for the results of GROUPING().
pub(super) const GROUPINGS: usize = 1 << 15;

/// The name of a function that is called, if it can be one of PostgreSQL's own.
pub(super) fn called(call: &FuncCall) -> Option<&str> {
    match call.funcname.as_slice() {
        [name] => Some(name),
        [schema, name]
            if &**schema == "pg_catalog"
                || &**schema == "information_schema" && &**name == "_pg_expandarray" =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// Places an error at a call.
pub(super) fn placed(error: SqlError, call: &FuncCall, at: u32, binder: &Binder<'_>) -> SqlError {
    let error = binder.place_literal(error, &call.args.iter().collect::<Vec<_>>());
    binder.source.place(error, at)
}

/// Whether a name is an aggregate's.
fn is_aggregate(name: &str) -> bool {
    function_of(name).is_some()
}

fn function_of(name: &str) -> Option<AggregateFunction> {
    use AggregateFunction as F;
    use Regression as R;
    Some(match name {
        "count" => F::Count,
        "sum" => F::Sum,
        "min" => F::Min,
        "max" => F::Max,
        "avg" => F::Avg,
        "bool_and" | "every" => F::BoolAnd,
        "bool_or" => F::BoolOr,
        "bit_and" => F::BitAnd,
        "bit_or" => F::BitOr,
        "bit_xor" => F::BitXor,
        "string_agg" => F::StringAgg,
        "array_agg" => F::ArrayAgg,
        "json_agg" => F::JsonList(JsonKind::Json),
        "jsonb_agg" => F::JsonList(JsonKind::Jsonb),
        "json_object_agg" => F::JsonObject(JsonKind::Json),
        "jsonb_object_agg" => F::JsonObject(JsonKind::Jsonb),
        "var_pop" => F::VarPop,
        "var_samp" | "variance" => F::VarSamp,
        "stddev_pop" => F::StddevPop,
        "stddev_samp" | "stddev" => F::StddevSamp,
        "corr" => F::Regression(R::Corr),
        "covar_pop" => F::Regression(R::CovarPop),
        "covar_samp" => F::Regression(R::CovarSamp),
        "regr_avgx" => F::Regression(R::AvgX),
        "regr_avgy" => F::Regression(R::AvgY),
        "regr_count" => F::Regression(R::Count),
        "regr_intercept" => F::Regression(R::Intercept),
        "regr_r2" => F::Regression(R::R2),
        "regr_slope" => F::Regression(R::Slope),
        "regr_sxx" => F::Regression(R::Sxx),
        "regr_sxy" => F::Regression(R::Sxy),
        "regr_syy" => F::Regression(R::Syy),
        "percentile_cont" => F::PercentileCont,
        "percentile_disc" => F::PercentileDisc,
        "mode" => F::Mode,
        _ => return None,
    })
}

/// Whether a call is one of an aggregate.
pub(super) fn is_call_of_aggregate(name: &str, call: &FuncCall) -> bool {
    is_aggregate(name) || call.agg_within_group && hypothetical_of(name).is_some()
}

/// The parts of a call, bound.
pub struct Call {
    is_star: bool,
    distinct: bool,
    args: Vec<Typed>,
    order_by: Vec<(SortKey, Ty)>,
    /// Where the sort keys are in the text.
    places: Vec<u32>,
    filter: Option<Expr>,
}

/// Binds the call of an aggregate; a column of the groups stands for it.
pub(super) fn bind(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &FuncCall,
    at: u32,
) -> Result<Typed> {
    let windows = level.collected.borrow().windows.len();
    let was_in = level.in_aggregate.replace(true);
    let parts = parts(level, binder, name, call, at);
    level.in_aggregate.set(was_in);
    let resolved =
        resolve(binder, name, parts?).map_err(|error| placed(error, call, at, binder))?;
    if level.collected.borrow().windows.len() > windows {
        let error = grouping_error("aggregate function calls cannot contain window function calls");
        return Err(placed(error, call, at, binder));
    }
    let columns = columns_of_call(&resolved);
    let owner = owner_of(level, &columns);
    // An argument may be an aggregate of a query around this one.
    if let Some(first) = call.args.first()
        && columns.iter().any(|column| owner.is_aggregate(*column))
    {
        let error = grouping_error("aggregate function calls cannot be nested");
        return Err(binder.source.place(error, start_of(first)));
    }
    owner.check_aggregate().map_err(|error| placed(error, call, at, binder))?;
    let ty = resolved.ty;
    let place = owner.collect_aggregate(resolved)?;
    Ok(Typed::known(Expr::Column(column(owner.group_slot()?, place)), ty))
}

/// Resolves the call of an aggregate that is used as a window function: the rows are its frame's.
pub(super) fn over_window(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &FuncCall,
    at: u32,
) -> Result<AggregateCall> {
    if call.agg_within_group {
        let what = format!("OVER is not supported for ordered-set aggregate {name}");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
        return Err(placed(error, call, at, binder));
    }
    let parts = parts(level, binder, name, call, at)?;
    if parts.distinct {
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "DISTINCT is not implemented for window functions",
        );
        return Err(placed(error, call, at, binder));
    }
    if !parts.order_by.is_empty() {
        let what = "aggregate ORDER BY is not implemented for window functions";
        return Err(placed(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what), call, at, binder));
    }
    resolve(binder, name, parts).map_err(|error| placed(error, call, at, binder))
}

/// `GROUPING(...)`
pub(super) fn grouping(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    written: &[tree::Expr],
    at: u32,
) -> Result<Typed> {
    let was_in = level.in_aggregate.replace(true);
    let bound: Result<Vec<Typed>> = written.iter().map(|arg| binder.bind(arg, level)).collect();
    level.in_aggregate.set(was_in);
    let places = written.iter().map(start_of);
    let args: Vec<(Expr, u32)> = bound?.into_iter().map(|arg| arg.expr).zip(places).collect();
    if args.len() > 31 {
        let error = SqlError::new(
            SqlState::TOO_MANY_ARGUMENTS,
            "GROUPING must have fewer than 32 arguments",
        );
        return Err(binder.source.place(error, at));
    }
    let columns = args.iter().flat_map(|(arg, _)| columns_of(arg)).collect::<Vec<_>>();
    let owner = owner_of(level, &columns);
    owner.check_grouping().map_err(|error| binder.source.place(error, at))?;
    let slot = owner.group_slot()?;
    let mut collected = owner.collected.borrow_mut();
    let place = GROUPINGS + collected.grouping.len();
    collected.grouping.push(args);
    if collected.grouping.len() >= AGGREGATES {
        return Err(super::too_complex());
    }
    Ok(Typed::known(Expr::Column(column(slot, place)), DataType::Int4))
}

impl Level<'_> {
    /// Whether a column is an aggregate over its groups.
    fn is_aggregate(&self, column: usize) -> bool {
        let (slot, place) = slot_of(column);
        self.group_slot.get() == Some(slot) && place >= AGGREGATES
    }

    /// Whether there can be a GROUPING() of this level where it is just now.
    fn check_grouping(&self) -> Result<()> {
        if let Some(what) = self.clause.get().refuses_aggregates() {
            let what = what.replace("aggregate functions", "grouping operations");
            return Err(grouping_error(what));
        }
        if self.in_aggregate.get() {
            return Err(grouping_error("aggregate function calls cannot be nested"));
        }
        Ok(())
    }

    /// Whether there can be an aggregate of this level where it is just now.
    fn check_aggregate(&self) -> Result<()> {
        let refused = self.clause.get().refuses_aggregates();
        let what = match refused {
            Some(what) if self.clause.get() == Clause::Filter => what,
            _ if self.in_aggregate.get() => "aggregate function calls cannot be nested".to_owned(),
            Some(what) => what,
            None if self.reads_itself.get() => {
                return Err(SqlError::new(
                    SqlState::INVALID_RECURSION,
                    "aggregate functions are not allowed in a recursive query's recursive term",
                ));
            }
            None => return Ok(()),
        };
        Err(grouping_error(what))
    }

    /// The place of an aggregate among those of the level. The same call is computed once.
    fn collect_aggregate(&self, call: AggregateCall) -> Result<usize> {
        let mut collected = self.collected.borrow_mut();
        let exprs =
            call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|k| &k.expr));
        let is_volatile = exprs.into_iter().any(Expr::is_volatile);
        if !is_volatile
            && let Some(place) = collected.aggregates.iter().position(|other| *other == call)
        {
            return Ok(AGGREGATES + place);
        }
        if collected.aggregates.len() + 1 >= AGGREGATES {
            return Err(super::too_complex());
        }
        collected.aggregates.push(call);
        Ok(AGGREGATES + collected.aggregates.len() - 1)
    }
}

/// The innermost query that has one of the columns: an aggregate of them is over its rows.
fn owner_of<'s, 'l>(level: &'s Level<'l>, columns: &[usize]) -> &'s Level<'l> {
    let is_of = |owner: &Level<'_>, column| owner.owns(column) || owner.is_aggregate(column);
    let is_owner = |owner: &&Level<'_>| columns.iter().any(|column| is_of(owner, *column));
    level.chain().find(is_owner).unwrap_or(level)
}

/// The columns that a call's expressions use.
fn columns_of_call(call: &AggregateCall) -> Vec<usize> {
    let mut columns = Vec::new();
    let mut probe = call.clone();
    // Looking can't fail.
    let _ = probe.exprs_mut(&mut |e| {
        columns.extend(columns_of(e));
        Ok(())
    });
    columns
}

/// The columns that an expression uses, also within its queries.
fn columns_of(e: &Expr) -> Vec<usize> {
    let mut columns = Vec::new();
    e.walk_all(&mut |part| {
        if let Expr::Column(column) = part {
            columns.push(*column);
        }
    });
    columns
}

fn parts(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &FuncCall,
    at: u32,
) -> Result<Call> {
    let args = arguments(call, level, binder)?;
    let (mut order_by, mut places) = (Vec::new(), Vec::new());
    for item in &call.agg_order {
        let typed = binder.bind(&item.node, level)?;
        order_by.push((sort_key(item, typed.expr)?, typed.ty));
        places.push(start_of(&item.node));
    }
    let is_set = !is_aggregate(name) || function_of(name).is_some_and(is_ordered_set);
    if call.agg_within_group != is_set {
        let types: Vec<Ty> =
            args.iter().map(|arg| arg.ty).chain(order_by.iter().map(|(_, ty)| *ty)).collect();
        return Err(placed(without_group(name, is_set, &types), call, at, binder));
    }
    let filter = match &call.agg_filter {
        Some(e) => Some(level.within(Clause::Filter, || binder.condition(e, "FILTER", level))?),
        None => None,
    };
    let (is_star, distinct) = (call.agg_star, call.agg_distinct);
    Ok(Call { is_star, distinct, args, order_by, places, filter })
}

pub(super) fn refuse_variadic(call: &FuncCall) -> Result<()> {
    if call.func_variadic { Err(beyond("VARIADIC")) } else { Ok(()) }
}

/// The arguments of a call.
pub(super) fn arguments(
    call: &FuncCall,
    level: &Level<'_>,
    binder: &mut Binder<'_>,
) -> Result<Vec<Typed>> {
    if call.agg_within_group {
        refuse_variadic(call)?;
    }
    call.args.iter().map(|arg| binder.bind(arg, level)).collect()
}

/// Sort keys, of which literals are text.
pub(super) fn settled_keys(
    binder: &mut Binder<'_>,
    keys: Vec<(SortKey, Ty)>,
) -> Result<Vec<SortKey>> {
    keys.into_iter()
        .map(|(key, ty)| {
            let expr = match ty {
                Ty::Known(_) => key.expr,
                ty => {
                    let typed = Typed { expr: key.expr, ty };
                    binder.coerce(typed, DataType::Text, Coercion::Implicit)?
                }
            };
            Ok(SortKey { expr, ..key })
        })
        .collect()
}

fn grouping_error(what: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::GROUPING_ERROR, what)
}

fn type_names(types: &[Ty]) -> String {
    let name = |ty: &Ty| match ty {
        Ty::Known(ty) => ty.base().to_string(),
        Ty::Unknown => "unknown".to_owned(),
    };
    types.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// "function ... does not exist"
pub(super) fn undefined(name: &str, types: &[Ty]) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {name}({}) does not exist", type_names(types)),
    )
    .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

/// The same of a call that is not bound yet.
pub(super) fn undefined_call(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    name: &str,
    call: &FuncCall,
    at: u32,
) -> Result<SqlError> {
    let args = arguments(call, level, binder)?;
    let types: Vec<Ty> = args.iter().map(|arg| arg.ty).collect();
    Ok(placed(undefined(name, &types), call, at, binder))
}

/// Refuses what only aggregates can have.
pub(super) fn refuse_clauses(
    name: &str,
    call: &FuncCall,
    at: u32,
    binder: &Binder<'_>,
) -> Result<()> {
    let what = if call.agg_star {
        format!("{name}(*)")
    } else if call.agg_distinct {
        "DISTINCT".to_owned()
    } else if call.agg_within_group {
        "WITHIN GROUP".to_owned()
    } else if !call.agg_order.is_empty() {
        "ORDER BY".to_owned()
    } else if call.agg_filter.is_some() {
        "FILTER".to_owned()
    } else {
        return Ok(());
    };
    let error = SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{what} specified, but {name} is not an aggregate function"),
    );
    Err(placed(error, call, at, binder))
}
