//! Operators.

use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

use super::{Binder, Coercion, Scope, Typed, beyond};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::types::{Category, Ty, category, is_int, promote_numbers};
use crate::expr::{Arith, Compare, Expr, arith};

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
                        Expr::Const(value) => Expr::Const(arith::negate(value.as_datum())?),
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
    pub(super) fn binary(&mut self, chain: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
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

    pub(super) fn arith(
        &mut self,
        arith: Arith,
        op: &BinaryOperator,
        a: Typed,
        b: Typed,
    ) -> Result<Typed> {
        let symbol = op.to_string();
        if is_date(a.ty) || is_date(b.ty) {
            return self.date_arith(arith, &symbol, a, b);
        }
        let ty = common_number(&symbol, a.ty, b.ty)?;
        let ty = match arith {
            Arith::Power => DataType::Float8,
            Arith::BitAnd | Arith::BitOr | Arith::BitXor | Arith::ShiftLeft | Arith::ShiftRight
                if !is_int(ty) =>
            {
                return Err(no_operator(&symbol, a.ty, b.ty));
            }
            Arith::Rem if matches!(ty, DataType::Float4 | DataType::Float8) => {
                return Err(no_operator(&symbol, a.ty, b.ty));
            }
            _ => ty,
        };
        let a = self.coerce(a, ty, Coercion::Explicit)?;
        let b = self.coerce(b, ty, Coercion::Explicit)?;
        Ok(Typed::known(Expr::Arith(arith, Box::new((a, b))), ty))
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
}

pub(super) fn no_operator(symbol: &str, a: Ty, b: Ty) -> SqlError {
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

fn is_date(ty: Ty) -> bool {
    ty == Ty::Known(DataType::Date)
}

/// The type in which two numbers meet.
fn common_number(symbol: &str, a: Ty, b: Ty) -> Result<DataType> {
    match (a, b) {
        (Ty::Known(x), Ty::Known(y)) => {
            if category(x) == Category::Time || category(y) == Category::Time {
                return Err(beyond("arithmetic with timestamps"));
            }
            if category(x) != Category::Number || category(y) != Category::Number {
                return Err(no_operator(symbol, a, b));
            }
            Ok(promote_numbers(x, y))
        }
        (Ty::Known(ty), Ty::Unknown) | (Ty::Unknown, Ty::Known(ty)) => {
            if category(ty) != Category::Number {
                return Err(no_operator(symbol, a, b));
            }
            Ok(ty.base())
        }
        (Ty::Unknown, Ty::Unknown) => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("operator is not unique: unknown {symbol} unknown"),
        )
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")),
    }
}
