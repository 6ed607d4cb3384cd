//! Locks held and wanted, and how long was waited for them: `pg_locks`, `pg_stat_lock`.

use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use millpond_engine::lmgr::{LockCounts, LockInfo, LockMode, LockStats, LockTag};
use millpond_engine::proc::SessionInfo;
use millpond_engine::transam::SessionNo;

use super::Kind::{Bool, Float8, Int2, Int4, Int8, Oid, Text, TimestampTz, Xid};
use super::{Cell, Columns, Source, View, view};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_locks", 12040, PG_LOCKS, pg_locks),
    view("pg_stat_lock", 12041, PG_STAT_LOCK, pg_stat_lock),
];

/// What functions return.
pub(crate) const FUNCTIONS: &[View] = &[view("pg_lock_status", 1371, PG_LOCKS, pg_locks)];

const PG_LOCKS: Columns = &[
    ("locktype", Text),
    ("database", Oid),
    ("relation", Oid),
    ("page", Int4),
    ("tuple", Int2),
    ("virtualxid", Text),
    ("transactionid", Xid),
    ("classid", Oid),
    ("objid", Oid),
    ("objsubid", Int2),
    ("virtualtransaction", Text),
    ("pid", Int4),
    ("mode", Text),
    ("granted", Bool),
    ("fastpath", Bool),
    ("waitstart", TimestampTz),
];

/// All locks. Every transaction holds a lock on its virtual id and, once it has one, on its id. The
/// engine makes these only when a session waits for them, but the view always shows them.
fn pg_locks(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let mut locks = statistics.locks();
    let sessions = statistics.sessions();
    for session in sessions.iter().filter(|session| session.in_transaction) {
        let held = |tag, fast_path| LockInfo {
            tag,
            mode: LockMode::Exclusive,
            session: session.session,
            process_id: session.process_id,
            granted: true,
            fast_path,
            waiting_since: None,
        };
        locks.push(held(LockTag::VirtualTransaction(session.session, session.transaction), true));
        let of_xid = session.xid.map(LockTag::Transaction);
        if let Some(tag) = of_xid
            && !locks.iter().any(|lock| lock.granted && lock.tag == tag)
        {
            locks.push(held(tag, false));
        }
    }
    let transactions: HashMap<SessionNo, String> =
        sessions.iter().map(|s| (s.session, virtual_transaction(s))).collect();
    locks.iter().map(|lock| lock_row(lock, transactions.get(&lock.session))).collect()
}

fn virtual_transaction(session: &SessionInfo) -> String {
    format!("{}/{}", session.session, session.transaction)
}

fn lock_row(lock: &LockInfo, transaction: Option<&String>) -> Vec<Cell> {
    let mut row = vec![Cell::Null; PG_LOCKS.len()];
    let mut set = |name: &str, value: Cell| {
        if let Some(place) = PG_LOCKS.iter().position(|(column, _)| *column == name) {
            row[place] = value;
        }
    };
    set("locktype", lock.tag.kind().into());
    if !matches!(lock.tag, LockTag::Transaction(_) | LockTag::VirtualTransaction(..)) {
        set("database", millpond_engine::lock::tag::DATABASE_OID.into());
    }
    match lock.tag {
        LockTag::Relation(oid) => set("relation", oid.into()),
        LockTag::Transaction(xid) => set("transactionid", xid.0.into()),
        LockTag::VirtualTransaction(session, number) => {
            set("virtualxid", format!("{session}/{number}").into());
        }
        LockTag::Tuple { relation, block, offset } => {
            set("relation", relation.into());
            set("page", block.into());
            set("tuple", i32::from(offset).into());
        }
        LockTag::Object { class, id } => {
            set("classid", class.into());
            set("objid", id.into());
            set("objsubid", 0.into());
        }
        LockTag::Advisory { high, low, two_keys } => {
            set("classid", high.into());
            set("objid", low.into());
            set("objsubid", if two_keys { 2 } else { 1 }.into());
        }
    }
    set("virtualtransaction", transaction.map(String::as_str).into());
    set("pid", lock.process_id.into());
    set("mode", lock.mode.name().into());
    set("granted", lock.granted.into());
    set("fastpath", lock.fast_path.into());
    set("waitstart", lock.waiting_since.map(clock_us).into());
    row
}

/// A moment by the calendar, in microseconds since 1970.
fn clock_us(moment: Instant) -> i64 {
    let clock = SystemTime::now().checked_sub(moment.elapsed()).unwrap_or(UNIX_EPOCH);
    let since = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// As in PostgreSQL 19.
const PG_STAT_LOCK: Columns = &[
    ("locktype", Text),
    ("waits", Int8),
    ("wait_time", Float8),
    ("fastpath_exceeded", Int8),
    ("stats_reset", TimestampTz),
];

/// PostgreSQL's kinds of locks, in its order.
const LOCK_TYPES: &[&str] = &[
    "relation",
    "extend",
    "frozenid",
    "page",
    "tuple",
    "transactionid",
    "virtualxid",
    "spectoken",
    "object",
    "userlock",
    "advisory",
    "applytransaction",
];

fn pg_stat_lock(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let stats = statistics.locks_counted();
    let row = |kind: &&str| {
        let place = LockTag::KINDS.iter().position(|ours| ours == kind);
        let gain = |of: fn(&LockCounts) -> u64| match place {
            Some(place) => stats.gain(|stats: &LockStats| of(&stats.0[place])),
            // There are no such locks.
            None => 0,
        };
        vec![
            (*kind).into(),
            gain(|counts| counts.waits).into(),
            (gain(|counts| counts.wait_us) as f64 / 1e3).into(),
            gain(|counts| counts.fast_path_exceeded).into(),
            stats.reset_us.into(),
        ]
    };
    LOCK_TYPES.iter().map(row).collect()
}
