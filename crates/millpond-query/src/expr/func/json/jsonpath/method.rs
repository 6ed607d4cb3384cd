//! The methods of items: `.size()`, `.double()` and others.

use millpond_types::Numeric;
use millpond_types::jsonb::Json;

use super::super::super::numeric::{ceil, floor};
use super::super::member::type_name;
use super::eval::{Evaluation, Result, Scope, Stop, soft};
use super::item::Item;
use crate::error::SqlState;
use crate::types::jsonpath::Method;

/// Whether a method takes arrays as they are.
pub(super) fn is_for_arrays(method: Method) -> bool {
    matches!(method, Method::Size | Method::Type)
}

impl<'a> Evaluation<'_, 'a> {
    /// Appends what a method makes of an item.
    pub(super) fn method(
        &self,
        method: Method,
        item: &Item<'a>,
        scope: &Scope<'a>,
        made: &mut Vec<Item<'a>>,
    ) -> Result<()> {
        match method {
            Method::Type => made.push(Item::Text(type_of(item).to_owned())),
            Method::Size => made.extend(self.size(item, scope)?),
            Method::Double => made.push(double(item)?),
            // It has a step of its own.
            Method::KeyValue => {}
            Method::Abs | Method::Floor | Method::Ceiling => {
                let number = item.number().ok_or_else(|| {
                    wrong_item(SqlState::NON_NUMERIC_SQL_JSON_ITEM, method, "a numeric value")
                })?;
                let number = match method {
                    Method::Abs => Ok(number.abs()),
                    Method::Floor => floor(number),
                    _ => ceil(number),
                };
                made.push(Item::Number(number.map_err(Stop::Soft)?));
            }
        }
        Ok(())
    }

    /// `None` where a strict path forgives that it is no array.
    fn size(&self, item: &Item<'a>, scope: &Scope<'a>) -> Result<Option<Item<'a>>> {
        let length = match item.json() {
            Some(Json::Array(array)) => array.len(),
            _ if self.is_lax() => 1,
            _ if scope.forgiving => return Ok(None),
            _ => {
                let state = SqlState::SQL_JSON_ARRAY_NOT_FOUND;
                return Err(wrong_item(state, Method::Size, "an array"));
            }
        };
        Ok(Some(Item::Number(Numeric::from(i64::try_from(length).unwrap_or(i64::MAX)))))
    }
}

fn type_of(item: &Item<'_>) -> &'static str {
    match item {
        Item::DateTime(value) => value.type_name(),
        _ => item.json().map_or("", type_name),
    }
}

#[cold]
pub(super) fn wrong_item(state: SqlState, method: Method, what: &str) -> Stop {
    let method = method.text();
    soft(state, format!("jsonpath item method .{method}() can only be applied to {what}"))
}

/// A number that is also one of double precision.
fn double<'a>(item: &Item<'a>) -> Result<Item<'a>> {
    let state = SqlState::NON_NUMERIC_SQL_JSON_ITEM;
    match item.json() {
        Some(Json::Number(number)) => {
            if number.to_f64().is_infinite() {
                let what = "numeric argument of jsonpath item method .double() is out of range \
                            for type double precision";
                return Err(soft(state, what));
            }
            Ok(item.clone())
        }
        Some(Json::String(text)) => {
            let float = crate::types::parse_f64(text).ok().filter(|float| float.is_finite());
            let float = float.ok_or_else(|| {
                soft(
                    state,
                    "string argument of jsonpath item method .double() is not a valid \
                     representation of a double precision number",
                )
            })?;
            Ok(Item::Number(Numeric::from_f64(float)))
        }
        _ => Err(wrong_item(state, Method::Double, "a string or numeric value")),
    }
}
