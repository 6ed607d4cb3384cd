//! The functions that views of statistics are made of (`pg_stat_get_*`).
//!
//! Those of sessions, of checkpoints, of buffers and of the changes of tables say what the server
//! knows. Scans, functions and databases are not counted. There the functions answer what
//! PostgreSQL answers before it has counted anything: 0, or NULL for times.

use millpond_buffer::{BackendKind, IoContext, PoolStats};
use millpond_engine::proc::SessionInfo;

use super::catalog::{BOOL, FLOAT8, INT4, INT8, OID, Proc, TEXT, TIMESTAMPTZ, VOID, proc};
use super::object_name::with_catalog;
use super::value::body;
use super::{Body, Columns, rows};
use crate::Value;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::statistics::Statistics;
use crate::system_relations::{DATABASE_OID, EPOCH_US};

const NO_COUNT: Body = body!(|_oid: i64| 0i64);
const NO_TIME: Body = body!(|_oid: i64| 0f64);
const NOTHING: Body = body!(|_oid: i64| None::<String>);
const DONE: Body = body!(|_oid: i64| ());

/// Functions of a number that have the same type and body.
macro_rules! alike {
    ($result:ident $body:ident $volatility:ident: $($oid:literal $name:literal,)*) => {
        &[$(proc($oid, $name, &[OID], $result, $body).$volatility(),)*]
    };
}

pub(super) static RELATIONS: &[Proc] = alike! { INT8 NO_COUNT stable:
    1928 "pg_stat_get_numscans",
    1929 "pg_stat_get_tuples_returned",
    1930 "pg_stat_get_tuples_fetched",
    1934 "pg_stat_get_blocks_fetched",
    1935 "pg_stat_get_blocks_hit",
    3177 "pg_stat_get_mod_since_analyze",
    3057 "pg_stat_get_autoanalyze_count",
};

/// A function of what is counted for a table; 0 for what is no table.
macro_rules! of_table {
    ($oid:literal $name:literal, |$stats:ident| $value:expr) => {
        proc(
            $oid,
            $name,
            &[OID],
            INT8,
            body!(env, |oid: i64| with_catalog(env, |catalog| {
                let table = u32::try_from(oid).ok().and_then(|oid| catalog.table(oid));
                table.map_or(0, |table| {
                    let $stats = &table.stats;
                    $value
                })
            })),
        )
        .stable()
    };
}

pub(super) static TABLES: &[Proc] = &[
    of_table!(1931 "pg_stat_get_tuples_inserted", |stats| number(stats.counts().inserted)),
    of_table!(1932 "pg_stat_get_tuples_updated", |stats| number(stats.counts().updated)),
    of_table!(1972 "pg_stat_get_tuples_hot_updated", |stats| number(stats.counts().hot_updated)),
    of_table!(1933 "pg_stat_get_tuples_deleted", |stats| number(stats.counts().deleted)),
    of_table!(2878 "pg_stat_get_live_tuples", |stats| stats.live_rows()),
    of_table!(2879 "pg_stat_get_dead_tuples", |stats| stats.dead_rows()),
    of_table!(5053 "pg_stat_get_ins_since_vacuum", |stats| number(stats.inserted_since_vacuum())),
    of_table!(3054 "pg_stat_get_vacuum_count", |stats| {
        let (all, automatic) = stats.vacuums();
        number(all.saturating_sub(automatic))
    }),
    of_table!(3055 "pg_stat_get_autovacuum_count", |stats| number(stats.vacuums().1)),
    of_table!(3056 "pg_stat_get_analyze_count", |stats| number(stats.analyzes())),
];

pub(super) static IN_TRANSACTION: &[Proc] = alike! { INT8 NO_COUNT volatile:
    3037 "pg_stat_get_xact_numscans",
    3038 "pg_stat_get_xact_tuples_returned",
    3039 "pg_stat_get_xact_tuples_fetched",
    3040 "pg_stat_get_xact_tuples_inserted",
    3041 "pg_stat_get_xact_tuples_updated",
    3042 "pg_stat_get_xact_tuples_deleted",
    3043 "pg_stat_get_xact_tuples_hot_updated",
    3044 "pg_stat_get_xact_blocks_fetched",
    3045 "pg_stat_get_xact_blocks_hit",
};

