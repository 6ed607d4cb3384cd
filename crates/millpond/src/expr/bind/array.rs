//! Arrays in spellings of their own: `ARRAY[...]`, subscripts, `ANY` and `ALL`.

use sqlparser::ast::{self, BinaryOperator};

use super::operator::no_operator;
use super::{Binder, Coercion, Scope, Typed, beyond};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::array::{ALL, ANY, CONSTRUCT, ELEMENT, NEST, SLICE, comparison_code};
use crate::expr::func::catalog::Proc;
use crate::expr::types::{Ty, comparable, is_int, unify};
use crate::expr::{Compare, Expr, Func};
use crate::parse::ident;
use crate::{DataType, Value};

/// The parser takes `a.b[1]` for a part of `a`: here it is the column `a.b`, and what follows.
fn name_before<'e>(
    root: &ast::Expr,
    chain: &'e [ast::AccessExpr],
) -> (Option<ast::Expr>, &'e [ast::AccessExpr]) {
    let mut parts = match root {
        ast::Expr::Identifier(name) => vec![name.clone()],
        ast::Expr::CompoundIdentifier(parts) => parts.clone(),
        _ => return (None, chain),
    };
    let before = parts.len();
    let names = chain.iter().map_while(|access| match access {
        ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    });
    parts.extend(names);
    match chain.get(parts.len() - before..) {
        Some(rest) if parts.len() > before => (Some(ast::Expr::CompoundIdentifier(parts)), rest),
        _ => (None, chain),
    }
}

