//! The eight lock modes of PostgreSQL and which of them conflict.

use std::fmt;

/// A lock mode, in PostgreSQL's order of strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum LockMode {
    /// SELECT.
    AccessShare = 1,
    /// SELECT FOR UPDATE and the like.
    RowShare = 2,
    /// INSERT, UPDATE, DELETE, COPY FROM.
    RowExclusive = 3,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY.
    ShareUpdateExclusive = 4,
    /// CREATE INDEX.
    Share = 5,
    /// CREATE TRIGGER and some forms of ALTER TABLE.
    ShareRowExclusive = 6,
    /// REFRESH MATERIALIZED VIEW CONCURRENTLY; the mode in which a transaction holds its own id.
    Exclusive = 7,
    /// DROP TABLE, TRUNCATE, most ALTER TABLE.
    AccessExclusive = 8,
}

impl LockMode {
    /// All modes, weakest first.
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    /// The modes this one conflicts with.
    pub const fn conflicts(self) -> ModeSet {
        use LockMode::*;
        match self {
            AccessShare => ModeSet::of(&[AccessExclusive]),
            RowShare => ModeSet::of(&[Exclusive, AccessExclusive]),
            RowExclusive => ModeSet::of(&[Share, ShareRowExclusive, Exclusive, AccessExclusive]),
            ShareUpdateExclusive => ModeSet::of(&[
                ShareUpdateExclusive,
                Share,
                ShareRowExclusive,
                Exclusive,
                AccessExclusive,
            ]),
            Share => ModeSet::of(&[
                RowExclusive,
                ShareUpdateExclusive,
                ShareRowExclusive,
                Exclusive,
                AccessExclusive,
            ]),
            ShareRowExclusive => ModeSet::of(&[
                RowExclusive,
                ShareUpdateExclusive,
                Share,
                ShareRowExclusive,
                Exclusive,
                AccessExclusive,
            ]),
            Exclusive => ModeSet::of(&[
                RowShare,
                RowExclusive,
                ShareUpdateExclusive,
                Share,
                ShareRowExclusive,
                Exclusive,
                AccessExclusive,
            ]),
            AccessExclusive => ModeSet::of(&Self::ALL),
        }
    }

    /// Whether two sessions may not hold `self` and `other` on the same object at once.
    pub const fn conflicts_with(self, other: LockMode) -> bool {
        self.conflicts().contains(other)
    }

    /// Weak modes conflict with no other weak mode, so sessions may note them in their own slots.
    pub const fn is_weak(self) -> bool {
        (self as u8) < LockMode::ShareUpdateExclusive as u8
    }

    /// Strong modes conflict with some weak mode, so a session that takes one collects the slots.
    pub const fn is_strong(self) -> bool {
        (self as u8) > LockMode::ShareUpdateExclusive as u8
    }

    /// The name that pg_locks and messages show.
    pub const fn name(self) -> &'static str {
        match self {
            LockMode::AccessShare => "AccessShareLock",
            LockMode::RowShare => "RowShareLock",
            LockMode::RowExclusive => "RowExclusiveLock",
            LockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            LockMode::Share => "ShareLock",
            LockMode::ShareRowExclusive => "ShareRowExclusiveLock",
            LockMode::Exclusive => "ExclusiveLock",
            LockMode::AccessExclusive => "AccessExclusiveLock",
        }
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of lock modes: bit `n` stands for the mode whose number is `n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ModeSet(u16);

impl ModeSet {
    /// No mode.
    pub const EMPTY: ModeSet = ModeSet(0);

    /// The set of the given modes.
    pub const fn of(modes: &[LockMode]) -> ModeSet {
        let mut bits = 0;
        let mut i = 0;
        while i < modes.len() {
            bits |= 1 << modes[i] as u8;
            i += 1;
        }
        ModeSet(bits)
    }

    /// Whether `mode` is in the set.
    pub const fn contains(self, mode: LockMode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }

    /// Whether the sets have a mode in common.
    pub const fn intersects(self, other: ModeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no mode is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set with `mode` in it.
    #[must_use]
    pub const fn with(self, mode: LockMode) -> ModeSet {
        ModeSet(self.0 | 1 << mode as u8)
    }

    /// The set with `mode` taken out.
    #[must_use]
    pub const fn without(self, mode: LockMode) -> ModeSet {
        ModeSet(self.0 & !(1 << mode as u8))
    }

    /// The modes in the set, weakest first.
    pub fn iter(self) -> impl Iterator<Item = LockMode> {
        LockMode::ALL.into_iter().filter(move |m| self.contains(*m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL's documented table, row by row: X where the modes conflict.
    const TABLE: [&str; 8] = [
        ".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX",
        "XXXXXXXX",
    ];

    #[test]
    fn conflicts_are_those_of_postgresql() {
        for (row, a) in LockMode::ALL.into_iter().enumerate() {
            for (column, b) in LockMode::ALL.into_iter().enumerate() {
                let expected = TABLE[row].as_bytes()[column] == b'X';
                assert_eq!(a.conflicts_with(b), expected, "{a} against {b}");
                assert_eq!(a.conflicts_with(b), b.conflicts_with(a), "{a} against {b}");
            }
        }
    }

    #[test]
    fn strong_modes_are_those_that_conflict_with_a_weak_mode() {
        let weak: Vec<_> = LockMode::ALL.into_iter().filter(|m| m.is_weak()).collect();
        for a in &weak {
            assert!(weak.iter().all(|b| !a.conflicts_with(*b)));
        }
        for mode in LockMode::ALL {
            assert_eq!(
                mode.is_strong(),
                !mode.is_weak() && weak.iter().any(|w| mode.conflicts_with(*w))
            );
        }
    }
}
