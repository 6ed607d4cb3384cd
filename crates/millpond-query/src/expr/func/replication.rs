//! The functions of replication and recovery. They answer what PostgreSQL answers on a server that
//! does neither: there are no slots, no origins, no standby and no recovery.

use super::catalog::{BOOL, INT4, NAME, OID, Proc, TEXT, VOID, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};

pub(super) static RECOVERY: &[Proc] = &[
    proc(3073, "pg_is_wal_replay_paused", &[], BOOL, body!(|| no_recovery::<bool>())).volatile(),
    proc(3071, "pg_wal_replay_pause", &[], VOID, body!(|| no_recovery::<()>())).volatile(),
    proc(3072, "pg_wal_replay_resume", &[], VOID, body!(|| no_recovery::<()>())).volatile(),
    proc(1137, "pg_get_wal_replay_pause_state", &[], TEXT, body!(|| no_recovery::<&str>()))
        .volatile(),
    proc(0, "pg_promote", &[], BOOL, body!(|| no_recovery::<bool>())).volatile(),
    proc(0, "pg_promote", &[BOOL], BOOL, body!(|_wait: bool| no_recovery::<bool>())).volatile(),
    proc(
        3436,
        "pg_promote",
        &[BOOL, INT4],
        BOOL,
        body!(|_wait: bool, _seconds: i32| no_recovery::<bool>()),
    )
    .volatile(),
];

fn no_recovery<T>() -> Result<T> {
    let hint = "Recovery control functions can only be executed during recovery.";
    Err(not_ready("recovery is not in progress").hint(hint))
}

fn not_ready(message: &str) -> SqlError {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message.to_owned())
}

pub(super) static SLOTS: &[Proc] = &[
    proc(
        3780,
        "pg_drop_replication_slot",
        &[NAME],
        VOID,
        body!(|slot: &str| absent::<()>("slot", slot)),
    )
    .volatile(),
    proc(6005, "pg_replication_origin_oid", &[TEXT], OID, body!(|_origin: &str| None::<i64>))
        .stable(),
    proc(
        6004,
        "pg_replication_origin_drop",
        &[TEXT],
        VOID,
        body!(|origin: &str| absent::<()>("origin", origin)),
    )
    .volatile(),
    proc(
        6006,
        "pg_replication_origin_session_setup",
        &[TEXT],
        VOID,
        body!(|origin: &str| absent::<()>("origin", origin)),
    )
    .volatile(),
    proc(6008, "pg_replication_origin_session_is_setup", &[], BOOL, body!(|| false)).volatile(),
    proc(
        6007,
        "pg_replication_origin_session_reset",
        &[],
        VOID,
        body!(|| Err::<(), _>(not_ready("no replication origin is configured"))),
    )
    .volatile(),
    proc(6011, "pg_replication_origin_xact_reset", &[], VOID, body!(|| ())).volatile(),
];

fn absent<T>(kind: &str, name: &str) -> Result<T> {
    let message = format!("replication {kind} \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}