impl Binder<'_> {
    /// `ARRAY[...]`, of a type that a cast around it wants, if there is one.
    pub(super) fn array(
        &mut self,
        array: &ast::Array,
        wanted: Option<DataType>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let mut parts = Vec::with_capacity(array.elem.len());
        for element in &array.elem {
            parts.push(match element {
                ast::Expr::Array(inner) => self.array(inner, wanted, scope)?,
                element => self.bind(element, scope)?,
            });
        }
        let nests = |ty: Ty| matches!(ty, Ty::Known(ty) if ty.element().is_some());
        let has_arrays = parts.iter().any(|part| nests(part.ty));
        let element = match wanted.and_then(DataType::element) {
            Some(element) => element,
            None if parts.is_empty() => return Err(empty_array()),
            None => self.element_type(&parts)?,
        };
        let Some(ty) = (match has_arrays {
            true => wanted.or(Some(element)),
            false => element.array(),
        }) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find array type for data type {element}"),
            ));
        };
        let (proc, part_type): (&'static Proc, _) =
            if has_arrays { (&NEST, ty) } else { (&CONSTRUCT, element) };
        let how = if wanted.is_some() { Coercion::Explicit } else { Coercion::Implicit };
        let mut args = vec![Expr::Const(Value::Int8(ty.oid().into()))];
        for part in parts {
            args.push(self.coerce(part, part_type, how)?);
        }
        Ok(Typed::known(Expr::Func(Func::new(proc), args), ty))
    }

    /// The type that the elements of an array have in common.
    fn element_type(&self, parts: &[Typed]) -> Result<DataType> {
        let ty = unify(parts.iter().map(|part| part.ty)).map_err(|(a, b)| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("ARRAY types {a} and {b} cannot be matched"),
            )
        })?;
        Ok(match ty {
            Ty::Known(ty) => ty,
            Ty::Unknown => DataType::Text,
        })
    }

    /// `value[1][2]`, `value[1:2]`
    pub(super) fn subscripts(
        &mut self,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (name, chain) = name_before(root, chain);
        let mut value = match name {
            Some(name) => self.bind(&name, scope)?,
            None => self.bind(root, scope)?,
        };
        let mut chain = chain;
        while let [ast::AccessExpr::Dot(ast::Expr::Identifier(field)), rest @ ..] = chain {
            let found = self.field(&value, &ident(field));
            value = found.map_err(|error| self.source.place(error, field.span))?;
            chain = rest;
        }
        if chain.is_empty() {
            return Ok(value);
        }
        let Ty::Known(ty) = value.ty else { return Err(not_subscriptable("unknown")) };
        let Some(element) = ty.element() else {
            return Err(match ty.is_storable() {
                true => not_subscriptable(&ty.to_string()),
                false => beyond(&format!("a subscript of type {ty}")),
            });
        };
        let is_slice = |access: &ast::AccessExpr| {
            matches!(access, ast::AccessExpr::Subscript(ast::Subscript::Slice { .. }))
        };
        let slice = chain.iter().any(is_slice);
        let mut args = vec![value.expr];
        for access in chain {
            let ast::AccessExpr::Subscript(subscript) = access else {
                return Err(beyond("a field of a value"));
            };
            match subscript {
                ast::Subscript::Index { index } if slice => {
                    // Beside a slice, a single subscript is the end of one that begins at 1.
                    args.push(Expr::Const(Value::Int4(1)));
                    args.push(self.subscript(index, scope)?);
                }
                ast::Subscript::Index { index } => args.push(self.subscript(index, scope)?),
                ast::Subscript::Slice { lower_bound, upper_bound, stride: None } => {
                    for bound in [lower_bound, upper_bound] {
                        args.push(match bound {
                            Some(bound) => self.subscript(bound, scope)?,
                            None => Expr::Const(Value::Bool(true)),
                        });
                    }
                }
                ast::Subscript::Slice { .. } => return Err(beyond("a slice with a stride")),
            }
        }
        let (proc, ty): (&'static Proc, _) = if slice { (&SLICE, ty) } else { (&ELEMENT, element) };
        Ok(Typed::known(Expr::Func(Func::new(proc), args), ty))
    }

    fn subscript(&mut self, e: &ast::Expr, scope: &dyn Scope) -> Result<Expr> {
        let typed = self.bind(e, scope)?;
        match typed.ty {
            Ty::Known(ty) if !is_int(ty) => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "array subscript must have type integer",
            )),
            _ => self.coerce(typed, DataType::Int4, Coercion::Assignment),
        }
    }

    /// `left op ANY (array)`, `left op ALL (array)`
    pub(super) fn any_array(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let compare = match op {
            BinaryOperator::Eq => Compare::Eq,
            BinaryOperator::NotEq => Compare::Ne,
            BinaryOperator::Lt => Compare::Lt,
            BinaryOperator::LtEq => Compare::Le,
            BinaryOperator::Gt => Compare::Gt,
            BinaryOperator::GtEq => Compare::Ge,
            other => return Err(beyond(&format!("the operator {other} ANY"))),
        };
        let left = self.bind(left, scope)?;
        let right = self.bind(right, scope)?;
        let (left, right) = self.with_elements(left, right, compare.symbol())?;
        let code = Expr::Const(Value::Int4(comparison_code(compare)));
        let proc: &'static Proc = if all { &ALL } else { &ANY };
        Ok(Typed::bool(Expr::Func(Func::new(proc), vec![left, right, code])))
    }

    /// Converts a value and an array so that the value and the elements compare.
    fn with_elements(&mut self, left: Typed, right: Typed, symbol: &str) -> Result<(Expr, Expr)> {
        let element = match (left.ty, right.ty) {
            (left, Ty::Unknown) => {
                let ty = match left {
                    Ty::Known(ty) => ty.base(),
                    Ty::Unknown => DataType::Text,
                };
                ty.array().and_then(DataType::element)
            }
            (_, Ty::Known(ty)) => ty.element(),
        };
        let Some(element) = element else {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires array on right side",
            ));
        };
        let common = match left.ty {
            Ty::Known(own) if is_int(own) && is_int(element) => None,
            Ty::Known(own) => Some(
                comparable(own, element)
                    .ok_or_else(|| no_operator(symbol, left.ty, Ty::Known(element)))?,
            ),
            // JSON compares with nothing.
            Ty::Unknown => Some(
                comparable(element, element)
                    .ok_or_else(|| no_operator(symbol, Ty::Known(element), Ty::Known(element)))?,
            ),
        };
        let Some(common) = common else {
            let array = match right.ty {
                Ty::Known(_) => right.expr,
                Ty::Unknown => self.as_array_of(right, element)?,
            };
            return Ok((left.expr, array));
        };
        let left = self.coerce(left, common, Coercion::Explicit)?;
        Ok((left, self.as_array_of(right, common)?))
    }

    fn as_array_of(&mut self, typed: Typed, element: DataType) -> Result<Expr> {
        match (typed.ty, element.array()) {
            // Elements that are strings of any kind compare as they are.
            (Ty::Known(own), Some(_))
                if own.element().is_some_and(|own| own.is_string() && element.is_string()) =>
            {
                Ok(typed.expr)
            }
            (_, Some(array)) => self.coerce(typed, array, Coercion::Explicit),
            _ => Err(beyond(&format!("arrays of {element}"))),
        }
    }
}

fn empty_array() -> SqlError {
    SqlError::new(SqlState::INDETERMINATE_DATATYPE, "cannot determine type of empty array")
        .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
}

fn not_subscriptable(ty: &str) -> SqlError {
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("cannot subscript type {ty} because it does not support subscripting"),
    )
}
