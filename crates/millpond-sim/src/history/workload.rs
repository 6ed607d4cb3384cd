//! Random transactions over lists and registers, in SQL, and the histories that follow from the
//! answers.
//!
//! A list is a text that appends make longer, in `lists (k, g, v)`; `g` groups lists behind an
//! index. A register is a row of `registers (k, v, n)`, whose `n` counts its versions. Because of
//! an index on `v`, each write of a register moves its row. An *epoch* is a set of lists and
//! registers with keys of its own, so that a history can be checked in parts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rand::Rng;
use rand::rngs::StdRng;

use super::{Fate, Level, Op, Txn};

/// The number of lists and registers of an epoch.
const LISTS: u32 = 12;
const REGISTERS: u32 = 12;
/// The number of lists with one `g`.
const GROUP: u32 = 3;
/// The first key of an epoch is this times its number.
const EPOCH_KEYS: u32 = 100;

/// The statements that create the tables.
pub const SCHEMA: &[&str] = &[
    "create table lists (k int primary key, g int, v text)",
    "create index lists_g on lists (g)",
    "create table registers (k int primary key, v int, n int)",
    "create index registers_v on registers (v)",
];

/// Rows, their columns as text.
pub type Rows = Vec<Vec<String>>;

/// Why a statement failed.
#[derive(Clone, Debug)]
pub enum Failed {
    /// An error with this SQLSTATE and message.
    State(String, String),
    /// No answer: the connection is gone.
    Lost,
}

/// Runs statements.
pub trait Client {
    /// Runs one statement to its end.
    fn run(&mut self, sql: &str) -> Result<Rows, Failed>;
}

/// The clock and the values that all clients of a history share.
#[derive(Debug, Default)]
pub struct Shared {
    clock: AtomicU64,
    values: AtomicU32,
}

impl Shared {
    /// A moment after all moments returned so far.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn value(&self) -> u32 {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What a client learned from running a transaction.
#[derive(Debug, Default)]
pub struct Told {
    /// The transaction. Before it come the statements with which a READ COMMITTED transaction reads
    /// under one snapshot each. As long as it only reads, each counts as a transaction of its own.
    pub txns: Vec<Txn>,
    /// The connection is gone.
    pub lost: bool,
}

/// Row locks that reads take; most reads take none.
const LOCKS: &[&str] = &[
    " for update",
    " for update skip locked",
    " for no key update",
    " for no key update nowait",
    " for share",
    " for share skip locked",
    " for key share",
];

/// One statement.
enum Step {
    /// Appends to lists and returns their keys. `only` is the key, if there is one known key.
    Append {
        what: What,
        value: u32,
        only: Option<u32>,
    },
    ReadLists {
        what: What,
        lock: &'static str,
    },
    Write {
        key: u32,
        value: u32,
    },
    ReadRegisters {
        what: What,
        lock: &'static str,
    },
}

/// The rows that a statement concerns.
struct What {
    condition: String,
    /// How many there are. Rows are neither added nor removed. So each statement must find each of
    /// them once, unless it skips locked rows.
    rows: usize,
}

/// A set of keys.
#[derive(Clone, Copy, Debug)]
pub struct Epoch(pub u32);

impl Epoch {
    fn first(self) -> u32 {
        self.0 * EPOCH_KEYS
    }

    /// The statements that insert its rows.
    pub fn rows(self) -> Vec<String> {
        let keys = |count: u32, row: &dyn Fn(u32) -> String| {
            Vec::from_iter((self.first()..self.first() + count).map(row)).join(", ")
        };
        let lists = keys(LISTS, &|k| format!("({k}, {}, '')", k / GROUP));
        let registers = keys(REGISTERS, &|k| format!("({k}, 0, 0)"));
        vec![
            format!("insert into lists values {lists}"),
            format!("insert into registers values {registers}"),
        ]
    }

    /// The statements that delete its rows.
    pub fn removal(self) -> Vec<String> {
        let end = self.first() + EPOCH_KEYS;
        Vec::from_iter(
            ["lists", "registers"].map(|table| {
                format!("delete from {table} where k >= {} and k < {end}", self.first())
            }),
        )
    }

