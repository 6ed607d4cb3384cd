//! Histories of transactions, and a checker that finds anomalies that their isolation levels
//! forbid.
//!
//! It follows Adya's definitions and the Elle checker: reads show which transactions a transaction
//! depends on, and an isolation level forbids certain cycles of dependencies. Two kinds of objects
//! let the checker infer dependencies from the history alone. Transactions append to a *list*, so a
//! read of it shows all its versions in order. Each write of a *register* has a unique value, and
//! the database counts the versions. So both reads and writes know their version.
//!
//! # What is a contradiction
//!
//! Each committed transaction has two moments, its snapshot and its commit. These rules order the
//! moments:
//!
//! - A transaction's snapshot is before its commit.
//! - A transaction reads or replaces a version of another (wr, ww): the other's commit is before
//!   its snapshot (in READ COMMITTED: before its commit).
//! - A transaction reads a version that another replaces (rw): its snapshot is before the other's
//!   commit.
//! - A transaction begins after another's commit was acknowledged (rt): the other's commit is
//!   before its snapshot.
//!
//! In READ COMMITTED, "snapshot" means the begin of the transaction; the last two rules hold for
//! it, too. A cycle in this order is an anomaly:
//!
//! - of ww alone: G0;
//! - with wr: G1c;
//! - with one rw, in REPEATABLE READ: G-single (a lost update if it concerns one object);
//! - with several rw, of which no two are adjacent: the same with more transactions;
//! - with rt: a stale read.
//!
//! What snapshot isolation allows (write skew, G2) makes no cycle here, and neither does what READ
//! COMMITTED allows. The checker finds other anomalies directly: aborted reads (G1a), intermediate
//! reads (G1b), lost and torn commits, and values that no transaction wrote. It also finds reads
//! that contradict the transaction's own earlier steps.
//!
//! A commit may be sent and never answered. The transaction then counts as committed if another has
//! seen its writes, or if a later version follows one of them. Otherwise it counts as rolled back.
//! If some of its writes are there and others are missing, it is a torn commit.

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

/// What the client knows of a transaction's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The commit was acknowledged.
    Committed,
    /// It failed or was rolled back before its commit was sent.
    Aborted,
    /// The commit was sent and not answered.
    Unknown,
}

/// A successful step of a transaction.
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
        /// The list's values.
        values: Vec<u32>,
    },
    /// A value, unique for its register, was written, and became version `version`.
    Write {
        /// The register.
        key: u32,
        /// The value.
        value: u32,
        /// The version.
        version: u32,
    },
    /// A register was read. Before the first write it has version 0.
    Read {
        /// The register.
        key: u32,
        /// The value.
        value: u32,
        /// Its version.
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
    /// When its end was known. For an unknown end: when it must have been decided (after a restart
    /// of the server).
    pub ended: u64,
    /// Its steps.
    pub ops: Vec<Op>,
}

/// The kind of an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// G0: writes of two transactions interleave.
    DirtyWrite,
    /// G1a: a read of a version that was rolled back.
    AbortedRead,
    /// G1b: a read of a version that its own writer replaced.
    IntermediateRead,
    /// G1c: two transactions have each seen or replaced a version of the other.
    CircularFlow,
    /// P4: a write between a transaction's read and its own write, at a level that forbids it.
    LostUpdate,
    /// G-single, at a level that forbids it.
    ReadSkew,
    /// A cycle with several rw, of which no two are adjacent.
    NonAdjacent,
    /// A transaction has not seen a commit that was acknowledged before it began.
    StaleRead,
    /// An acknowledged write is missing.
    LostWrite,
    /// Some of a transaction's writes are there and others are missing.
    TornCommit,
    /// Two reads of one list, neither of which is a prefix of the other.
    Disorder,
    /// A value that no transaction wrote, that occurs twice, or whose version differs from the one
    /// written.
    Garbage,
    /// A read contradicts the transaction's own earlier steps.
    Internal,
}

/// An anomaly that was found.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// Its kind.
    pub kind: Kind,
    /// A description for people.
    pub what: String,
    /// The transactions, as indexes into the history.
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
