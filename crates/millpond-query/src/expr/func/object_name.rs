//! Texts that name objects: what they mean, with PostgreSQL's errors where they mean nothing.

use millpond_engine::catalog::CatalogState;

use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations as system;

/// The schemas there are.
pub(super) const SCHEMAS: [(i64, &str); 3] =
    [(11, "pg_catalog"), (2200, "public"), (13000, "information_schema")];

/// Calls a function with the catalog as the session sees it.
pub(super) fn with_catalog<R>(env: &Env<'_>, look: impl FnOnce(&CatalogState) -> R) -> Result<R> {
    match env.facts.session {
        Some(session) => Ok(look(&session.catalog())),
        None => Err(SqlError::unsupported("a look into the catalog outside of a session")),
    }
}

fn undefined(kind: &str, name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("{kind} \"{name}\" does not exist"))
}

/// The schema, if the name has one, and the name itself.
pub(super) fn qualified(text: &str, env: &Env<'_>) -> Result<(Option<String>, String)> {
    qualified_parts(system::name_parts(text).ok_or_else(invalid_name)?, env)
}

/// The same of a name's parts.
pub(super) fn qualified_parts(
    mut parts: Vec<String>,
    env: &Env<'_>,
) -> Result<(Option<String>, String)> {
    if parts.len() > 3 {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper relation name (too many dotted names): {}", parts.join(".")),
        ));
    }
    let shown = parts.join(".");
    let name = parts.pop().ok_or_else(invalid_name)?;
    let schema = parts.pop();
    match parts.pop() {
        Some(database) if database != env.facts.database => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cross-database references are not implemented: \"{shown}\""),
        )),
        _ => Ok((schema, name)),
    }
}

fn invalid_name() -> SqlError {
    SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")
}

/// The number of a relation; `None` if there is none of that name in that schema.
pub(super) fn find_relation(text: &str, env: &Env<'_>) -> Result<Option<i64>> {
    let (schema, name) = qualified(text, env)?;
    with_catalog(env, |catalog| system::relation_named(catalog, schema.as_deref(), &name))
}

/// The number of a relation.
pub(super) fn relation(text: &str, env: &Env<'_>) -> Result<i64> {
    let (schema, name) = qualified(text, env)?;
    if let Some(schema) = &schema {
        schema_number(schema)?;
    }
    let found =
        with_catalog(env, |catalog| system::relation_named(catalog, schema.as_deref(), &name))?;
    found.ok_or_else(|| no_relation(schema.as_deref(), &name))
}

/// The error of a relation that is not there.
pub(super) fn no_relation(schema: Option<&str>, name: &str) -> SqlError {
    let shown = schema.map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{shown}\" does not exist"))
}

/// The number of a schema.
pub(super) fn schema_number(name: &str) -> Result<i64> {
    let found = SCHEMAS.iter().find(|(_, own)| *own == name);
    found.map(|(oid, _)| *oid).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
    })
}

/// The number of the one role there is, which may have two names.
pub(super) const OWNER: i64 = 10;

/// The number of a role.
pub(super) fn role(name: &str, env: &Env<'_>) -> Result<i64> {
    if name == env.facts.user || name == "postgres" {
        return Ok(OWNER);
    }
    Err(undefined("role", name))
}

/// The number of a language of functions.
pub(super) fn language(name: &str) -> Result<i64> {
    let found = system::LANGUAGES.iter().find(|(_, own)| *own == name);
    found.map(|(oid, _)| i64::from(*oid)).ok_or_else(|| undefined("language", name))
}

/// The number of a tablespace.
pub(super) fn tablespace(name: &str) -> Result<i64> {
    let found = TABLESPACES.iter().find(|(_, own)| *own == name);
    found.map(|(oid, _)| *oid).ok_or_else(|| undefined("tablespace", name))
}

/// The access methods there are.
pub(super) const ACCESS_METHODS: [(i64, &str); 2] = [(2, "heap"), (403, "btree")];

/// The collations there are.
pub(super) const COLLATIONS: [(i64, &str); 2] = [(100, "default"), (950, "C")];

/// The tablespaces there are.
pub(super) const TABLESPACES: [(i64, &str); 1] = [(1663, "pg_default")];

/// The number of a type.
pub(super) fn type_number(name: &str) -> Result<i64> {
    system::type_oid(name).ok_or_else(|| undefined("type", name))
}

/// The functions of a name, which may be with its schema.
pub(super) fn functions_named(text: &str) -> Result<Vec<system::Function>> {
    let parts = system::name_parts(text)
        .ok_or_else(|| SqlError::new(SqlState::INVALID_NAME, "invalid name syntax"))?;
    Ok(match parts.as_slice() {
        [name] => system::functions_named(name).collect(),
        [schema, name] if schema == "pg_catalog" => system::functions_named(name).collect(),
        _ => Vec::new(),
    })
}

/// The function of a signature, as `abs(integer)`.
pub(super) fn signature(text: &str) -> Result<u32> {
    let invalid = |message| SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
    let (name, rest) =
        text.split_once('(').ok_or_else(|| invalid("expected a left parenthesis"))?;
    let list =
        rest.trim_end().strip_suffix(')').ok_or_else(|| invalid("expected a right parenthesis"))?;
    let args = match list.trim() {
        "" => Vec::new(),
        list => list.split(',').map(|name| type_number(name.trim())).collect::<Result<_>>()?,
    };
    let is_meant = |function: &system::Function| {
        function.args.iter().map(|ty| i64::from(*ty)).eq(args.iter().copied())
    };
    let found = functions_named(name)?.into_iter().find(is_meant);
    found.map(|function| function.oid).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"))
    })
}
