//! The numbers transactions are known by.
//!
//! All of them are newtypes over plain integers, `Copy`, ordered by age, and fit an atomic word.

use std::fmt;

/// A transaction id: 64 bits, drawn in order, never reused (transam rule 1).
///
/// Only a transaction that changes something draws one. Zero means "none", one and two are reserved:
/// a row stamped with [`Xid::FROZEN`] was written by a transaction that every snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Xid(pub u64);

impl Xid {
    /// No transaction (an unset xmax, a record that belongs to no transaction).
    pub const INVALID: Xid = Xid(0);
    /// The initial contents of a new database, and rows loaded as already visible to all.
    pub const FROZEN: Xid = Xid(2);
    /// The first that means a transaction. Every start begins at a multiple of 1024, so the first that is drawn is 1024.
    pub const FIRST: Xid = Xid(3);
    /// Ids stay below this bound: status words keep three bits for themselves.
    pub const LIMIT: Xid = Xid(1 << 60);

    /// Whether this is the id of some transaction (also the frozen one).
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
    /// Older than every snapshot: all commits from before the last start, and all commits whose number
    /// has been forgotten because no snapshot can tell them apart any more.
    pub const FROZEN: Csn = Csn(1);
    /// Above every number that is ever drawn.
    pub const MAX: Csn = Csn(u64::MAX);
}

impl fmt::Display for Csn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a statement inside its transaction. A statement sees the changes of its own transaction
/// that carry a lower number than its snapshot's.
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

/// The slot of a session in every per-session array: below `max_sessions`, reused after the session ends.
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
