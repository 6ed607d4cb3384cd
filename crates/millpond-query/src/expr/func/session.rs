//! What a session knows: its user, its addresses, the time, and its locks.

use millpond_types::current_timestamp;

use super::Body;
use super::catalog::{
    BOOL, DATE, FLOAT8, INT4, INT8, NAME, NAME_ARRAY, OID, Param, Proc, TEXT, TIMESTAMPTZ, VOID,
    proc,
};
use super::value::body;
use crate::advisory::{self, Advisory, Key, Verb};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr, Val};
use crate::settings::SettingName;
use crate::types::USECS_PER_DAY;
use crate::types::array::build_list;
use crate::{DataType, Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(1299, "now", &[], TIMESTAMPTZ, Body::Exprs(now)).stable(),
    proc(2647, "transaction_timestamp", &[], TIMESTAMPTZ, Body::Exprs(now)).stable(),
    proc(2648, "statement_timestamp", &[], TIMESTAMPTZ, Body::Exprs(now)).stable(),
    proc(
        2649,
        "clock_timestamp",
        &[],
        TIMESTAMPTZ,
        Body::Exprs(|_, _| Ok(Val::Borrowed(Datum::Timestamptz(current_timestamp())))),
    )
    .volatile(),
    proc(0, "current_date", &[], DATE, Body::Exprs(current_date)).stable(),
    proc(
        89,
        "version",
        &[],
        TEXT,
        Body::Exprs(|_, _| Ok(Val::Borrowed(Datum::Text(crate::VERSION_STRING)))),
    )
    .stable(),
    proc(861, "current_database", &[], NAME, Body::Exprs(database)).stable(),
    proc(0, "current_catalog", &[], NAME, Body::Exprs(database)).stable(),
    proc(
        1402,
        "current_schema",
        &[],
        NAME,
        Body::Exprs(|_, _| Ok(Val::Borrowed(Datum::Text("public")))),
    )
    .stable(),
    proc(1403, "current_schemas", &[BOOL], NAME_ARRAY, Body::Datums(schemas)).stable(),
    proc(745, "current_user", &[], NAME, Body::Exprs(user)).stable(),
    proc(746, "session_user", &[], NAME, Body::Exprs(user)).stable(),
    proc(710, "getpgusername", &[], NAME, Body::Exprs(user)).stable(),
    proc(0, "user", &[], NAME, Body::Exprs(user)).stable(),
    proc(0, "current_role", &[], NAME, Body::Exprs(user)).stable(),
    proc(
        2026,
        "pg_backend_pid",
        &[],
        INT4,
        Body::Exprs(|_, env| Ok(Val::Borrowed(Datum::Int4(env.facts.process_id)))),
    )
    .stable(),
    proc(
        2077,
        "current_setting",
        &[TEXT],
        TEXT,
        body!(env, |name: &str| current_setting(name, false, env)),
    )
    .stable(),
    proc(
        3294,
        "current_setting",
        &[TEXT, BOOL],
        TEXT,
        body!(env, |name: &str, missing_ok: bool| current_setting(name, missing_ok, env)),
    )
    .stable(),
    proc(
        2078,
        "set_config",
        &[TEXT, TEXT, BOOL],
        TEXT,
        body!(env, |name: Option<&str>, text: Option<&str>, local: Option<bool>| {
            set_config(name, text, local.unwrap_or(false), env)
        }),
    )
    .volatile()
    .called_on_null(),
    proc(
        1599,
        "setseed",
        &[FLOAT8],
        VOID,
        body!(env, |seed: f64| env.facts.settings.seed_random(seed)),
    )
    .volatile(),
    // As in PostgreSQL it only asks for that. What is wrong with the files is in the server's log
    // and in pg_file_settings.
    proc(
        2621,
        "pg_reload_conf",
        &[],
        BOOL,
        body!(env, || env.facts.server.is_some_and(|server| {
            server.reload_configuration();
            true
        })),
    )
    .volatile(),
    proc(0, "pg_stat_reset_shared", &[], VOID, body!(env, || reset_shared(None, env))).volatile(),
    proc(
        0,
        "pg_stat_reset_shared",
        &[TEXT],
        VOID,
        // NULL resets everything, as no argument does.
        body!(env, |target: Option<&str>| reset_shared(target, env)),
    )
    .volatile()
    .called_on_null(),
    proc(
        2561,
        "pg_blocking_pids",
        &[INT4],
        Param::Type(INT4_ARRAY),
        body!(env, |pid: i32| {
            let blocking = blocking_pids(pid, env);
            let pids = blocking.iter().map(|pid| Datum::Int4(pid.cast_signed()));
            build_list(INT4_ARRAY.oid(), pids).map_err(SqlError::from)
        }),
    )
    .volatile(),
    // The array is text here.
    proc(
        3378,
        "pg_isolation_test_session_is_blocked",
        &[INT4, TEXT],
        BOOL,
        body!(env, |pid: i32, others: &str| is_blocked(pid, others, env)),
    )
    .volatile(),
    proc(810, "pg_client_encoding", &[], NAME, body!(|| "UTF8")).stable(),
    proc(1039, "getdatabaseencoding", &[], NAME, body!(|| "UTF8")).stable(),
    proc(
        1642,
        "pg_get_userbyid",
        &[OID],
        NAME,
        body!(|oid: i64| match oid {
            // There is one role, the one with PostgreSQL's number for the first.
            10 => "postgres".to_owned(),
            other => format!("unknown (OID={other})"),
        }),
    )
    .stable(),
];

