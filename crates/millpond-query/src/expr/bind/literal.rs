//! Literals and parameters.

use millpond_syntax::tree;

use super::{Binder, ParamTypes, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::types::{NUMERIC, Ty};
use crate::lex::LiteralKind;
use crate::types::{FormatOptions, text};
use crate::{DataType, Value};

impl Binder<'_> {
    pub(super) fn literal(&self, value: &tree::Value) -> Result<Typed> {
        Ok(match value {
            tree::Value::Integer(int) => {
                Typed::known(Expr::Const(Value::Int4(*int)), DataType::Int4)
            }
            tree::Value::Float(text) => number(text)?,
            tree::Value::String(text) => {
                Typed { expr: Expr::Const(Value::Text((**text).to_owned())), ty: Ty::Unknown }
            }
            tree::Value::Boolean(value) => Typed::bool(Expr::Const(Value::Bool(*value))),
            tree::Value::Null => Typed { expr: Expr::NULL, ty: Ty::Unknown },
            tree::Value::BitString(_) => return Err(SqlError::unsupported("a bit string")),
        })
    }

    pub(super) fn param(&mut self, number: i32) -> Result<Typed> {
        let none = || {
            SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}"))
        };
        let Some(index) = usize::try_from(number).ok().and_then(|n| n.checked_sub(1)) else {
            return Err(none());
        };
        let expr = Expr::Param(index);
        match &mut self.params {
            ParamTypes::Declared(types) => {
                if index >= usize::from(u16::MAX) {
                    return Err(none());
                }
                if types.len() <= index {
                    types.resize(index + 1, None);
                }
                Ok(Typed { expr, ty: types[index].map_or(Ty::Unknown, Ty::Known) })
            }
            ParamTypes::Lifted(literals, _) => {
                let ty = match literals.get(index).map(|l| l.kind) {
                    Some(LiteralKind::Int4(_)) => Ty::Known(DataType::Int4),
                    Some(LiteralKind::Int8(_)) => Ty::Known(DataType::Int8),
                    Some(LiteralKind::Numeric) => Ty::Known(NUMERIC),
                    _ => Ty::Unknown,
                };
                Ok(Typed { expr, ty })
            }
            ParamTypes::None => Err(none()),
        }
    }
}

/// The value and the type of a number that is no `integer` as it is written: with a point, an
/// exponent or many digits. Its sign may have made it one.
fn number(text: &str) -> Result<Typed> {
    if let Ok(int) = text.parse::<i32>() {
        return Ok(Typed::known(Expr::Const(Value::Int4(int)), DataType::Int4));
    }
    if let Ok(int) = text.parse::<i64>() {
        return Ok(Typed::known(Expr::Const(Value::Int8(int)), DataType::Int8));
    }
    let value = text::parse(NUMERIC, text, &FormatOptions::default())?;
    Ok(Typed::known(Expr::Const(value), NUMERIC))
}
