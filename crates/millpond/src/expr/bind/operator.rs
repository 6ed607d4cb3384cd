//! Operators.

use sqlparser::ast::{self, BinaryOperator, Spanned, UnaryOperator};

use super::call::as_result;
use super::{Binder, Coercion, Scope, Typed, beyond};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::Param;
use crate::expr::func::operators::{self, Operator, Work};
use crate::expr::func::resolve::{self, Candidate, Choice};
use crate::expr::func::type_name;
use crate::expr::types::{Category, Ty, category};
use crate::expr::{Arith, Compare, Expr, Func, Like, arith};
use crate::{DataType, Numeric, Value};

impl Binder<'_> {
    pub(super) fn unary(
        &mut self,
        op: UnaryOperator,
        expr: &ast::Expr,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        match op {
            UnaryOperator::Not => {
                let value = self.condition(expr, "NOT", scope)?;
                Ok(Typed::bool(Expr::Not(Box::new(value))))
            }
            UnaryOperator::Plus | UnaryOperator::Minus => {
                let value = self.bind(expr, scope)?;
                let (value, ty) = match value.ty {
                    Ty::Known(ty) if category(ty) == Category::Number => (value.expr, ty),
                    Ty::Known(ty)
                        if category(ty) == Category::Interval && op == UnaryOperator::Minus =>
                    {
                        return self.call("interval_um", vec![value]);
                    }
                    Ty::Unknown => {
                        return Err(ambiguous_operator(&format!("{op} unknown")));
                    }
                    Ty::Known(ty) => {
                        return Err(undefined_operator(&format!("{op} {}", type_name(ty))));
                    }
                };
                if op == UnaryOperator::Plus {
                    return Ok(Typed::known(value, ty));
                }
                Ok(Typed::known(
                    match value {
                        Expr::Const(value) => return negated_constant(value, ty, expr),
                        value => Expr::Neg(Box::new(value)),
                    },
                    ty.base(),
                ))
            }
            other => {
                let symbol = other.to_string();
                let value = self.bind(expr, scope)?;
                let candidates = operators::candidates(&symbol, 1);
                if candidates.is_empty() {
                    return Err(beyond(&format!("the operator {other}")));
                }
                match resolve::choose(candidates, &[value.ty]) {
                    Choice::One(chosen) => self.work(chosen, vec![value]),
                    Choice::None => {
                        Err(undefined_operator(&format!("{symbol} {}", name_of(value.ty))))
                    }
                    Choice::Ambiguous => {
                        Err(ambiguous_operator(&format!("{symbol} {}", name_of(value.ty))))
                    }
                }
            }
        }
    }

    /// Binds a chain of binary operators. The parser leans `a + b + c` to the left as deep as it is
    /// long, so the left side is walked down in a loop, not by recursion.
    pub(super) fn binary(&mut self, chain: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        let mut rest = Vec::new();
        let mut first = chain;
        while let ast::Expr::BinaryOp { left, op, right } = first {
            rest.push((op, right.as_ref()));
            first = left;
        }
        let rows = match rest.last() {
            Some((op, right)) => self.row_operator(first, op, right, scope)?,
            None => None,
        };
        let mut value = match rows {
            Some(compared) => {
                rest.pop();
                compared
            }
            None => self.bind(first, scope)?,
        };
        while let Some((op, written)) = rest.pop() {
            let right = self.bind(written, scope)?;
            value = self.operator(op, value, right).map_err(|error| {
                let left = left_of(chain, written).unwrap_or(first);
                self.place_operator(error, left, &op.to_string(), written.span(), &[written, left])
            })?;
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
        if is_date(a.ty) || is_date(b.ty) {
            let arith = match op {
                B::Plus => Some(Arith::Add),
                B::Minus => Some(Arith::Sub),
                _ => None,
            };
            if let Some(arith) = arith.filter(|arith| counts_days(*arith, a.ty, b.ty)) {
                return self.date_arith(arith, &op.to_string(), a, b);
            }
        }
        self.binary_operator(&symbol_of(op), a, b)
    }

    /// An operator of the catalog, chosen by the types of its sides.
    pub(super) fn binary_operator(&mut self, symbol: &str, a: Typed, b: Typed) -> Result<Typed> {
        let candidates = operators::candidates(symbol, 2);
        if candidates.is_empty() {
            return Err(beyond(&format!("the operator {symbol}")));
        }
        let sides = |a: &Typed, b: &Typed| format!("{} {symbol} {}", name_of(a.ty), name_of(b.ty));
        // These have operators of types that are not here, too.
        let of_many_types = matches!(symbol, "+" | "-" | "*" | "/");
        if of_many_types && (a.ty, b.ty) == (Ty::Unknown, Ty::Unknown) {
            return Err(ambiguous_operator(&sides(&a, &b)));
        }
        match resolve::choose_binary(candidates, [a.ty, b.ty]) {
            Choice::One(chosen) => self.work(chosen, vec![a, b]),
            Choice::None => Err(undefined_operator(&sides(&a, &b))),
            Choice::Ambiguous => Err(ambiguous_operator(&sides(&a, &b))),
        }
    }

    /// What computes an operator, with its arguments converted.
    fn work(
        &mut self,
        chosen: Candidate<&'static Operator>,
        mut args: Vec<Typed>,
    ) -> Result<Typed> {
        let operator = chosen.item;
        // Patterns see the spaces that a `character(n)` is stored without.
        if let (Some(first), Some(Param::Type(DataType::Char(_)))) =
            (args.first_mut(), operator.args.first())
        {
            self.pad(first)?;
        }
        let result = match operator.result {
            Param::Type(ty) => ty,
            _ => DataType::Text,
        };
        let as_type = match operator.work {
            Work::Arith(_, ty) => Some(ty),
            Work::Concat => Some(result),
            Work::Like { .. } => Some(DataType::Text),
            Work::Call(_) => None,
        };
        let mut exprs = match as_type {
            // Straight to the type that is computed with.
            Some(ty) => args
                .into_iter()
                .zip(&chosen.params)
                .map(|(arg, param)| match (arg.ty, param) {
                    // A literal takes the operator's type first, and fails as of that type.
                    (Ty::Unknown, Param::Type(own)) if own.oid() != ty.oid() => {
                        let expr = self.coerce(arg, *own, Coercion::Implicit)?;
                        self.coerce(Typed::known(expr, *own), ty, Coercion::Explicit)
                    }
                    _ => self.coerce(arg, ty, Coercion::Explicit),
                })
                .collect::<Result<Vec<_>>>()?,
            None => {
                let (exprs, element) = self.arguments(args, &chosen.params)?;
                if let Work::Call(name) = operator.work {
                    let call = Expr::Func(Func::exactly(name, operator.args)?, exprs);
                    return Ok(as_result(call, operator.result, element));
                }
                exprs
            }
        };
        let expr = match operator.work {
            Work::Call(name) => Expr::Func(Func::exactly(name, operator.args)?, exprs),
            work => {
                let (Some(b), Some(a)) = (exprs.pop(), exprs.pop()) else {
                    return Err(SqlError::internal("an operator without its sides"));
                };
                match work {
                    Work::Arith(arith, _) => Expr::Arith(arith, Box::new((a, b))),
                    Work::Like { ignore_case, negated } => {
                        let like =
                            Like { value: a, pattern: b, escape: None, ignore_case, negated };
                        Expr::Like(Box::new(like))
                    }
                    _ => Expr::Concat(Box::new((a, b))),
                }
            }
        };
        Ok(Typed::known(expr, result))
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

    /// Days are added to dates.
    fn date_arith(&mut self, arith: Arith, symbol: &str, a: Typed, b: Typed) -> Result<Typed> {
        let small = |ty: Ty| matches!(ty, Ty::Known(DataType::Int4 | DataType::Int2));
        match arith {
            Arith::Sub if is_date(a.ty) && (is_date(b.ty) || b.ty == Ty::Unknown) => {
                let b = self.coerce(b, DataType::Date, Coercion::Implicit)?;
                Ok(Typed::known(Expr::Arith(arith, Box::new((a.expr, b))), DataType::Int4))
            }
            Arith::Add | Arith::Sub if is_date(a.ty) && small(b.ty) => {
                let b = self.coerce(b, DataType::Int4, Coercion::Implicit)?;
                Ok(Typed::known(Expr::Arith(arith, Box::new((a.expr, b))), DataType::Date))
            }
            Arith::Add if small(a.ty) => {
                let a = self.coerce(a, DataType::Int4, Coercion::Implicit)?;
                Ok(Typed::known(Expr::Arith(arith, Box::new((a, b.expr))), DataType::Date))
            }
            _ => Err(no_operator(symbol, a.ty, b.ty)),
        }
    }
}

/// A number with its sign changed. What is written as a negative number has the smallest type that
/// it fits in.
fn negated_constant(value: Value, ty: DataType, written: &ast::Expr) -> Result<Typed> {
    let value = arith::negate(value.as_datum())?;
    let mut written = written;
    while let ast::Expr::Nested(inner) = written {
        written = inner;
    }
    let is_literal = matches!(written, ast::Expr::Value(_));
    let smallest = match &value {
        Value::Int8(int) if is_literal => i32::try_from(*int).map(Value::Int4).ok(),
        Value::Numeric(number) if is_literal && *number == Numeric::from(i64::MIN) => {
            number.to_string().parse().map(Value::Int8).ok()
        }
        _ => None,
    };
    Ok(match smallest {
        Some(int @ Value::Int4(_)) => Typed::known(Expr::Const(int), DataType::Int4),
        Some(int) => Typed::known(Expr::Const(int), DataType::Int8),
        None => Typed::known(Expr::Const(value), ty.base()),
    })
}

/// In a chain of operators, the left operand of the one whose right operand this is.
fn left_of<'e>(chain: &'e ast::Expr, operand: &ast::Expr) -> Option<&'e ast::Expr> {
    let mut at = chain;
    while let ast::Expr::BinaryOp { left, right, .. } = at {
        if std::ptr::eq(right.as_ref(), operand) {
            return Some(left);
        }
        at = left;
    }
    None
}

