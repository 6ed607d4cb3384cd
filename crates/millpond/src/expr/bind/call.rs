//! Function calls, and expressions that are calls in a spelling of their own.

use sqlparser::ast::{self, BinaryOperator};

use super::{Binder, Coercion, Scope, Typed, beyond, beyond_expression, shorten};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::{self, Args, Returns};
use crate::expr::types::{Category, Ty, category, is_implicit};
use crate::expr::{Arith, Expr};
use crate::parse::ident;
use crate::settings::nearest;
use crate::{DataType, Value};

impl Binder<'_> {
    /// `name(...)`, placed in the text where it fails.
    pub(super) fn function(&mut self, call: &ast::Function, scope: &dyn Scope) -> Result<Typed> {
        let (name, list) = plain_call(call)?;
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => {
                    args.push(self.bind(e, scope)?);
                }
                _ => return Err(beyond(&format!("the call {}", shorten(&call.to_string())))),
            }
        }
        self.named_call(&name, args).map_err(|error| match call.name.0.first() {
            Some(ast::ObjectNamePart::Identifier(name)) => self.source.place(error, name.span),
            _ => error,
        })
    }

    /// CEIL, FLOOR, POSITION, SUBSTRING and TRIM, which the grammar has words for.
    pub(super) fn spelled_call(&mut self, e: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        use ast::Expr as E;
        const NO_FIELD: ast::CeilFloorKind =
            ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime);
        match e {
            E::Ceil { expr, field } if *field == NO_FIELD => {
                let value = self.bind(expr, scope)?;
                self.call("ceil", vec![value])
            }
            E::Floor { expr, field } if *field == NO_FIELD => {
                let value = self.bind(expr, scope)?;
                self.call("floor", vec![value])
            }
            E::Position { expr, r#in } => {
                let args = vec![self.bind(r#in, scope)?, self.bind(expr, scope)?];
                self.call("strpos", args)
            }
            E::Substring { expr, substring_from, substring_for, .. } => {
                let mut args = vec![self.bind(expr, scope)?];
                args.push(match substring_from {
                    Some(from) => self.bind(from, scope)?,
                    None => Typed::known(Expr::Const(Value::Int4(1)), DataType::Int4),
                });
                if let Some(length) = substring_for {
                    args.push(self.bind(length, scope)?);
                }
                self.call("substring", args)
            }
            E::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut args = vec![self.bind(expr, scope)?];
                for what in
                    trim_what.iter().map(AsRef::as_ref).chain(trim_characters.iter().flatten())
                {
                    args.push(self.bind(what, scope)?);
                }
                self.call(name, args)
            }
            other => Err(beyond_expression(other)),
        }
    }

    /// A call by name: of the few that are operators or expressions of their own, else of the table's.
    fn named_call(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        match name {
            "current_timestamp" if args.is_empty() => self.call("now", args),
            "localtimestamp" if args.is_empty() => {
                let now = self.call("now", args)?;
                let local = self.coerce(now, DataType::Timestamp, Coercion::Explicit)?;
                Ok(Typed::known(local, DataType::Timestamp))
            }
            "coalesce" if !args.is_empty() => {
                let (list, ty) = self.unified(args, "COALESCE")?;
                Ok(Typed::known(Expr::Coalesce(list), ty))
            }
            "power" | "pow" | "mod" => match <[Typed; 2]>::try_from(args) {
                Ok([a, b]) if name == "mod" => {
                    self.arith(Arith::Rem, &BinaryOperator::Modulo, a, b)
                }
                Ok([a, b]) => {
                    let a = self.coerce(a, DataType::Float8, Coercion::Explicit)?;
                    let b = self.coerce(b, DataType::Float8, Coercion::Explicit)?;
                    Ok(Typed::known(Expr::Arith(Arith::Power, Box::new((a, b))), DataType::Float8))
                }
                Err(args) => Err(undefined_function(name, &args)),
            },
            _ => self.call(name, args),
        }
    }

    /// A function of the table, with its arguments converted.
    pub(super) fn call(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        let Some((func, takes, gives)) = func::find(name, args.len()) else {
            return Err(undefined_function(name, &args));
        };
        let (args, argument_type) = match takes {
            Args::Exactly(types) => (self.exactly(name, args, types)?, DataType::Text),
            Args::Number => self.number_argument(name, args, gives)?,
            Args::One | Args::Any => (self.as_they_are(args)?, DataType::Text),
            Args::Alike | Args::Pair => self.unified(args, &name.to_uppercase())?,
        };
        let ty = match gives {
            Returns::Type(ty) => ty,
            Returns::Same | Returns::Rounded => argument_type,
        };
        Ok(Typed::known(Expr::Func(func, args), ty))
    }

    fn exactly(&mut self, name: &str, args: Vec<Typed>, types: &[DataType]) -> Result<Vec<Expr>> {
        let fits = |(arg, ty): (&Typed, &DataType)| match arg.ty {
            Ty::Known(own) => is_implicit(own, *ty),
            Ty::Unknown => true,
        };
        if !args.iter().zip(types).all(fits) {
            return Err(undefined_function(name, &args));
        }
        args.into_iter()
            .zip(types)
            .map(|(arg, ty)| self.coerce(arg, *ty, Coercion::Implicit))
            .collect()
    }

    fn number_argument(
        &mut self,
        name: &str,
        mut args: Vec<Typed>,
        result: Returns,
    ) -> Result<(Vec<Expr>, DataType)> {
        let Some(arg) = args.pop() else { return Err(undefined_function(name, &args)) };
        let own = match arg.ty {
            Ty::Known(ty) if category(ty) == Category::Number => ty.base(),
            Ty::Unknown => DataType::Float8,
            Ty::Known(_) => return Err(undefined_function(name, &[arg])),
        };
        let ty = match result {
            Returns::Rounded if !matches!(own, DataType::Numeric { .. }) => DataType::Float8,
            _ => own,
        };
        Ok((vec![self.coerce(arg, ty, Coercion::Explicit)?], ty))
    }

    fn as_they_are(&mut self, args: Vec<Typed>) -> Result<Vec<Expr>> {
        args.into_iter()
            .map(|arg| match arg.ty {
                Ty::Known(_) => Ok(arg.expr),
                Ty::Unknown => self.coerce(arg, DataType::Text, Coercion::Implicit),
            })
            .collect()
    }
}

