//! From names to the numbers of objects: `pg_get_object_address`.

use super::catalog::{INT4, OID, Proc, RECORD_TYPE, TEXT, TEXT_ARRAY, proc};
use super::identity::class;
use super::object_name::{
    self as names, ACCESS_METHODS, COLLATIONS, OWNER, TABLESPACES, schema_number, type_number,
    with_catalog,
};
use super::row_list::RowList;
use super::value::wrong_arguments;
use super::{Columns, format_type, one_row};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations::{self as system, DATABASE_OID};
use crate::types::array::array_of;
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] = &[proc(
    3954,
    "pg_get_object_address",
    &[TEXT, TEXT_ARRAY, TEXT_ARRAY],
    RECORD_TYPE,
    one_row(ADDRESS, address),
)
.stable()];

const ADDRESS: Columns = &[(Some("classid"), OID), (Some("objid"), OID), (Some("objsubid"), INT4)];

/// The system relation that has an object, its number there, and its part.
type Address = (u32, i64, i32);

fn address(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let [Datum::Text(kind), of, args] = args else { return Err(wrong_arguments(args.len())) };
    let (parts, args) = (texts(of)?, texts(args)?);
    let (class, object, column) = find(kind, &parts, &args, list.env)?;
    list.push([Value::Int8(class.into()), Value::Int8(object), Value::Int4(column)])
}

fn texts(array: &Datum<'_>) -> Result<Vec<String>> {
    let array = array_of(array).ok_or_else(|| wrong_arguments(1))?;
    let text = |element: Datum<'_>| match element {
        Datum::Text(text) => Ok(text.to_owned()),
        _ => Err(invalid("name or argument lists may not contain nulls")),
    };
    array.iter().map(text).collect()
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message.into())
}

