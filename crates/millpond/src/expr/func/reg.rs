//! Types that name objects (`regclass`): from a name to the number, and back.

use super::catalog::{OID, Proc, TEXT, proc};
use super::object_name::{self as names, SCHEMAS, with_catalog};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations as system;

pub(super) static PROCS: &[Proc] = &[
    proc(3495, "to_regclass", &[TEXT], OID, body!(env, |name: &str| to_regclass(name, env)))
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
    // What casts to and from these types call.
    proc(0, "regclass_oid", &[TEXT], OID, body!(env, |name: &str| relation_oid(name, env)))
        .stable(),
    proc(
        0,
        "regclass_name",
        &[OID],
        TEXT,
        body!(env, |oid: i64| with_catalog(env, |catalog| system::relation_name(catalog, oid))),
    )
    .stable(),
    proc(0, "regnamespace_oid", &[TEXT], OID, body!(|name: &str| schema_oid(name))).stable(),
    proc(0, "regnamespace_name", &[OID], TEXT, body!(|oid: i64| schema_name(oid))).stable(),
    proc(0, "regrole_oid", &[TEXT], OID, body!(env, |name: &str| role_oid(name, env))).stable(),
    proc(
        0,
        "regrole_name",
        &[OID],
        TEXT,
        body!(|oid: i64| match oid {
            names::OWNER => "postgres".to_owned(),
            _ => shown(oid),
        }),
    )
    .stable(),
    proc(0, "regtype_oid", &[TEXT], OID, body!(|name: &str| type_oid(name))).stable(),
    proc(0, "regproc_oid", &[TEXT], OID, body!(|name: &str| function_oid(name))).stable(),
    proc(0, "regproc_name", &[OID], TEXT, body!(|oid: i64| function_name(oid))).stable(),
    proc(0, "regprocedure_oid", &[TEXT], OID, body!(|name: &str| procedure_oid(name))).stable(),
    proc(0, "regprocedure_name", &[OID], TEXT, body!(|oid: i64| procedure_name(oid))).stable(),
];

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
    found.map_or_else(|| shown(oid), |function| function.name.to_owned())
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