pub(super) fn no_operator(symbol: &str, a: Ty, b: Ty) -> SqlError {
    undefined_operator(&format!("{} {symbol} {}", name_of(a), name_of(b)))
}

fn undefined_operator(signature: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {signature}"),
    )
    .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

fn ambiguous_operator(signature: &str) -> SqlError {
    SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {signature}"))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

fn name_of(ty: Ty) -> String {
    match ty {
        Ty::Known(ty) => type_name(ty),
        Ty::Unknown => "unknown".to_owned(),
    }
}

/// The operator as PostgreSQL writes it.
fn symbol_of(op: &BinaryOperator) -> String {
    match op {
        BinaryOperator::PGLikeMatch => "~~".to_owned(),
        BinaryOperator::PGILikeMatch => "~~*".to_owned(),
        BinaryOperator::PGNotLikeMatch => "!~~".to_owned(),
        BinaryOperator::PGNotILikeMatch => "!~~*".to_owned(),
        BinaryOperator::PGCustomBinaryOperator(parts) => match parts.as_slice() {
            [symbol] => symbol.clone(),
            [schema, symbol] if schema == "pg_catalog" => symbol.clone(),
            _ => op.to_string(),
        },
        other => other.to_string(),
    }
}

/// Whether dates are counted in days: a date and an integer, or the days between two dates.
fn counts_days(arith: Arith, a: Ty, b: Ty) -> bool {
    let small = |ty: Ty| matches!(ty, Ty::Known(DataType::Int4 | DataType::Int2));
    match arith {
        Arith::Sub => is_date(a) && (is_date(b) || small(b) || b == Ty::Unknown),
        _ => is_date(a) && small(b) || small(a) && is_date(b),
    }
}

fn is_date(ty: Ty) -> bool {
    ty == Ty::Known(DataType::Date)
}
