//! Ranges of keys.

/// A half-open range of encoded keys, `lower <= key < upper`: see
/// [`KeyLayout::range`](crate::types::key::KeyLayout::range). Reuse it.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// The lowest key, inclusive.
    pub lower: Vec<u8>,
    /// The highest key, exclusive.
    pub upper: Vec<u8>,
}