    /// Reads all rows, as a transaction.
    pub fn read_all(self, client: &mut dyn Client, shared: &Shared) -> Result<Txn, Failed> {
        let begun = shared.now();
        let end = self.first() + EPOCH_KEYS;
        let all = |rows: u32| What {
            condition: format!("k >= {} and k < {end}", self.first()),
            rows: rows as usize,
        };
        client.run("begin isolation level repeatable read")?;
        let mut ops = Vec::new();
        for step in [
            Step::ReadLists { what: all(LISTS), lock: "" },
            Step::ReadRegisters { what: all(REGISTERS), lock: "" },
        ] {
            ops.extend(step.run(client)?);
        }
        client.run("commit")?;
        let level = Level::RepeatableRead;
        Ok(Txn { level, fate: Fate::Committed, begun, ended: shared.now(), ops })
    }

    /// Chooses the rows of a statement.
    fn choose(self, count: u32, grouped: bool, random: &mut StdRng) -> What {
        let key = self.first() + random.random_range(0..count);
        let what = |condition: String, is_meant: &dyn Fn(u32) -> bool| What {
            condition,
            rows: (self.first()..self.first() + count).filter(|k| is_meant(*k)).count(),
        };
        let near = |k: u32| (key..=key + 2).contains(&k);
        match random.random_range(0..10) {
            0..6 => what(format!("k = {key}"), &|k| k == key),
            6 => what(format!("k between {key} and {}", key + 2), &near),
            7 => {
                let other = self.first() + random.random_range(0..count);
                what(format!("k in ({key}, {other})"), &|k| k == key || k == other)
            }
            8 if grouped => what(format!("g = {}", key / GROUP), &|k| k / GROUP == key / GROUP),
            // A scan of the whole table, which may still hold rows of other epochs.
            _ => what(format!("k >= {key} and k - 2 <= {key}"), &near),
        }
    }

    /// A random statement. One that is `alone` may commit without its answer arriving, so its
    /// effect must be known in advance.
    fn step(self, shared: &Shared, random: &mut StdRng, alone: bool) -> Step {
        let lock = LOCKS.get(random.random_range(0..LOCKS.len() * 6)).copied().unwrap_or_default();
        match random.random_range(0..10) {
            0..3 if alone => {
                let key = self.first() + random.random_range(0..LISTS);
                let what = What { condition: format!("k = {key}"), rows: 1 };
                Step::Append { what, value: shared.value(), only: Some(key) }
            }
            0..3 => {
                let what = self.choose(LISTS, true, random);
                Step::Append { what, value: shared.value(), only: None }
            }
            3..6 => Step::ReadLists { what: self.choose(LISTS, true, random), lock },
            6..8 if !alone => {
                let key = self.first() + random.random_range(0..REGISTERS);
                Step::Write { key, value: shared.value() }
            }
            _ => Step::ReadRegisters { what: self.choose(REGISTERS, false, random), lock },
        }
    }
}

impl Step {
    fn sql(&self) -> String {
        match self {
            Step::Append { what, value, .. } => {
                format!("update lists set v = v || ',{value}' where {} returning k", what.condition)
            }
            Step::ReadLists { what, lock } => {
                format!("select k, v from lists where {}{lock}", what.condition)
            }
            Step::Write { key, value } => {
                format!(
                    "update registers set v = {value}, n = n + 1 where k = {key} returning k, n"
                )
            }
            Step::ReadRegisters { what, lock } => {
                format!("select k, v, n from registers where {}{lock}", what.condition)
            }
        }
    }

    /// Runs the statement and returns its effects.
    fn run(&self, client: &mut dyn Client) -> Result<Vec<Op>, Failed> {
        let sql = self.sql();
        let ops = self.ops(&client.run(&sql)?);
        let (wanted, lock) = match self {
            Step::Append { what, .. } => (what.rows, ""),
            Step::ReadLists { what, lock } | Step::ReadRegisters { what, lock } => {
                (what.rows, *lock)
            }
            Step::Write { .. } => (1, ""),
        };
        let may_skip = lock.ends_with("skip locked");
        if ops.len() > wanted || ops.len() < wanted && !may_skip {
            // No transaction may see that.
            let message = format!("{} rows instead of {wanted}: {sql}: {ops:?}", ops.len());
            return Err(Failed::State("XX000".to_owned(), message));
        }
        Ok(ops)
    }

