//! What relations take on disk: `pg_relation_size` and the like.

use millpond_engine::session::Session;

use super::catalog::{INT8, OID, Proc, REGCLASS_TYPE, TEXT, proc};
use super::reg::{class, relation_oid};
use super::value::body;
use crate::Value;
use crate::error::{Result, SqlError};
use crate::expr::Env;
use crate::query::RelationSize;
use crate::relation_size::{self, fork_bytes};

/// The functions of a relation's number, and the same of its name: a literal is a `regclass` to
/// PostgreSQL, which is a number here.
macro_rules! of_relation {
    ($oid:literal $name:literal: $of:expr) => {
        [
            proc($oid, $name, &[OID], INT8, body!(env, |oid: i64| size(oid, env, $of))).volatile(),
            proc(0, $name, &[TEXT], INT8, body!(env, |name: &str| size_named(name, env, $of)))
                .volatile(),
        ]
    };
}

pub(super) static PROCS: &[Proc] = &[
    proc(
        2332,
        "pg_relation_size",
        &[OID, TEXT],
        INT8,
        body!(env, |oid: i64, fork: &str| fork_bytes(fork).and_then(|of| size(oid, env, of))),
    )
    .volatile(),
    proc(
        0,
        "pg_relation_size",
        &[TEXT, TEXT],
        INT8,
        body!(env, |name: &str, fork: &str| {
            fork_bytes(fork).and_then(|of| size_named(name, env, of))
        }),
    )
    .volatile(),
    proc(2999, "pg_relation_filenode", &[OID], OID, body!(env, |oid: i64| filenode(oid, env)))
        .stable(),
    proc(
        0,
        "pg_relation_filenode",
        &[TEXT],
        OID,
        body!(env, |name: &str| relation_oid(name, env).and_then(|oid| filenode(oid, env))),
    )
    .stable(),
    proc(3034, "pg_relation_filepath", &[OID], TEXT, body!(env, |oid: i64| filepath(oid, env)))
        .stable(),
    proc(
        0,
        "pg_relation_filepath",
        &[TEXT],
        TEXT,
        body!(env, |name: &str| relation_oid(name, env).and_then(|oid| filepath(oid, env))),
    )
    .stable(),
    proc(
        3454,
        "pg_filenode_relation",
        &[OID, OID],
        REGCLASS_TYPE,
        body!(env, |tablespace: i64, file: i64| relation_of_file(tablespace, file, env)),
    )
    .stable(),
];

pub(super) static SIZES: &[Proc] = [
    of_relation!(2325 "pg_relation_size": |size| size.main),
    of_relation!(2997 "pg_table_size": RelationSize::table),
    of_relation!(2998 "pg_indexes_size": |size| size.indexes),
    of_relation!(2286 "pg_total_relation_size": RelationSize::total),
]
.as_flattened();

fn session<'a>(env: &Env<'a>) -> Result<&'a Session> {
    env.facts.session.ok_or_else(|| SqlError::unsupported("a relation's size outside of a session"))
}

fn size_named(name: &str, env: &Env<'_>, of: fn(RelationSize) -> u64) -> Result<Option<i64>> {
    size(relation_oid(name, env)?, env, of)
}

/// `None`: there is no such relation.
fn size(oid: i64, env: &Env<'_>, of: fn(RelationSize) -> u64) -> Result<Option<i64>> {
    let (session, Ok(oid)) = (session(env)?, u32::try_from(oid)) else { return Ok(None) };
    let size = relation_size::of(session.engine(), &session.catalog(), oid)?;
    Ok(size.map(|size| of(size) as i64))
}

/// The path in the data directory.
fn filepath(oid: i64, env: &Env<'_>) -> Result<Option<String>> {
    Ok(filenode(oid, env)?.map(|file| format!("base/{file}")))
}

fn relation_of_file(tablespace: i64, file: i64, env: &Env<'_>) -> Result<Option<Value>> {
    let catalog = session(env)?.catalog();
    let is_it = |oid: u32| {
        relation_size::storage(&catalog, oid).is_some_and(|own| i64::from(own.get()) == file)
    };
    let mut relations = catalog.tables().flat_map(|table| {
        std::iter::once(table.oid).chain(table.indexes.iter().map(|index| index.oid))
    });
    let found = match tablespace {
        // 0 is the database's.
        0 | DEFAULT_TABLESPACE => relations.find(|oid| is_it(*oid)),
        _ => None,
    };
    found.map(|oid| class(oid.into(), env)).transpose()
}

/// `pg_default`
const DEFAULT_TABLESPACE: i64 = 1663;

fn filenode(oid: i64, env: &Env<'_>) -> Result<Option<i64>> {
    let (session, Ok(oid)) = (session(env)?, u32::try_from(oid)) else { return Ok(None) };
    Ok(relation_size::storage(&session.catalog(), oid).map(|file| file.get().into()))
}
