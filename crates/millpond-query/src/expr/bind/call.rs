//! Function calls, and expressions that are calls in a spelling of their own.

use millpond_syntax::tree::{self, FuncCall, MinMaxOp, Node};
use millpond_types::other::REGTYPE;
use smallvec::SmallVec;

use super::argument::check_argument_count;
use super::call_errors::{ambiguous_function, undefined_function, undetermined};
use super::cast_call::is_cast;
use super::object_cast::looked_up;
use super::{Binder, Coercion, Scope, Typed, beyond};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::{self, Param, Proc};
use crate::expr::func::resolve::{self, Choice};
use crate::expr::func::type_name;
use crate::expr::types::{Ty, is_implicit, is_ordered, unify};
use crate::expr::{Expr, Func, quoted_name};
use crate::{DataType, Value};

/// Functions that make JSON of any values.
const JSON_BUILDERS: &[&str] = &[
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "to_json",
    "to_jsonb",
];

impl Binder<'_> {
    /// `name(...)`, placed in the text where it fails.
    pub(super) fn function(
        &mut self,
        call: &FuncCall,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        check_argument_count(call).map_err(|error| self.source.place(error, at))?;
        if let Some(typed) = scope.call(self, call, at)? {
            return Ok(typed);
        }
        let name = plain_call(call)?;
        let mut args = self.call_arguments(name, &call.args, at, scope)?;
        if call.func_variadic {
            let typed = self.variadic_call(name, call, args);
            return typed.map_err(|error| self.source.place(error, at));
        }
        if name == "is_normalized" && args.len() == 1 {
            args.push(Typed::known(Expr::Const(Value::Text("NFC".to_owned())), DataType::Text));
        }
        if name == "pg_collation_for" && args.len() == 1 {
            return collation_of(&call.args[0], args);
        }
        self.call(name, args)
            .map_err(|error| self.place_operator(error, at, &call.args.iter().collect::<Vec<_>>()))
    }

    /// `COALESCE(...)`
    pub(super) fn coalesce(&mut self, args: &[tree::Expr], scope: &dyn Scope) -> Result<Typed> {
        let (list, ty) = self.alternatives(args, "COALESCE", scope)?;
        Ok(Typed::known(Expr::Coalesce(list), ty))
    }

    /// `GREATEST(...)`, `LEAST(...)`
    pub(super) fn min_max(
        &mut self,
        op: MinMaxOp,
        args: &[tree::Expr],
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (name, what) = match op {
            MinMaxOp::Greatest => ("greatest", "GREATEST"),
            MinMaxOp::Least => ("least", "LEAST"),
        };
        let (list, ty) = self.alternatives(args, what, scope)?;
        if !is_ordered(ty) {
            let what = format!("could not identify a comparison function for type {ty}");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, what));
        }
        let func = Func::exactly(name, &[Param::AnyElement])?;
        Ok(Typed::known(Expr::Func(func, list), ty))
    }

    /// Values of which one is taken, made to be of one type.
    fn alternatives(
        &mut self,
        args: &[tree::Expr],
        what: &str,
        scope: &dyn Scope,
    ) -> Result<(Vec<Expr>, DataType)> {
        let bound = args.iter().map(|arg| self.bind(arg, scope)).collect::<Result<Vec<_>>>()?;
        let types: Vec<Ty> = bound.iter().map(|arg| arg.ty).collect();
        self.unified(bound, what).map_err(|error| match odd_one(&types) {
            Some(odd) => self.place_at(error, &args[odd]),
            None => self.place_literal(error, &args.iter().collect::<Vec<_>>()),
        })
    }

    /// A function of the catalog, chosen by the arguments' types, with its arguments converted.
    pub(super) fn call(&mut self, name: &str, mut args: Vec<Typed>) -> Result<Typed> {
        if name == "pg_typeof" && args.len() == 1 {
            return args
                .pop()
                .map_or_else(|| Err(SqlError::internal("no value")), |arg| self.type_of(arg));
        }
        if JSON_BUILDERS.contains(&name) {
            for arg in &mut args {
                self.as_in_json(arg)?;
            }
        }
        // These see the spaces that a `character(n)` is stored without.
        let padded = match name {
            "octet_length" => 1,
            _ if name.starts_with("bpchar") => 2,
            _ => 0,
        };
        for arg in args.iter_mut().take(padded) {
            self.pad(arg)?;
        }
        if is_cast(name, &args) {
            return self.cast_call(name, args);
        }
        let types: SmallVec<[Ty; 4]> = args.iter().map(|arg| arg.ty).collect();
        let candidates = resolve::candidates(catalog::named(name), args.len());
        let chosen = match resolve::choose(candidates, &types) {
            Choice::One(chosen) => chosen,
            Choice::None => return self.cast_call(name, args),
            Choice::Ambiguous => return Err(ambiguous_function(name, &args)),
        };
        let proc = chosen.item;
        if Func::new(proc).makes_rows() {
            return Err(beyond(&format!("the set-returning function {name} here")));
        }
        if let Some(operator) = proc.of_operator() {
            return self.operator_call(operator, args, &chosen.params);
        }
        let (args, element) = self.arguments(args, &chosen.params)?;
        if proc.is_conversion() {
            return self.converted(args, proc);
        }
        let result = as_result(Expr::Func(Func::new(proc), args), proc.result, element);
        match looked_up(name) {
            Some(ty) => Ok(Typed::known(self.coerce_object(result, ty, Coercion::Explicit)?, ty)),
            None => Ok(result),
        }
    }

    /// `pg_typeof(value)`
    fn type_of(&mut self, value: Typed) -> Result<Typed> {
        const UNKNOWN: u32 = 705;
        let number = match value.ty {
            Ty::Known(ty) => ty.oid(),
            Ty::Unknown => UNKNOWN,
        };
        let (value, _) = self.settled(value)?;
        let func = Func::exactly("type_of", &[Param::Any, Param::Type(DataType::Oid)])?;
        let args = vec![value, Expr::Const(Value::Int8(number.into()))];
        Ok(Typed::known(Expr::Func(func, args), DataType::Other { oid: REGTYPE, typmod: -1 }))
    }

    /// A call of a function that returns rows: the function, its arguments, and the type that its
    /// polymorphic arguments have.
    pub(crate) fn rows_call(
        &mut self,
        name: &str,
        args: Vec<Typed>,
    ) -> Result<(Func, Vec<Expr>, Option<DataType>)> {
        let types: SmallVec<[Ty; 4]> = args.iter().map(|arg| arg.ty).collect();
        let candidates = resolve::candidates(catalog::named(name), args.len());
        match resolve::choose(candidates, &types) {
            Choice::One(chosen) => {
                let (args, element) = self.arguments(args, &chosen.params)?;
                Ok((Func::new(chosen.item), args, element))
            }
            Choice::None => Err(undefined_function(name, &args)),
            Choice::Ambiguous => Err(ambiguous_function(name, &args)),
        }
    }

    /// A cast of an argument that has been converted to the type that the cast's function takes.
    fn converted(&mut self, args: Vec<Expr>, proc: &Proc) -> Result<Typed> {
        let (Ok([arg]), [Param::Type(from)], Param::Type(to)) =
            (<[Expr; 1]>::try_from(args), proc.args, proc.result)
        else {
            return Err(SqlError::internal("a conversion of several values"));
        };
        Ok(Typed::known(self.coerce(Typed::known(arg, *from), to, Coercion::Explicit)?, to))
    }

    /// Gives a `character(n)` the spaces that it is stored without, and makes it text.
    pub(super) fn pad(&mut self, value: &mut Typed) -> Result<()> {
        if let Ty::Known(DataType::Char(n)) = value.ty {
            let expr = std::mem::replace(&mut value.expr, Expr::NULL);
            *value = Typed::known(padded(expr, n)?, DataType::Text);
        }
        Ok(())
    }

    /// Makes a text of an `oid`, and of a `character(n)` with its blanks. JSON has them as strings,
    /// and what is stored of them does not tell.
    pub(crate) fn as_in_json(&mut self, value: &mut Typed) -> Result<()> {
        if value.ty == Ty::Known(DataType::Oid) {
            let oid = std::mem::replace(value, Typed::known(Expr::NULL, DataType::Text));
            value.expr = self.coerce(oid, DataType::Text, Coercion::Explicit)?;
        }
        self.pad(value)
    }

    /// Converts arguments to what has been chosen. Also says which type the arguments have that
    /// are of one type, whichever it is.
    pub(super) fn arguments(
        &mut self,
        args: Vec<Typed>,
        params: &[Param],
    ) -> Result<(Vec<Expr>, Option<DataType>)> {
        let mut element = None;
        for (arg, param) in args.iter().zip(params) {
            element = element.or(match (param, arg.ty) {
                (Param::AnyElement | Param::AnyNonArray, Ty::Known(ty)) => Some(ty),
                (Param::AnyArray, Ty::Known(ty)) => ty.element(),
                _ => None,
            });
        }
        let compatible = matches!(
            params.iter().find(|param| !matches!(param, Param::Type(_) | Param::Any)),
            Some(Param::AnyCompatible | Param::AnyCompatibleArray)
        );
        if compatible {
            let types: SmallVec<[Ty; 4]> = args.iter().map(|arg| arg.ty).collect();
            element = match resolve::common_type(params, &types) {
                Ok(Ty::Known(ty)) => Some(ty.base()),
                _ => Some(DataType::Text),
            };
        }
        let mut exprs = Vec::with_capacity(args.len());
        for (arg, param) in args.into_iter().zip(params) {
            exprs.push(match (param, arg.ty) {
                (Param::Type(ty), Ty::Known(own)) if ty.oid() == own.oid() => arg.expr,
                // A `character` of any length is a text.
                (Param::Type(DataType::Char(_)), Ty::Known(own)) if own.is_string() => arg.expr,
                (Param::Type(DataType::Char(_)), _) => {
                    self.coerce(arg, DataType::Text, Coercion::Implicit)?
                }
                (Param::Type(ty), _) => self.coerce(arg, *ty, Coercion::Implicit)?,
                (Param::AnyCompatible, _) => {
                    let ty = element.unwrap_or(DataType::Text);
                    self.coerce(arg, ty, Coercion::Implicit)?
                }
                (Param::AnyCompatibleArray, _) | (Param::AnyArray, Ty::Unknown) => {
                    let ty = element.and_then(DataType::array).ok_or_else(undetermined)?;
                    self.coerce(arg, ty, Coercion::Implicit)?
                }
                (Param::Any, Ty::Known(DataType::Char(n))) => padded(arg.expr, n)?,
                (_, Ty::Known(_)) => arg.expr,
                (Param::Any, Ty::Unknown) => {
                    self.coerce(arg, DataType::Text, Coercion::Implicit)?
                }
                (_, Ty::Unknown) => {
                    let ty = element.ok_or_else(undetermined)?;
                    self.coerce(arg, ty, Coercion::Implicit)?
                }
            });
        }
        Ok((exprs, element))
    }
}

