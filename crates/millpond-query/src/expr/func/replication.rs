//! The functions of replication and recovery. They answer what PostgreSQL answers on a server that
//! does neither: there are no slots, no origins, no standby and no recovery.

use super::catalog::{
    BOOL, INT4, INT8, LSN_TYPE, NAME, OID, Proc, RECORD_TYPE, TEXT, TIMESTAMPTZ, VOID, XID_TYPE,
    proc,
};
use super::datetime::INTERVAL;
use super::lsn::Lsn;
use super::value::{body, wrong_arguments};
use super::{Columns, one_row, rows};
use crate::error::{Result, SqlError, SqlState};
use crate::{Datum, Value};

pub(super) static RECOVERY: &[Proc] = &[
    proc(3820, "pg_last_wal_receive_lsn", &[], LSN_TYPE, body!(|| None::<Lsn>)).volatile(),
    proc(3821, "pg_last_wal_replay_lsn", &[], LSN_TYPE, body!(|| None::<Lsn>)).volatile(),
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
        body!(|| Err::<(), _>(not_ready(NO_ORIGIN))),
    )
    .volatile(),
    proc(6011, "pg_replication_origin_xact_reset", &[], VOID, body!(|| ())).volatile(),
];

/// Those with positions in the log, of slots and of origins.
pub(super) static POSITIONS: &[Proc] = &[
    proc(3781, "pg_get_replication_slots", &[], RECORD_TYPE, rows(SLOT, |_, _| Ok(())))
        .stable()
        .called_on_null(),
    proc(
        3878,
        "pg_replication_slot_advance",
        &[NAME, LSN_TYPE],
        RECORD_TYPE,
        one_row(ADVANCED, |args, _| advanced(args)),
    )
    .volatile(),
    proc(6014, "pg_show_replication_origin_status", &[], RECORD_TYPE, rows(ORIGIN, |_, _| Ok(())))
        .volatile()
        .called_on_null(),
    proc(
        6013,
        "pg_replication_origin_progress",
        &[TEXT, BOOL],
        LSN_TYPE,
        body!(|origin: &str, _flush: bool| absent::<Lsn>("origin", origin)),
    )
    .volatile(),
    proc(
        6012,
        "pg_replication_origin_advance",
        &[TEXT, LSN_TYPE],
        VOID,
        body!(|origin: &str, _to: Lsn| absent::<()>("origin", origin)),
    )
    .volatile(),
    proc(
        6009,
        "pg_replication_origin_session_progress",
        &[BOOL],
        LSN_TYPE,
        body!(|_flush: bool| Err::<Lsn, _>(not_ready(NO_ORIGIN))),
    )
    .volatile(),
    proc(
        6010,
        "pg_replication_origin_xact_setup",
        &[LSN_TYPE, TIMESTAMPTZ],
        VOID,
        body!(|_at: Lsn, _when: Datum<'_>| Err::<(), _>(not_ready(NO_ORIGIN))),
    )
    .volatile(),
];

/// What other servers get and send: there are no senders, publications and subscriptions.
pub(super) static SENDERS: &[Proc] = &[
    proc(3099, "pg_stat_get_wal_senders", &[], RECORD_TYPE, rows(SENDER, |_, _| Ok(())))
        .stable()
        .called_on_null(),
    proc(6118, "pg_stat_get_subscription", &[OID], RECORD_TYPE, rows(SUBSCRIPTION, |_, _| Ok(())))
        .stable()
        .called_on_null(),
];

const SENDER: Columns = &[
    (Some("pid"), INT4),
    (Some("state"), TEXT),
    (Some("sent_lsn"), LSN_TYPE),
    (Some("write_lsn"), LSN_TYPE),
    (Some("flush_lsn"), LSN_TYPE),
    (Some("replay_lsn"), LSN_TYPE),
    (Some("write_lag"), INTERVAL),
    (Some("flush_lag"), INTERVAL),
    (Some("replay_lag"), INTERVAL),
    (Some("sync_priority"), INT4),
    (Some("sync_state"), TEXT),
    (Some("reply_time"), TIMESTAMPTZ),
];

const SUBSCRIPTION: Columns = &[
    (Some("subid"), OID),
    (Some("relid"), OID),
    (Some("pid"), INT4),
    (Some("received_lsn"), LSN_TYPE),
    (Some("last_msg_send_time"), TIMESTAMPTZ),
    (Some("last_msg_receipt_time"), TIMESTAMPTZ),
    (Some("latest_end_lsn"), LSN_TYPE),
    (Some("latest_end_time"), TIMESTAMPTZ),
];

const NO_ORIGIN: &str = "no replication origin is configured";

const SLOT: Columns = &[
    (Some("slot_name"), NAME),
    (Some("plugin"), NAME),
    (Some("slot_type"), TEXT),
    (Some("datoid"), OID),
    (Some("temporary"), BOOL),
    (Some("active"), BOOL),
    (Some("active_pid"), INT4),
    (Some("xmin"), XID_TYPE),
    (Some("catalog_xmin"), XID_TYPE),
    (Some("restart_lsn"), LSN_TYPE),
    (Some("confirmed_flush_lsn"), LSN_TYPE),
    (Some("wal_status"), TEXT),
    (Some("safe_wal_size"), INT8),
    (Some("two_phase"), BOOL),
];

const ADVANCED: Columns = &[(Some("slot_name"), NAME), (Some("end_lsn"), LSN_TYPE)];

const ORIGIN: Columns = &[
    (Some("local_id"), OID),
    (Some("external_id"), TEXT),
    (Some("remote_lsn"), LSN_TYPE),
    (Some("local_lsn"), LSN_TYPE),
];

fn advanced(args: &[Datum<'_>]) -> Result<()> {
    match args {
        [Datum::Text(_), to] if Lsn::is_zero(to) => {
            Err(SqlError::internal("invalid target WAL LSN"))
        }
        [Datum::Text(slot), _] => absent("slot", slot),
        _ => Err(wrong_arguments(args.len())),
    }
}

/// The times of commits, which are not kept.
pub(super) static COMMIT_TIMES: &[Proc] = &[
    proc(
        3581,
        "pg_xact_commit_timestamp",
        &[XID_TYPE],
        TIMESTAMPTZ,
        body!(|xid: Datum<'_>| no_commit_time(&xid)),
    )
    .volatile(),
    proc(
        6168,
        "pg_xact_commit_timestamp_origin",
        &[XID_TYPE],
        RECORD_TYPE,
        one_row(COMMIT, |args, list| match args {
            [xid] => no_commit_time(xid).and_then(|none| list.push([none.clone(), none])),
            _ => Err(wrong_arguments(args.len())),
        }),
    )
    .volatile(),
    proc(
        3583,
        "pg_last_committed_xact",
        &[],
        RECORD_TYPE,
        one_row(LAST_COMMIT, |_, _| Err(not_tracked())),
    )
    .volatile(),
];

const COMMIT: Columns = &[(Some("timestamp"), TIMESTAMPTZ), (Some("roident"), OID)];

const LAST_COMMIT: Columns =
    &[(Some("xid"), XID_TYPE), (Some("timestamp"), TIMESTAMPTZ), (Some("roident"), OID)];

fn no_commit_time(xid: &Datum<'_>) -> Result<Value> {
    match xid {
        Datum::Other(_, [0, 0, 0, 0]) => {
            let message = "cannot retrieve commit timestamp for transaction 0";
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        // No session has the first two.
        Datum::Other(_, [0, 0, 0, 1 | 2]) => Ok(Value::Null),
        _ => Err(not_tracked()),
    }
}

fn not_tracked() -> SqlError {
    not_ready("could not get commit timestamp data")
        .hint("Make sure the configuration parameter \"track_commit_timestamp\" is set.")
}

fn absent<T>(kind: &str, name: &str) -> Result<T> {
    let message = format!("replication {kind} \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}
