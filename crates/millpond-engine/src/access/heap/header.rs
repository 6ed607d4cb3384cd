//! The tuple header: 32 bytes before the columns of every row version.
//!
//! docs/file-format.md ("Heap") gives the bytes. Tuples start at multiples of 8, so no field
//! straddles a word.
//!
//! Invariants: `xmin` is never 0 on a page. A frozen version keeps its xmin, because a chain
//! matches it with the xmax of the version before. `ctid` is zero unless UPDATED_AWAY is set.

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageRead};

use crate::access::Tid;
use crate::transam::{CommandId, LockStrength, Xid};

/// Bytes of a tuple header.
pub const TUPLE_HEADER_LEN: usize = 32;

pub(crate) const XMIN: usize = 0;
pub(crate) const XMAX: usize = 8;
pub(crate) const CID: usize = 16;
pub(crate) const CTID_BLOCK: usize = 20;
pub(crate) const CTID_OFFSET: usize = 24;
pub(crate) const FLAGS: usize = 26;
pub(crate) const NATTS: usize = 28;

/// The flag bits of a tuple header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct TupleFlags(pub u16);

impl TupleFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// xmin committed before every snapshot that can still exist, so readers need not look it up.
    pub const XMIN_FROZEN: Self = Self(1 << 0);
    /// xmax only locked the row; it neither deleted nor replaced it.
    pub const XMAX_LOCK_ONLY: Self = Self(1 << 1);
    /// xmax made a successor (named by ctid). Without this flag, xmax deleted the row.
    pub const UPDATED_AWAY: Self = Self(1 << 2);
    /// The successor is on the same page and no index entry points at it.
    pub const HOT_UPDATED: Self = Self(1 << 3);
    /// No index entry points at this version; it is reached through its chain.
    pub const HEAP_ONLY: Self = Self(1 << 4);
    /// cid is a combo id: one transaction made and deleted the version.
    pub const COMBO_CID: Self = Self(1 << 5);
    /// The version is the result of an update.
    pub const IS_UPDATE: Self = Self(1 << 6);
    /// The deletion or update removes the row or changes a unique key of it. It conflicts even with
    /// FOR KEY SHARE.
    pub const KEYS_UPDATED: Self = Self(1 << 7);
    /// The lock's strength, two bits: 0 FOR KEY SHARE, 1 FOR SHARE, 2 FOR NO KEY UPDATE, 3 FOR
    /// UPDATE.
    pub const LOCK_STRENGTH: Self = Self(0b11 << 8);
    /// Running transactions other than xmax may hold the row, too. They are noted in memory
    /// (`transam::row_locks`).
    pub const XMAX_IS_MULTI: Self = Self(1 << 10);
    /// Every bit that has a meaning.
    pub const ALL: Self = Self((1 << 11) - 1);
    /// Every bit that describes xmax.
    pub const XMAX_BITS: Self = Self(
        Self::XMAX_LOCK_ONLY.0
            | Self::UPDATED_AWAY.0
            | Self::HOT_UPDATED.0
            | Self::KEYS_UPDATED.0
            | Self::LOCK_STRENGTH.0
            | Self::XMAX_IS_MULTI.0,
    );

    /// Whether every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits of a lock of this strength.
    pub const fn lock(strength: LockStrength) -> Self {
        Self(Self::XMAX_LOCK_ONLY.0 | strength.bits() << Self::LOCK_STRENGTH.0.trailing_zeros())
    }

    /// These bits without those of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The flags of the header at byte `at`.
#[inline]
pub fn read_flags<P: PageRead + ?Sized>(page: &P, at: usize) -> TupleFlags {
    TupleFlags(page.u16(at + FLAGS))
}

/// A tuple header, as values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TupleHeader {
    /// The transaction that made this version.
    pub xmin: Xid,
    /// The transaction that deleted, replaced or locked this version; `Xid(0)`: none.
    pub xmax: Xid,
    /// The command id of the insertion or the deletion, or a combo id.
    pub cid: CommandId,
    /// Flag bits.
    pub flags: TupleFlags,
    /// How many columns are stored.
    pub natts: u16,
    /// The next version, when [`TupleFlags::UPDATED_AWAY`] is set.
    pub ctid: Tid,
}

