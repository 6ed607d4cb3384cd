//! Dates and times in spellings of their own: INTERVAL, EXTRACT, AT TIME ZONE, OVERLAPS.

use sqlparser::ast::{self, DateTimeField};

use super::{Binder, Coercion, Scope, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::interval_type;
use crate::{DataType, Value};

impl Binder<'_> {
    /// `INTERVAL '1' DAY`
    pub(super) fn interval(&mut self, e: &ast::Interval, scope: &dyn Scope) -> Result<Typed> {
        let fields = match (&e.leading_field, &e.last_field) {
            (None, _) => None,
            (Some(one), None) => Some(field_name(one)),
            (Some(first), Some(last)) => {
                Some(format!("{} to {}", field_name(first), field_name(last)))
            }
        };
        let precision = e.fractional_seconds_precision.or(e.leading_precision);
        let ty = interval_type(fields.as_deref(), precision);
        let value = self.bind(&e.value, scope)?;
        Ok(Typed::known(self.coerce(value, ty, Coercion::Explicit)?, ty))
    }

    /// `EXTRACT(field FROM source)`
    pub(super) fn extract(
        &mut self,
        field: &DateTimeField,
        source: &ast::Expr,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let name = match field {
            DateTimeField::Custom(name) => name.value.to_ascii_lowercase(),
            field => field.to_string().to_ascii_lowercase(),
        };
        let field = Typed::known(Expr::Const(Value::Text(name)), DataType::Text);
        let source = self.bind(source, scope)?;
        self.call("extract", vec![field, source])
    }

    /// `source AT TIME ZONE zone`
    pub(super) fn at_time_zone(
        &mut self,
        source: &ast::Expr,
        zone: &ast::Expr,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let args = vec![self.bind(zone, scope)?, self.bind(source, scope)?];
        self.call("timezone", args)
    }

    /// `(start, end) OVERLAPS (start, end)`; `None` if it is another operator.
    pub(super) fn overlaps(&mut self, e: &ast::Expr, scope: &dyn Scope) -> Result<Option<Typed>> {
        let ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Overlaps, right } = e else {
            return Ok(None);
        };
        let mut args = Vec::with_capacity(4);
        for (side, period) in [("left", left), ("right", right)] {
            match period.as_ref() {
                ast::Expr::Tuple(ends) if ends.len() == 2 => {
                    for end in ends {
                        args.push(self.bind(end, scope)?);
                    }
                }
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("wrong number of parameters on {side} side of OVERLAPS expression"),
                    ));
                }
            }
        }
        self.call("overlaps", args).map(Some)
    }
}

/// A field by its name, without the plural that the parser also takes.
fn field_name(field: &DateTimeField) -> String {
    let name = field.to_string().to_ascii_lowercase();
    match name.strip_suffix('s') {
        Some(singular) => singular.to_owned(),
        None => name,
    }
}
