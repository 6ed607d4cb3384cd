//! Writes values. The bytes of arrays and objects are put together from those of their parts.

use std::ops::Range;

use smallvec::SmallVec;

use super::{ARRAY, FALSE, NULL, NUMBER, NumericRef, OBJECT, STRING, TRUE};

/// The most bytes that a string has, and that the parts of an array or object have together.
pub const MAX_LENGTH: usize = 0x0fff_ffff;

/// What is longer than [`MAX_LENGTH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLong {
    /// A string or a number.
    String,
    /// The elements of an array.
    Array,
    /// The members of an object.
    Object,
}

/// The length of what is written. An error if it is too long.
fn length(bytes: usize, what: TooLong) -> Result<[u8; 4], TooLong> {
    match u32::try_from(bytes) {
        Ok(length) if bytes <= MAX_LENGTH => Ok(length.to_le_bytes()),
        _ => Err(what),
    }
}

fn sized(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.extend_from_slice(&length(bytes.len(), TooLong::String)?);
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends `null`.
pub fn null(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// Appends `true` or `false`.
pub fn bool(value: bool, out: &mut Vec<u8>) {
    out.push(if value { TRUE } else { FALSE });
}

/// Appends a number.
pub fn number(value: NumericRef<'_>, out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.push(NUMBER);
    sized(value.bytes(), out)
}

/// Appends a string.
pub fn string(value: &str, out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.push(STRING);
    sized(value.as_bytes(), out)
}

/// What stands before the parts of an array or object: its tag, and room for their length and
/// number.
const HEAD: usize = 9;

fn begin(tag: u8, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[tag, 0, 0, 0, 0, 0, 0, 0, 0]);
    start
}

/// Writes the length and number of parts in front of them.
fn end(start: usize, count: usize, what: TooLong, out: &mut [u8]) -> Result<(), TooLong> {
    let bytes = length(out.len() - start - HEAD, what)?;
    // Each part has a byte or more.
    let count = length(count, what)?;
    if let Some([_, head @ ..]) = out.get_mut(start..start + HEAD) {
        let (of_bytes, of_count) = head.split_at_mut(bytes.len());
        of_bytes.copy_from_slice(&bytes);
        of_count.copy_from_slice(&count);
    }
    Ok(())
}

/// Appends an object. Of members of one name the last stays.
pub fn object<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let mut object = Object::begin(out);
    for (name, value) in members {
        object.member(name, out)?;
        out.extend_from_slice(value);
    }
    object.end(out)
}

/// An array whose elements are appended one after the other.
#[derive(Debug)]
pub struct Array {
    start: usize,
    count: usize,
}

impl Array {
    /// Begins an array at the end of `out`.
    pub fn begin(out: &mut Vec<u8>) -> Self {
        Self { start: begin(ARRAY, out), count: 0 }
    }

    /// Counts the next element. The caller appends its value.
    pub fn element(&mut self) {
        self.count += 1;
    }

    /// Ends the array: writes the length and the number of its elements.
    ///
    /// # Errors
    ///
    /// If it is longer than [`MAX_LENGTH`].
    pub fn end(self, out: &mut [u8]) -> Result<(), TooLong> {
        end(self.start, self.count, TooLong::Array, out)
    }
}

/// An object whose members are appended one after the other, in any order.
#[derive(Debug)]
pub struct Object {
    start: usize,
    /// Where the members begin.
    members: SmallVec<[usize; 8]>,
}

impl Object {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &mut Vec<u8>) -> Self {
        Self { start: begin(OBJECT, out), members: SmallVec::new() }
    }

    /// Appends the name of the next member. The caller appends its value.
    ///
    /// # Errors
    ///
    /// If the object is longer than [`MAX_LENGTH`].
    pub fn member(&mut self, name: &str, out: &mut Vec<u8>) -> Result<(), TooLong> {
        length(out.len() - self.start - HEAD, TooLong::Object)?;
        self.members.push(out.len());
        sized(name.as_bytes(), out)
    }

    /// Ends the object: sorts its members by name, of which the last of each name stays, and
    /// writes their length and number.
    ///
    /// # Errors
    ///
    /// If it is longer than [`MAX_LENGTH`].
    pub fn end(self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let Self { start, members } = self;
        let is_before =
            |pair: &[usize]| matches!(pair, [a, b] if name_at(out, *a) < name_at(out, *b));
        let count = match members.windows(2).all(is_before) {
            true => members.len(),
            false => reorder(start + HEAD, &members, out),
        };
        end(start, count, TooLong::Object, out)
    }
}

/// The length and the bytes of the name of the member that begins there.
fn name_at(bytes: &[u8], at: usize) -> (usize, &[u8]) {
    let mut rest = bytes.get(at..).unwrap_or_default();
    let name = super::take_sized(&mut rest).unwrap_or_default();
    (name.len(), name)
}

/// Sorts the members that begin at these places, and drops all but the last of each name.
/// Returns how many are left.
fn reorder(from: usize, members: &[usize], out: &mut Vec<u8>) -> usize {
    let parts = out.split_off(from);
    let ends = members.iter().skip(1).copied().chain([from + parts.len()]);
    let mut ranges: SmallVec<[Range<usize>; 8]> =
        members.iter().zip(ends).map(|(start, end)| start - from..end - from).collect();
    let name = |range: &Range<usize>| name_at(&parts, range.start);
    // A stable sort of the reverse: the last of each name comes first.
    ranges.reverse();
    ranges.sort_by(|a, b| name(a).cmp(&name(b)));
    ranges.dedup_by(|later, first| name(later) == name(first));
    for range in &ranges {
        out.extend_from_slice(parts.get(range.clone()).unwrap_or_default());
    }
    ranges.len()
}
