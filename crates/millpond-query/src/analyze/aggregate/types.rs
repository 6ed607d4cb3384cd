//! The types in which an aggregate takes its arguments, and that of its result.

use millpond_types::other;

use super::{Call, function_of, settled_keys, undefined};
use crate::DataType;
use crate::analyze::ordered_set::{self, hypothetical_of, is_ordered_set};
use crate::analyze::tree::{AggregateCall, AggregateFunction, JsonKind, Regression};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, beyond};
use crate::expr::types::{Category, NUMERIC, Ty, category, is_implicit, is_int, is_object};
use crate::plan::SortKey;

/// Settles the types of a call.
pub(super) fn resolve(binder: &mut Binder<'_>, name: &str, call: Call) -> Result<AggregateCall> {
    use AggregateFunction as F;
    let Some(function) = function_of(name).or_else(|| hypothetical_of(name)) else {
        return Err(SqlError::internal("no aggregate"));
    };
    let Call { is_star, distinct, mut args, order_by, places, filter } = call;
    if args.is_empty() && !is_star && function == F::Count {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            "count(*) must be used to call a parameterless aggregate function",
        ));
    }
    if is_star && function != F::Count {
        return Err(undefined(name, &[]));
    }
    if is_star && distinct {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "DISTINCT specified, but the aggregate has no arguments",
        ));
    }
    let written: Vec<Ty> = args.iter().map(|arg| arg.ty).collect();
    let key_types: Vec<Ty> = order_by.iter().map(|(_, ty)| *ty).collect();
    // Distinct values are told apart, and ordered, as what they are.
    if !distinct && matches!(function, F::JsonList(_) | F::JsonObject(_)) {
        for arg in &mut args {
            binder.as_in_json(arg)?;
        }
    }
    let (args, order_by, ty) = if is_ordered_set(function) {
        ordered_set::resolve(binder, name, function, args, order_by)?
    } else {
        let (args, ty) = match is_star {
            true => (Vec::new(), DataType::Int8),
            false => typed_args(binder, name, function, args)?,
        };
        (args, settled_keys(binder, order_by)?, ty)
    };
    // Written as another type it is another expression, also where the value is the same.
    let is_arg = |key: &SortKey, ty: &Ty| {
        args.iter().zip(&written).any(|(arg, own)| *arg == key.expr && is_same_type(*own, *ty))
    };
    let foreign = order_by.iter().zip(&key_types).position(|(key, ty)| !is_arg(key, ty));
    if let Some(at) = foreign.filter(|_| distinct) {
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
        );
        return Err(binder.source.place(error, places.get(at).copied()));
    }
    let of_array = matches!(written.as_slice(), [Ty::Known(own)] if own.element().is_some());
    let function = match function {
        _ if is_star => F::CountRows,
        F::ArrayAgg if of_array => F::ArrayAggOfArrays,
        function => function,
    };
    Ok(AggregateCall { function, args, distinct, order_by, filter, ty })
}

fn is_same_type(a: Ty, b: Ty) -> bool {
    match (a, b) {
        (Ty::Known(a), Ty::Known(b)) => a.base() == b.base(),
        _ => true,
    }
}

pub(in crate::analyze) const INTERVAL: DataType =
    DataType::Other { oid: other::INTERVAL, typmod: -1 };

/// The type of arrays of a type's values. Arrays of arrays are arrays of more dimensions.
pub(in crate::analyze) fn array_of(ty: DataType) -> Result<DataType> {
    let is_array = other::find(ty.oid()).is_some_and(|ty| ty.element.is_some());
    if is_array {
        return Ok(ty);
    }
    let array = other::array_of(ty.oid()).ok_or_else(|| beyond("array_agg of this type"))?;
    Ok(DataType::Other { oid: array.oid, typmod: -1 })
}

