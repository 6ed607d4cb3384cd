//! The bytes of an array.
//!
//! ```text
//! u8      number of dimensions, 0 of an empty array, at most 6
//! then    per dimension: number of elements (u32), lowest subscript (i32)
//! then    the elements, the last subscript changing fastest, each a length (u32; all bits set:
//!         NULL) and as many bytes, as `Datum::push_bytes` makes them
//! ```

use super::Datum;
use super::key::encode_any;

/// PostgreSQL's limit for dimensions.
pub const MAX_DIMENSIONS: usize = 6;
/// The length that says NULL.
const NULL_LENGTH: u32 = u32::MAX;

/// How far an array reaches in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Number of subscripts.
    pub length: u32,
    /// The lowest subscript.
    pub lower: i32,
}

/// An array that is taken apart.
#[derive(Clone, Debug)]
pub struct ArrayRef<'a> {
    element: u32,
    dimensions: smallvec::SmallVec<[Dimension; 1]>,
    elements: &'a [u8],
}

impl<'a> ArrayRef<'a> {
    /// Reads the head of an array of these elements; `None` if the bytes are damaged.
    pub fn from_bytes(element: u32, bytes: &'a [u8]) -> Option<Self> {
        let (&count, mut rest) = bytes.split_first()?;
        if usize::from(count) > MAX_DIMENSIONS {
            return None;
        }
        let mut dimensions = smallvec::SmallVec::new();
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk()?;
            let (lower, after) = after.split_first_chunk()?;
            dimensions.push(Dimension {
                length: u32::from_le_bytes(*length),
                lower: i32::from_le_bytes(*lower),
            });
            rest = after;
        }
        Some(Self { element, dimensions, elements: rest })
    }

    /// The type of the elements.
    pub fn element(&self) -> u32 {
        self.element
    }

    /// The dimensions; none of an empty array.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The bytes that the elements take.
    pub fn elements_len(&self) -> usize {
        self.elements.len()
    }

    /// The elements, in order. It ends where the bytes are damaged.
    pub fn iter(&self) -> impl Iterator<Item = Datum<'a>> + use<'a> {
        let element = self.element;
        self.iter_bytes().map_while(move |bytes| match bytes {
            Some(bytes) => Datum::from_bytes(element, bytes),
            None => Some(Datum::Null),
        })
    }

    /// The bytes of the elements, in order; `None` is NULL. It ends where the bytes are damaged.
    pub fn iter_bytes(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut rest = self.elements;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk()?;
            let length = u32::from_le_bytes(*length);
            if length == NULL_LENGTH {
                rest = after;
                return Some(None);
            }
            let (bytes, after) = after.split_at_checked(length as usize)?;
            rest = after;
            Some(Some(bytes))
        })
    }
}

/// Bytes reserved for each element at first, up to `MOST_ROOM_FOR` elements.
const ROOM_OF_ELEMENT: usize = 12;
const MOST_ROOM_FOR: usize = 256;

/// Puts an array together.
#[derive(Debug)]
pub struct ArrayBuilder {
    bytes: Vec<u8>,
    /// Where the elements begin.
    head: usize,
}

impl ArrayBuilder {
    /// An array with these dimensions, whose elements are to follow. Without elements it has to
    /// have no dimensions.
    pub fn new(dimensions: &[Dimension]) -> Self {
        let count: usize = dimensions.iter().map(|dimension| dimension.length as usize).sum();
        let mut bytes = Vec::with_capacity(ROOM_OF_ELEMENT * count.min(MOST_ROOM_FOR) + 16);
        bytes.push(dimensions.len().min(MAX_DIMENSIONS) as u8);
        for dimension in dimensions.iter().take(MAX_DIMENSIONS) {
            bytes.extend_from_slice(&dimension.length.to_le_bytes());
            bytes.extend_from_slice(&dimension.lower.to_le_bytes());
        }
        let head = bytes.len();
        Self { bytes, head }
    }

    /// Adds the next element. `None` if it is too long.
    pub fn push(&mut self, datum: &Datum<'_>) -> Option<()> {
        if datum.is_null() {
            self.bytes.extend_from_slice(&NULL_LENGTH.to_le_bytes());
            return Some(());
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        datum.push_bytes(&mut self.bytes);
        let length = u32::try_from(self.bytes.len() - start - 4).ok()?;
        if length == NULL_LENGTH {
            return None;
        }
        self.bytes.get_mut(start..start + 4)?.copy_from_slice(&length.to_le_bytes());
        Some(())
    }

    /// Adds all elements of an array of the same type, as they are.
    pub fn push_all(&mut self, array: &ArrayRef<'_>) {
        self.bytes.extend_from_slice(array.elements);
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.head
    }

    /// The array's bytes.
    pub fn finish(self) -> Box<[u8]> {
        self.bytes.into_boxed_slice()
    }
}

/// Elements in order, NULLs last; then the shorter first; then the dimensions.
pub(super) fn encode_key(element: u32, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    const END: u8 = 0;
    const VALUE: u8 = 1;
    const NULL: u8 = 2;
    let array = ArrayRef::from_bytes(element, bytes)?;
    for datum in array.iter() {
        if datum.is_null() {
            out.push(NULL);
        } else {
            out.push(VALUE);
            encode_any(&datum, out)?;
        }
    }
    out.push(END);
    out.push(array.dimensions.len() as u8);
    for dimension in &array.dimensions {
        out.extend_from_slice(&dimension.length.to_be_bytes());
    }
    for dimension in &array.dimensions {
        out.extend_from_slice(&((dimension.lower as u32) ^ 1 << 31).to_be_bytes());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::super::other::compare;
    use super::*;

    fn array(elements: &[Option<i32>], lower: i32) -> Box<[u8]> {
        let dimension = Dimension { length: elements.len() as u32, lower };
        let mut builder = ArrayBuilder::new(if elements.is_empty() {
            &[]
        } else {
            std::slice::from_ref(&dimension)
        });
        for element in elements {
            builder.push(&element.map_or(Datum::Null, Datum::Int4)).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn elements_come_back() {
        let bytes = array(&[Some(1), None, Some(-3)], 5);
        let read = ArrayRef::from_bytes(23, &bytes).unwrap();
        assert_eq!(read.dimensions(), &[Dimension { length: 3, lower: 5 }]);
        let elements = Vec::from_iter(read.iter());
        assert_eq!(elements, [Datum::Int4(1), Datum::Null, Datum::Int4(-3)]);
    }

    #[test]
    fn arrays_compare_element_by_element() {
        let compare =
            |a: &[Option<i32>], b: &[Option<i32>]| compare(1007, &array(a, 1), &array(b, 1));
        assert_eq!(compare(&[Some(1), Some(2)], &[Some(1), Some(2)]), Some(Ordering::Equal));
        assert_eq!(compare(&[Some(1)], &[Some(1), Some(-2)]), Some(Ordering::Less));
        assert_eq!(compare(&[Some(-1)], &[]), Some(Ordering::Greater));
        assert_eq!(compare(&[None], &[Some(i32::MAX)]), Some(Ordering::Greater));
        assert_eq!(
            super::super::other::compare(1007, &array(&[Some(1)], 0), &array(&[Some(1)], 1)),
            Some(Ordering::Less)
        );
    }
}
