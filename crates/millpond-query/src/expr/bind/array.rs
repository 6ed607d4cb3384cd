//! Arrays in spellings of their own: `ARRAY[...]`, subscripts, `ANY` and `ALL`.

use millpond_engine::types::array::MAX_DIMENSIONS;
use millpond_syntax::tree::{self, Indirection, Name, Node};

use super::operator::{comparison_of, no_operator, symbol_of};
use super::{Binder, Coercion, LEVEL, Scope, Typed, beyond};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::array::{ALL, ANY, CONSTRUCT, ELEMENT, NEST, SLICE, comparison_code};
use crate::expr::func::catalog::Proc;
use crate::expr::func::pattern::any::{ALL as MATCHES_ALL, ANY as MATCHES_ANY, operator_code};
use crate::expr::types::{Ty, comparable, is_int, is_ordered, unify};
use crate::expr::{Compare, Expr, Func};
use crate::types::array::too_many_dimensions;
use crate::{DataType, Value};

impl Binder<'_> {
    /// `ARRAY[...]`, of a type that a cast around it wants, if there is one.
    pub(super) fn array(
        &mut self,
        elements: &[tree::Expr],
        wanted: Option<DataType>,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        self.elements(elements, wanted, scope)
            .map_err(|error| self.place_operator(error, at, &elements.iter().collect::<Vec<_>>()))
    }

    fn elements(
        &mut self,
        elements: &[tree::Expr],
        wanted: Option<DataType>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let mut parts = Vec::with_capacity(elements.len());
        for element in elements {
            parts.push(match &element.node {
                Node::AArrayExpr(inner) => self
                    .deeper(LEVEL, |binder| binder.array(inner, wanted, element.location, scope))?,
                _ => self.bind(element, scope)?,
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

    /// `(value).field`, `value[1][2]`, `value[1:2]`
    pub(crate) fn indirection(
        &mut self,
        arg: &tree::Expr,
        parts: &[Indirection],
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let mut value = self.bind(arg, scope)?;
        let mut parts = parts;
        while let [Indirection::Field(field), rest @ ..] = parts {
            let found = self.field(&value, field);
            value = found.map_err(|error| self.place_at(error, arg))?;
            parts = rest;
        }
        if parts.is_empty() {
            return Ok(value);
        }
        self.subscripts(value, parts, scope).map_err(|error| self.place_at(error, arg))
    }

    fn subscripts(
        &mut self,
        value: Typed,
        parts: &[Indirection],
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let Ty::Known(ty) = value.ty else { return Err(not_subscriptable("unknown")) };
        let Some(element) = ty.element() else {
            return Err(match ty.is_storable() {
                true => not_subscriptable(&ty.to_string()),
                false => beyond(&format!("a subscript of type {ty}")),
            });
        };
        if parts.len() > MAX_DIMENSIONS {
            return Err(too_many_dimensions(parts.len()).into());
        }
        let slice = parts.iter().any(|part| matches!(part, Indirection::Slice(..)));
        let mut args = vec![value.expr];
        for part in parts {
            match part {
                Indirection::Index(index) if slice => {
                    // Beside a slice, a single subscript is the end of one that begins at 1.
                    args.push(Expr::Const(Value::Int4(1)));
                    args.push(self.subscript(index, scope)?);
                }
                Indirection::Index(index) => args.push(self.subscript(index, scope)?),
                Indirection::Slice(lower, upper) => {
                    for bound in [lower, upper] {
                        args.push(match bound {
                            Some(bound) => self.subscript(bound, scope)?,
                            None => Expr::Const(Value::Bool(true)),
                        });
                    }
                }
                Indirection::Field(_) | Indirection::Star => {
                    return Err(beyond("a field of a value"));
                }
            }
        }
        let (proc, ty): (&'static Proc, _) = if slice { (&SLICE, ty) } else { (&ELEMENT, element) };
        Ok(Typed::known(Expr::Func(Func::new(proc), args), ty))
    }

    fn subscript(&mut self, e: &tree::Expr, scope: &dyn Scope) -> Result<Expr> {
        let typed = self.bind(e, scope)?;
        match typed.ty {
            Ty::Known(ty) if !is_int(ty) => {
                let what = "array subscript must have type integer";
                Err(self.place_at(SqlError::new(SqlState::DATATYPE_MISMATCH, what), e))
            }
            _ => self
                .coerce(typed, DataType::Int4, Coercion::Assignment)
                .map_err(|error| self.place_literal(error, &[e])),
        }
    }

    /// `left op ANY (array)`, `left op ALL (array)`
    pub(super) fn any_array(
        &mut self,
        left: &tree::Expr,
        name: &[Name],
        right: &tree::Expr,
        all: bool,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let symbol = symbol_of(name)?;
        let literals = [right, left];
        let compare = comparison_of(symbol);
        let pattern = operator_code(symbol);
        let left = self.bind(left, scope)?;
        let right = self.bind(right, scope)?;
        if compare.is_none() && pattern.is_none() {
            let error = self.no_condition(symbol, left, &right);
            return Err(self.place_operator(error, at, &literals));
        }
        match (compare, pattern) {
            (Some(compare), _) => self.compare_elements(compare, left, right, all),
            (None, code) => self.match_patterns(symbol, code.unwrap_or(0), left, right, all),
        }
        .map_err(|error| self.place_operator(error, at, &literals))
    }

    /// `left LIKE ANY (patterns)` and the like.
    pub(super) fn match_patterns(
        &mut self,
        symbol: &str,
        code: i32,
        mut left: Typed,
        right: Typed,
        all: bool,
    ) -> Result<Typed> {
        let element = match right.ty {
            Ty::Unknown => DataType::Text,
            Ty::Known(ty) => ty.element().ok_or_else(no_array)?,
        };
        let is_text =
            |ty: Ty| matches!(ty, Ty::Unknown) || matches!(ty, Ty::Known(ty) if ty.is_string());
        if !is_text(left.ty) || !element.is_string() {
            return Err(no_operator(symbol, left.ty, Ty::Known(element)));
        }
        // Patterns see the spaces that a `character(n)` is stored without.
        self.pad(&mut left)?;
        let left = self.coerce(left, DataType::Text, Coercion::Implicit)?;
        let right = self.as_array_of(right, DataType::Text)?;
        let code = Expr::Const(Value::Int4(code));
        let proc: &'static Proc = if all { &MATCHES_ALL } else { &MATCHES_ANY };
        Ok(Typed::bool(Expr::Func(Func::new(proc), vec![left, right, code])))
    }

    /// Why an operator can't stand beside ANY: there is none, or it gives no boolean.
    fn no_condition(&mut self, symbol: &str, left: Typed, right: &Typed) -> SqlError {
        let element = match right.ty {
            Ty::Known(ty) => match ty.element() {
                Some(element) => Ty::Known(element),
                None => return no_array(),
            },
            Ty::Unknown => left.ty,
        };
        match self.binary_operator(symbol, left, Typed { expr: Expr::NULL, ty: element }) {
            Ok(Typed { ty: Ty::Known(DataType::Bool), .. }) => {
                beyond(&format!("the operator {symbol} ANY"))
            }
            Ok(_) => {
                let what = "op ANY/ALL (array) requires operator to yield boolean";
                SqlError::new(SqlState::WRONG_OBJECT_TYPE, what)
            }
            Err(error) => error,
        }
    }

    fn compare_elements(
        &mut self,
        compare: Compare,
        left: Typed,
        right: Typed,
        all: bool,
    ) -> Result<Typed> {
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
        let element = element.ok_or_else(no_array)?;
        if !is_ordered(element) && !matches!(symbol, "=" | "<>") {
            return Err(no_operator(symbol, left.ty, Ty::Known(element)));
        }
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
        let (own, elements) = match (left.ty, right.ty) {
            // What has no type yet has the other side's.
            (Ty::Known(DataType::Name), Ty::Unknown) => (common, DataType::Name),
            (Ty::Unknown, Ty::Known(_)) if element == DataType::Name => (element, common),
            _ => (common, common),
        };
        Ok((self.coerce_operand(left, own)?, self.as_array_of(right, elements)?))
    }

    fn as_array_of(&mut self, typed: Typed, element: DataType) -> Result<Expr> {
        // Strings compare as they are, but for trailing spaces.
        let is_char = |ty| matches!(ty, DataType::Char(_));
        let compares = |own: DataType| {
            own.is_string() && element.is_string() && (is_char(own) || !is_char(element))
        };
        match (typed.ty, element.array()) {
            (Ty::Known(own), Some(_)) if own.element().is_some_and(compares) => Ok(typed.expr),
            (_, Some(array)) => self.coerce(typed, array, Coercion::Explicit),
            _ => Err(beyond(&format!("arrays of {element}"))),
        }
    }
}

fn no_array() -> SqlError {
    let what = "op ANY/ALL (array) requires array on right side";
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, what)
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
