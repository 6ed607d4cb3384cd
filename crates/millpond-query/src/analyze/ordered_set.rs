//! Aggregates with WITHIN GROUP: ordered-set aggregates, and hypothetical-set ones, which are
//! window functions as well.

use super::aggregate::types::{INTERVAL, array_of};
use super::aggregate::undefined;
use super::tree::{AggregateFunction, Hypothetical};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed};
use crate::expr::types::{Ty, is_implicit, unify};
use crate::plan::SortKey;

/// The aggregates that are window functions, too. They are aggregates with WITHIN GROUP.
pub(super) fn hypothetical_of(name: &str) -> Option<AggregateFunction> {
    Some(AggregateFunction::Hypothetical(match name {
        "rank" => Hypothetical::Rank,
        "dense_rank" => Hypothetical::DenseRank,
        "percent_rank" => Hypothetical::PercentRank,
        "cume_dist" => Hypothetical::CumeDist,
        _ => return None,
    }))
}

pub(super) fn is_ordered_set(function: AggregateFunction) -> bool {
    use AggregateFunction as F;
    matches!(function, F::PercentileCont | F::PercentileDisc | F::Mode | F::Hypothetical(_))
}

const FLOAT8_ARRAY: DataType = DataType::Other { oid: 1022, typmod: -1 };

/// Arguments, sort keys, and the type of the result.
pub(super) type OrderedSet = (Vec<Expr>, Vec<SortKey>, DataType);

/// Settles the types of a call's arguments, of its sort keys and of its result.
pub(super) fn resolve(
    binder: &mut Binder<'_>,
    name: &str,
    function: AggregateFunction,
    args: Vec<Typed>,
    order_by: Vec<(SortKey, Ty)>,
) -> Result<OrderedSet> {
    use AggregateFunction as F;
    if let F::Hypothetical(what) = function {
        return hypothetical(binder, name, what, args, order_by);
    }
    let types: Vec<Ty> =
        args.iter().map(|arg| arg.ty).chain(order_by.iter().map(|(_, ty)| *ty)).collect();
    let none = || undefined(name, &types);
    let wanted = usize::from(function != F::Mode);
    if args.len() != wanted || order_by.len() != 1 {
        return Err(none());
    }
    let (key, own) = order_by[0].clone();
    let known = match own {
        Ty::Known(ty) => ty.base(),
        Ty::Unknown => DataType::Text,
    };
    let ty = match function {
        F::PercentileCont if is_implicit(known, DataType::Float8) => DataType::Float8,
        F::PercentileCont if is_implicit(known, INTERVAL) => INTERVAL,
        F::PercentileCont => return Err(none()),
        _ => known,
    };
    let expr = binder.coerce(Typed { expr: key.expr, ty: own }, ty, Coercion::Implicit)?;
    let (mut fractions, mut result) = (Vec::new(), ty);
    for arg in args {
        let fraction = match arg.ty {
            Ty::Known(own) if own.element().is_some() => {
                result = array_of(ty)?;
                FLOAT8_ARRAY
            }
            _ => DataType::Float8,
        };
        if matches!(arg.ty, Ty::Known(own) if !is_implicit(own, fraction)) {
            return Err(none());
        }
        fractions.push(binder.coerce(arg, fraction, Coercion::Implicit)?);
    }
    Ok((fractions, vec![SortKey { expr, ..key }], result))
}

/// The row that is not there has a value for each sort key.
fn hypothetical(
    binder: &mut Binder<'_>,
    name: &str,
    what: Hypothetical,
    args: Vec<Typed>,
    order_by: Vec<(SortKey, Ty)>,
) -> Result<OrderedSet> {
    let (direct, columns) = (args.len(), order_by.len());
    if direct != columns {
        let types: Vec<Ty> =
            args.iter().map(|arg| arg.ty).chain(order_by.iter().map(|(_, ty)| *ty)).collect();
        let error = undefined(name, &types).hint(format!(
            "To use the hypothetical-set aggregate {name}, the number of hypothetical direct \
             arguments (here {direct}) must match the number of ordering columns (here {columns})."
        ));
        return Err(error);
    }
    let (mut values, mut keys) = (Vec::new(), Vec::new());
    for (arg, (key, ty)) in args.into_iter().zip(order_by) {
        let own = Typed { expr: key.expr, ty };
        if let (Ty::Known(a), Ty::Known(b)) = (arg.ty, ty)
            && unify([arg.ty, ty]).is_err()
        {
            let what = format!("WITHIN GROUP types {b} and {a} cannot be matched");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, what));
        }
        let (pair, _) = binder.unified(vec![own, arg], "WITHIN GROUP")?;
        let mut pair = pair.into_iter();
        let (Some(expr), Some(value)) = (pair.next(), pair.next()) else {
            return Err(SqlError::internal("a pair of one"));
        };
        values.push(value);
        keys.push(SortKey { expr, ..key });
    }
    let ty = match what {
        Hypothetical::Rank | Hypothetical::DenseRank => DataType::Int8,
        Hypothetical::PercentRank | Hypothetical::CumeDist => DataType::Float8,
    };
    Ok((values, keys, ty))
}

/// The error of an aggregate that has WITHIN GROUP and must not, or the other way round.
pub(super) fn without_group(name: &str, is_set: bool, types: &[Ty]) -> SqlError {
    let wanted = if is_set && name != "mode" { 2 } else { 1 };
    let what = match is_set {
        _ if types.len() != wanted => return undefined(name, types),
        true => format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
        false => format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"),
    };
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, what)
}