pub(super) static TIMES: &[Proc] = alike! { TIMESTAMPTZ NOTHING stable:
    2781 "pg_stat_get_last_vacuum_time",
    2782 "pg_stat_get_last_autovacuum_time",
    2783 "pg_stat_get_last_analyze_time",
    2784 "pg_stat_get_last_autoanalyze_time",
    3074 "pg_stat_get_db_stat_reset_time",
    3428 "pg_stat_get_db_checksum_last_failure",
};

pub(super) static FUNCTIONS: &[Proc] = &[
    proc(2978, "pg_stat_get_function_calls", &[OID], INT8, NOTHING).stable(),
    proc(2979, "pg_stat_get_function_total_time", &[OID], FLOAT8, NOTHING).stable(),
    proc(2980, "pg_stat_get_function_self_time", &[OID], FLOAT8, NOTHING).stable(),
    proc(3046, "pg_stat_get_xact_function_calls", &[OID], INT8, NOTHING).volatile(),
    proc(3047, "pg_stat_get_xact_function_total_time", &[OID], FLOAT8, NOTHING).volatile(),
    proc(3048, "pg_stat_get_xact_function_self_time", &[OID], FLOAT8, NOTHING).volatile(),
    proc(3426, "pg_stat_get_db_checksum_failures", &[OID], INT8, NOTHING).stable(),
    proc(3788, "pg_stat_get_snapshot_timestamp", &[], TIMESTAMPTZ, body!(|| None::<String>))
        .stable(),
];

pub(super) static DATABASES: &[Proc] = alike! { INT8 NO_COUNT stable:
    1942 "pg_stat_get_db_xact_commit",
    1943 "pg_stat_get_db_xact_rollback",
    1944 "pg_stat_get_db_blocks_fetched",
    1945 "pg_stat_get_db_blocks_hit",
    2758 "pg_stat_get_db_tuples_returned",
    2759 "pg_stat_get_db_tuples_fetched",
    2760 "pg_stat_get_db_tuples_inserted",
    2761 "pg_stat_get_db_tuples_updated",
    2762 "pg_stat_get_db_tuples_deleted",
    3065 "pg_stat_get_db_conflict_tablespace",
    3066 "pg_stat_get_db_conflict_lock",
    3067 "pg_stat_get_db_conflict_snapshot",
    3068 "pg_stat_get_db_conflict_bufferpin",
    3069 "pg_stat_get_db_conflict_startup_deadlock",
    3070 "pg_stat_get_db_conflict_all",
    3150 "pg_stat_get_db_temp_files",
    3151 "pg_stat_get_db_temp_bytes",
    3152 "pg_stat_get_db_deadlocks",
    6188 "pg_stat_get_db_sessions",
    6189 "pg_stat_get_db_sessions_abandoned",
    6190 "pg_stat_get_db_sessions_fatal",
    6191 "pg_stat_get_db_sessions_killed",
};

pub(super) static DATABASE_TIMES: &[Proc] = alike! { FLOAT8 NO_TIME stable:
    2844 "pg_stat_get_db_blk_read_time",
    2845 "pg_stat_get_db_blk_write_time",
    6185 "pg_stat_get_db_session_time",
    6186 "pg_stat_get_db_active_time",
    6187 "pg_stat_get_db_idle_in_transaction_time",
};

/// A function of the server's counters; NULL without a server.
macro_rules! of_server {
    ($oid:literal $name:literal $result:ident, |$statistics:ident| $value:expr) => {
        proc(
            $oid,
            $name,
            &[],
            $result,
            body!(env, || env.facts.server.map(|server| {
                let $statistics: &Statistics = server.statistics();
                $value
            })),
        )
        .stable()
    };
}

