//! Conversions that an expression needs, made explicit.

use millpond_types::other::{CID, INTERVAL, JSON, JSONB, PG_LSN, TID, UUID, XID, XID8};

use super::operator::no_operator;
use super::{Binder, ParamTypes, Typed, beyond};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::Param;
use crate::expr::func::{DATE_IN_ORDER, DATE_IN_ORDER_OF_ZONE};
use crate::expr::types::{
    Category, Ty, category, comparable, has_modifier, is_assignable, is_castable, is_implicit,
    is_int, is_object, operator_type, unify, unmodified,
};
use crate::expr::{Expr, Func, Val, cast};
use crate::types::{DateOrder, DateStyle, FormatOptions, IntervalStyle, Zone, text};
use crate::{DataType, Value};

/// How far a conversion may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coercion {
    Implicit,
    Assignment,
    Explicit,
}

/// The settings that a literal may depend on, each once as it is not by default. The zones are such
/// that it is never the same day in all of them, nor the same time.
fn other_options() -> impl Iterator<Item = FormatOptions> {
    let zones = [-12, 11, 12]
        .map(|hours| FormatOptions { zone: Zone::Fixed(hours * 3600), ..FormatOptions::default() });
    let orders = [DateOrder::Dmy, DateOrder::Ymd].map(|order| FormatOptions {
        date_style: DateStyle { order, ..DateStyle::default() },
        ..FormatOptions::default()
    });
    let interval_style = IntervalStyle::SqlStandard;
    let interval = FormatOptions { interval_style, ..FormatOptions::default() };
    zones.into_iter().chain(orders).chain([interval])
}

/// The value of a literal; `None` if it depends on the session, as that of `today` or `1/2/2003`.
fn value_in_all_sessions(ty: DataType, literal: &str) -> Result<Option<Value>> {
    let value = text::parse(ty, literal, &FormatOptions::default());
    let depends = match ty {
        DataType::Date | DataType::Timestamp(_) | DataType::Timestamptz(_) => true,
        DataType::Other { oid, .. } => {
            !matches!(oid, JSON | JSONB | TID | XID | CID | XID8 | PG_LSN | UUID)
        }
        _ => false,
    };
    if !depends {
        return Ok(Some(value?));
    }
    // The clock may stand still while the literal is read several times.
    let is_now = literal.to_ascii_lowercase().contains("now");
    let is_same = |options| match (&value, text::parse(ty, literal, &options)) {
        (Ok(value), Ok(other)) => *value == other,
        (value, other) => value.is_err() && other.is_err(),
    };
    if !is_now && other_options().all(is_same) {
        return Ok(Some(value?));
    }
    Ok(None)
}

