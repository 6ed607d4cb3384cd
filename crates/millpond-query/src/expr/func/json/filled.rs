//! `json_populate_record` as a value: the call gives one record of the type of its first argument,
//! so it can stand wherever a value can.

use millpond_types::other::RECORD;
use millpond_types::record::{Field, fields, push_field};

use super::super::catalog::{ANY, RECORD_TYPE, proc};
use super::super::row_list::RowList;
use super::super::value::wrong_arguments;
use super::super::{Body, Definition, Proc};
use super::record::record;
use crate::error::{Result, SqlError};
use crate::expr::Env;
use crate::{DataType, Datum, Value};

/// The record that is filled, the JSON, perhaps the argument that changes nothing, and the record's
/// [`definition`].
pub(in crate::expr) static FILLED: Proc =
    proc(0, "filled_record", &[ANY, ANY, ANY], RECORD_TYPE, Body::Datums(filled))
        .stable()
        .called_on_null()
        .variadic();

/// Columns with their types as a constant: a record that has, for each column, a field of its name
/// with the number of its type, then one with the type's modifier.
pub(in crate::expr) fn definition(columns: &Definition) -> Result<Value> {
    let mut bytes = Vec::new();
    for (name, ty) in columns {
        let number = Datum::Int8(ty.oid().into());
        let modifier = Datum::Int4(ty.typmod());
        let (oid, int4) = (DataType::Oid.oid(), DataType::Int4.oid());
        push_field(&Field { name, type_oid: oid, value: number }, &mut bytes)
            .and_then(|()| push_field(&Field { name, type_oid: int4, value: modifier }, &mut bytes))
            .ok_or_else(|| SqlError::internal("a name is too long"))?;
    }
    Ok(Value::Other(RECORD, bytes.into()))
}

fn columns_of(definition: &Datum<'_>) -> Option<Vec<(String, DataType)>> {
    let Datum::Other(RECORD, bytes) = definition else { return None };
    let mut parts = fields(bytes);
    let mut columns = Vec::new();
    while let Some(number) = parts.next() {
        let (Datum::Int8(oid), Some(Field { value: Datum::Int4(typmod), .. })) =
            (number.value, parts.next())
        else {
            return None;
        };
        let ty = DataType::from_oid(u32::try_from(oid).ok()?, typmod)?;
        columns.push((number.name.to_owned(), ty));
    }
    Some(columns)
}

fn filled(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let wrong = || wrong_arguments(args.len());
    let (definition, args) = args.split_last().ok_or_else(wrong)?;
    let [base, json, ..] = args else { return Err(wrong()) };
    if base.is_null() && json.is_null() {
        return Ok(Value::Null);
    }
    let columns = columns_of(definition).ok_or_else(wrong)?;
    let mut list = RowList::new(env);
    record(args, &columns, &mut list)?;
    let mut bytes = Vec::new();
    for ((name, ty), value) in columns.iter().zip(list.values()) {
        let field = Field { name, type_oid: ty.oid(), value: value.as_datum() };
        push_field(&field, &mut bytes).ok_or_else(super::super::record::too_large)?;
    }
    Ok(Value::Other(RECORD, bytes.into()))
}
