//! Aggregates over all rows, without groups: `count`, `sum`, `min`, `max`, `avg`.

use millpond_syntax::tree::{self, Node};

use super::FromScope;
use crate::analyze::tree::AggregateFunction;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Coercion};
use crate::expr::int::of_column;
use crate::expr::types::{Category, NUMERIC, Ty, category};
use crate::expr::{Env, Expr};
use crate::run::Accumulator;
use crate::types::FormatOptions;
use crate::{DataType, Datum, Value};

/// One aggregate.
#[derive(Debug, Clone)]
pub struct Aggregate {
    function: AggregateFunction,
    arg: Option<Expr>,
    /// The column of whole numbers that is the whole argument of a count, sum or average. Most
    /// arguments are one, and its values can be added as they are.
    int_column: Option<usize>,
    /// The type of its result.
    pub(crate) ty: DataType,
    pub(crate) name: &'static str,
}

/// The aggregate that a select item is, if it is one.
pub(super) fn bind(
    expr: &tree::Expr,
    binder: &mut Binder<'_>,
    scope: &FromScope<'_>,
) -> Result<Option<Aggregate>> {
    let Node::FuncCall(call) = &expr.node else { return Ok(None) };
    let [name] = call.funcname.as_slice() else { return Ok(None) };
    let (kind, name) = match &**name {
        "count" => (AggregateFunction::Count, "count"),
        "sum" => (AggregateFunction::Sum, "sum"),
        "min" => (AggregateFunction::Min, "min"),
        "max" => (AggregateFunction::Max, "max"),
        "avg" => (AggregateFunction::Avg, "avg"),
        _ => return Ok(None),
    };
    let beyond = || SqlError::unsupported("this form of aggregate");
    if call.over.is_some()
        || call.agg_filter.is_some()
        || call.agg_within_group
        || call.agg_distinct
        || call.func_variadic
        || !call.agg_order.is_empty()
    {
        return Err(beyond());
    }
    let arg = match call.args.as_slice() {
        [] if call.agg_star && kind == AggregateFunction::Count => None,
        [e] => Some(binder.bind(e, scope)?),
        _ => return Err(beyond()),
    };
    let Some(arg) = arg else {
        let (int_column, ty) = (None, DataType::Int8);
        let function = AggregateFunction::CountRows;
        return Ok(Some(Aggregate { function, arg: None, int_column, ty, name }));
    };
    let own = match arg.ty {
        Ty::Known(ty) => ty,
        Ty::Unknown => DataType::Text,
    };
    if let DataType::Other { .. } = own {
        return Err(beyond());
    }
    let (arg_ty, ty) = types(kind, own).ok_or_else(|| {
        let what = format!("function {name}({own}) does not exist");
        binder.source.place(SqlError::new(SqlState::UNDEFINED_FUNCTION, what), expr.location)
    })?;
    let int_column = int_column(kind, own, &arg.expr);
    let arg = binder.coerce(arg, arg_ty, Coercion::Explicit)?;
    Ok(Some(Aggregate { function: kind, arg: Some(arg), int_column, ty, name }))
}

fn int_column(function: AggregateFunction, own: DataType, arg: &Expr) -> Option<usize> {
    match (function, own, arg) {
        (
            AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg,
            DataType::Int2 | DataType::Int4 | DataType::Int8,
            Expr::Column(column),
        ) => Some(*column),
        _ => None,
    }
}

/// The type in which the argument is added up, and that of the result.
fn types(function: AggregateFunction, own: DataType) -> Option<(DataType, DataType)> {
    let number = category(own) == Category::Number;
    Some(match function {
        AggregateFunction::Count => (own, DataType::Int8),
        AggregateFunction::Min | AggregateFunction::Max
            if own == DataType::Bool || own == DataType::Bytea =>
        {
            return None;
        }
        AggregateFunction::Min | AggregateFunction::Max => match own {
            DataType::Varchar(_) | DataType::Name => (DataType::Text, DataType::Text),
            own => (own.base(), own.base()),
        },
        _ if !number => return None,
        AggregateFunction::Sum => match own {
            DataType::Int2 | DataType::Int4 => (DataType::Int8, DataType::Int8),
            DataType::Int8 => (DataType::Int8, NUMERIC),
            other => (other.base(), other.base()),
        },
        AggregateFunction::Avg => match own {
            DataType::Float4 | DataType::Float8 => (DataType::Float8, DataType::Float8),
            DataType::Numeric { .. } => (NUMERIC, NUMERIC),
            _ => (DataType::Int8, NUMERIC),
        },
        _ => return None,
    })
}

impl Aggregate {
    /// Whether it does more with a row than to count it or to add a whole number up.
    pub(super) fn computes(&self) -> bool {
        self.arg.is_some() && self.int_column.is_none()
    }

    /// The same for many rows: what its argument has of the same for all of them is computed.
    pub(crate) fn folded(&self, env: &Env<'_>) -> Result<Self> {
        let arg = self.arg.clone().map(|arg| arg.folded(env)).transpose()?;
        Ok(Self { arg, ..self.clone() })
    }

    /// The column whose least (or, with the flag, greatest) value this is.
    pub(super) fn extreme_of_column(&self) -> Option<(usize, bool)> {
        match (self.function, &self.arg) {
            (AggregateFunction::Min, Some(Expr::Column(column))) => Some((*column, false)),
            (AggregateFunction::Max, Some(Expr::Column(column))) => Some((*column, true)),
            _ => None,
        }
    }

    /// Whether it is the number of rows, whatever is in them.
    pub(crate) fn is_count_of_rows(&self) -> bool {
        self.function == AggregateFunction::CountRows
    }

    /// What it has before the first row.
    pub(crate) fn start(&self) -> Accumulator {
        Accumulator::new(self.function)
    }

    /// Takes that many rows in at once, if it only [counts](Self::is_count_of_rows) them.
    pub(crate) fn add_rows(&self, into: &mut Accumulator, rows: usize) {
        debug_assert!(self.is_count_of_rows());
        if let Accumulator::Count(count) = into {
            *count += rows as i64;
        }
    }

    /// Takes a row in.
    #[inline]
    pub(crate) fn add(&self, into: &mut Accumulator, env: &Env<'_>) -> Result<()> {
        let Some(column) = self.int_column else { return self.add_value(into, env) };
        if let Some(int) = of_column(env.row, column) {
            return into.add_int(int.value);
        }
        // NULL is no number.
        if let Some(int) = env.column(column)?.as_i64() {
            into.add_int(int)?;
        }
        Ok(())
    }

    fn add_value(&self, into: &mut Accumulator, env: &Env<'_>) -> Result<()> {
        match &self.arg {
            Some(arg) => into.add_expr(self.function, arg, env)?,
            None => into.add(self.function, Datum::Null, Datum::Null)?,
        };
        Ok(())
    }

    /// The result.
    pub(crate) fn finish(&self, from: &Accumulator) -> Result<Value> {
        from.finish(self.function, self.ty, &FormatOptions::default())
    }
}
