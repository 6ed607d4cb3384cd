//! What a path works on.

use std::borrow::Cow;

use millpond_types::jsonb::{Json, write};
use millpond_types::{Numeric, NumericRef};

use super::datetime;
use super::key_value::Made;
use crate::error::Result;
use crate::expr::func::template::DateTime;
use crate::types::json::too_long;

/// A value that is in the document, or that has been computed.
#[derive(Debug, Clone)]
pub(super) enum Item<'a> {
    /// A value with its bytes.
    Json(Json<'a>, &'a [u8]),
    Null,
    Bool(bool),
    Number(Numeric),
    Text(String),
    DateTime(DateTime),
    /// An object that was made, or a part of one.
    Made(Made),
}

impl<'a> Item<'a> {
    /// The value. A date or time has none before the path ends.
    pub(super) fn json(&self) -> Option<Json<'_>> {
        Some(match self {
            Item::Json(json, _) => *json,
            Item::Null => Json::Null,
            Item::Bool(value) => Json::Bool(*value),
            Item::Number(number) => Json::Number(number.as_ref()),
            Item::Text(text) => Json::String(text),
            Item::DateTime(_) => return None,
            Item::Made(made) => Json::from_bytes(made.bytes()).unwrap_or(Json::Null),
        })
    }

    /// A string.
    pub(super) fn text(&self) -> Option<&str> {
        match self.json() {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<NumericRef<'_>> {
        match self.json() {
            Some(Json::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.json(), Some(Json::Array(_)))
    }

    pub(super) fn is_container(&self) -> bool {
        matches!(self.json(), Some(Json::Array(_) | Json::Object(_)))
    }

    pub(super) fn has_members(&self) -> bool {
        matches!(self.json(), Some(Json::Object(object)) if !object.is_empty())
    }

    /// The bytes of the value as `jsonb`.
    pub(super) fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let mut out = Vec::new();
        match self {
            Item::Json(_, bytes) => return Ok(Cow::Borrowed(bytes)),
            Item::Made(made) => return Ok(Cow::Borrowed(made.bytes())),
            Item::Null => write::null(&mut out),
            Item::Bool(value) => write::bool(*value, &mut out),
            Item::Number(number) => write::number(number.as_ref(), &mut out).map_err(too_long)?,
            Item::Text(text) => write::string(text, &mut out).map_err(too_long)?,
            Item::DateTime(value) => {
                write::string(&datetime::text(*value), &mut out).map_err(too_long)?;
            }
        }
        Ok(Cow::Owned(out))
    }

    /// The elements of an array, or the values of an object's members.
    pub(super) fn parts(&self) -> Vec<Item<'a>> {
        match self {
            Item::Json(Json::Array(array), _) => {
                array.iter().map(|(json, bytes)| Item::Json(json, bytes)).collect()
            }
            Item::Json(Json::Object(object), _) => {
                object.iter().map(|(_, json, bytes)| Item::Json(json, bytes)).collect()
            }
            Item::Made(made) => match Json::from_bytes(made.bytes()) {
                Some(Json::Array(array)) => {
                    array.iter().map(|(json, bytes)| Item::copied(json, bytes, made)).collect()
                }
                Some(Json::Object(object)) => {
                    object.iter().map(|(_, json, bytes)| Item::copied(json, bytes, made)).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The member of a name.
    pub(super) fn member(&self, name: &str) -> Option<Item<'a>> {
        match self {
            Item::Json(Json::Object(object), _) => {
                object.get(name).map(|(json, bytes)| Item::Json(json, bytes))
            }
            Item::Made(made) => match Json::from_bytes(made.bytes()) {
                Some(Json::Object(object)) => {
                    object.get(name).map(|(json, bytes)| Item::copied(json, bytes, made))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A part of what was made.
    fn copied(json: Json<'_>, bytes: &[u8], made: &Made) -> Item<'a> {
        match json {
            Json::Null => Item::Null,
            Json::Bool(value) => Item::Bool(value),
            Json::Number(number) => Item::Number(number.to_owned()),
            Json::String(text) => Item::Text(text.to_owned()),
            Json::Array(_) | Json::Object(_) => Item::Made(made.part(bytes)),
        }
    }
}
