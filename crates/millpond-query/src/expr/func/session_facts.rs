//! What a session asks of itself and of what it is connected to: its text, the clock, addresses,
//! notifications, versions of collations.

use millpond_engine::proc::SessionInfo;
use millpond_types::current_timestamp;
use millpond_types::other::array_of;

use super::catalog::{
    ANY, FLOAT8, INT4, INT4_ARRAY, INT8, OID, Proc, TEXT, TIMESTAMPTZ, VOID, proc,
};
use super::value::{Outcome, body};
use super::{Body, Columns, rows};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations::DATABASE_OID;
use crate::types::array::build_list;
use crate::types::civil_of_timestamp;
use crate::{DataType, Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(817, "current_query", &[], TEXT, body!(env, || current_query(env)))
        .volatile()
        .called_on_null(),
    proc(274, "timeofday", &[], TEXT, body!(env, || time_of_day(env))).volatile(),
    proc(2197, "inet_client_port", &[], INT4, body!(env, || client_port(env)))
        .stable()
        .called_on_null(),
    proc(2199, "inet_server_port", &[], INT4, body!(env, || server_port(env)))
        .stable()
        .called_on_null(),
    // There is no log collector, so no file is its current one.
    proc(3800, "pg_current_logfile", &[], TEXT, body!(|| None::<String>))
        .volatile()
        .called_on_null(),
    proc(3801, "pg_current_logfile", &[TEXT], TEXT, body!(|format: Option<&str>| logfile(format)))
        .volatile()
        .called_on_null(),
    // No session can listen, so nothing waits to be delivered.
    proc(3035, "pg_listening_channels", &[], TEXT, rows(CHANNELS, |_, _| Ok(()))).stable(),
    proc(3296, "pg_notification_queue_usage", &[], FLOAT8, body!(|| 0f64)).volatile(),
    proc(
        3036,
        "pg_notify",
        &[TEXT, TEXT],
        VOID,
        body!(|channel: Option<&str>, payload: Option<&str>| notify(channel, payload)),
    )
    .volatile()
    .called_on_null(),
    // The binder gives the name.
    proc(3162, "pg_collation_for", &[ANY], TEXT, body!(|_value: Datum<'_>| None::<String>))
        .stable()
        .called_on_null(),
    // No value is compressed.
    proc(2121, "pg_column_compression", &[ANY], TEXT, body!(|_value: Datum<'_>| None::<String>))
        .stable(),
    // No transaction waits for a safe snapshot.
    proc(
        3376,
        "pg_safe_snapshot_blocking_pids",
        &[INT4],
        INT4_ARRAY,
        Body::Datums(|_, _| no_numbers()),
    )
    .volatile(),
    proc(
        3448,
        "pg_collation_actual_version",
        &[OID],
        TEXT,
        body!(|oid: i64| version_of(oid, "collation", &[100, 950])),
    )
    .volatile(),
    proc(
        6249,
        "pg_database_collation_actual_version",
        &[OID],
        TEXT,
        body!(|oid: i64| version_of(oid, "database", &[DATABASE_OID])),
    )
    .volatile(),
    proc(
        676,
        "pg_indexam_progress_phasename",
        &[OID, INT8],
        TEXT,
        body!(|method: i64, phase: i64| phase_name(method, phase)),
    ),
    proc(3830, "pg_last_xact_replay_timestamp", &[], TIMESTAMPTZ, body!(|| None::<String>))
        .volatile(),
];

const CHANNELS: Columns = &[(None, TEXT)];

/// What the session shows to others, unless that is only a part.
fn current_query(env: &Env<'_>) -> Option<String> {
    let long = env.facts.long_text.map(str::to_owned);
    long.or_else(|| own(env)?.statement.query)
}

/// The session as others see it.
fn own(env: &Env<'_>) -> Option<SessionInfo> {
    let sessions = env.facts.server?.statistics().sessions();
    let number = u32::try_from(env.facts.process_id).ok()?;
    sessions.into_iter().find(|session| session.process_id == number)
}

fn client_port(env: &Env<'_>) -> Option<i32> {
    let client = own(env)?.activity.client;
    client.parse::<std::net::SocketAddr>().ok().map(|address| address.port().into())
}

fn server_port(env: &Env<'_>) -> Option<i32> {
    own(env)?.activity.server_port.map(i32::from)
}

/// `Thu Feb 29 12:34:56.789012 2024 UTC`
fn time_of_day(env: &Env<'_>) -> String {
    const DAYS: [&str; 7] = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const USECS_PER_DAY: i64 = 86_400_000_000;
    let zone = env.facts.settings.format_options().zone;
    let now = current_timestamp();
    let local = zone.local(now);
    let civil = civil_of_timestamp(local);
    // 2000-01-01 was a Saturday.
    let day = usize::try_from(local.div_euclid(USECS_PER_DAY).rem_euclid(7)).unwrap_or(0);
    let seconds = civil.usecs / 1_000_000;
    let month = MONTHS.get(civil.month as usize - 1).unwrap_or(&"Jan");
    format!(
        "{} {month} {:02} {:02}:{:02}:{:02}.{:06} {:04} {}",
        DAYS.get(day).unwrap_or(&"Sat"),
        civil.day,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        civil.usecs % 1_000_000,
        civil.year,
        zone.abbreviation_at(now),
    )
}

fn logfile(format: Option<&str>) -> Result<Option<String>> {
    match format {
        None | Some("stderr" | "csvlog" | "jsonlog") => Ok(None),
        Some(other) => {
            let message = format!("log format \"{other}\" is not supported");
            let hint = "The supported log formats are \"stderr\", \"csvlog\", and \"jsonlog\".";
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).hint(hint))
        }
    }
}

/// What is notified reaches all that listen, which none can.
fn notify(channel: Option<&str>, payload: Option<&str>) -> Result<()> {
    const NAME_BYTES: usize = 64;
    const PAYLOAD_BYTES: usize = 8000;
    let refused = match channel.unwrap_or("") {
        "" => "channel name cannot be empty",
        channel if channel.len() >= NAME_BYTES => "channel name too long",
        _ if payload.unwrap_or("").len() >= PAYLOAD_BYTES => "payload string too long",
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, refused))
}

fn no_numbers() -> Result<Value> {
    let ty = array_of(DataType::Int4.oid()).map_or(0, |ty| ty.oid);
    build_list(ty, std::iter::empty())?.outcome()
}

/// Bytewise collations have no version.
fn version_of(oid: i64, kind: &str, known: &[i64]) -> Result<Option<String>> {
    if known.contains(&oid) {
        return Ok(None);
    }
    let message = format!("{kind} with OID {oid} does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// What a B-tree is doing while it is built.
fn phase_name(method: i64, phase: i64) -> Option<&'static str> {
    const BTREE: i64 = 403;
    Some(match (method, phase) {
        (BTREE, 1) => "initializing",
        (BTREE, 2) => "scanning table",
        (BTREE, 3) => "sorting live tuples",
        (BTREE, 4) => "sorting dead tuples",
        (BTREE, 5) => "loading tuples in tree",
        _ => return None,
    })
}