impl Binder<'_> {
    /// Converts a bound expression to a type.
    pub(crate) fn coerce(&mut self, typed: Typed, to: DataType, how: Coercion) -> Result<Expr> {
        if is_object(to) {
            return self.coerce_object(typed, to, how);
        }
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
            // A constant is converted once, unless each session converts it in its own way.
            Expr::Const(value) if !cast::asks_session(&value.as_datum(), to) => {
                let value = cast::cast(value.into(), to, explicit, &FormatOptions::default())?;
                Expr::Const(value.into_value())
            }
            expr => Expr::Cast(Box::new(expr), to, explicit),
        })
    }

    fn coerce_unknown(&mut self, expr: Expr, to: DataType, how: Coercion) -> Result<Expr> {
        match expr {
            Expr::Const(Value::Null) => Ok(Expr::NULL),
            Expr::Const(Value::Text(literal)) => {
                // An interval gets its fields as it is read, other types their length afterwards.
                let wide = match to {
                    DataType::Varchar(_) | DataType::Char(_) => DataType::Text,
                    DataType::Other { oid: INTERVAL, .. } => to,
                    other => other.base(),
                };
                // A written cast cuts; storing refuses.
                let explicit = how == Coercion::Explicit;
                let Some(value) = value_in_all_sessions(wide, &literal)? else {
                    let literal = Expr::Const(Value::Text(literal));
                    return Ok(Expr::Cast(Box::new(literal), to, explicit));
                };
                let fit = cast::cast(
                    Val::Borrowed(value.as_datum()),
                    to,
                    explicit,
                    &FormatOptions::default(),
                );
                // A length that does not fit says nothing about the literal's place.
                Ok(match fit.map(Val::into_value) {
                    Ok(fit) => Expr::Const(fit),
                    Err(_) => Expr::Cast(Box::new(Expr::Const(value)), to, explicit),
                })
            }
            Expr::Param(number) => self.coerce_param(number, to, how),
            // CASE and the like of unknown parts only.
            other => Ok(Expr::Cast(Box::new(other), to, how == Coercion::Explicit)),
        }
    }

    /// Gives a parameter, or a literal in quotes that is one, its type.
    fn coerce_param(&mut self, number: usize, to: DataType, how: Coercion) -> Result<Expr> {
        let base = unmodified(to);
        let is_lifted = self.is_lifted();
        let (ParamTypes::Declared(types) | ParamTypes::Lifted(_, types)) = &mut self.params else {
            return Err(SqlError::internal("a parameter where there are none"));
        };
        match types.get_mut(number) {
            Some(slot @ None) => *slot = Some(base),
            Some(Some(found)) if *found != base => {
                if is_lifted {
                    return Err(beyond("a literal that has two types"));
                }
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

    /// Converts an operand, or gives a literal or a parameter its type. In `char(n)` all lose their
    /// trailing spaces, as the column's values have.
    pub(super) fn coerce_operand(&mut self, typed: Typed, ty: DataType) -> Result<Expr> {
        match ty {
            DataType::Char(_) if typed.ty == Ty::Unknown => {
                self.coerce(typed, unmodified(ty), Coercion::Implicit)
            }
            DataType::Char(_) => match typed.ty {
                Ty::Known(DataType::Char(_)) => Ok(typed.expr),
                _ => trimmed(typed.expr),
            },
            _ => self.coerce(typed, ty.base(), Coercion::Explicit),
        }
    }

    /// Converts all to the one type that they have in common.
    pub(crate) fn unified(
        &mut self,
        parts: Vec<Typed>,
        what: &str,
    ) -> Result<(Vec<Expr>, DataType)> {
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
        let mut exprs = Vec::with_capacity(parts.len());
        for part in parts {
            if let Ty::Known(own) = part.ty
                && !is_implicit(own, ty)
            {
                let (own, ty) = (own.base(), ty.base());
                let message = format!("{what} could not convert type {own} to {ty}");
                return Err(SqlError::new(SqlState::CANNOT_COERCE, message));
            }
            exprs.push(self.coerce_operand(part, ty)?);
        }
        Ok((exprs, ty))
    }

    /// Converts both sides to the type in which they compare.
    pub(super) fn alike(&mut self, a: Typed, b: Typed, symbol: &str) -> Result<(Expr, Expr)> {
        let ty = match (a.ty, b.ty) {
            (Ty::Known(x), Ty::Known(y)) if is_int(x) && is_int(y) => return Ok((a.expr, b.expr)),
            (Ty::Known(x), Ty::Known(y)) => {
                comparable(x, y).ok_or_else(|| no_operator(symbol, a.ty, b.ty))?
            }
            // Objects compare as their numbers.
            (Ty::Known(ty), Ty::Unknown) | (Ty::Unknown, Ty::Known(ty)) if is_object(ty) => {
                DataType::Oid
            }
            (Ty::Known(ty), Ty::Unknown) | (Ty::Unknown, Ty::Known(ty)) => {
                // JSON has no equality.
                comparable(ty, ty).ok_or_else(|| no_operator(symbol, a.ty, b.ty))?;
                operator_type(ty)
            }
            (Ty::Unknown, Ty::Unknown) => DataType::Text,
        };
        Ok((self.in_order(a, ty)?, self.in_order(b, ty)?))
    }

    /// A side of a comparison in the type in which it compares. A date may lie behind all time
    /// stamps.
    pub(super) fn in_order(&mut self, side: Typed, ty: DataType) -> Result<Expr> {
        if let (Ty::Known(DataType::Int2 | DataType::Int4), DataType::Other { oid: XID, .. }) =
            (side.ty, ty)
        {
            let number = self.coerce(side, DataType::Int4, Coercion::Implicit)?;
            return Ok(Expr::Func(
                Func::exactly("xid_of_number", &[Param::Type(DataType::Int4)])?,
                vec![number],
            ));
        }
        let proc = match (side.ty, ty) {
            (Ty::Known(DataType::Date), DataType::Timestamp(_)) => &DATE_IN_ORDER,
            (Ty::Known(DataType::Date), DataType::Timestamptz(_)) => &DATE_IN_ORDER_OF_ZONE,
            _ => return self.coerce_operand(side, ty),
        };
        Ok(Expr::Func(Func::new(proc), vec![side.expr]))
    }
}

/// A text without its trailing spaces.
pub(super) fn trimmed(text: Expr) -> Result<Expr> {
    Ok(Expr::Func(Func::exactly("rtrim", &[Param::Type(DataType::Text)])?, vec![text]))
}
