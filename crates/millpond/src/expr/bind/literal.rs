//! Literals and parameters.

use sqlparser::ast;

use super::{Binder, ParamTypes, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::types::{NUMERIC, Ty};
use crate::lex::LiteralKind;
use crate::types::{FormatOptions, text};
use crate::{DataType, Value};

impl Binder<'_> {
    pub(super) fn literal(&mut self, value: &ast::ValueWithSpan) -> Result<Typed> {
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
