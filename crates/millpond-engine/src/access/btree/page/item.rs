//! An entry of a page, and a place in the order of entries.

/// An entry: of a leaf (key, row) or of an inner page (separator, child).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub(crate) key: &'a [u8],
    /// Leaf: the row. Inner: the separator's tid, zero if the key alone separates.
    pub(crate) tid: u64,
    /// Inner: the child. Leaf: zero.
    pub(crate) child: u32,
}

impl Item<'_> {
    /// Whether this is the first entry of an inner page, which is before every key.
    #[inline]
    pub(crate) fn is_lowest(&self, leaf: bool) -> bool {
        !leaf && self.key.is_empty() && self.tid == 0
    }
}

/// A place in the order of a tree: a key and a tid. Tid zero is before every row, `u64::MAX` after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) tid: u64,
}

impl<'k> Target<'k> {
    /// Before the first entry of this key.
    #[inline]
    pub(crate) fn first(key: &'k [u8]) -> Self {
        Self { key, tid: 0 }
    }

    /// After the last entry of this key.
    #[inline]
    pub(crate) fn last(key: &'k [u8]) -> Self {
        Self { key, tid: u64::MAX }
    }
}