/// The name and the arguments of a call without an aggregate's or a window's clauses.
fn plain_call(call: &ast::Function) -> Result<(String, &[ast::FunctionArg])> {
    let mut parts = Vec::new();
    for part in &call.name.0 {
        match part {
            ast::ObjectNamePart::Identifier(name) => parts.push(ident(name)),
            other => return Err(beyond(&format!("the function {other}"))),
        }
    }
    let name = match (parts.pop(), parts.as_slice()) {
        (Some(name), []) => name,
        (Some(name), [schema]) if schema == "pg_catalog" => name,
        _ => return Err(beyond(&format!("the function {}", call.name))),
    };
    if call.over.is_some() || call.filter.is_some() || !call.within_group.is_empty() {
        return Err(beyond("a window function or an aggregate's filter"));
    }
    let list = match &call.args {
        ast::FunctionArguments::None => &[][..],
        ast::FunctionArguments::List(list)
            if list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
        {
            &list.args
        }
        _ => return Err(beyond(&format!("the call {}", shorten(&call.to_string())))),
    };
    if is_aggregate(&name) {
        return Err(beyond(&format!("the aggregate {name}")));
    }
    Ok((name, list))
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

fn undefined_function(name: &str, args: &[Typed]) -> SqlError {
    let types: Vec<String> = args
        .iter()
        .map(|arg| match arg.ty {
            Ty::Known(ty) => ty.base().to_string(),
            Ty::Unknown => "unknown".to_owned(),
        })
        .collect();
    let error = SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {name}({}) does not exist", types.join(", ")),
    );
    match nearest(name, func::names()).filter(|near| *near != name) {
        Some(near) => error.hint(format!("Perhaps you meant the function \"{near}\".")),
        None => error.hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        ),
    }
}
