//! Tuple identifiers: where a row version lies.
//!
//! A [`Tid`] is a block of a heap and a one-based line pointer on it. An index entry holds the tid
//! of the *root* of an in-page version chain. A row that a scan returns carries the tid of the
//! version itself. Tids are ordered by (block, offset), and so is their six-byte big-endian form
//! (`memcmp`).

use std::fmt;

use millpond_buffer::BlockNumber;

/// A row version's place: a block and a one-based line pointer on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid {
    /// The heap block.
    pub block: BlockNumber,
    /// The line pointer on it, counted from one. Zero names no row.
    pub offset: u16,
}

impl Tid {
    /// Bytes of [`Tid::to_bytes`].
    pub const ENCODED_LEN: usize = 6;
    /// Before every tid of a row.
    pub const MIN: Tid = Tid { block: BlockNumber(0), offset: 0 };
    /// After every tid of a row.
    pub const MAX: Tid = Tid { block: BlockNumber(u32::MAX), offset: u16::MAX };

    /// The tid of line pointer `offset` (from one) on `block`.
    #[inline]
    pub const fn new(block: BlockNumber, offset: u16) -> Self {
        Self { block, offset }
    }

    /// The tid in 48 bits, ordered like the tid.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        ((self.block.0 as u64) << 16) | self.offset as u64
    }

    /// The inverse of [`Tid::to_u64`]; higher bits are ignored.
    #[inline]
    pub const fn from_u64(packed: u64) -> Self {
        Self { block: BlockNumber((packed >> 16) as u32), offset: packed as u16 }
    }

    /// Six big-endian bytes, ordered by `memcmp` like the tid.
    #[inline]
    pub fn to_bytes(self) -> [u8; Self::ENCODED_LEN] {
        let [_, _, bytes @ ..] = self.to_u64().to_be_bytes();
        bytes
    }

    /// The inverse of [`Tid::to_bytes`].
    #[inline]
    pub fn from_bytes(bytes: [u8; Self::ENCODED_LEN]) -> Self {
        let mut wide = [0; 8];
        wide[2..].copy_from_slice(&bytes);
        Self::from_u64(u64::from_be_bytes(wide))
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block.0, self.offset)
    }
}

impl fmt::Debug for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encodings_round_trip_and_keep_the_order(a in any::<(u32, u16)>(), b in any::<(u32, u16)>()) {
            let (a, b) = (Tid::new(BlockNumber(a.0), a.1), Tid::new(BlockNumber(b.0), b.1));
            prop_assert_eq!(Tid::from_u64(a.to_u64()), a);
            prop_assert_eq!(Tid::from_bytes(a.to_bytes()), a);
            prop_assert_eq!(a.cmp(&b), a.to_u64().cmp(&b.to_u64()));
            prop_assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
        }
    }
}