/// The arguments in the types in which they are taken in, and the type of the result.
fn typed_args(
    binder: &mut Binder<'_>,
    name: &str,
    function: AggregateFunction,
    args: Vec<Typed>,
) -> Result<(Vec<Expr>, DataType)> {
    use AggregateFunction as F;
    let types: Vec<Ty> = args.iter().map(|arg| arg.ty).collect();
    let none = || undefined(name, &types);
    let (takes, gives): (Vec<DataType>, DataType) = match function {
        F::Regression(what) => {
            let ty = if what == Regression::Count { DataType::Int8 } else { DataType::Float8 };
            (vec![DataType::Float8; 2], ty)
        }
        F::StringAgg => {
            let is_bytes = types.contains(&Ty::Known(DataType::Bytea));
            let ty = if is_bytes { DataType::Bytea } else { DataType::Text };
            (vec![ty; 2], ty)
        }
        F::BoolAnd | F::BoolOr => (vec![DataType::Bool], DataType::Bool),
        F::JsonList(kind) | F::JsonObject(kind) => {
            let count = if matches!(function, F::JsonList(_)) { 1 } else { 2 };
            if types.len() != count {
                return Err(none());
            }
            let known = |ty: &Ty| match ty {
                Ty::Known(ty) => ty.base(),
                Ty::Unknown => DataType::Text,
            };
            let oid = if kind == JsonKind::Json { other::JSON } else { other::JSONB };
            (types.iter().map(known).collect(), DataType::Other { oid, typmod: -1 })
        }
        F::ArrayAgg => {
            let [one] = types.as_slice() else { return Err(none()) };
            let own = match one {
                Ty::Known(ty) => ty.base(),
                Ty::Unknown => DataType::Text,
            };
            (vec![own], array_of(own)?)
        }
        _ => {
            let [one] = types.as_slice() else { return Err(none()) };
            let (takes, gives) = one_argument(function, *one, name)?.ok_or_else(none)?;
            (vec![takes], gives)
        }
    };
    let fits = |(own, wanted): (&Ty, &DataType)| match own {
        Ty::Known(own) => is_implicit(*own, *wanted),
        Ty::Unknown => true,
    };
    if types.len() != takes.len() || !types.iter().zip(&takes).all(fits) {
        return Err(none());
    }
    let args = args
        .into_iter()
        .zip(takes)
        .map(|(arg, ty)| binder.coerce(arg, ty, Coercion::Implicit))
        .collect::<Result<Vec<_>>>()?;
    Ok((args, gives))
}

/// The type in which the only argument is taken in, and that of the result.
fn one_argument(
    function: AggregateFunction,
    own: Ty,
    name: &str,
) -> Result<Option<(DataType, DataType)>> {
    use AggregateFunction as F;
    let own = match own {
        Ty::Known(ty) => ty.base(),
        Ty::Unknown if matches!(function, F::Count | F::Min | F::Max) => DataType::Text,
        Ty::Unknown => return Err(not_unique(name)),
    };
    let is_number = category(own) == Category::Number;
    let is_float = matches!(own, DataType::Float4 | DataType::Float8);
    Ok(Some(match function {
        F::Count => (own, DataType::Int8),
        F::Min | F::Max if is_object(own) => (DataType::Oid, DataType::Oid),
        F::Min | F::Max => match own {
            DataType::Bool | DataType::Bytea => return Ok(None),
            DataType::Other { oid: other::TID | other::XID8 | other::PG_LSN, .. } => (own, own),
            own if matches!(category(own), Category::Alone(_)) => return Ok(None),
            DataType::Varchar(_) | DataType::Name => (DataType::Text, DataType::Text),
            own => (own, own),
        },
        F::BitAnd | F::BitOr | F::BitXor if is_int(own) && own != DataType::Oid => (own, own),
        F::BitAnd | F::BitOr | F::BitXor => return Ok(None),
        _ if is_object(own) => return Ok(None),
        F::Sum | F::Avg if is_implicit(own, INTERVAL) => (INTERVAL, INTERVAL),
        _ if !is_number => return Ok(None),
        F::Sum => match own {
            DataType::Int2 | DataType::Int4 => (own, DataType::Int8),
            DataType::Int8 => (own, NUMERIC),
            own => (own, own),
        },
        // Averages and deviations of floats are in double precision, of all else numeric.
        _ if is_float => (DataType::Float8, DataType::Float8),
        _ => (own, NUMERIC),
    }))
}

fn not_unique(name: &str) -> SqlError {
    SqlError::new(
        SqlState::AMBIGUOUS_FUNCTION,
        format!("function {name}(unknown) is not unique"),
    )
    .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}
