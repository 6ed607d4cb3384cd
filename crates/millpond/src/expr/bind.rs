//! From sqlparser's expressions to bound ones.

use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

use super::func::{self, Args, Returns};
use super::types::{
    Category, NUMERIC, Ty, category, comparable, has_modifier, is_assignable, is_castable,
    is_implicit, is_int, promote_numbers, unify,
};
use super::{Arith, Compare, Expr, Func, Like};
use crate::error::{Result, SqlError, SqlState};
use crate::lex::{LiteralKind, Literals};
use crate::parse::{Source, ident};
use crate::settings::nearest;
use crate::types::{FormatOptions, text};
use crate::{DataType, Value};

/// The columns that an expression can name.
pub(crate) trait Scope {
    /// The column's place and type, or why it can't be had.
    fn column(&self, table: Option<&str>, name: &str) -> Result<(usize, DataType)>;
}

/// No columns at all.
pub(crate) struct NoColumns;

impl Scope for NoColumns {
    fn column(&self, table: Option<&str>, name: &str) -> Result<(usize, DataType)> {
        match table {
            Some(table) => Err(missing_from(table)),
            None => Err(undefined_column(name, None, std::iter::empty())),
        }
    }
}

pub(crate) fn missing_from(table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("missing FROM-clause entry for table \"{table}\""),
    )
}

pub(crate) fn undefined_column<'a>(
    name: &str,
    table: Option<&str>,
    known: impl Iterator<Item = &'a str>,
) -> SqlError {
    let error = SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        match table {
            Some(table) => format!("column {table}.{name} does not exist"),
            None => format!("column \"{name}\" does not exist"),
        },
    );
    match nearest(name, known) {
        Some(near) => error.hint(format!("Perhaps you meant to reference the column \"{near}\".")),
        None => error,
    }
}

/// What is known about a statement's parameters.
#[derive(Debug)]
pub(crate) enum ParamTypes<'a> {
    /// Parameters of a prepared statement: given types, and those found so far.
    Declared(Vec<Option<DataType>>),
    /// Literals that the lexer has lifted out.
    Lifted(&'a Literals),
    /// There can be none.
    None,
}

/// A bound expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Ty,
}

impl Typed {
    fn known(expr: Expr, ty: DataType) -> Self {
        Typed { expr, ty: Ty::Known(ty) }
    }

    fn bool(expr: Expr) -> Self {
        Self::known(expr, DataType::Bool)
    }
}

/// How far a conversion may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coercion {
    Implicit,
    Assignment,
    Explicit,
}

/// Binds the expressions of one statement.
pub(crate) struct Binder<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) params: ParamTypes<'a>,
}

/// A form of expression that only a query engine can deal with.
pub(crate) fn beyond(what: &str) -> SqlError {
    // The planner recognises the code, and hands the statement on where there is an engine.
    SqlError::unsupported(what)
}

impl<'a> Binder<'a> {
    pub(crate) fn new(source: Source<'a>, params: ParamTypes<'a>) -> Self {
        Binder { source, params }
    }

    /// Whether literals have been lifted out: then numbers in ORDER BY or GROUP BY are not to be seen.
    pub(crate) fn is_lifted(&self) -> bool {
        matches!(self.params, ParamTypes::Lifted(_))
    }

