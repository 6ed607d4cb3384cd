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

mod depth;
pub mod write;

pub use depth::is_too_deep;

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

/// Goes on behind the next value.
fn skip(rest: &mut &[u8]) -> Option<()> {
    match *take(rest, 1)?.first()? {
        NULL | FALSE | TRUE => {}
        NUMBER | STRING => drop(take_sized(rest)?),
        ARRAY | OBJECT => {
            let length = take_u32(rest)? as usize;
            take_u32(rest)?;
            take(rest, length)?;
        }
        _ => return None,
    }
    Some(())
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
        let mut rest = self.bytes;
        while take_sized(&mut rest)? != name.as_bytes() {
            skip(&mut rest)?;
        }
        next(&mut rest)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::write;
    use crate::numeric::Numeric;

    #[derive(Debug, Clone)]
    enum Tree {
        Number(u8),
        Array(Vec<Tree>),
        Object(Vec<(String, Tree)>),
    }

    fn tree() -> impl Strategy<Value = Tree> {
        let leaf = any::<u8>().prop_map(Tree::Number);
        leaf.prop_recursive(4, 40, 6, |inner| {
            let member = ("[ab]{0,2}", inner.clone());
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Tree::Array),
                prop::collection::vec(member, 0..6).prop_map(Tree::Object),
            ]
        })
    }

    fn text(tree: &Tree) -> String {
        match tree {
            Tree::Number(number) => number.to_string(),
            Tree::Array(elements) => {
                format!("[{}]", elements.iter().map(text).collect::<Vec<_>>().join(" ,"))
            }
            Tree::Object(members) => {
                let member =
                    |(name, value): &(String, Tree)| format!("\"{name}\" : {}", text(value));
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// What the head of the file says, written from the inside out.
    fn bytes(tree: &Tree) -> Vec<u8> {
        let sized = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes(), bytes].concat();
        let container = |tag: u8, count: usize, parts: &[u8]| {
            let (length, count) = (parts.len() as u32, count as u32);
            [&[tag], &length.to_le_bytes()[..], &count.to_le_bytes(), parts].concat()
        };
        match tree {
            Tree::Number(number) => {
                let mut out = Vec::new();
                write::number(Numeric::from(i64::from(*number)).as_ref(), &mut out).unwrap();
                out
            }
            Tree::Array(elements) => {
                let parts: Vec<u8> = elements.iter().flat_map(bytes).collect();
                container(super::ARRAY, elements.len(), &parts)
            }
            Tree::Object(members) => {
                let mut last = std::collections::BTreeMap::new();
                for (name, value) in members {
                    last.insert((name.len(), name.as_bytes()), bytes(value));
                }
                let member = |((_, name), value): (&(usize, &[u8]), &Vec<u8>)| {
                    [sized(name), value.clone()].concat()
                };
                let parts: Vec<u8> = last.iter().flat_map(member).collect();
                container(super::OBJECT, last.len(), &parts)
            }
        }
    }

    proptest! {
        #[test]
        fn members_are_in_order_at_every_level(tree in tree()) {
            prop_assert_eq!(crate::format::json::to_jsonb(&text(&tree)).unwrap(), bytes(&tree));
        }
    }
}
