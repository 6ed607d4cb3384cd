//! What sessions ask of the server: since when it runs, and how much it holds.

use super::catalog::{ANY, BOOL, INT2, INT4, INT8, NAME, OID, Proc, TIMESTAMPTZ, VOID, proc};
use super::datetime::StampTz;
use super::value::body;
use crate::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::query::{RelationSize, Server};
use crate::relation_size;
use crate::system_relations::{DATABASE_OID, TABLESPACE};

pub(super) static PROCS: &[Proc] = &[
    proc(
        2560,
        "pg_postmaster_start_time",
        &[],
        TIMESTAMPTZ,
        body!(env, || env.facts.server.map(|server| StampTz(server.start_time()))),
    )
    .stable(),
    proc(
        2034,
        "pg_conf_load_time",
        &[],
        TIMESTAMPTZ,
        body!(env, || env.facts.server.map(|server| StampTz(load_time(server)))),
    )
    .stable(),
    proc(2324, "pg_database_size", &[OID], INT8, body!(env, |oid: i64| database_size(oid, env)))
        .volatile(),
    proc(
        2168,
        "pg_database_size",
        &[NAME],
        INT8,
        body!(env, |name: &str| database_named(name, env).and_then(|oid| database_size(oid, env))),
    )
    .volatile(),
    proc(
        2322,
        "pg_tablespace_size",
        &[OID],
        INT8,
        body!(env, |oid: i64| tablespace_size(oid, env)),
    )
    .volatile(),
    proc(
        2323,
        "pg_tablespace_size",
        &[NAME],
        INT8,
        body!(env, |name: &str| tablespace_named(name).and_then(|oid| tablespace_size(oid, env))),
    )
    .volatile(),
    proc(1269, "pg_column_size", &[ANY], INT4, body!(|value: Datum<'_>| column_size(&value)))
        .stable(),
    // Nothing is kept of what statistics a session has seen.
    proc(2230, "pg_stat_clear_snapshot", &[], VOID, body!(|| ())).volatile().called_on_null(),
    proc(
        3842,
        "pg_relation_is_updatable",
        &[OID, BOOL],
        INT4,
        body!(env, |oid: i64, _triggers: bool| updatable_by(oid, env)),
    )
    .stable(),
    proc(
        3843,
        "pg_column_is_updatable",
        &[OID, INT2, BOOL],
        BOOL,
        body!(env, |oid: i64, column: i16, _triggers: bool| {
            column > 0 && updatable_by(oid, env) != 0
        }),
    )
    .stable(),
];

fn load_time(server: &dyn Server) -> i64 {
    server.configuration().load_time().unwrap_or_else(|| server.start_time())
}

fn database_named(name: &str, env: &Env<'_>) -> Result<i64> {
    if name == env.facts.database {
        return Ok(DATABASE_OID);
    }
    let what = format!("database \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_DATABASE, what))
}

fn database_size(oid: i64, env: &Env<'_>) -> Result<Option<i64>> {
    if oid == DATABASE_OID { all_relations(env).map(Some) } else { Ok(None) }
}

fn tablespace_named(name: &str) -> Result<i64> {
    if name == TABLESPACE.1 {
        return Ok(TABLESPACE.0);
    }
    let what = format!("tablespace \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, what))
}

fn tablespace_size(oid: i64, env: &Env<'_>) -> Result<Option<i64>> {
    if oid == TABLESPACE.0 { all_relations(env).map(Some) } else { Ok(None) }
}

/// The bytes of all tables with their indexes.
fn all_relations(env: &Env<'_>) -> Result<i64> {
    let Some(session) = env.facts.session else { return Ok(0) };
    let catalog = session.catalog();
    let mut bytes = 0;
    for table in catalog.tables() {
        session.check_cancel()?;
        // A table may have been dropped meanwhile.
        let size = relation_size::of(session.engine(), &catalog, table.oid)?;
        bytes += size.map_or(0, RelationSize::total);
    }
    Ok(bytes as i64)
}

/// The bytes of a value, with the length of those that have one.
fn column_size(value: &Datum<'_>) -> Option<i32> {
    const LENGTH: usize = 4;
    let bytes = match value {
        Datum::Null => return None,
        Datum::Bool(_) => 1,
        Datum::Int2(_) => 2,
        Datum::Int4(_) | Datum::Float4(_) | Datum::Date(_) => 4,
        Datum::Int8(_) | Datum::Float8(_) | Datum::Timestamp(_) | Datum::Timestamptz(_) => 8,
        Datum::Numeric(number) => LENGTH + number.bytes().len(),
        Datum::Text(text) => LENGTH + text.len(),
        Datum::Bytea(bytes) => LENGTH + bytes.len(),
        Datum::Other(oid, bytes) => match millpond_types::other::find(*oid) {
            Some(ty) if ty.typlen < 0 => LENGTH + bytes.len(),
            _ => bytes.len(),
        },
    };
    Some(i32::try_from(bytes).unwrap_or(i32::MAX))
}

/// The commands that change a relation, as bits: UPDATE 4, INSERT 8, DELETE 16.
fn updatable_by(oid: i64, env: &Env<'_>) -> i32 {
    let Some(session) = env.facts.session else { return 0 };
    let is_table = u32::try_from(oid).is_ok_and(|oid| session.catalog().table(oid).is_some());
    if is_table { 4 | 8 | 16 } else { 0 }
}
