//! Functions for certain moments of PostgreSQL's own programs: `pg_upgrade`, triggers of events,
//! the collector of logs. Here it is never such a moment.

use super::catalog::{BOOL, INT4, OID, OID_ARRAY, Param, Proc, TEXT, TEXT_ARRAY, VOID, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;

/// A function that only `pg_upgrade` may call.
const fn upgrade(oid: u32, name: &'static str, args: &'static [Param]) -> Proc {
    proc(oid, name, args, VOID, super::Body::Datums(|_, _| no_upgrade())).volatile()
}

pub(super) static UPGRADE: &[Proc] = &[
    upgrade(
        3591,
        "binary_upgrade_create_empty_extension",
        &[TEXT, TEXT, BOOL, TEXT, OID_ARRAY, TEXT_ARRAY, TEXT_ARRAY],
    )
    .called_on_null(),
    upgrade(4101, "binary_upgrade_set_missing_value", &[OID, TEXT, TEXT]),
    upgrade(3584, "binary_upgrade_set_next_array_pg_type_oid", &[OID]),
    upgrade(3586, "binary_upgrade_set_next_heap_pg_class_oid", &[OID]),
    upgrade(4545, "binary_upgrade_set_next_heap_relfilenode", &[OID]),
    upgrade(3587, "binary_upgrade_set_next_index_pg_class_oid", &[OID]),
    upgrade(4546, "binary_upgrade_set_next_index_relfilenode", &[OID]),
    upgrade(4391, "binary_upgrade_set_next_multirange_array_pg_type_oid", &[OID]),
    upgrade(4390, "binary_upgrade_set_next_multirange_pg_type_oid", &[OID]),
    upgrade(3590, "binary_upgrade_set_next_pg_authid_oid", &[OID]),
    upgrade(3589, "binary_upgrade_set_next_pg_enum_oid", &[OID]),
    upgrade(4548, "binary_upgrade_set_next_pg_tablespace_oid", &[OID]),
    upgrade(3582, "binary_upgrade_set_next_pg_type_oid", &[OID]),
    upgrade(3588, "binary_upgrade_set_next_toast_pg_class_oid", &[OID]),
    upgrade(4547, "binary_upgrade_set_next_toast_relfilenode", &[OID]),
    upgrade(4083, "binary_upgrade_set_record_init_privs", &[BOOL]),
];

fn no_upgrade() -> Result<crate::Value> {
    let message = "function can only be called when server is in binary upgrade mode";
    Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message))
}

pub(super) static MOMENTS: &[Proc] = &[
    proc(
        4566,
        "pg_event_trigger_table_rewrite_oid",
        &[],
        OID,
        body!(|| no_rewrite::<i64>("pg_event_trigger_table_rewrite_oid")),
    )
    .stable(),
    proc(
        4567,
        "pg_event_trigger_table_rewrite_reason",
        &[],
        INT4,
        body!(|| no_rewrite::<i32>("pg_event_trigger_table_rewrite_reason")),
    )
    .stable(),
    proc(2622, "pg_rotate_logfile", &[], BOOL, body!(env, || rotate(env))).volatile(),
    proc(4099, "pg_rotate_logfile_old", &[], BOOL, body!(env, || rotate(env))).volatile(),
];

fn no_rewrite<T>(function: &str) -> Result<T> {
    let message =
        format!("{function}() can only be called in a table_rewrite event trigger function");
    Err(SqlError::new(SqlState::EVENT_TRIGGER_PROTOCOL_VIOLATED, message))
}

fn rotate(env: &Env<'_>) -> bool {
    let message = "rotation not possible because log collection not active";
    env.facts.notices.borrow_mut().push(SqlError::warning(SqlState::WARNING, message));
    false
}