    /// Binds an expression.
    pub(crate) fn bind(&mut self, expr: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        use ast::Expr as E;
        Ok(match expr {
            E::Identifier(name) => self.column(None, name, scope)?,
            E::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] => self.column(Some(table), name, scope)?,
                [_, table, name] => self.column(Some(table), name, scope)?,
                _ => return Err(SqlError::unsupported(format!("the name {expr}"))),
            },
            E::Value(value) => self.literal(value)?,
            E::Nested(inner) => self.bind(inner, scope)?,
            E::TypedString(typed) => {
                let ty = data_type(&typed.data_type)?;
                let literal = self.literal(&typed.value)?;
                Typed::known(self.coerce(literal, ty, Coercion::Explicit)?, ty)
            }
            E::UnaryOp { op, expr } => self.unary(*op, expr, scope)?,
            E::BinaryOp { .. } => self.binary(expr, scope)?,
            E::IsNull(e) => Typed::bool(Expr::IsNull(Box::new(self.any(e, scope)?), false)),
            E::IsNotNull(e) => Typed::bool(Expr::IsNull(Box::new(self.any(e, scope)?), true)),
            E::IsTrue(e) => self.is_bool(e, Some(true), false, scope)?,
            E::IsNotTrue(e) => self.is_bool(e, Some(true), true, scope)?,
            E::IsFalse(e) => self.is_bool(e, Some(false), false, scope)?,
            E::IsNotFalse(e) => self.is_bool(e, Some(false), true, scope)?,
            E::IsUnknown(e) => self.is_bool(e, None, false, scope)?,
            E::IsNotUnknown(e) => self.is_bool(e, None, true, scope)?,
            E::IsDistinctFrom(a, b) => self.distinct(a, b, false, scope)?,
            E::IsNotDistinctFrom(a, b) => self.distinct(a, b, true, scope)?,
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated, scope)?,
            E::Between { expr, negated, low, high } => {
                let value = self.bind(expr, scope)?;
                let (low, high) = (self.bind(low, scope)?, self.bind(high, scope)?);
                let least = self.compare(Compare::Ge, value.clone(), low)?;
                let most = self.compare(Compare::Le, value, high)?;
                let both = Expr::And(vec![least, most]);
                Typed::bool(if *negated { Expr::Not(Box::new(both)) } else { both })
            }
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), false, *negated, scope)?
            }
            E::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), true, *negated, scope)?
            }
            E::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type: ty,
                array: false,
                format: None,
            } => {
                let ty = data_type(ty)?;
                let value = self.bind(expr, scope)?;
                Typed::known(self.coerce(value, ty, Coercion::Explicit)?, ty)
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), scope)?
            }
            E::Collate { expr, collation } => {
                let name = collation.to_string();
                if !matches!(name.trim_matches('"'), "C" | "POSIX" | "default" | "ucs_basic") {
                    return Err(SqlError::unsupported(format!("the collation {name}")));
                }
                self.bind(expr, scope)?
            }
            E::Function(function) => self.function(function, scope)?,
            E::Ceil {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => {
                let value = self.bind(expr, scope)?;
                self.call("ceil", vec![value])?
            }
            E::Floor {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => {
                let value = self.bind(expr, scope)?;
                self.call("floor", vec![value])?
            }
            E::Position { expr, r#in } => {
                let args = vec![self.bind(r#in, scope)?, self.bind(expr, scope)?];
                self.call("strpos", args)?
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
                self.call("substring", args)?
            }
            E::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut args = vec![self.bind(expr, scope)?];
                if let Some(what) = trim_what {
                    args.push(self.bind(what, scope)?);
                }
                for what in trim_characters.iter().flatten() {
                    args.push(self.bind(what, scope)?);
                }
                self.call(name, args)?
            }
            other => {
                return Err(beyond(&format!("the expression {}", shorten(&other.to_string()))));
            }
        })
    }

    /// Binds an expression and converts it to a type.
    pub(crate) fn bind_as(
        &mut self,
        expr: &ast::Expr,
        ty: DataType,
        coercion: Coercion,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.coerce(typed, ty, coercion)
    }

    /// Binds a condition.
    pub(crate) fn condition(
        &mut self,
        expr: &ast::Expr,
        what: &str,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.truth_value(typed, what)
    }

    fn truth_value(&mut self, typed: Typed, what: &str) -> Result<Expr> {
        match typed.ty {
            Ty::Known(DataType::Bool) | Ty::Unknown => {
                self.coerce(typed, DataType::Bool, Coercion::Implicit)
            }
            Ty::Known(ty) => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type boolean, not type {ty}"),
            )),
        }
    }

    /// Binds an expression whose own type will do; unknown literals become text.
    pub(crate) fn output(
        &mut self,
        expr: &ast::Expr,
        scope: &dyn Scope,
    ) -> Result<(Expr, DataType)> {
        let typed = self.bind(expr, scope)?;
        match typed.ty {
            Ty::Known(ty) => Ok((typed.expr, ty)),
            Ty::Unknown => {
                Ok((self.coerce(typed, DataType::Text, Coercion::Implicit)?, DataType::Text))
            }
        }
    }

    fn any(&mut self, expr: &ast::Expr, scope: &dyn Scope) -> Result<Expr> {
        Ok(self.output(expr, scope)?.0)
    }

    /// Converts a bound expression to a type.
    pub(crate) fn coerce(&mut self, typed: Typed, to: DataType, how: Coercion) -> Result<Expr> {
        let Ty::Known(from) = typed.ty else { return self.coerce_unknown(typed.expr, to, how) };
        let explicit = how == Coercion::Explicit;
        if from == to || (from.base() == to.base() && !has_modifier(to)) {
            return Ok(typed.expr);
        }
        let allowed = match how {
            Coercion::Implicit => is_implicit(from, to),
            Coercion::Assignment => is_assignable(from, to),
            Coercion::Explicit => is_castable(from, to),
        };
        if !allowed {
            return Err(SqlError::new(
                SqlState::CANNOT_COERCE,
                format!("cannot cast type {from} to {to}"),
            ));
        }
        let both_text = category(from) == Category::String && to == DataType::Text;
        if both_text {
            return Ok(typed.expr);
        }
        Ok(match typed.expr {
            // A constant is converted once.
            Expr::Const(value) => {
                let value = super::cast::cast(value.into(), to, explicit)?;
                Expr::Const(value.into_value())
            }
            expr => Expr::Cast(Box::new(expr), to, explicit),
        })
    }

    fn coerce_unknown(&mut self, expr: Expr, to: DataType, how: Coercion) -> Result<Expr> {
        match expr {
            Expr::Const(Value::Null) => Ok(Expr::NULL),
            Expr::Const(Value::Text(literal)) => {
                // A written cast cuts; storing refuses.
                let wide = match to {
                    DataType::Varchar(_) => DataType::Text,
                    DataType::Char(_) => DataType::Text,
                    other => other,
                };
                let value = text::parse(wide, &literal, &FormatOptions::default())?;
                let value = super::cast::cast(value.into(), to, how == Coercion::Explicit)?;
                Ok(Expr::Const(value.into_value()))
            }
            Expr::Param(number) => match &mut self.params {
                ParamTypes::Declared(types) => {
                    let base = match to {
                        DataType::Char(_) => DataType::Text,
                        other => other.base(),
                    };
                    match types.get_mut(number) {
                        Some(slot @ None) => *slot = Some(base),
                        Some(Some(found)) if *found != base => {
                            let found = *found;
                            return self.coerce(Typed::known(Expr::Param(number), found), to, how);
                        }
                        _ => {}
                    }
                    Ok(if has_modifier(to) {
                        Expr::Cast(Box::new(Expr::Param(number)), to, how == Coercion::Explicit)
                    } else {
                        Expr::Param(number)
                    })
                }
                // A string literal: text until it is converted.
                _ if to == DataType::Text || to == DataType::Varchar(None) => {
                    Ok(Expr::Param(number))
                }
                _ => Ok(Expr::Cast(Box::new(Expr::Param(number)), to, how == Coercion::Explicit)),
            },
            // CASE and the like of unknown parts only.
            other => Ok(Expr::Cast(Box::new(other), to, how == Coercion::Explicit)),
        }
    }

    fn column(
        &mut self,
        table: Option<&ast::Ident>,
        name: &ast::Ident,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let folded = ident(name);
        if table.is_none() && name.quote_style.is_none() {
            // Words that are functions without parentheses.
            if let "current_catalog" | "current_role" | "current_user" | "session_user" | "user"
            | "current_date" | "current_schema" = folded.as_str()
            {
                return self.call(&folded, Vec::new());
            }
        }
        let table = table.map(ident);
        match scope.column(table.as_deref(), &folded) {
            Ok((column, ty)) => Ok(Typed::known(Expr::Column(column), ty)),
            Err(error) => Err(self.source.place(error, name.span)),
        }
    }

    fn literal(&mut self, value: &ast::ValueWithSpan) -> Result<Typed> {
        use ast::Value as V;
        Ok(match &value.value {
            V::Number(text, _) => number(text)?,
            V::SingleQuotedString(s) | V::EscapedStringLiteral(s) | V::NationalStringLiteral(s) => {
                Typed { expr: Expr::Const(Value::Text(s.clone())), ty: Ty::Unknown }
            }
            V::DollarQuotedString(s) => {
                Typed { expr: Expr::Const(Value::Text(s.value.clone())), ty: Ty::Unknown }
            }
            V::UnicodeStringLiteral(s) => {
                Typed { expr: Expr::Const(Value::Text(s.clone())), ty: Ty::Unknown }
            }
            V::Boolean(b) => Typed::bool(Expr::Const(Value::Bool(*b))),
            V::Null => Typed { expr: Expr::NULL, ty: Ty::Unknown },
            V::Placeholder(name) => {
                self.param(name).map_err(|error| self.source.place(error, value.span))?
            }
            other => return Err(SqlError::unsupported(format!("the literal {other}"))),
        })
    }

    fn param(&mut self, name: &str) -> Result<Typed> {
        let number = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
        let Some(index) = number.and_then(|n| n.checked_sub(1)) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter {name}"),
            ));
        };
        let expr = Expr::Param(index);
        match &mut self.params {
            ParamTypes::Declared(types) => {
                if index >= usize::from(u16::MAX) {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_PARAMETER,
                        format!("there is no parameter {name}"),
                    ));
                }
                if types.len() <= index {
                    types.resize(index + 1, None);
                }
                Ok(Typed { expr, ty: types[index].map_or(Ty::Unknown, Ty::Known) })
            }
            ParamTypes::Lifted(literals) => {
                let ty = match literals.get(index).map(|l| l.kind) {
                    Some(LiteralKind::Int4(_)) => Ty::Known(DataType::Int4),
                    Some(LiteralKind::Int8(_)) => Ty::Known(DataType::Int8),
                    Some(LiteralKind::Numeric) => Ty::Known(NUMERIC),
                    _ => Ty::Unknown,
                };
                Ok(Typed { expr, ty })
            }
            ParamTypes::None => Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter {name}"),
            )),
        }
    }

    fn is_bool(
        &mut self,
        e: &ast::Expr,
        what: Option<bool>,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.condition(e, "IS", scope)?;
        Ok(Typed::bool(Expr::IsBool(Box::new(value), what, negated)))
    }

    fn distinct(
        &mut self,
        a: &ast::Expr,
        b: &ast::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (a, b) = (self.bind(a, scope)?, self.bind(b, scope)?);
        let pair = self.alike(a, b, "IS DISTINCT FROM")?;
        Ok(Typed::bool(Expr::Distinct(Box::new(pair), negated)))
    }

    fn in_list(
        &mut self,
        expr: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let items = list.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?;
        // All sides meet in one type; integers compare as they are.
        let mut common = value.ty;
        for item in &items {
            common = match (common, item.ty) {
                (Ty::Known(a), Ty::Known(b)) => match comparable(a, b) {
                    Some(_) if is_int(a) && is_int(b) => Ty::Known(a),
                    Some(ty) => Ty::Known(ty),
                    None => return Err(no_operator("=", Ty::Known(a), Ty::Known(b))),
                },
                (Ty::Unknown, ty) | (ty, Ty::Unknown) => ty,
            };
        }
        let ty = match common {
            Ty::Known(ty) => ty,
            Ty::Unknown => DataType::Text,
        };
        let mut convert = |typed: Typed| match typed.ty {
            Ty::Known(own) if is_int(own) && is_int(ty) => Ok(typed.expr),
            _ => self.coerce_operand(typed, ty),
        };
        let value = convert(value)?;
        let items = items.into_iter().map(convert).collect::<Result<Vec<_>>>()?;
        Ok(Typed::bool(Expr::In(Box::new(value), items, negated)))
    }

    fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        ignore_case: bool,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let pattern = self.bind(pattern, scope)?;
        for side in [&value, &pattern] {
            if let Ty::Known(ty) = side.ty
                && category(ty) != Category::String
            {
                return Err(no_operator("~~", value.ty, pattern.ty));
            }
        }
        // A char(n) is compared without its padding here, as it is stored.
        let value = self.coerce(value, DataType::Text, Coercion::Explicit)?;
        let pattern = self.coerce(pattern, DataType::Text, Coercion::Explicit)?;
        let escape = match escape {
            Some(value) => {
                let literal = self.literal(value)?;
                Some(self.coerce(literal, DataType::Text, Coercion::Explicit)?)
            }
            None => None,
        };
        let like = Like { value, pattern, escape, ignore_case, negated };
        Ok(Typed::bool(Expr::Like(Box::new(like))))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let operand = operand.map(|e| self.bind(e, scope)).transpose()?;
        let mut whens = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            whens.push(match &operand {
                Some(operand) => {
                    let value = self.bind(&when.condition, scope)?;
                    self.compare(Compare::Eq, operand.clone(), value)?
                }
                None => self.condition(&when.condition, "CASE/WHEN", scope)?,
            });
            results.push(self.bind(&when.result, scope)?);
        }
        if let Some(otherwise) = otherwise {
            results.push(self.bind(otherwise, scope)?);
        }
        let (mut results, ty) = self.unified(results, "CASE")?;
        let otherwise = (results.len() > whens.len())
            .then(|| results.pop().unwrap_or(Expr::NULL))
            .map(Box::new);
        let whens = whens.into_iter().zip(results).collect();
        Ok(Typed::known(Expr::Case(whens, otherwise), ty))
    }

    /// Converts all to the one type that they have in common.
    fn unified(&mut self, parts: Vec<Typed>, what: &str) -> Result<(Vec<Expr>, DataType)> {
        let ty = unify(parts.iter().map(|part| part.ty)).map_err(|(a, b)| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("{what} types {a} and {b} cannot be matched"),
            )
        })?;
        let ty = match ty {
            Ty::Known(ty) => ty,
            Ty::Unknown => DataType::Text,
        };
        let exprs = parts
            .into_iter()
            .map(|part| self.coerce_operand(part, ty))
            .collect::<Result<Vec<_>>>()?;
        Ok((exprs, ty))
    }

    fn unary(&mut self, op: UnaryOperator, expr: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        match op {
            UnaryOperator::Not => {
                let value = self.condition(expr, "NOT", scope)?;
                Ok(Typed::bool(Expr::Not(Box::new(value))))
            }
            UnaryOperator::Plus | UnaryOperator::Minus => {
                let value = self.bind(expr, scope)?;
                let (value, ty) = match value.ty {
                    Ty::Known(ty) if category(ty) == Category::Number => (value.expr, ty),
                    // An unknown literal after a sign is double precision, as in PostgreSQL.
                    Ty::Unknown => (
                        self.coerce(value, DataType::Float8, Coercion::Implicit)?,
                        DataType::Float8,
                    ),
                    Ty::Known(ty) => {
                        return Err(SqlError::new(
                            SqlState::UNDEFINED_FUNCTION,
                            format!("operator does not exist: {op} {ty}"),
                        ));
                    }
                };
                if op == UnaryOperator::Plus {
                    return Ok(Typed::known(value, ty));
                }
                Ok(Typed::known(
                    match value {
                        Expr::Const(value) => Expr::Const(super::arith::negate(value.as_datum())?),
                        value => Expr::Neg(Box::new(value)),
                    },
                    ty.base(),
                ))
            }
            other => Err(beyond(&format!("the operator {other}"))),
        }
    }

    /// Binds a chain of binary operators. The parser leans `a + b + c` to the left as deep as it is long, so the
    /// left side is walked down in a loop, not by recursion.
    fn binary(&mut self, chain: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        let mut rest = Vec::new();
        let mut first = chain;
        while let ast::Expr::BinaryOp { left, op, right } = first {
            rest.push((op, right.as_ref()));
            first = left;
        }
        let mut value = self.bind(first, scope)?;
        while let Some((op, right)) = rest.pop() {
            let right = self.bind(right, scope)?;
            value = self.operator(op, value, right)?;
        }
        Ok(value)
    }

    fn operator(&mut self, op: &BinaryOperator, a: Typed, b: Typed) -> Result<Typed> {
        use BinaryOperator as B;
        let compare = match op {
            B::And | B::Or => return self.logic(op, a, b),
            B::Eq => Some(Compare::Eq),
            B::NotEq => Some(Compare::Ne),
            B::Lt => Some(Compare::Lt),
            B::LtEq => Some(Compare::Le),
            B::Gt => Some(Compare::Gt),
            B::GtEq => Some(Compare::Ge),
            _ => None,
        };
        if let Some(compare) = compare {
            return Ok(Typed::bool(self.compare(compare, a, b)?));
        }
        let arith = match op {
            B::Plus => Arith::Add,
            B::Minus => Arith::Sub,
            B::Multiply => Arith::Mul,
            B::Divide => Arith::Div,
            B::Modulo => Arith::Rem,
            B::PGExp => Arith::Power,
            B::BitwiseAnd => Arith::BitAnd,
            B::BitwiseOr => Arith::BitOr,
            B::PGBitwiseXor => Arith::BitXor,
            B::PGBitwiseShiftLeft => Arith::ShiftLeft,
            B::PGBitwiseShiftRight => Arith::ShiftRight,
            B::StringConcat => return self.concat(a, b),
            other => return Err(beyond(&format!("the operator {other}"))),
        };
        self.arith(arith, op, a, b)
    }

    fn logic(&mut self, op: &BinaryOperator, a: Typed, b: Typed) -> Result<Typed> {
        let is_and = *op == BinaryOperator::And;
        let what = if is_and { "AND" } else { "OR" };
        let a = self.truth_value(a, what)?;
        let b = self.truth_value(b, what)?;
        let mut list = match a {
            Expr::And(list) if is_and => list,
            Expr::Or(list) if !is_and => list,
            a => vec![a],
        };
        match b {
            Expr::And(more) if is_and => list.extend(more),
            Expr::Or(more) if !is_and => list.extend(more),
            b => list.push(b),
        }
        Ok(Typed::bool(if is_and { Expr::And(list) } else { Expr::Or(list) }))
    }

    /// A comparison of two bound sides.
    pub(crate) fn compare(&mut self, op: Compare, a: Typed, b: Typed) -> Result<Expr> {
        let pair = self.alike(a, b, op.symbol())?;
        Ok(Expr::Compare(op, Box::new(pair)))
    }

    /// Converts both sides to the type in which they compare.
    fn alike(&mut self, a: Typed, b: Typed, symbol: &str) -> Result<(Expr, Expr)> {
        let ty = match (a.ty, b.ty) {
            (Ty::Known(x), Ty::Known(y)) if is_int(x) && is_int(y) => return Ok((a.expr, b.expr)),
            (Ty::Known(x), Ty::Known(y)) => {
                comparable(x, y).ok_or_else(|| no_operator(symbol, a.ty, b.ty))?
            }
            (Ty::Known(ty), Ty::Unknown) | (Ty::Unknown, Ty::Known(ty)) => ty,
            (Ty::Unknown, Ty::Unknown) => DataType::Text,
        };
        Ok((self.coerce_operand(a, ty)?, self.coerce_operand(b, ty)?))
    }

    /// Converts an operand; a literal beside a `char(n)` loses its trailing spaces as the column's values have.
    fn coerce_operand(&mut self, typed: Typed, ty: DataType) -> Result<Expr> {
        let is_char = matches!(ty, DataType::Char(_));
        match ty {
            DataType::Char(_) | DataType::Varchar(_) if typed.ty == Ty::Unknown => {
                let expr = self.coerce(typed, DataType::Text, Coercion::Implicit)?;
                Ok(match expr {
                    expr if !is_char => expr,
                    Expr::Const(Value::Text(text)) => {
                        Expr::Const(Value::Text(text.trim_end_matches(' ').to_owned()))
                    }
                    expr => Expr::Func(Func::TrimRight, vec![expr]),
                })
            }
            _ => self.coerce(typed, ty.base(), Coercion::Explicit),
        }
    }

    fn arith(&mut self, arith: Arith, op: &BinaryOperator, a: Typed, b: Typed) -> Result<Typed> {
        let symbol = op.to_string();
        let fail = |a: &Typed, b: &Typed| no_operator(&symbol, a.ty, b.ty);
        // Days are added to dates.
        let date = |ty: Ty| ty == Ty::Known(DataType::Date);
        let small = |ty: Ty| matches!(ty, Ty::Known(DataType::Int4 | DataType::Int2));
        if date(a.ty) || date(b.ty) {
            return match arith {
                Arith::Sub if date(a.ty) && (date(b.ty) || b.ty == Ty::Unknown) => {
                    let b = self.coerce(b, DataType::Date, Coercion::Implicit)?;
                    Ok(Typed::known(Expr::Arith(arith, Box::new((a.expr, b))), DataType::Int4))
                }
                Arith::Add | Arith::Sub if date(a.ty) && small(b.ty) => {
                    let b = self.coerce(b, DataType::Int4, Coercion::Implicit)?;
                    Ok(Typed::known(Expr::Arith(arith, Box::new((a.expr, b))), DataType::Date))
                }
                Arith::Add if small(a.ty) => {
                    let a = self.coerce(a, DataType::Int4, Coercion::Implicit)?;
                    Ok(Typed::known(Expr::Arith(arith, Box::new((a, b.expr))), DataType::Date))
                }
                _ => Err(fail(&a, &b)),
            };
        }
        let ty = match (a.ty, b.ty) {
            (Ty::Known(x), Ty::Known(y)) => {
                if category(x) == Category::Time || category(y) == Category::Time {
                    return Err(beyond("arithmetic with timestamps"));
                }
                if category(x) != Category::Number || category(y) != Category::Number {
                    return Err(fail(&a, &b));
                }
                promote_numbers(x, y)
            }
            (Ty::Known(ty), Ty::Unknown) | (Ty::Unknown, Ty::Known(ty)) => {
                if category(ty) != Category::Number {
                    return Err(fail(&a, &b));
                }
                ty.base()
            }
            (Ty::Unknown, Ty::Unknown) => {
                return Err(SqlError::new(
                    SqlState::AMBIGUOUS_FUNCTION,
                    format!("operator is not unique: unknown {symbol} unknown"),
                )
                .hint("Could not choose a best candidate operator. You might need to add explicit type casts."));
            }
        };
        let ty = match arith {
            Arith::Power => DataType::Float8,
            Arith::BitAnd | Arith::BitOr | Arith::BitXor | Arith::ShiftLeft | Arith::ShiftRight
                if !is_int(ty) =>
            {
                return Err(fail(&a, &b));
            }
            Arith::Rem if matches!(ty, DataType::Float4 | DataType::Float8) => {
                return Err(fail(&a, &b));
            }
            _ => ty,
        };
        let a = self.coerce(a, ty, Coercion::Explicit)?;
        let b = self.coerce(b, ty, Coercion::Explicit)?;
        Ok(Typed::known(Expr::Arith(arith, Box::new((a, b))), ty))
    }

    fn concat(&mut self, a: Typed, b: Typed) -> Result<Typed> {
        let known = |ty: Ty| match ty {
            Ty::Known(ty) => Some(category(ty)),
            Ty::Unknown => None,
        };
        let ty = match (known(a.ty), known(b.ty)) {
            (Some(Category::Bytes), None | Some(Category::Bytes))
            | (None, Some(Category::Bytes)) => DataType::Bytea,
            (Some(x), Some(y)) if x != Category::String && y != Category::String => {
                return Err(no_operator("||", a.ty, b.ty));
            }
            _ => DataType::Text,
        };
        let a = self.coerce(a, ty, Coercion::Explicit)?;
        let b = self.coerce(b, ty, Coercion::Explicit)?;
        Ok(Typed::known(Expr::Concat(Box::new((a, b))), ty))
    }

    fn function(&mut self, function: &ast::Function, scope: &dyn Scope) -> Result<Typed> {
        let mut parts = Vec::new();
        for part in &function.name.0 {
            match part {
                ast::ObjectNamePart::Identifier(name) => parts.push(ident(name)),
                other => return Err(beyond(&format!("the function {other}"))),
            }
        }
        let name = match parts.as_slice() {
            [name] => name.clone(),
            [schema, name] if schema == "pg_catalog" => name.clone(),
            _ => return Err(beyond(&format!("the function {}", function.name))),
        };
        if function.over.is_some() || function.filter.is_some() || !function.within_group.is_empty()
        {
            return Err(beyond("a window function or an aggregate's filter"));
        }
        let list = match &function.args {
            ast::FunctionArguments::None => &[][..],
            ast::FunctionArguments::List(list)
                if list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
            {
                &list.args
            }
            _ => return Err(beyond(&format!("the call {}", shorten(&function.to_string())))),
        };
        if is_aggregate(&name) {
            return Err(beyond(&format!("the aggregate {name}")));
        }
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => {
                    args.push(self.bind(e, scope)?);
                }
                _ => return Err(beyond(&format!("the call {}", shorten(&function.to_string())))),
            }
        }
        let span = function.name.0.first().map(|part| match part {
            ast::ObjectNamePart::Identifier(name) => name.span,
            _ => sqlparser::tokenizer::Span::empty(),
        });
        let result = match name.as_str() {
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
            "power" | "pow" if args.len() == 2 => {
                let mut args = args.into_iter();
                let mut next =
                    || args.next().unwrap_or(Typed { expr: Expr::NULL, ty: Ty::Unknown });
                let (a, b) = (next(), next());
                let a = self.coerce(a, DataType::Float8, Coercion::Explicit)?;
                let b = self.coerce(b, DataType::Float8, Coercion::Explicit)?;
                Ok(Typed::known(Expr::Arith(Arith::Power, Box::new((a, b))), DataType::Float8))
            }
            "mod" if args.len() == 2 => {
                let mut args = args.into_iter();
                let mut next =
                    || args.next().unwrap_or(Typed { expr: Expr::NULL, ty: Ty::Unknown });
                let (a, b) = (next(), next());
                self.arith(Arith::Rem, &BinaryOperator::Modulo, a, b)
            }
            _ => self.call(&name, args),
        };
        result.map_err(|error| match span {
            Some(span) => self.source.place(error, span),
            None => error,
        })
    }

    /// A function of the table, with its arguments converted.
    fn call(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        let Some(signature) = func::find(name, args.len()) else {
            return Err(undefined_function(name, &args));
        };
        let (args, argument_type) = match signature.args {
            Args::Exactly(types) => {
                let mut converted = Vec::with_capacity(args.len());
                for (arg, ty) in args.into_iter().zip(types) {
                    let fits = match arg.ty {
                        Ty::Known(own) => is_implicit(own, *ty),
                        Ty::Unknown => true,
                    };
                    if !fits {
                        return Err(undefined_function(name, &[arg]));
                    }
                    converted.push(self.coerce(arg, *ty, Coercion::Implicit)?);
                }
                (converted, DataType::Text)
            }
            Args::Number => {
                let mut args = args;
                let Some(arg) = args.pop() else { return Err(undefined_function(name, &args)) };
                let own = match arg.ty {
                    Ty::Known(ty) if category(ty) == Category::Number => ty.base(),
                    Ty::Unknown => DataType::Float8,
                    Ty::Known(_) => return Err(undefined_function(name, &[arg])),
                };
                let ty = match signature.result {
                    Returns::Rounded if !matches!(own, DataType::Numeric { .. }) => {
                        DataType::Float8
                    }
                    _ => own,
                };
                (vec![self.coerce(arg, ty, Coercion::Explicit)?], ty)
            }
            Args::Any => {
                let mut converted = Vec::with_capacity(args.len());
                for arg in args {
                    converted.push(match arg.ty {
                        Ty::Known(_) => arg.expr,
                        Ty::Unknown => self.coerce(arg, DataType::Text, Coercion::Implicit)?,
                    });
                }
                (converted, DataType::Text)
            }
            Args::Alike => self.unified(args, &name.to_uppercase())?,
            Args::Texts => {
                let mut converted = Vec::with_capacity(args.len());
                for arg in args {
                    converted.push(match arg.ty {
                        Ty::Known(_) => arg.expr,
                        Ty::Unknown => self.coerce(arg, DataType::Text, Coercion::Implicit)?,
                    });
                }
                (converted, DataType::Text)
            }
        };
        let ty = match signature.result {
            Returns::Type(ty) => ty,
            Returns::Same | Returns::Rounded => argument_type,
        };
        Ok(Typed::known(Expr::Func(signature.func, args), ty))
    }
}

