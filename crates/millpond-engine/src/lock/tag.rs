//! The objects that can be locked ([`LockTag`]), as pg_locks and PostgreSQL's messages name them.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use crate::ids::{SessionNo, Xid};

/// The oid of the one database, as messages and views show it.
pub const DATABASE_OID: u32 = 5;

/// The object of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum LockTag {
    /// A table or index, by its oid in the catalog (not by its file: TRUNCATE swaps the file).
    Relation(u32),
    /// The life of a transaction. A request in Share mode waits for the transaction's end.
    Transaction(Xid),
    /// The life of a transaction without an id: its session, and its number in the session.
    VirtualTransaction(SessionNo, u64),
    /// One row version: held only while queueing for its writer, so that the queue is fair.
    Tuple {
        /// The table's oid.
        relation: u32,
        /// Its block.
        block: u32,
        /// Its line pointer.
        offset: u16,
    },
    /// An object that is no relation: its class and oid.
    Object {
        /// The catalog the object is a row of.
        class: u32,
        /// Its oid there.
        id: u32,
    },
    /// A key of an application: a pair of 32-bit numbers, or one number of 64 bits.
    Advisory {
        /// First number, or the upper half.
        high: u32,
        /// Second number, or the lower half.
        low: u32,
        /// Whether it came as two numbers.
        two_keys: bool,
    },
}

impl LockTag {
    /// The kinds of objects, as pg_locks calls them.
    pub const KINDS: [&str; 6] =
        ["relation", "transactionid", "virtualxid", "tuple", "object", "advisory"];

    /// The index of its kind in [`KINDS`](Self::KINDS).
    pub fn kind_no(&self) -> usize {
        match self {
            LockTag::Relation(_) => 0,
            LockTag::Transaction(_) => 1,
            LockTag::VirtualTransaction(..) => 2,
            LockTag::Tuple { .. } => 3,
            LockTag::Object { .. } => 4,
            LockTag::Advisory { .. } => 5,
        }
    }

    /// The `locktype` that pg_locks shows.
    pub fn kind(&self) -> &'static str {
        Self::KINDS[self.kind_no()]
    }
}

impl fmt::Display for LockTag {
    /// As PostgreSQL's messages describe it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = format_args!("of database {DATABASE_OID}");
        match self {
            LockTag::Relation(oid) => write!(f, "relation {oid} {of}"),
            LockTag::Transaction(xid) => write!(f, "transaction {xid}"),
            LockTag::VirtualTransaction(session, n) => {
                write!(f, "virtual transaction {session}/{n}")
            }
            LockTag::Tuple { relation, block, offset } => {
                write!(f, "tuple ({block},{offset}) of relation {relation} {of}")
            }
            LockTag::Object { class, id } => write!(f, "object {id} of class {class} {of}"),
            LockTag::Advisory { high, low, two_keys } => {
                let kind = if *two_keys { 2 } else { 1 };
                write!(f, "advisory lock [{DATABASE_OID},{high},{low},{kind}]")
            }
        }
    }
}

/// A fast hash for keys that are small integers chosen by the database itself.
#[derive(Default, Clone, Copy)]
pub(crate) struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}

pub(crate) type TagHash = BuildHasherDefault<TagHasher>;
