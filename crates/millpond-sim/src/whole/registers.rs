//! Sessions whose transactions read and write registers and record what they see.
//! [`history`](crate::history) checks the record.
//!
//! A register is a row: its key, its value, which is unique, and its version, which each write
//! increments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use millpond_engine::lmgr::LockMode;
use millpond_engine::session::TransactionOptions;
use millpond_engine::table::{RowBuf, RowOutcome};
use millpond_engine::types::Datum;
use millpond_engine::{EngineResult, Session};
use rand::Rng;
use rand::rngs::StdRng;

use super::client::Client;
use super::tables::{Failed, READ_COMMITTED, REPEATABLE_READ, accounts, named, row, run, transact};
use crate::history::{Fate, Level, Op, Txn, check};

const TABLE: &str = "registers";
const REGISTERS: i32 = 6;
/// Slow clients use few of them, because they make few transactions: some must meet.
const SLOW_REGISTERS: i32 = 2;

/// The clock and the values that all sessions of a run share.
#[derive(Default)]
pub(super) struct Clock {
    moments: AtomicU64,
    values: AtomicU32,
}

impl Clock {
    fn now(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }
}

/// All transactions of a run.
#[derive(Default)]
pub(super) struct History {
    pub clock: Arc<Clock>,
    txns: Vec<Txn>,
}

impl History {
    /// Creates the registers, all with value and version 0.
    pub fn populate(session: &mut Session) -> EngineResult<()> {
        let table = run(session, |session| session.ddl().create_table(accounts(TABLE, true)))?;
        run(session, |session| {
            session.lock_table(&table, LockMode::RowExclusive)?;
            (1..=REGISTERS).try_for_each(|key| session.insert(&table, &row(key, "0", 0)).map(drop))
        })
    }

    pub fn add(&mut self, txns: Vec<Txn>) {
        self.txns.extend(txns);
    }

    /// To be called after a start, which decides the commits in doubt. One transaction reads all
    /// registers.
    pub fn settle(&mut self, session: &mut Session) -> EngineResult<()> {
        let now = self.clock.now();
        for txn in self.txns.iter_mut().filter(|txn| txn.ended == u64::MAX) {
            txn.ended = now;
        }
        let begun = self.clock.now();
        let read = |session: &mut Session| (1..=REGISTERS).map(|key| read(session, key)).collect();
        let ops: Vec<Op> = transact(session, REPEATABLE_READ, read)?;
        let ended = self.clock.now();
        let (level, fate) = (Level::RepeatableRead, Fate::Committed);
        self.txns.push(Txn { level, fate, begun, ended, ops });
        Ok(())
    }

    /// Checks that no isolation level is violated. Returns the number of transactions.
    pub fn judge(&self) -> usize {
        let anomalies: Vec<String> = check(&self.txns).iter().map(ToString::to_string).collect();
        assert!(anomalies.is_empty(), "the history has anomalies: {anomalies:#?}");
        self.txns.len()
    }
}

/// Runs a session. Returns its transactions.
pub(super) fn note(client: &mut Client, rng: &mut StdRng, clock: &Clock, steps: u32) -> Vec<Txn> {
    let mut txns = Vec::new();
    for _ in 0..steps {
        let txn = transaction(client, rng, clock);
        let is_over = match txn.fate {
            Fate::Committed => false,
            Fate::Aborted => client.engine().stopped().is_some(),
            Fate::Unknown => true,
        };
        txns.push(txn);
        if is_over {
            break;
        }
        client.rest();
    }
    txns
}

fn transaction(client: &mut Client, rng: &mut StdRng, clock: &Clock) -> Txn {
    let (level, options) = match rng.random() {
        true => (Level::ReadCommitted, READ_COMMITTED),
        false => (Level::RepeatableRead, REPEATABLE_READ),
    };
    let begun = clock.now();
    let mut ops = Vec::new();
    let result = act(client, options, rng, clock, &mut ops).map_err(Failed::from);
    let (fate, ended) = match result {
        Ok(()) => (Fate::Committed, clock.now()),
        Err(Failed::RolledBack) => (Fate::Aborted, clock.now()),
        Err(Failed::InDoubt) => (Fate::Unknown, u64::MAX),
    };
    Txn { level, fate, begun, ended, ops }
}

/// Some steps, each of which is a statement, and the commit.
fn act(
    client: &mut Client,
    options: TransactionOptions,
    rng: &mut StdRng,
    clock: &Clock,
    ops: &mut Vec<Op>,
) -> EngineResult<()> {
    client.begin(options)?;
    let range = if client.is_slow() { SLOW_REGISTERS } else { REGISTERS };
    for _ in 0..rng.random_range(1..5) {
        let key = rng.random_range(1..=range);
        let done = client.statement(|client| match rng.random() {
            true => read(client.session()?, key),
            false => {
                let value = clock.values.fetch_add(1, Ordering::SeqCst) + 1;
                write(client.session()?, key, value)
            }
        });
        match done {
            Ok(op) => ops.push(op),
            Err(error) => {
                client.abort();
                return Err(error);
            }
        }
    }
    client.commit()
}

fn look_up(session: &Session, key: i32) -> EngineResult<RowBuf> {
    let table = named(session, TABLE).unwrap_or_else(|| panic!("no registers"));
    session.lock_table(&table, LockMode::RowExclusive)?;
    let index = table.primary_key().unwrap_or_else(|| panic!("no key"));
    let mut found = RowBuf::new();
    let is_there = session.lookup(&table, index, &[Datum::Int4(key)], &mut found)?;
    assert!(is_there, "register {key} is lost");
    Ok(found)
}

fn read(session: &mut Session, key: i32) -> EngineResult<Op> {
    let table = named(session, TABLE).unwrap_or_else(|| panic!("no registers"));
    let found = look_up(session, key)?;
    let value = match found.column(&table, 1) {
        Ok(Datum::Text(value)) => value.parse().unwrap_or_else(|_| panic!("no number: {value}")),
        other => panic!("no value: {other:?}"),
    };
    Ok(Op::Read { key: key as u32, value, version: version(session, &found) })
}

fn version(session: &Session, found: &RowBuf) -> u32 {
    let table = named(session, TABLE).unwrap_or_else(|| panic!("no registers"));
    let version = found.column(&table, 2).ok().and_then(|datum| datum.as_i64());
    version.unwrap_or_else(|| panic!("no version")) as u32
}

/// Writes as an UPDATE does, and retries after a conflict.
fn write(session: &mut Session, key: i32, value: u32) -> EngineResult<Op> {
    let table = named(session, TABLE).unwrap_or_else(|| panic!("no registers"));
    let mut found = look_up(session, key)?;
    loop {
        let version = version(session, &found) + 1;
        let text = value.to_string();
        match session.update(&table, &mut found, &row(key, &text, i64::from(version)))? {
            RowOutcome::Done(_) => return Ok(Op::Write { key: key as u32, value, version }),
            RowOutcome::Changed => {}
            RowOutcome::Gone => panic!("register {key} is gone"),
        }
    }
}