const INT4_ARRAY: DataType = DataType::Other { oid: 1007, typmod: -1 };

/// A function of advisory locks, whose key is one bigint or two integers.
const fn lock_proc(
    oid: u32,
    name: &'static str,
    args: &'static [Param],
    result: Param,
    function: Advisory,
) -> Proc {
    proc(oid, name, args, result, Body::Lock(function)).volatile()
}

pub(super) static LOCKS: &[Proc] = &[
    lock_proc(2880, "pg_advisory_lock", &[INT8], VOID, advisory::of(Verb::Lock, true, false)),
    lock_proc(2886, "pg_advisory_lock", &[INT4, INT4], VOID, advisory::of(Verb::Lock, true, false)),
    lock_proc(2881, "pg_advisory_lock_shared", &[INT8], VOID, advisory::of(Verb::Lock, true, true)),
    lock_proc(
        2887,
        "pg_advisory_lock_shared",
        &[INT4, INT4],
        VOID,
        advisory::of(Verb::Lock, true, true),
    ),
    lock_proc(2884, "pg_advisory_unlock", &[INT8], BOOL, advisory::of(Verb::Unlock, true, false)),
    lock_proc(
        2890,
        "pg_advisory_unlock",
        &[INT4, INT4],
        BOOL,
        advisory::of(Verb::Unlock, true, false),
    ),
    lock_proc(
        2892,
        "pg_advisory_unlock_all",
        &[],
        VOID,
        advisory::of(Verb::UnlockAll, true, false),
    ),
    lock_proc(
        2885,
        "pg_advisory_unlock_shared",
        &[INT8],
        BOOL,
        advisory::of(Verb::Unlock, true, true),
    ),
    lock_proc(
        2891,
        "pg_advisory_unlock_shared",
        &[INT4, INT4],
        BOOL,
        advisory::of(Verb::Unlock, true, true),
    ),
    lock_proc(3089, "pg_advisory_xact_lock", &[INT8], VOID, advisory::of(Verb::Lock, false, false)),
    lock_proc(
        3093,
        "pg_advisory_xact_lock",
        &[INT4, INT4],
        VOID,
        advisory::of(Verb::Lock, false, false),
    ),
    lock_proc(
        3090,
        "pg_advisory_xact_lock_shared",
        &[INT8],
        VOID,
        advisory::of(Verb::Lock, false, true),
    ),
    lock_proc(
        3094,
        "pg_advisory_xact_lock_shared",
        &[INT4, INT4],
        VOID,
        advisory::of(Verb::Lock, false, true),
    ),
    lock_proc(
        2882,
        "pg_try_advisory_lock",
        &[INT8],
        BOOL,
        advisory::of(Verb::TryLock, true, false),
    ),
    lock_proc(
        2888,
        "pg_try_advisory_lock",
        &[INT4, INT4],
        BOOL,
        advisory::of(Verb::TryLock, true, false),
    ),
    lock_proc(
        2883,
        "pg_try_advisory_lock_shared",
        &[INT8],
        BOOL,
        advisory::of(Verb::TryLock, true, true),
    ),
    lock_proc(
        2889,
        "pg_try_advisory_lock_shared",
        &[INT4, INT4],
        BOOL,
        advisory::of(Verb::TryLock, true, true),
    ),
    lock_proc(
        3091,
        "pg_try_advisory_xact_lock",
        &[INT8],
        BOOL,
        advisory::of(Verb::TryLock, false, false),
    ),
    lock_proc(
        3095,
        "pg_try_advisory_xact_lock",
        &[INT4, INT4],
        BOOL,
        advisory::of(Verb::TryLock, false, false),
    ),
    lock_proc(
        3092,
        "pg_try_advisory_xact_lock_shared",
        &[INT8],
        BOOL,
        advisory::of(Verb::TryLock, false, true),
    ),
    lock_proc(
        3096,
        "pg_try_advisory_xact_lock_shared",
        &[INT4, INT4],
        BOOL,
        advisory::of(Verb::TryLock, false, true),
    ),
];