/// Names that stand for aggregates.
pub(crate) fn is_aggregate(name: &str) -> bool {
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
    match nearest(name, func::NAMES.iter().copied()).filter(|near| *near != name) {
        Some(near) => error.hint(format!("Perhaps you meant the function \"{near}\".")),
        None => error.hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        ),
    }
}

fn no_operator(symbol: &str, a: Ty, b: Ty) -> SqlError {
    let name = |ty: Ty| match ty {
        Ty::Known(ty) => ty.base().to_string(),
        Ty::Unknown => "unknown".to_owned(),
    };
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {} {symbol} {}", name(a), name(b)),
    )
    .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

/// A numeric literal's value and type.
fn number(text: &str) -> Result<Typed> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if let Ok(int) = text.parse::<i32>() {
            return Ok(Typed::known(Expr::Const(Value::Int4(int)), DataType::Int4));
        }
        if let Ok(int) = text.parse::<i64>() {
            return Ok(Typed::known(Expr::Const(Value::Int8(int)), DataType::Int8));
        }
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
        && let Ok(int) = i64::from_str_radix(hex, 16)
    {
        return Ok(match i32::try_from(int) {
            Ok(int) => Typed::known(Expr::Const(Value::Int4(int)), DataType::Int4),
            Err(_) => Typed::known(Expr::Const(Value::Int8(int)), DataType::Int8),
        });
    }
    let value = text::parse(NUMERIC, text, &FormatOptions::default())?;
    Ok(Typed::known(Expr::Const(value), NUMERIC))
}