pub(super) static SERVER: &[Proc] = &[
    of_server!(2769 "pg_stat_get_bgwriter_timed_checkpoints" INT8,
        |of| number(of.checkpointer().gain(|stats| stats.scheduled))),
    of_server!(2770 "pg_stat_get_bgwriter_requested_checkpoints" INT8,
        |of| number(of.checkpointer().gain(|stats| stats.requested))),
    of_server!(2771 "pg_stat_get_bgwriter_buf_written_checkpoints" INT8,
        |of| number(of.checkpointer().gain(|stats| stats.pages_written))),
    of_server!(3160 "pg_stat_get_checkpoint_write_time" FLOAT8,
        |of| of.checkpointer().gain(|stats| stats.write_ms) as f64),
    of_server!(3161 "pg_stat_get_checkpoint_sync_time" FLOAT8,
        |of| of.checkpointer().gain(|stats| stats.sync_ms) as f64),
    of_server!(2772 "pg_stat_get_bgwriter_buf_written_clean" INT8,
        |of| number(of.bgwriter().gain(written_by_writer) / millpond_buffer::PAGE_SIZE as u64)),
    // The background writer has no quota that would make it stop.
    of_server!(2773 "pg_stat_get_bgwriter_maxwritten_clean" INT8, |_of| 0i64),
    of_server!(2859 "pg_stat_get_buf_alloc" INT8,
        |of| number(of.bgwriter().gain(PoolStats::allocations))),
    of_server!(3075 "pg_stat_get_bgwriter_stat_reset_time" TIMESTAMPTZ,
        |of| time(of.bgwriter().reset_us.map(|us| us - EPOCH_US))),
];

fn written_by_writer(stats: &PoolStats) -> u64 {
    stats.io_of(BackendKind::BackgroundWriter, IoContext::Normal).write_bytes
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) static RESETS: &[Proc] = &[
    proc(2274, "pg_stat_reset", &[], VOID, body!(|| ())).volatile().called_on_null(),
    proc(3776, "pg_stat_reset_single_table_counters", &[OID], VOID, DONE).volatile(),
    proc(3777, "pg_stat_reset_single_function_counters", &[OID], VOID, DONE).volatile(),
    proc(2307, "pg_stat_reset_slru", &[TEXT], VOID, body!(|_name: Option<&str>| ()))
        .volatile()
        .called_on_null(),
    proc(
        6170,
        "pg_stat_reset_replication_slot",
        &[TEXT],
        VOID,
        body!(|slot: Option<&str>| slot.map_or(Ok(()), |slot| {
            Err(invalid(format!("replication slot \"{slot}\" does not exist")))
        })),
    )
    .volatile()
    .called_on_null(),
    proc(
        6232,
        "pg_stat_reset_subscription_stats",
        &[OID],
        VOID,
        body!(|oid: Option<i64>| match oid {
            Some(0) => Err(invalid("invalid subscription OID 0")),
            _ => Ok(()),
        }),
    )
    .volatile()
    .called_on_null(),
    proc(2137, "pg_stat_force_next_flush", &[], VOID, body!(|| ())).volatile().called_on_null(),
    proc(
        6230,
        "pg_stat_have_stats",
        &[TEXT, OID, OID],
        BOOL,
        body!(|kind: &str, _database: i64, _object: i64| have_statistics(kind)),
    )
    .volatile(),
];

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message.into())
}

/// Of what there is one for the whole server, statistics are there.
fn have_statistics(kind: &str) -> Result<bool> {
    match kind {
        "bgwriter" | "checkpointer" | "wal" | "archiver" | "slru" => Ok(true),
        "database" | "relation" | "function" | "replslot" | "subscription" => Ok(false),
        _ => Err(invalid(format!("invalid statistics kind: \"{kind}\""))),
    }
}

