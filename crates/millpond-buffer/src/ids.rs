//! Identifiers of relations, forks, blocks and pages, and log positions.
//!
//! A page's whole identity fits one `u64`. So one word is compared, stored in a frame's tag, and
//! covered by a checksum:
//!
//! ```text
//! 63            36 35   32 31                              0
//! +---------------+-------+--------------------------------+
//! |  relation 28  | fork 4|            block 32            |
//! +---------------+-------+--------------------------------+
//! ```

use std::fmt;

/// The number of a relation: a table's or an index's storage. 28 bits.
///
/// ```
/// # use millpond_buffer::*;
/// const TABLES: RelationId = RelationId::constant(1);
/// let other = RelationId::new(16_384).expect("a number below 2^28");
/// assert_eq!(other.main(), RelFork::new(other, Fork::Main));
/// # let _ = TABLES;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(u32);

impl RelationId {
    /// The largest relation number.
    pub const MAX: RelationId = RelationId((1 << 28) - 1);

    /// The relation of that number; `None` if it doesn't fit 28 bits.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The relation of that number, for constants known to fit: otherwise fails to compile (in a
    /// `const`) or panics.
    #[must_use]
    pub const fn constant(number: u32) -> Self {
        assert!(number <= Self::MAX.0, "a relation number has 28 bits");
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// One of the relation's forks.
    #[must_use]
    pub const fn fork(self, fork: Fork) -> RelFork {
        RelFork { relation: self, fork }
    }

    /// The relation's main fork.
    #[must_use]
    pub const fn main(self) -> RelFork {
        self.fork(Fork::Main)
    }
}

/// One of the files that make up a relation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Fork {
    /// The data.
    Main = 0,
    /// The free space map.
    Fsm = 1,
}

impl Fork {
    /// Every fork, in order.
    pub const ALL: [Fork; 2] = [Fork::Main, Fork::Fsm];

    /// The fork of that number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Fork::Main),
            1 => Some(Fork::Fsm),
            _ => None,
        }
    }

    /// The fork's name, as in file names and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fork::Main => "main",
            Fork::Fsm => "fsm",
        }
    }
}

/// A relation's fork: the contents of one file (of one or more segments).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RelFork {
    /// The relation.
    pub relation: RelationId,
    /// The fork.
    pub fork: Fork,
}

impl RelFork {
    /// Names a fork.
    #[must_use]
    pub const fn new(relation: RelationId, fork: Fork) -> Self {
        Self { relation, fork }
    }

    /// The identity of one of its pages.
    #[must_use]
    pub const fn page(self, block: BlockNumber) -> PageId {
        PageId::new(self, block)
    }
}

impl fmt::Display for RelFork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "relation {}", self.relation)?;
        if self.fork == Fork::Main { Ok(()) } else { write!(f, " (fork {})", self.fork.name()) }
    }
}

/// The number of a page within a fork, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockNumber(pub u32);

impl BlockNumber {
    /// The first block.
    pub const ZERO: BlockNumber = BlockNumber(0);
    /// Not a block: marks "none" where a block number is stored.
    pub const INVALID: BlockNumber = BlockNumber(u32::MAX);

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The block after it (saturating: [`BlockNumber::INVALID`] has none).
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Whether it names a block.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 != u32::MAX
    }
}

macro_rules! shown_as_number {
    ($($id:ident)*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($id), self.0)
            }
        }
    )*};
}

shown_as_number!(RelationId BlockNumber);

/// A page's identity: relation, fork and block in one word.
///
/// ```
/// # use millpond_buffer::*;
/// let page = RelationId::constant(7).fork(Fork::Fsm).page(BlockNumber(3));
/// assert_eq!(PageId::from_raw(page.raw()), Some(page));
/// assert_eq!(page.to_string(), "block 3 of relation 7 (fork fsm)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(u64);

impl PageId {
    /// Packs an identity.
    #[must_use]
    pub const fn new(rel: RelFork, block: BlockNumber) -> Self {
        Self((rel.relation.0 as u64) << 36 | (rel.fork as u64) << 32 | block.0 as u64)
    }

    /// From its word; `None` if there is no such fork.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Option<Self> {
        match Fork::from_number((raw >> 32 & 0xf) as u8) {
            Some(_) => Some(Self(raw)),
            None => None,
        }
    }

    /// The word.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The relation.
    #[must_use]
    pub const fn relation(self) -> RelationId {
        RelationId((self.0 >> 36) as u32)
    }

    /// The fork.
    #[must_use]
    pub const fn fork(self) -> Fork {
        match Fork::from_number((self.0 >> 32 & 0xf) as u8) {
            Some(fork) => fork,
            None => Fork::Main, // Never: both constructors refuse it.
        }
    }

    /// Relation and fork.
    #[must_use]
    pub const fn rel_fork(self) -> RelFork {
        RelFork { relation: self.relation(), fork: self.fork() }
    }

    /// The block.
    #[must_use]
    pub const fn block(self) -> BlockNumber {
        BlockNumber(self.0 as u32)
    }

    /// Another page of the fork whose page 0 this is.
    #[inline]
    pub(crate) const fn with_block(self, block: BlockNumber) -> Self {
        debug_assert!(self.0 as u32 == 0, "not page 0");
        Self(self.0 | block.0 as u64)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} of {}", self.block(), self.rel_fork())
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageId({}/{}/{})", self.relation(), self.fork() as u8, self.block())
    }
}

/// A position in the log, in bytes from its beginning. A page's LSN is the end of the last record
/// that changed it.
///
/// ```
/// # use millpond_buffer::*;
/// assert_eq!(Lsn(0x1_0000_00ff).to_string(), "1/FF"); // as PostgreSQL writes it
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The beginning of the log: older than every record.
    pub const ZERO: Lsn = Lsn(0);
    /// Later than every record.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The byte position.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Lsn {
    /// As PostgreSQL writes it: two hexadecimal halves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 as u32)
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lsn({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 256 }))]

        #[test]
        fn page_ids_keep_their_parts(rel in 0u32..1 << 28, fork in 0u8..2, block: u32) {
            let rel = RelFork::new(RelationId::constant(rel), Fork::from_number(fork).unwrap());
            let page = PageId::new(rel, BlockNumber(block));
            prop_assert_eq!(page.rel_fork(), rel);
            prop_assert_eq!(page.block(), BlockNumber(block));
            prop_assert_eq!(PageId::from_raw(page.raw()), Some(page));
        }
    }

    #[test]
    fn ids_out_of_range_are_rejected() {
        assert_eq!(RelationId::new(1 << 28), None);
        assert_eq!(PageId::from_raw(7 << 32), None);
        assert_eq!(Lsn(0x1_0000_00ff).to_string(), "1/FF");
    }
}