/// The schemas that names are looked for in; with those that no setting names if it is asked for.
fn schemas(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    const OF_NAMES: u32 = 1003;
    let all = [Datum::Text("pg_catalog"), Datum::Text("public")];
    let with_implicit = matches!(args, [Datum::Bool(true)]);
    Ok(build_list(OF_NAMES, all.into_iter().skip(usize::from(!with_implicit)))?)
}

fn now<'a>(_: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    Ok(Val::Borrowed(Datum::Timestamptz(env.facts.now)))
}

fn current_date<'a>(_: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    let zone = env.facts.settings.format_options().zone;
    let days = zone.local(env.facts.now).div_euclid(USECS_PER_DAY);
    Ok(Val::Borrowed(Datum::Date(i32::try_from(days).unwrap_or(i32::MAX))))
}

fn database<'a>(_: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    Ok(Val::Borrowed(Datum::Text(env.facts.database)))
}

fn user<'a>(_: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    Ok(Val::Borrowed(Datum::Text(env.facts.user)))
}

/// Returns `void`, which clients see as an empty text.
fn reset_shared(target: Option<&str>, env: &Env<'_>) -> Result<&'static str> {
    if let Some(server) = env.facts.server {
        server.statistics().reset(target)?;
    }
    Ok("")
}

fn current_setting(name: &str, missing_ok: bool, env: &Env<'_>) -> Result<Option<String>> {
    let found = SettingName::of(name).and_then(|name| env.facts.settings.show_called(&name));
    match found {
        Err(error) if missing_ok && error.sqlstate == SqlState::UNDEFINED_OBJECT => Ok(None),
        found => found.map(Some),
    }
}

fn set_config(
    name: Option<&str>,
    text: Option<&str>,
    local: bool,
    env: &Env<'_>,
) -> Result<String> {
    let name = name.ok_or_else(|| {
        SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name")
    })?;
    env.facts.settings.call_set(name, text, local)
}

pub(super) fn lock(function: Advisory, args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some(session) = env.facts.session else {
        return Err(SqlError::internal("a lock without a session"));
    };
    // Wherever in a statement it stands: what has been locked would be locked again when the
    // statement is repeated.
    if session.wait() == crate::Wait::Never && !env.facts.only_locks {
        return Err(crate::convert::would_block());
    }
    let key = match args {
        [Datum::Int8(key)] => Key::One(*key),
        [Datum::Int4(high), Datum::Int4(low)] => Key::Two(*high, *low),
        _ => Key::None,
    };
    function.call(session, key, env.facts.notices)
}

/// The process ids of the sessions that a session waits for.
fn blocking_pids(pid: i32, env: &Env<'_>) -> Vec<u32> {
    let locks = env.facts.session.map(|session| session.engine().locks());
    let pid = u32::try_from(pid).unwrap_or(0);
    locks.map(|locks| locks.blocking_processes(pid)).unwrap_or_default()
}

fn is_blocked(pid: i32, others: &str, env: &Env<'_>) -> Result<bool> {
    let others = advisory::pids(others)?;
    Ok(blocking_pids(pid, env).iter().any(|pid| others.contains(pid)))
}
