//! `json_to_record`, `json_populate_record` and their kin: the members of objects as the columns
//! that a call defines, or a row has.

use millpond_types::array::Dimension;
use millpond_types::jsonb::Json;
use millpond_types::other::{JSON, JSONB, RECORD};
use millpond_types::record::{Field, fields};

use super::super::catalog::{BOOL, Param, Proc, RECORD_TYPE, proc};
use super::super::row_list::RowList;
use super::super::value::wrong_arguments;
use super::super::{Body, Definition, Records, format_type};
use super::member::{as_text, find};
use super::rows::each_part;
use super::{JSON_TYPE, JSONB_TYPE, Part, invalid};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Val, cast};
use crate::types::array::build;
use crate::types::json::write_string;
use crate::{DataType, Datum, Value};

const POPULATE_JSON: &[Param] = &[Param::AnyElement, JSON_TYPE];
const POPULATE_JSONB: &[Param] = &[Param::AnyElement, JSONB_TYPE];

pub(in super::super) static PROCS: &[Proc] = &[
    proc(3204, "json_to_record", &[JSON_TYPE], RECORD_TYPE, one()).stable(),
    proc(3205, "json_to_recordset", &[JSON_TYPE], RECORD_TYPE, several(json_to))
        .stable()
        .called_on_null(),
    proc(3490, "jsonb_to_record", &[JSONB_TYPE], RECORD_TYPE, one()).stable(),
    proc(3491, "jsonb_to_recordset", &[JSONB_TYPE], RECORD_TYPE, several(jsonb_to))
        .stable()
        .called_on_null(),
    // With a third argument, which changes nothing.
    proc(
        3960,
        "json_populate_record",
        &[Param::AnyElement, JSON_TYPE, BOOL],
        Param::AnyElement,
        one(),
    )
    .stable()
    .called_on_null(),
    proc(0, "json_populate_record", POPULATE_JSON, Param::AnyElement, one())
        .stable()
        .called_on_null(),
    proc(
        3961,
        "json_populate_recordset",
        &[Param::AnyElement, JSON_TYPE, BOOL],
        Param::AnyElement,
        several(json_populate),
    )
    .stable()
    .called_on_null(),
    proc(0, "json_populate_recordset", POPULATE_JSON, Param::AnyElement, several(json_populate))
        .stable()
        .called_on_null(),
    proc(3209, "jsonb_populate_record", POPULATE_JSONB, Param::AnyElement, one())
        .stable()
        .called_on_null(),
    proc(
        3475,
        "jsonb_populate_recordset",
        POPULATE_JSONB,
        Param::AnyElement,
        several(jsonb_populate),
    )
    .stable()
    .called_on_null(),
];

const fn one() -> Body {
    Body::Records(Records { is_set: false, body: record })
}

type MakeRecords = fn(&[Datum<'_>], &Definition, &mut RowList<'_>) -> Result<()>;

const fn several(body: MakeRecords) -> Body {
    Body::Records(Records { is_set: true, body })
}

fn json_to(args: &[Datum<'_>], columns: &Definition, list: &mut RowList<'_>) -> Result<()> {
    record_set("json_to_recordset", args, columns, list)
}

fn jsonb_to(args: &[Datum<'_>], columns: &Definition, list: &mut RowList<'_>) -> Result<()> {
    record_set("jsonb_to_recordset", args, columns, list)
}

fn json_populate(args: &[Datum<'_>], columns: &Definition, list: &mut RowList<'_>) -> Result<()> {
    record_set("json_populate_recordset", args, columns, list)
}

fn jsonb_populate(args: &[Datum<'_>], columns: &Definition, list: &mut RowList<'_>) -> Result<()> {
    record_set("jsonb_populate_recordset", args, columns, list)
}

/// The value that has the members; `None` if it is NULL.
fn part_of<'a>(args: &[Datum<'a>]) -> Result<Option<Part<'a>>> {
    match args {
        [part] | [_, part] | [_, part, _] => match part {
            Datum::Other(oid, bytes) => Ok(Some((*oid, bytes))),
            Datum::Null => Ok(None),
            _ => Err(wrong_arguments(args.len())),
        },
        _ => Err(wrong_arguments(args.len())),
    }
}

/// By column, the name of its member, and what it has where there is none: the row that is filled
/// says both, if there is one.
fn base_of<'b>(args: &[Datum<'b>], columns: &'b Definition) -> Result<Vec<(&'b str, Datum<'b>)>> {
    let [Datum::Other(RECORD, bytes), _, ..] = args else {
        return Ok(columns.iter().map(|(name, _)| (name.as_str(), Datum::Null)).collect());
    };
    let own: Vec<Field<'b>> = fields(bytes).collect();
    if own.len() != columns.len() {
        let what = if own.len() == 1 { "attribute" } else { "attributes" };
        return Err(other_row(format!(
            "Returned row contains {} {what}, but query expects {}.",
            own.len(),
            columns.len()
        )));
    }
    for (place, (field, (_, ty))) in own.iter().zip(columns.iter()).enumerate() {
        if field.type_oid != ty.oid() {
            let found = format_type(field.type_oid.into(), None)?;
            return Err(other_row(format!(
                "Returned type {found} at ordinal position {}, but query expects {}.",
                place + 1,
                ty.base()
            )));
        }
    }
    Ok(own.iter().map(|field| (field.name, field.value)).collect())
}

