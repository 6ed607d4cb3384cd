//! Types that name objects (`regclass`): values of a name or of a number.
//!
//! A value has the object's name from when it was made, so that it can be written without a look
//! into the catalog. It compares as its number.

use millpond_types::format::tid;
use millpond_types::other::{
    self, REGCLASS, REGNAMESPACE, REGPROC, REGPROCEDURE, REGROLE, REGTYPE, TID,
};

use super::Body;
use super::catalog::{ANY, INT8, OID, Param, Proc, REGCLASS_TYPE, TEXT, other, proc};
use super::object_name::{self as names, SCHEMAS, with_catalog};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations as system;
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(3495, "to_regclass", &[TEXT], OID, body!(env, |name: &str| to_regclass(name, env)))
        .stable(),
    // Its name becomes a `regtype` where it is called.
    proc(
        3493,
        "to_regtype",
        &[TEXT],
        TEXT,
        body!(|name: &str| optional(type_oid(name)).map(|oid| oid.map(|_| name.to_owned()))),
    )
    .stable(),
    proc(3494, "to_regproc", &[TEXT], OID, body!(|name: &str| optional(function_oid(name))))
        .stable(),
    proc(
        3479,
        "to_regprocedure",
        &[TEXT],
        OID,
        body!(|name: &str| optional(names::signature(name).map(i64::from))),
    )
    .stable(),
    proc(
        4086,
        "to_regnamespace",
        &[TEXT],
        OID,
        body!(|name: &str| optional(names::schema_number(&one_name(name)?))),
    )
    .stable(),
    proc(
        4093,
        "to_regrole",
        &[TEXT],
        OID,
        body!(env, |name: &str| optional(names::role(&one_name(name)?, env))),
    )
    .stable(),
    // What casts to these types call.
    of_name(
        "regclass_of_name",
        REGCLASS_TYPE,
        body!(env, |name: &str| class(relation_oid(name, env)?, env)),
    ),
    of_number("regclass_of_number", REGCLASS_TYPE, body!(env, |oid: i64| class(oid, env))),
    of_name(
        "regnamespace_of_name",
        REGNAMESPACE_TYPE,
        body!(|name: &str| namespace(schema_oid(name)?)),
    ),
    of_number("regnamespace_of_number", REGNAMESPACE_TYPE, body!(|oid: i64| namespace(oid))),
    of_name("regrole_of_name", REGROLE_TYPE, body!(env, |name: &str| role(role_oid(name, env)?))),
    of_number("regrole_of_number", REGROLE_TYPE, body!(|oid: i64| role(oid))),
    of_name("regtype_of_name", REGTYPE_TYPE, body!(|name: &str| type_value(type_oid(name)?))),
    of_number("regtype_of_number", REGTYPE_TYPE, body!(|oid: i64| type_value(oid))),
    of_name("regproc_of_name", REGPROC_TYPE, body!(|name: &str| function(function_oid(name)?))),
    of_number("regproc_of_number", REGPROC_TYPE, body!(|oid: i64| function(oid))),
    of_name(
        "regprocedure_of_name",
        REGPROCEDURE_TYPE,
        body!(|name: &str| procedure(procedure_oid(name)?)),
    ),
    of_number("regprocedure_of_number", REGPROCEDURE_TYPE, body!(|oid: i64| procedure(oid))),
    // What the system column `ctid` calls.
    proc(0, "tid_of_number", &[INT8], other(TID), body!(|place: i64| tid_of_number(place))),
    // `pg_typeof`, which the binder tells the type's number.
    proc(
        0,
        "type_of",
        &[ANY, OID],
        REGTYPE_TYPE,
        body!(|_value: Datum<'_>, oid: Option<i64>| type_value(oid.unwrap_or(0))),
    )
    .stable()
    .called_on_null(),
];

const REGNAMESPACE_TYPE: Param = other(REGNAMESPACE);
const REGPROC_TYPE: Param = other(REGPROC);
const REGPROCEDURE_TYPE: Param = other(REGPROCEDURE);
const REGROLE_TYPE: Param = other(REGROLE);
const REGTYPE_TYPE: Param = other(REGTYPE);

const fn of_name(name: &'static str, result: Param, body: Body) -> Proc {
    proc(0, name, &[TEXT], result, body).stable()
}

const fn of_number(name: &'static str, result: Param, body: Body) -> Proc {
    proc(0, name, &[OID], result, body).stable()
}

/// A row's place of its block's number and 16 bits of its own.
fn tid_of_number(place: i64) -> Result<Value> {
    Ok(tid((place >> 16) as u32, place as u16))
}

/// An object with its name.
fn object(ty: u32, oid: i64, name: &str) -> Value {
    other::object_value(ty, u32::try_from(oid).unwrap_or(0), name)
}