/// A call with the type of its result. Arrays are told their type, for the elements alone don't
/// say whether they are `text` or `varchar`.
pub(super) fn as_result(call: Expr, result: Param, element: Option<DataType>) -> Typed {
    let ty = result_type(result, element);
    let call = match result {
        Param::AnyArray | Param::AnyCompatibleArray => Expr::Cast(Box::new(call), ty, false),
        _ => call,
    };
    Typed::known(call, ty)
}

/// The type of a result.
pub(crate) fn result_type(result: Param, element: Option<DataType>) -> DataType {
    match result {
        Param::Type(ty) => ty,
        Param::AnyElement | Param::AnyNonArray | Param::AnyCompatible => {
            element.unwrap_or(DataType::Text)
        }
        Param::AnyArray | Param::AnyCompatibleArray => {
            element.and_then(DataType::array).unwrap_or(DataType::Text)
        }
        Param::Any | Param::Void => DataType::Text,
    }
}

/// A `character(n)` with the spaces that it is stored without.
fn padded(expr: Expr, n: u32) -> Result<Expr> {
    if n == 0 {
        return Ok(expr);
    }
    let func = Func::exactly("rpad", &[Param::Type(DataType::Text), Param::Type(DataType::Int4)])?;
    let length = Expr::Const(Value::Int4(i32::try_from(n).unwrap_or(i32::MAX)));
    Ok(Expr::Func(func, vec![expr, length]))
}