/// A function of the session that has a place among all.
macro_rules! of_session {
    ($oid:literal $name:literal $result:ident, |$session:ident| $value:expr) => {
        proc(
            $oid,
            $name,
            &[INT4],
            $result,
            body!(env, |place: i32| session_at(place, env).map(|$session| $value)),
        )
        .stable()
    };
}

pub(super) static SESSIONS: &[Proc] = &[
    proc(
        1936,
        "pg_stat_get_backend_idset",
        &[],
        INT4,
        rows(PLACES, |_, list| {
            let count =
                list.env.facts.server.map_or(0, |server| server.statistics().sessions().len());
            (1..=count).try_for_each(|place| list.push([Value::Int4(place as i32)]))
        }),
    )
    .stable(),
    of_session!(1937 "pg_stat_get_backend_pid" INT4, |session| session.process_id.cast_signed()),
    of_session!(1938 "pg_stat_get_backend_dbid" OID, |session| {
        if is_client(&session) { DATABASE_OID } else { 0 }
    }),
    of_session!(1939 "pg_stat_get_backend_userid" OID, |session| {
        if is_client(&session) { super::object_name::OWNER } else { 0 }
    }),
    proc(
        1940,
        "pg_stat_get_backend_activity",
        &[INT4],
        TEXT,
        body!(env, |place: i32| match session_at(place, env) {
            Some(session) => session.statement.query,
            None => Some(NOT_AVAILABLE.to_owned()),
        }),
    )
    .stable(),
    of_session!(1391 "pg_stat_get_backend_start" TIMESTAMPTZ, |session| {
        Value::Timestamptz(session.activity.started)
    }),
    of_session!(2094 "pg_stat_get_backend_activity_start" TIMESTAMPTZ, |session| {
        time(session.statement.began)
    }),
    of_session!(2857 "pg_stat_get_backend_xact_start" TIMESTAMPTZ, |session| {
        time(session.statement.transaction_began.filter(|_| session.in_transaction))
    }),
    // A client of a socket in the file system has the port -1.
    of_session!(1393 "pg_stat_get_backend_client_port" INT4, |session| {
        is_client(&session).then(|| {
            let client = session.activity.client.parse::<std::net::SocketAddr>();
            client.map_or(-1, |address| i32::from(address.port()))
        })
    }),
    proc(
        2788,
        "pg_stat_get_backend_wait_event_type",
        &[INT4],
        TEXT,
        body!(env, |place: i32| wait_event(place, env).map(|(kind, _)| kind)),
    )
    .stable(),
    proc(
        2853,
        "pg_stat_get_backend_wait_event",
        &[INT4],
        TEXT,
        body!(env, |place: i32| wait_event(place, env).map(|(_, name)| name)),
    )
    .stable(),
    proc(
        1941,
        "pg_stat_get_db_numbackends",
        &[OID],
        INT4,
        body!(env, |oid: i64| {
            let all = env.facts.server.map_or(Vec::new(), |server| server.statistics().sessions());
            let count = all.iter().filter(|session| is_client(session)).count();
            if oid == DATABASE_OID { i32::try_from(count).unwrap_or(i32::MAX) } else { 0 }
        }),
    )
    .stable(),
];

const PLACES: Columns = &[(None, INT4)];

/// What a text shows that is asked of no session.
const NOT_AVAILABLE: &str = "<backend information not available>";

/// The session that has this place among all, counted from 1.
fn session_at(place: i32, env: &Env<'_>) -> Option<SessionInfo> {
    let place = usize::try_from(place).ok()?.checked_sub(1)?;
    env.facts.server?.statistics().sessions().into_iter().nth(place)
}

fn is_client(session: &SessionInfo) -> bool {
    session.activity.kind == "client backend"
}

fn time(time: Option<i64>) -> Value {
    time.map_or(Value::Null, Value::Timestamptz)
}

fn wait_event(place: i32, env: &Env<'_>) -> Option<(&'static str, &'static str)> {
    match session_at(place, env) {
        Some(session) => session.wait_event.names(),
        None => Some((NOT_AVAILABLE, NOT_AVAILABLE)),
    }
}