impl TupleHeader {
    /// The header in these bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; TUPLE_HEADER_LEN]) -> Self {
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let (cid_and_block, rest) = (u64_at(CID), u64_at(CTID_OFFSET));
        Self {
            xmin: Xid(u64_at(XMIN)),
            xmax: Xid(u64_at(XMAX)),
            cid: CommandId(cid_and_block as u32),
            flags: TupleFlags((rest >> 16) as u16),
            natts: (rest >> 32) as u16,
            ctid: Tid::new(BlockNumber((cid_and_block >> 32) as u32), rest as u16),
        }
    }

    /// Reads the header at byte `at`. Bytes beyond the page's end read as zero. Torn bytes give a
    /// header of garbage values, so a result computed from it counts only after validation.
    #[inline]
    pub fn read<P: PageRead + ?Sized>(page: &P, at: usize) -> Self {
        let (cid_and_block, rest) = (page.u64(at + CID), page.u64(at + CTID_OFFSET));
        Self {
            xmin: Xid(page.u64(at + XMIN)),
            xmax: Xid(page.u64(at + XMAX)),
            cid: CommandId(cid_and_block as u32),
            flags: TupleFlags((rest >> 16) as u16),
            natts: (rest >> 32) as u16,
            ctid: Tid::new(BlockNumber((cid_and_block >> 32) as u32), rest as u16),
        }
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; TUPLE_HEADER_LEN] {
        let mut bytes = [0; TUPLE_HEADER_LEN];
        bytes[XMIN..XMAX].copy_from_slice(&self.xmin.0.to_le_bytes());
        bytes[XMAX..CID].copy_from_slice(&self.xmax.0.to_le_bytes());
        bytes[CID..CTID_BLOCK].copy_from_slice(&self.cid.0.to_le_bytes());
        bytes[CTID_BLOCK..CTID_OFFSET].copy_from_slice(&self.ctid.block.0.to_le_bytes());
        bytes[CTID_OFFSET..FLAGS].copy_from_slice(&self.ctid.offset.to_le_bytes());
        bytes[FLAGS..NATTS].copy_from_slice(&self.flags.0.to_le_bytes());
        bytes[NATTS..NATTS + 2].copy_from_slice(&self.natts.to_le_bytes());
        bytes
    }

    /// Whether no transaction has deleted, replaced or locked this version.
    #[inline]
    pub fn has_no_xmax(&self) -> bool {
        self.xmax.0 == 0
    }

    /// Whether xmax merely locked the row.
    #[inline]
    pub fn is_locked_only(&self) -> bool {
        self.flags.contains(TupleFlags::XMAX_LOCK_ONLY)
    }

    /// How strongly xmax holds the row while its transaction runs.
    #[inline]
    pub fn strength(&self) -> LockStrength {
        if self.is_locked_only() {
            let bits = self.flags.0 & TupleFlags::LOCK_STRENGTH.0;
            return LockStrength::from_bits(bits >> TupleFlags::LOCK_STRENGTH.0.trailing_zeros());
        }
        let replaced = self.flags.contains(TupleFlags::UPDATED_AWAY);
        if replaced && !self.flags.contains(TupleFlags::KEYS_UPDATED) {
            LockStrength::NoKeyUpdate
        } else {
            LockStrength::Update
        }
    }

    /// Whether transactions other than xmax may hold the row, too.
    #[inline]
    pub fn has_more_lockers(&self) -> bool {
        self.flags.contains(TupleFlags::XMAX_IS_MULTI)
    }

    /// Whether the version is reached only through its chain.
    #[inline]
    pub fn is_heap_only(&self) -> bool {
        self.flags.contains(TupleFlags::HEAP_ONLY)
    }

    /// Whether the successor is on the same page, reached through the chain.
    #[inline]
    pub fn is_hot_updated(&self) -> bool {
        self.flags.contains(TupleFlags::HOT_UPDATED)
    }
}

const _: () = assert!(NATTS + 4 == TUPLE_HEADER_LEN && TUPLE_HEADER_LEN < PAGE_SIZE);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip(
            xids in any::<(u64, u64)>(), cid: u32, flags: u16, natts: u16, ctid in any::<(u32, u16)>(),
        ) {
            let header = TupleHeader {
                xmin: Xid(xids.0),
                xmax: Xid(xids.1),
                cid: CommandId(cid),
                flags: TupleFlags(flags),
                natts,
                ctid: Tid::new(BlockNumber(ctid.0), ctid.1),
            };
            prop_assert_eq!(TupleHeader::from_bytes(&header.to_bytes()), header);
        }
    }
}