/// `COLLATION FOR (value)`, of a bound value. All collations order bytewise, so they are told by
/// names and types alone.
fn collation_of(written: &tree::Expr, bound: Vec<Typed>) -> Result<Typed> {
    let text = |name: &str| Typed::known(Expr::Const(Value::Text(name.to_owned())), DataType::Text);
    if let Node::CollateClause(_, names) = &written.node {
        return Ok(text(&names.last().map_or_else(String::new, |name| quoted_name(name))));
    }
    let ty = match bound.first().map(|arg| arg.ty) {
        Some(Ty::Known(ty)) => ty,
        _ => return Ok(Typed::known(Expr::NULL, DataType::Text)),
    };
    match ty.element().unwrap_or(ty) {
        DataType::Name => Ok(text("\"C\"")),
        element if element.is_string() => Ok(text("\"default\"")),
        _ => {
            let message = format!("collations are not supported by type {}", type_name(ty));
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
        }
    }
}

/// The name of a call without an aggregate's or a window's clauses.
fn plain_call(call: &FuncCall) -> Result<&str> {
    let name = match call.funcname.as_slice() {
        [name] => name,
        [schema, name] if &**schema == "pg_catalog" => name,
        names => return Err(beyond(&format!("the function {}", names.join(".")))),
    };
    if call.over.is_some() || call.agg_filter.is_some() || call.agg_within_group {
        return Err(beyond("a window function or an aggregate's filter"));
    }
    if call.agg_distinct || call.agg_star || !call.agg_order.is_empty() {
        return Err(beyond(&format!("this call of {name}")));
    }
    if is_aggregate(name) {
        return Err(beyond(&format!("the aggregate {name}")));
    }
    Ok(name)
}

/// The first of these types that does not go with those before it, or that does not convert into
/// the one of all.
pub(super) fn odd_one(types: &[Ty]) -> Option<usize> {
    match unify(types.iter().copied()) {
        Ok(Ty::Known(common)) => {
            types.iter().position(|ty| matches!(ty, Ty::Known(own) if !is_implicit(*own, common)))
        }
        Ok(Ty::Unknown) => None,
        Err(_) => (1..types.len()).find(|last| unify(types[..=*last].iter().copied()).is_err()),
    }
}

/// Names that stand for aggregates.
fn is_aggregate(name: &str) -> bool {
    matches!(
        name,
        "count"
            | "sum"
            | "avg"
            | "min"
            | "max"
            | "bool_and"
            | "bool_or"
            | "every"
            | "string_agg"
            | "array_agg"
            | "stddev"
            | "variance"
            | "stddev_pop"
            | "stddev_samp"
            | "var_pop"
            | "var_samp"
    )
}