pub(super) fn class(oid: i64, env: &Env<'_>) -> Result<Value> {
    let name = with_catalog(env, |catalog| system::relation_name(catalog, oid))?;
    Ok(object(REGCLASS, oid, &name))
}

fn namespace(oid: i64) -> Result<Value> {
    Ok(object(REGNAMESPACE, oid, &schema_name(oid)))
}

fn role(oid: i64) -> Result<Value> {
    let name = if oid == names::OWNER { "postgres".to_owned() } else { shown(oid) };
    Ok(object(REGROLE, oid, &name))
}

fn type_value(oid: i64) -> Result<Value> {
    let name = match super::system::format_type(oid, None)? {
        name if name == "???" => shown(oid),
        name => name,
    };
    Ok(object(REGTYPE, oid, &name))
}

fn function(oid: i64) -> Result<Value> {
    Ok(object(REGPROC, oid, &function_name(oid)))
}

fn procedure(oid: i64) -> Result<Value> {
    Ok(object(REGPROCEDURE, oid, &procedure_name(oid)?))
}

/// A text that is a number, or `-`, which is 0.
fn number(text: &str) -> Option<i64> {
    match text.trim() {
        "-" => Some(0),
        text => text.parse::<u32>().ok().map(i64::from),
    }
}

/// How a number shows that is no object's.
fn shown(oid: i64) -> String {
    if oid == 0 { "-".to_owned() } else { oid.to_string() }
}

/// NULL for what does not exist. A text that is no name stays an error.
fn optional(found: Result<i64>) -> Result<Option<i64>> {
    match found {
        Ok(oid) => Ok(Some(oid)),
        Err(error)
            if matches!(
                error.sqlstate,
                SqlState::UNDEFINED_OBJECT
                    | SqlState::UNDEFINED_FUNCTION
                    | SqlState::UNDEFINED_TABLE
                    | SqlState::AMBIGUOUS_FUNCTION
                    | SqlState::INVALID_SCHEMA_NAME
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A name without points.
fn one_name(text: &str) -> Result<String> {
    let parts = system::name_parts(text).filter(|parts| parts.len() == 1);
    parts
        .and_then(|mut parts| parts.pop())
        .ok_or_else(|| SqlError::new(SqlState::INVALID_NAME, "invalid name syntax"))
}

fn to_regclass(name: &str, env: &Env<'_>) -> Result<Option<i64>> {
    names::find_relation(name, env)
}

/// The number of a relation, by its name or as a text that is one already.
pub(super) fn relation_oid(name: &str, env: &Env<'_>) -> Result<i64> {
    number(name).map_or_else(|| names::relation(name, env), Ok)
}

fn schema_oid(name: &str) -> Result<i64> {
    number(name).map_or_else(|| names::schema_number(&one_name(name)?), Ok)
}

fn schema_name(oid: i64) -> String {
    let found = SCHEMAS.iter().find(|(own, _)| *own == oid);
    found.map_or_else(|| shown(oid), |(_, name)| (*name).to_owned())
}

fn role_oid(name: &str, env: &Env<'_>) -> Result<i64> {
    number(name).map_or_else(|| names::role(&one_name(name)?, env), Ok)
}

fn type_oid(name: &str) -> Result<i64> {
    number(name).map_or_else(|| names::type_number(name), Ok)
}

fn function_name(oid: i64) -> String {
    let found = u32::try_from(oid).ok().and_then(system::function);
    let Some(function) = found else { return shown(oid) };
    // A name that several functions have does not say which one is meant.
    let is_one = system::functions_named(function.name).nth(1).is_none();
    if is_one { function.name.to_owned() } else { format!("pg_catalog.{}", function.name) }
}

fn function_oid(text: &str) -> Result<i64> {
    if let Some(number) = number(text) {
        return Ok(number);
    }
    let mut named = names::functions_named(text)?.into_iter();
    match (named.next(), named.next()) {
        (Some(one), None) => Ok(one.oid.into()),
        (Some(_), Some(_)) => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("more than one function named \"{text}\""),
        )),
        (None, _) => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function \"{text}\" does not exist"),
        )),
    }
}

fn procedure_oid(text: &str) -> Result<i64> {
    number(text).map_or_else(|| names::signature(text).map(i64::from), Ok)
}

/// A function with the types of its arguments.
fn procedure_name(oid: i64) -> Result<String> {
    let Some(function) = u32::try_from(oid).ok().and_then(system::function) else {
        return Ok(shown(oid));
    };
    let types = function.args.iter();
    let args = types.map(|ty| super::system::format_type((*ty).into(), None));
    let args = args.collect::<Result<Vec<_>>>()?;
    Ok(format!("{}({})", crate::expr::quoted_name(function.name), args.join(",")))
}