    /// The effects of the statement, according to its answer.
    fn ops(&self, rows: &Rows) -> Vec<Op> {
        let number = |row: &[String], column: usize| -> u32 {
            row.get(column).and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
        };
        let op = |row: &Vec<String>| match self {
            Step::Append { value, .. } => Op::Append { key: number(row, 0), value: *value },
            Step::Write { value, .. } => {
                Op::Write { key: number(row, 0), value: *value, version: number(row, 1) }
            }
            Step::ReadLists { .. } => {
                let text = row.get(1).map(String::as_str).unwrap_or_default();
                let values = text.split(',').filter(|part| !part.is_empty());
                let values = values.map(|part| part.parse().unwrap_or(u32::MAX)).collect();
                Op::List { key: number(row, 0), values }
            }
            Step::ReadRegisters { .. } => {
                Op::Read { key: number(row, 0), value: number(row, 1), version: number(row, 2) }
            }
        };
        rows.iter().map(op).collect()
    }

    /// Whether it reads under one snapshot. A read that locks sees each row as it is at that time.
    fn is_snapshot(&self) -> bool {
        matches!(self, Step::ReadLists { lock: "", .. } | Step::ReadRegisters { lock: "", .. })
    }
}

/// Whether a transaction may fail with this SQLSTATE.
fn is_expected(state: &str, interrupted: bool) -> bool {
    matches!(state, "40001" | "40P01" | "55P03")
        || interrupted && matches!(state, "57014" | "57P01")
}

/// Runs a random transaction. With `interrupted`, others may cancel statements or end sessions.
/// Returns an error that no transaction may get.
pub fn transaction(
    client: &mut dyn Client,
    epoch: Epoch,
    shared: &Shared,
    random: &mut StdRng,
    interrupted: bool,
) -> Result<Told, String> {
    let mut told = Told::default();
    let alone = random.random_range(0..5) == 0;
    let strict = !alone && random.random_range(0..2) == 0;
    let level = if strict { Level::RepeatableRead } else { Level::ReadCommitted };
    let mut txn = Txn { level, fate: Fate::Committed, begun: shared.now(), ended: 0, ops: vec![] };
    let count = if alone { 1 } else { random.random_range(1..=5) };
    let rolls_back = !alone && random.random_range(0..12) == 0;
    let begin = if strict { "begin isolation level repeatable read" } else { "begin" };
    let result = (|| {
        if !alone {
            client.run(begin)?;
        }
        for _ in 0..count {
            let step = epoch.step(shared, random, alone);
            let begun = shared.now();
            let result = step.run(client);
            if let (Err(_), Step::Append { value, only: Some(key), .. }) = (&result, &step) {
                // A statement that commits by itself may have succeeded.
                txn.fate = Fate::Unknown;
                txn.ops.push(Op::Append { key: *key, value: *value });
            }
            let ops = result?;
            let only_read =
                !txn.ops.iter().any(|op| matches!(op, Op::Append { .. } | Op::Write { .. }));
            if level == Level::ReadCommitted && only_read && step.is_snapshot() {
                let ended = shared.now();
                let (level, ops) = (Level::RepeatableRead, ops.clone());
                told.txns.push(Txn { level, fate: Fate::Committed, begun, ended, ops });
            }
            txn.ops.extend(ops);
        }
        if rolls_back {
            txn.fate = Fate::Aborted;
            client.run("rollback")?;
        } else if !alone {
            txn.fate = Fate::Unknown;
            client.run("commit")?;
            txn.fate = Fate::Committed;
        }
        Ok(())
    })();
    txn.ended = shared.now();
    if let Err(failed) = result {
        told.lost = has_failed(client, failed, alone, interrupted, &mut txn.fate)?;
    }
    told.txns.push(txn);
    Ok(told)
}

/// Notes what a failure means for a transaction, and rolls it back. Returns whether the connection
/// is lost, or an error that no transaction may get.
fn has_failed(
    client: &mut dyn Client,
    failed: Failed,
    alone: bool,
    interrupted: bool,
    fate: &mut Fate,
) -> Result<bool, String> {
    match failed {
        Failed::Lost => {
            if *fate == Fate::Committed {
                *fate = Fate::Aborted;
            }
            Ok(true)
        }
        Failed::State(state, message) if !is_expected(&state, interrupted) => {
            Err(format!("{state}: {message}"))
        }
        Failed::State(state, _) => {
            // An interrupted commit may have happened; a failed statement has not.
            if !state.starts_with("57") || *fate != Fate::Unknown {
                *fate = Fate::Aborted;
            }
            Ok(state == "57P01" || !alone && client.run("rollback").is_err())
        }
    }
}