#[cold]
fn other_row(detail: String) -> SqlError {
    let what = "function return row and query-specified return row do not match";
    SqlError::new(SqlState::DATATYPE_MISMATCH, what).detail(detail)
}

pub(super) fn record(
    args: &[Datum<'_>],
    columns: &Definition,
    list: &mut RowList<'_>,
) -> Result<()> {
    let base = base_of(args, columns)?;
    let Some(object) = part_of(args)? else {
        return list.push(base.iter().map(|(_, own)| own.to_value()).collect::<Vec<_>>());
    };
    if !is_object(object) {
        // PostgreSQL tells the name of its own C function.
        let what = if is_array(object) { "an array" } else { "a scalar" };
        return Err(invalid(format!("cannot call populate_composite on {what}")));
    }
    push(object, &base, columns, list)
}

fn record_set(
    name: &str,
    args: &[Datum<'_>],
    columns: &Definition,
    list: &mut RowList<'_>,
) -> Result<()> {
    let Some(of) = part_of(args)? else { return Ok(()) };
    let Some(elements) = elements(of)? else {
        let what = match is_object(of) {
            _ if of.0 == JSONB => "a non-array",
            true => "an object",
            false => "a scalar",
        };
        return Err(invalid(format!("cannot call {name} on {what}")));
    };
    let base = base_of(args, columns)?;
    for element in elements {
        if !is_object(element) {
            return Err(invalid(format!("argument of {name} must be an array of objects")));
        }
        push(element, &base, columns, list)?;
    }
    Ok(())
}

/// Adds the row that an object is. What it does not have is as in `base`.
fn push(
    (oid, bytes): Part<'_>,
    base: &[(&str, Datum<'_>)],
    columns: &Definition,
    list: &mut RowList<'_>,
) -> Result<()> {
    let mut row = Vec::with_capacity(columns.len());
    for ((_, ty), (name, own)) in columns.iter().zip(base) {
        let member = find(&[Datum::Other(oid, bytes), Datum::Text(name)])?;
        row.push(match member {
            Some(member) => column(member, name, *ty, list.env)?,
            None => own.to_value(),
        });
    }
    list.push(row)
}

/// A member as a value of its column's type.
fn column(member: Part<'_>, name: &str, ty: DataType, env: &Env<'_>) -> Result<Value> {
    let text = as_text(member.0, member.1)?;
    match ty.element() {
        // A string is an array's text.
        Some(element) if !text.is_null() && !is_string(member) => {
            array(member, name, ty, element, env)
        }
        _ => scalar(member, text, ty, env),
    }
}

fn is_string((oid, bytes): Part<'_>) -> bool {
    match oid {
        JSONB => matches!(Json::from_bytes(bytes), Some(Json::String(_))),
        _ => bytes.trim_ascii_start().starts_with(b"\""),
    }
}

fn is_array((oid, bytes): Part<'_>) -> bool {
    match oid {
        JSONB => matches!(Json::from_bytes(bytes), Some(Json::Array(_))),
        _ => bytes.trim_ascii_start().starts_with(b"["),
    }
}

fn is_object((oid, bytes): Part<'_>) -> bool {
    match oid {
        JSONB => matches!(Json::from_bytes(bytes), Some(Json::Object(_))),
        _ => bytes.trim_ascii_start().starts_with(b"{"),
    }
}

/// A value that is no array, by its text; of another type of JSON, as it is.
fn scalar((oid, bytes): Part<'_>, text: Value, ty: DataType, env: &Env<'_>) -> Result<Value> {
    let value = match (&text, ty) {
        (Value::Null, _) => return Ok(Value::Null),
        // A string is written anew, without escapes that it does not need.
        (Value::Text(string), DataType::Other { oid: JSON, .. }) if is_string((oid, bytes)) => {
            let mut out = Vec::new();
            write_string(string, &mut out);
            Val::Owned(Value::Other(JSON, out.into()))
        }
        (_, DataType::Other { oid: JSON | JSONB, .. }) => Val::Borrowed(Datum::Other(oid, bytes)),
        _ => Val::Owned(text),
    };
    let options = env.facts.settings.format_options();
    Ok(cast::cast(value, ty, false, options)?.into_value())
}

/// An array that grows.
struct Array {
    element: DataType,
    dimensions: Vec<Dimension>,
    /// Whether the depth is known: an element has been met that is no array.
    is_deepest: bool,
    values: Vec<Value>,
}

/// An array of arrays has as many dimensions as the first elements say.
fn array(
    of: Part<'_>,
    name: &str,
    ty: DataType,
    element: DataType,
    env: &Env<'_>,
) -> Result<Value> {
    let mut array =
        Array { element, dimensions: Vec::new(), is_deepest: false, values: Vec::new() };
    array.add(of, &mut Vec::new(), name, env)?;
    let is_empty = array.dimensions.iter().any(|dimension| dimension.length == 0);
    let dimensions = if is_empty { &[][..] } else { &array.dimensions };
    Ok(build(ty.oid(), dimensions, array.values.iter().map(Value::as_datum))?)
}

impl Array {
    /// Adds the elements of what stands at these places of the arrays around it.
    fn add(
        &mut self,
        of: Part<'_>,
        places: &mut Vec<usize>,
        name: &str,
        env: &Env<'_>,
    ) -> Result<()> {
        let Some(elements) = elements(of)? else { return Err(no_array(name, places)) };
        let depth = places.len();
        let length = u32::try_from(elements.len()).map_err(|_| crate::types::array::too_large())?;
        match self.dimensions.get(depth) {
            None => self.dimensions.push(Dimension { length, lower: 1 }),
            Some(dimension) if dimension.length == length => {}
            Some(_) => return Err(malformed()),
        }
        for (place, element) in elements.into_iter().enumerate() {
            let is_array = is_array(element);
            self.is_deepest |= !is_array && depth + 1 == self.dimensions.len();
            if depth + 1 < self.dimensions.len() || is_array && !self.is_deepest {
                places.push(place);
                self.add(element, places, name, env)?;
                places.pop();
            } else {
                let text = as_text(element.0, element.1)?;
                self.values.push(scalar(element, text, self.element, env)?);
            }
        }
        Ok(())
    }
}

/// The elements of an array; `None` if it is none.
fn elements((oid, bytes): Part<'_>) -> Result<Option<Vec<Part<'_>>>> {
    if oid == JSONB {
        let Some(Json::Array(array)) = Json::from_bytes(bytes) else { return Ok(None) };
        return Ok(Some(array.iter().map(|(_, bytes)| (JSONB, bytes)).collect()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong_arguments(1))?;
    let mut elements = Vec::new();
    let is_array = each_part(text, false, '[', ']', &mut |_, value| {
        elements.push((JSON, value.as_bytes()));
        Ok(())
    })?;
    Ok(is_array.then_some(elements))
}

#[cold]
fn malformed() -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
        .detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
}

#[cold]
fn no_array(name: &str, places: &[usize]) -> SqlError {
    let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
    if places.is_empty() {
        return error.hint(format!("See the value of key \"{name}\"."));
    }
    let places: String = places.iter().map(|place| format!("[{place}]")).collect();
    error.hint(format!("See the array element {places} of key \"{name}\"."))
}
