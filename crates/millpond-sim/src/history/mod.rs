//! Histories of transactions, and a checker that finds what their isolation levels forbid.
//!
//! After Adya's definitions and the Elle checker: what a transaction has read tells which transactions it depends on, and a
//! level forbids certain cycles of dependencies. Two kinds of objects make that readable from the history alone. A *list* is
//! appended to: a read of it shows all its versions in order. A *register* is written with a value that nobody else writes, and
//! the database counts its versions, so both reads and writes know their place.
//!
//! # What is a contradiction
//!
//! Each committed transaction has two moments, its snapshot and its commit, and what it did puts moments in order:
//!
//! | it | is after, or before |
//! |---|---|
//! | commits | after its own snapshot |
//! | read or replaced a version of another (wr, ww) | that other's commit is before its snapshot (REPEATABLE READ) or before its commit (READ COMMITTED) |
//! | read a version that another replaced (rw) | its snapshot is before that other's commit |
//! | began when another's commit had been acknowledged (rt) | that other's commit is before its snapshot |
//!
//! In READ COMMITTED "snapshot" means the begin, of which the last two lines are true as well. A cycle in this order is an anomaly:
//! of ww alone G0, with wr G1c, with one rw in REPEATABLE READ G-single (a lost update if it is about one object), with rw that are
//! never adjacent the same with more parties, with rt a stale read. What snapshot isolation allows (write skew, G2) makes
//! no cycle here, and neither does what READ COMMITTED allows. Aborted reads (G1a), intermediate reads (G1b), lost and torn commits,
//! values from nowhere and reads that contradict the transaction's own earlier steps are found directly.
//!
//! A transaction whose commit was sent and never answered counts as committed if anybody has seen its writes, or if a later version
//! stands on one of them; else as rolled back. Both at once is a torn commit.

mod graph;
mod objects;
mod resolve;
#[cfg(test)]
mod tests;
pub mod workload;

use std::fmt;

/// A transaction's isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// READ COMMITTED
    ReadCommitted,
    /// REPEATABLE READ, which is snapshot isolation.
    RepeatableRead,
}

/// What its client knows of a transaction's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The commit was acknowledged.
    Committed,
    /// It failed or was rolled back before its commit was sent.
    Aborted,
    /// The commit was sent and not answered.
    Unknown,
}

/// One step of a transaction that has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A value, unique for its list, was appended.
    Append {
        /// The list.
        key: u32,
        /// The value.
        value: u32,
    },
    /// A list was read.
    List {
        /// The list.
        key: u32,
        /// What it held.
        values: Vec<u32>,
    },
    /// A value, unique for its register, was written, and became the version of that number.
    Write {
        /// The register.
        key: u32,
        /// The value.
        value: u32,
        /// The number.
        version: u32,
    },
    /// A register was read. Before the first write it has version 0.
    Read {
        /// The register.
        key: u32,
        /// The value.
        value: u32,
        /// Its number.
        version: u32,
    },
}

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Txn {
    /// Its level.
    pub level: Level,
    /// How it ended.
    pub fate: Fate,
    /// When it began, before anything was sent, by a clock that all clients share.
    pub begun: u64,
    /// When its end was known. Of an unknown one: when it must have been decided (the server had been restarted).
    pub ended: u64,
    /// What it did.
    pub ops: Vec<Op>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// G0: writes of two transactions interleave.
    DirtyWrite,
    /// G1a: a read of what was rolled back.
    AbortedRead,
    /// G1b: a read of what its writer replaced afterwards.
    IntermediateRead,
    /// G1c: each has seen or replaced something of the other.
    CircularFlow,
    /// P4: a write between a transaction's read and its own write, at a level that forbids it.
    LostUpdate,
    /// G-single, at a level that forbids it.
    ReadSkew,
    /// A cycle with several rw, of which no two are adjacent.
    NonAdjacent,
    /// A transaction has not seen what was acknowledged before it began.
    StaleRead,
    /// An acknowledged write is not there.
    LostWrite,
    /// Some of a transaction's writes are there and some are not.
    TornCommit,
    /// Two reads of one list, neither of which begins with the other.
    Disorder,
    /// A value that nobody wrote, or that is there twice, or with another number than it was written with.
    Garbage,
    /// A read contradicts the transaction's own earlier steps.
    Internal,
}

/// An anomaly that was found.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// Which.
    pub kind: Kind,
    /// What happened, for a person.
    pub what: String,
    /// The transactions, as their places in the history.
    pub txns: Vec<usize>,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} (transactions {:?})", self.kind, self.what, self.txns)
    }
}

/// Finds the anomalies of a history.
pub fn check(history: &[Txn]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let writers = objects::Writers::of(history, &mut found);
    let committed = resolve::committed(history, &writers, &mut found);
    let mut edges = Vec::new();
    objects::check_internal(history, &mut found);
    objects::lists(history, &writers, &committed, &mut edges, &mut found);
    objects::registers(history, &writers, &committed, &mut edges, &mut found);
    graph::cycles(history, &committed, &edges, &mut found);
    found
}

/// A dependency between two transactions of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    how: How,
    object: Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The second replaced the first's version.
    Ww,
    /// The second read the first's version.
    Wr,
    /// The second replaced the version that the first had read.
    Rw,
}

/// A list or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Object {
    List(u32),
    Register(u32),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::List(key) => write!(f, "list {key}"),
            Object::Register(key) => write!(f, "register {key}"),
        }
    }
}