/// sqlparser's type as ours.
pub(crate) fn data_type(ty: &ast::DataType) -> Result<DataType> {
    use ast::DataType as T;
    let length = |length: &Option<ast::CharacterLength>| match length {
        Some(ast::CharacterLength::IntegerLength { length, .. }) => {
            match u32::try_from(*length).ok().filter(|n| (1..=10_485_760).contains(n)) {
                Some(n) => Ok(Some(n)),
                None if *length == 0 => Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "length for type character must be at least 1",
                )),
                None => Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "length for type character cannot exceed 10485760",
                )),
            }
        }
        _ => Ok(None),
    };
    let numeric = |info: &ast::ExactNumberInfo| -> Result<DataType> {
        let (precision, scale) = match info {
            ast::ExactNumberInfo::None => return Ok(NUMERIC),
            ast::ExactNumberInfo::Precision(p) => (*p, 0),
            ast::ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
        };
        if !(1..=1000).contains(&precision) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("NUMERIC precision {precision} must be between 1 and 1000"),
            ));
        }
        if !(-1000..=1000).contains(&scale) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("NUMERIC scale {scale} must be between -1000 and 1000"),
            ));
        }
        Ok(DataType::Numeric { precision_scale: Some((precision as u16, scale as i16)) })
    };
    Ok(match ty {
        T::Boolean | T::Bool => DataType::Bool,
        T::SmallInt(None) | T::Int2(None) => DataType::Int2,
        T::Int(None) | T::Integer(None) | T::Int4(None) => DataType::Int4,
        T::BigInt(None) | T::Int8(None) => DataType::Int8,
        T::Real | T::Float4 => DataType::Float4,
        T::DoublePrecision | T::Float8 | T::Double(_) => DataType::Float8,
        T::Float(ast::ExactNumberInfo::None) => DataType::Float8,
        T::Float(ast::ExactNumberInfo::Precision(p)) => match p {
            1..=24 => DataType::Float4,
            25..=53 => DataType::Float8,
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "precision for type float must be between 1 and 53 bits",
                ));
            }
        },
        T::Numeric(info) | T::Decimal(info) | T::Dec(info) => numeric(info)?,
        T::Text => DataType::Text,
        T::Varchar(n) | T::CharacterVarying(n) | T::CharVarying(n) => DataType::Varchar(length(n)?),
        T::Char(n) | T::Character(n) => DataType::Char(length(n)?.unwrap_or(1)),
        T::Bytea => DataType::Bytea,
        T::Date => DataType::Date,
        T::Timestamp(_, ast::TimezoneInfo::None | ast::TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp
        }
        T::Timestamp(_, ast::TimezoneInfo::Tz | ast::TimezoneInfo::WithTimeZone) => {
            DataType::Timestamptz
        }
        T::Custom(name, modifiers) if modifiers.is_empty() => {
            match name.to_string().to_ascii_lowercase().trim_start_matches("pg_catalog.") {
                "bpchar" => DataType::Text,
                "name" => DataType::Varchar(Some(63)),
                "timestamptz" => DataType::Timestamptz,
                "bool" => DataType::Bool,
                "int2" => DataType::Int2,
                "int4" => DataType::Int4,
                "int8" => DataType::Int8,
                "float4" => DataType::Float4,
                "float8" => DataType::Float8,
                "text" => DataType::Text,
                other => return Err(unknown_type(other)),
            }
        }
        other => return Err(unknown_type(&other.to_string())),
    })
}

fn unknown_type(name: &str) -> SqlError {
    let known = [
        "json",
        "jsonb",
        "uuid",
        "time",
        "interval",
        "timetz",
        "serial",
        "bigserial",
        "smallserial",
        "oid",
        "regclass",
        "inet",
        "xml",
        "money",
        "point",
        "bit",
        "int4range",
        "array",
        "record",
        "char",
    ];
    let lower = name.to_ascii_lowercase();
    if lower.contains('[') || known.iter().any(|k| lower.starts_with(k)) {
        return SqlError::unsupported(format!("type {lower}"));
    }
    let error =
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{lower}\" does not exist"));
    let names = [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "numeric",
        "text",
        "varchar",
        "char",
        "bytea",
        "date",
        "timestamp",
        "timestamptz",
        "int",
    ];
    match nearest(&lower, names.iter().copied()) {
        Some(near) => error.hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    }
}

/// A text short enough for a message.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(57).collect();
    short.push_str("...");
    short
}