fn undefined(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

fn find(kind: &str, parts: &[String], args: &[String], env: &Env<'_>) -> Result<Address> {
    match kind {
        "table" | "index" | "sequence" | "view" | "materialized view" | "foreign table" => {
            relation(kind, parts, env)
        }
        "table column" => column(parts, env),
        "type" => Ok((class::TYPE, type_number(only(parts)?)?, 0)),
        "function" | "aggregate" | "procedure" => function(kind, parts, args),
        "operator" => operator(parts, args),
        "cast" => cast(parts, args),
        "collation" => collation(parts),
        "schema" => Ok((class::SCHEMA, schema_number(only(parts)?)?, 0)),
        "role"
        | "database"
        | "tablespace"
        | "access method"
        | "language"
        | "extension"
        | "publication"
        | "server"
        | "foreign-data wrapper"
        | "subscription"
        | "event trigger" => plain(kind, only(parts)?, env),
        "view column" | "materialized view column" | "index column" | "composite type column" => {
            Err(invalid(format!("unsupported object type \"{kind}\"")))
        }
        kind if OTHERS.contains(&kind) => {
            Err(SqlError::unsupported(format!("the address of a {kind}")))
        }
        kind => Err(invalid(format!("unrecognized object type \"{kind}\""))),
    }
}

/// Kinds of objects that PostgreSQL can find, and that are not here.
const OTHERS: &[&str] = &[
    "toast table",
    "composite type",
    "foreign table column",
    "default value",
    "domain",
    "domain constraint",
    "table constraint",
    "conversion",
    "large object",
    "operator class",
    "operator family",
    "operator of access method",
    "function of access method",
    "rule",
    "trigger",
    "policy",
    "statistics object",
    "text search parser",
    "text search dictionary",
    "text search template",
    "text search configuration",
    "user mapping",
    "default acl",
    "parameter ACL",
    "publication namespace",
    "publication relation",
    "transform",
];

fn only(parts: &[String]) -> Result<&str> {
    match parts {
        [one] => Ok(one),
        _ => Err(invalid("name list length must be exactly 1")),
    }
}

fn at_least_one(parts: &[String]) -> Result<()> {
    if parts.is_empty() { Err(invalid("name list length must be at least 1")) } else { Ok(()) }
}

fn relation_number(parts: &[String], env: &Env<'_>) -> Result<i64> {
    let (schema, name) = names::qualified_parts(parts.to_vec(), env)?;
    let schema = schema.as_deref();
    let found = with_catalog(env, |catalog| system::relation_named(catalog, schema, &name))?;
    found.ok_or_else(|| names::no_relation(schema, &name))
}

fn relation(kind: &str, parts: &[String], env: &Env<'_>) -> Result<Address> {
    at_least_one(parts)?;
    let number = relation_number(parts, env)?;
    let oid = u32::try_from(number).unwrap_or(0);
    let own = with_catalog(env, |catalog| {
        if catalog.table(oid).is_some() {
            "table"
        } else if catalog.index(oid).is_some() {
            "index"
        } else {
            "view"
        }
    })?;
    if own == kind {
        return Ok((class::RELATION, number, 0));
    }
    let name = parts.last().map_or("", String::as_str);
    let article = if kind == "index" { "an" } else { "a" };
    let message = format!("\"{name}\" is not {article} {kind}");
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

fn column(parts: &[String], env: &Env<'_>) -> Result<Address> {
    at_least_one(parts)?;
    let (Some(column), of @ [_, ..]) = (parts.last(), &parts[..parts.len() - 1]) else {
        let message = "column name must be qualified";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    };
    let number = relation_number(of, env)?;
    let oid = u32::try_from(number).unwrap_or(0);
    let place = with_catalog(env, |catalog| match system::view_of(oid) {
        Some(view) => view.columns.iter().position(|(name, _)| name == column),
        None => catalog.table(oid).and_then(|table| table.column(column)),
    })?;
    match place.and_then(|place| i32::try_from(place + 1).ok()) {
        Some(place) => Ok((class::RELATION, number, place)),
        None => {
            let table = with_catalog(env, |catalog| system::relation_name(catalog, number))?;
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
    }
}

fn types(args: &[String]) -> Result<Vec<i64>> {
    args.iter().map(|name| type_number(name)).collect()
}

fn type_names(types: &[i64], separator: &str) -> Result<String> {
    let names = types.iter().map(|ty| format_type(*ty, None)).collect::<Result<Vec<_>>>()?;
    Ok(names.join(separator))
}

fn function(kind: &str, parts: &[String], args: &[String]) -> Result<Address> {
    at_least_one(parts)?;
    let types = types(args)?;
    let own_schema = match parts {
        [schema, _] => {
            schema_number(schema)?;
            schema == "pg_catalog"
        }
        parts => parts.len() == 1,
    };
    let name = parts.last().map_or("", String::as_str);
    let found = system::functions_named(name).find(|function| {
        own_schema && function.args.iter().map(|ty| i64::from(*ty)).eq(types.iter().copied())
    });
    let shown = format!("{}({})", parts.join("."), type_names(&types, ", ")?);
    let wrong = |what: &str| {
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{shown} is not {what}")))
    };
    match found {
        None => {
            let message = format!("{kind} {shown} does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
        Some(function) if kind == "aggregate" && !function.is_aggregate() => {
            let message = format!("function {shown} is not an aggregate");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        Some(_) if kind == "procedure" => wrong("a procedure"),
        Some(function) => Ok((class::ROUTINE, function.oid.into(), 0)),
    }
}

fn operator(parts: &[String], args: &[String]) -> Result<Address> {
    at_least_one(parts)?;
    let [left, right] = args else {
        return Err(invalid("argument list length must be exactly 2"));
    };
    let side = |name: &str| if name == "-" || name == "NONE" { Ok(0) } else { type_number(name) };
    let (left, right) = (side(left)?, side(right)?);
    let symbol = parts.last().map_or("", String::as_str);
    if let Some(oid) = system::operator_named(symbol, left, right) {
        return Ok((class::OPERATOR, oid.into(), 0));
    }
    let shown = parts.join(".");
    let right = format_type(right, None)?;
    let message = match left {
        0 => format!("operator does not exist: {shown} {right}"),
        left => format!("operator does not exist: {} {shown} {right}", format_type(left, None)?),
    };
    Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
}

fn cast(parts: &[String], args: &[String]) -> Result<Address> {
    let source = type_number(only(parts)?)?;
    let [target] = args else { return Err(invalid("argument list length must be exactly 1")) };
    let target = type_number(target)?;
    if let Some(oid) = system::cast_between(source, target) {
        return Ok((class::CAST, oid.into(), 0));
    }
    let (source, target) = (format_type(source, None)?, format_type(target, None)?);
    Err(undefined(format!("cast from type {source} to type {target} does not exist")))
}

fn collation(parts: &[String]) -> Result<Address> {
    at_least_one(parts)?;
    let is_here = matches!(parts, [_]) || matches!(parts, [schema, _] if schema == "pg_catalog");
    let name = parts.last().map(String::as_str).filter(|_| is_here);
    match COLLATIONS.iter().find(|(_, own)| Some(*own) == name) {
        Some((oid, _)) => Ok((class::COLLATION, *oid, 0)),
        None => {
            let shown = parts.join(".");
            Err(undefined(format!("collation \"{shown}\" for encoding \"UTF8\" does not exist")))
        }
    }
}

/// An object of one name.
fn plain(kind: &str, name: &str, env: &Env<'_>) -> Result<Address> {
    let absent = || undefined(format!("{kind} \"{name}\" does not exist"));
    let of = |list: &[(i64, &str)]| {
        let found = list.iter().find(|(_, own)| *own == name);
        found.map(|(oid, _)| *oid).ok_or_else(absent)
    };
    match kind {
        "role" => names::role(name, env).map(|_| (class::ROLE, OWNER, 0)),
        "database" if name == env.facts.database => Ok((class::DATABASE, DATABASE_OID, 0)),
        "database" => {
            let message = format!("database \"{name}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_DATABASE, message))
        }
        "tablespace" => Ok((class::TABLESPACE, of(&TABLESPACES)?, 0)),
        "access method" => Ok((class::ACCESS_METHOD, of(&ACCESS_METHODS)?, 0)),
        "language" => Ok((class::LANGUAGE, names::language(name)?, 0)),
        _ => Err(absent()),
    }
}
