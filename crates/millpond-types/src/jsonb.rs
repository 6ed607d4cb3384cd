//! The bytes of a `jsonb` value: a tree that is read without being parsed.
//!
//! ```text
//! null, false, true    their tag
//! number               tag, length (u32), a numeric's bytes
//! string               tag, length (u32), UTF-8
//! array                tag, length of what follows the count (u32), count (u32), the elements
//! object               the same, with per member its name's length (u32), its name and the value
//! ```
//!
//! Names of an object are distinct, the shorter first, and bytewise among those of one length.

use super::NumericRef;
use super::numeric;
use super::string_key::encode_string;

/// How deep values may nest.
pub const MAX_DEPTH: usize = 512;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;

/// One value of a tree.
#[derive(Clone, Copy, Debug)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(NumericRef<'a>),
    /// A string.
    String(&'a str),
    /// An array.
    Array(JsonArray<'a>),
    /// An object.
    Object(JsonObject<'a>),
}

/// The elements of an array.
#[derive(Clone, Copy, Debug)]
pub struct JsonArray<'a> {
    count: u32,
    bytes: &'a [u8],
}

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub struct JsonObject<'a> {
    count: u32,
    bytes: &'a [u8],
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes))
}

fn take_sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_u32(rest)? as usize;
    take(rest, length)
}

/// Reads the next value, with its bytes.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(Json<'a>, &'a [u8])> {
    let start = *rest;
    let tag = *take(rest, 1)?.first()?;
    let value = match tag {
        NULL => Json::Null,
        FALSE => Json::Bool(false),
        TRUE => Json::Bool(true),
        NUMBER => Json::Number(NumericRef::from_bytes(take_sized(rest)?)?),
        STRING => Json::String(std::str::from_utf8(take_sized(rest)?).ok()?),
        ARRAY | OBJECT => {
            let length = take_u32(rest)? as usize;
            let count = take_u32(rest)?;
            let bytes = take(rest, length)?;
            if tag == ARRAY {
                Json::Array(JsonArray { count, bytes })
            } else {
                Json::Object(JsonObject { count, bytes })
            }
        }
        _ => return None,
    };
    Some((value, &start[..start.len() - rest.len()]))
}

impl<'a> Json<'a> {
    /// Reads a value; `None` if the bytes are damaged.
    pub fn from_bytes(mut bytes: &'a [u8]) -> Option<Self> {
        next(&mut bytes).map(|(value, _)| value)
    }
}

impl<'a> JsonArray<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements with their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (Json<'a>, &'a [u8])> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || next(&mut rest))
    }
}

impl<'a> JsonObject<'a> {
    /// Number of members.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The members: names, values and the bytes of the values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Json<'a>, &'a [u8])> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let name = std::str::from_utf8(take_sized(&mut rest)?).ok()?;
            let (value, bytes) = next(&mut rest)?;
            Some((name, value, bytes))
        })
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<(Json<'a>, &'a [u8])> {
        self.iter().find(|(own, ..)| *own == name).map(|(_, value, bytes)| (value, bytes))
    }
}

/// Writes values. The bytes of arrays and objects are put together from those of their parts.
pub mod write {
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

    fn container(
        (tag, what): (u8, TooLong),
        count: usize,
        parts: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), TooLong> {
        out.push(tag);
        out.extend_from_slice(&length(parts.len(), what)?);
        // Each part has a byte or more.
        out.extend_from_slice(&length(count, what)?);
        out.extend_from_slice(parts);
        Ok(())
    }

    /// Appends an array of values that have been written one after the other.
    pub fn array(count: usize, elements: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
        container((ARRAY, TooLong::Array), count, elements, out)
    }

    /// Appends an object. Of members of one name the last stays.
    pub fn object(mut members: Vec<(&str, &[u8])>, out: &mut Vec<u8>) -> Result<(), TooLong> {
        // A stable sort of the reverse: the last of each name comes first.
        members.reverse();
        members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        members.dedup_by(|later, first| later.0 == first.0);
        let mut parts = Vec::new();
        for (name, value) in &members {
            sized(name.as_bytes(), &mut parts)?;
            parts.extend_from_slice(value);
            length(parts.len(), TooLong::Object)?;
        }
        container((OBJECT, TooLong::Object), members.len(), &parts, out)
    }
}

/// PostgreSQL's order: object > array > boolean > number > string > null; arrays and objects by
/// their number of parts first.
pub(super) fn encode_key(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let value = Json::from_bytes(bytes)?;
    encode_value(value, 0, out)
}

fn encode_value(value: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        // PostgreSQL has the empty array below everything, for historical reasons.
        Json::Array(array) if array.is_empty() && depth == 0 => out.push(0),
        Json::Null => out.push(1),
        Json::String(string) => {
            out.push(2);
            encode_string(string.as_bytes(), out);
        }
        Json::Number(number) => {
            out.push(3);
            numeric::encode_key(number, out);
        }
        Json::Bool(value) => out.extend_from_slice(&[4, u8::from(value)]),
        Json::Array(array) => {
            out.push(5);
            out.extend_from_slice(&array.count.to_be_bytes());
            for (element, _) in array.iter() {
                encode_value(element, depth + 1, out)?;
            }
        }
        Json::Object(object) => {
            out.push(6);
            out.extend_from_slice(&object.count.to_be_bytes());
            for (name, value, _) in object.iter() {
                encode_string(name.as_bytes(), out);
                encode_value(value, depth + 1, out)?;
            }
        }
    }
    Some(())
}
