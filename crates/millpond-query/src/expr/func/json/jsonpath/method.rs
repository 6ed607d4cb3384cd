//! The methods of items: `.size()`, `.double()` and others.

use millpond_types::Numeric;
use millpond_types::jsonb::{Json, write};

use super::super::super::numeric::{ceil, floor};
use super::super::member::type_name;
use super::eval::{Evaluation, Result, Scope, Stop, soft};
use super::item::Item;
use crate::error::SqlState;
use crate::types::json::too_long;
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
            Method::Size => made.push(self.size(item, scope)?),
            Method::Double => made.push(double(item)?),
            Method::KeyValue => key_values(item, made)?,
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

    fn size(&self, item: &Item<'a>, scope: &Scope<'a>) -> Result<Item<'a>> {
        let length = match item.json() {
            Some(Json::Array(array)) => array.len(),
            _ if self.is_lax() || scope.forgiving => 1,
            _ => {
                let state = SqlState::SQL_JSON_ARRAY_NOT_FOUND;
                return Err(wrong_item(state, Method::Size, "an array"));
            }
        };
        Ok(Item::Number(Numeric::from(i64::try_from(length).unwrap_or(i64::MAX))))
    }
}

fn type_of(item: &Item<'_>) -> &'static str {
    match item {
        Item::DateTime(value) => value.type_name(),
        _ => item.json().map_or("", type_name),
    }
}

#[cold]
fn wrong_item(state: SqlState, method: Method, what: &str) -> Stop {
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

/// Objects of key, value, and a number that the members of one object share. The object of the
/// whole document has number 0; others have their place in it, which is not PostgreSQL's.
fn key_values<'a>(item: &Item<'a>, made: &mut Vec<Item<'a>>) -> Result<()> {
    let Some(Json::Object(object)) = item.json() else {
        let state = SqlState::SQL_JSON_OBJECT_NOT_FOUND;
        return Err(wrong_item(state, Method::KeyValue, "an object"));
    };
    let too_long = |what| Stop::Hard(too_long(what).into());
    let (mut id, mut key) = (Vec::new(), Vec::new());
    write::number(Numeric::from(0_i64).as_ref(), &mut id).map_err(too_long)?;
    for (name, _, value) in object.iter() {
        key.clear();
        write::string(name, &mut key).map_err(too_long)?;
        let mut out = Vec::new();
        let members = vec![("key", key.as_slice()), ("value", value), ("id", id.as_slice())];
        write::object(members, &mut out).map_err(too_long)?;
        made.push(Item::Made(out));
    }
    Ok(())
}
