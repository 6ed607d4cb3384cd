//! The functions of sequences. There are none, so each relation is of another kind.

use millpond_types::other::{REGCLASS, object_parts};

use super::catalog::{BOOL, INT8, OID, Proc, RECORD_TYPE, REGCLASS_TYPE, proc};
use super::object_name::with_catalog;
use super::value::{Arg, body, wrong_arguments};
use super::{Columns, one_row};
use crate::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations::{self as system, relation_name};

/// The number of a relation that a `regclass` names.
#[derive(Clone, Copy)]
pub(super) struct Relation(pub(super) u32);

impl<'a> Arg<'a> for Relation {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Other(REGCLASS, bytes) => object_parts(bytes).map(|(oid, _)| Relation(oid)),
            _ => None,
        }
    }
}

pub(super) static PROCS: &[Proc] = &[
    proc(1574, "nextval", &[REGCLASS_TYPE], INT8, body!(env, |of: Relation| sequence(of, env)))
        .volatile(),
    proc(1575, "currval", &[REGCLASS_TYPE], INT8, body!(env, |of: Relation| sequence(of, env)))
        .volatile(),
    proc(
        1576,
        "setval",
        &[REGCLASS_TYPE, INT8],
        INT8,
        body!(env, |of: Relation, _value: i64| sequence(of, env)),
    )
    .volatile(),
    proc(
        1765,
        "setval",
        &[REGCLASS_TYPE, INT8, BOOL],
        INT8,
        body!(env, |of: Relation, _value: i64, _called: bool| sequence(of, env)),
    )
    .volatile(),
    proc(2559, "lastval", &[], INT8, body!(|| last_value())).volatile(),
    proc(
        4032,
        "pg_sequence_last_value",
        &[REGCLASS_TYPE],
        INT8,
        body!(env, |of: Relation| sequence(of, env)),
    )
    .volatile(),
    proc(
        3078,
        "pg_sequence_parameters",
        &[OID],
        RECORD_TYPE,
        one_row(PARAMETERS, |args, list| parameters(args, list.env)),
    )
    .stable(),
];

const PARAMETERS: Columns = &[
    (Some("start_value"), INT8),
    (Some("minimum_value"), INT8),
    (Some("maximum_value"), INT8),
    (Some("increment"), INT8),
    (Some("cycle_option"), BOOL),
    (Some("cache_size"), INT8),
    (Some("data_type"), OID),
];

/// Whether there is a relation of this number.
pub(super) fn is_relation(oid: u32, env: &Env<'_>) -> Result<bool> {
    with_catalog(env, |catalog| {
        catalog.table(oid).is_some()
            || catalog.index(oid).is_some()
            || system::view_of(oid).is_some()
    })
}

/// The error of a relation's number that none has.
pub(super) fn could_not_open(oid: u32) -> SqlError {
    SqlError::internal(format!("could not open relation with OID {oid}"))
}

fn sequence(of: Relation, env: &Env<'_>) -> Result<i64> {
    if !is_relation(of.0, env)? {
        return Err(could_not_open(of.0));
    }
    let name = with_catalog(env, |catalog| relation_name(catalog, of.0.into()))?;
    let message = format!("\"{name}\" is not a sequence");
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

fn parameters(args: &[Datum<'_>], env: &Env<'_>) -> Result<()> {
    let [Datum::Int8(oid)] = args else { return Err(wrong_arguments(args.len())) };
    let number = u32::try_from(*oid).map_err(|_| wrong_arguments(1))?;
    if is_relation(number, env)? {
        return Err(SqlError::internal(format!("cache lookup failed for sequence {oid}")));
    }
    let message = format!("relation with OID {oid} does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_TABLE, message))
}

fn last_value() -> Result<i64> {
    let message = "lastval is not yet defined in this session";
    Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
}
