//! The numbers of transactions, commits, commands, sessions and relations.
//!
//! Those of transactions and sessions are newtypes over plain integers, `Copy`, ordered by age, and
//! fit an atomic word.

use std::fmt;

use millpond_buffer::RelationId;

/// A transaction id: 64 bits, drawn in order, never reused (transam rule 1).
///
/// Only a transaction that changes something draws one. Zero means "none"; one and two are
/// reserved. A row with [`Xid::FROZEN`] was written by a transaction that every snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Xid(pub u64);

impl Xid {
    /// No transaction (an unset xmax, a record that belongs to no transaction).
    pub const INVALID: Xid = Xid(0);
    /// The xid of a new database's initial contents, and of rows loaded as already visible to all.
    pub const FROZEN: Xid = Xid(2);
    /// The first id of a normal transaction. The first id drawn is 1024: starts begin at multiples
    /// of that.
    pub const FIRST: Xid = Xid(3);
    /// Ids stay below this bound, because status words use three bits for the state.
    pub const LIMIT: Xid = Xid(1 << 60);

    /// Whether this is the id of some transaction, including the frozen one.
    #[inline]
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// Whether this id was drawn by a real transaction, so that it has a status to look up.
    #[inline]
    pub const fn is_normal(self) -> bool {
        self.0 >= Self::FIRST.0
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A commit sequence number. A snapshot with number `s` sees every commit numbered `s` or less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Csn(pub u64);

impl Csn {
    /// No number. Below every number that is ever drawn.
    pub const INVALID: Csn = Csn(0);
    /// Older than every snapshot. Commits from before the last start have it, and commits whose
    /// number has been forgotten because no snapshot can tell them apart any more.
    pub const FROZEN: Csn = Csn(1);
    /// Above every number that is ever drawn.
    pub const MAX: Csn = Csn(u64::MAX);
}

impl fmt::Display for Csn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a statement inside its transaction. A statement sees its own transaction's changes
/// with a lower number than its snapshot's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CommandId(pub u32);

impl CommandId {
    /// The first statement of a transaction.
    pub const FIRST: CommandId = CommandId(0);

    /// The statement after this one, or `None` after four billion of them.
    #[must_use]
    pub const fn next(self) -> Option<CommandId> {
        match self.0.checked_add(1) {
            Some(n) => Some(CommandId(n)),
            None => None,
        }
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The slot of a session in every per-session array: below `max_sessions`, and reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SessionNo(pub u16);

impl SessionNo {
    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for SessionNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number that names a table or index for as long as it exists. Its file has a number of its
/// own ([`TableDef::storage`](crate::catalog::TableDef)), so that TRUNCATE can replace the file.
pub type Oid = u32;

/// Oids and relation numbers below this one are the engine's own, as in PostgreSQL.
pub const FIRST_NORMAL_OID: Oid = 16384;

/// The table that holds the definitions of all others.
pub const CATALOG_RELATION: RelationId = RelationId::constant(1);

/// The file of the transaction statuses.
pub const CLOG_RELATION: RelationId = RelationId::constant(2);
