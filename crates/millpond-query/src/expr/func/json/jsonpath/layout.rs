//! Where the objects of a document are as PostgreSQL lays it out. `.keyvalue()` shows it.
//!
//! An array or object there has 4 bytes, then 4 for each element, or 8 for each member. Strings,
//! numbers and what is nested follow. An object's names come before its values. What is not a
//! string begins at a multiple of 4.

use millpond_types::NumericRef;
use millpond_types::jsonb::Json;
use millpond_types::numeric::Parts;

/// The objects of a document, in its order: the place of each here and in PostgreSQL.
#[derive(Debug)]
pub(super) struct Layout(Vec<(usize, u64)>);

impl Layout {
    /// Of a whole document.
    pub(super) fn of(document: &[u8]) -> Self {
        let mut layout = Layout(Vec::new());
        if let Some(json) = Json::from_bytes(document) {
            layout.add(json, document, document.as_ptr().addr(), 0);
        }
        layout
    }

    /// Where PostgreSQL has the object at this place.
    pub(super) fn place_of(&self, at: usize) -> u64 {
        let found = self.0.binary_search_by_key(&at, |(own, _)| *own);
        found.ok().and_then(|index| self.0.get(index)).map_or(0, |(_, place)| *place)
    }

    /// Adds the objects of a value that begins at `place` or behind it. Returns where it ends.
    fn add(&mut self, json: Json<'_>, bytes: &[u8], origin: usize, place: u64) -> u64 {
        match json {
            Json::Null | Json::Bool(_) => place,
            Json::String(text) => place + text.len() as u64,
            Json::Number(number) => place.next_multiple_of(4) + length(number),
            Json::Array(array) => {
                let begin = place.next_multiple_of(4);
                let end = begin + 4 + 4 * array.len() as u64;
                array.iter().fold(end, |end, (json, bytes)| self.add(json, bytes, origin, end))
            }
            Json::Object(object) => {
                let begin = place.next_multiple_of(4);
                self.0.push((bytes.as_ptr().addr() - origin, begin));
                let names: usize = object.iter().map(|(name, ..)| name.len()).sum();
                let end = begin + 4 + 8 * object.len() as u64 + names as u64;
                object.iter().fold(end, |end, (_, json, bytes)| self.add(json, bytes, origin, end))
            }
        }
    }
}

/// How many bytes PostgreSQL's number has.
fn length(number: NumericRef<'_>) -> u64 {
    let Parts::Finite(decimal) = number.parts() else { return 6 };
    let is_short = decimal.dscale <= 63 && (-64..64).contains(&decimal.weight);
    4 + if is_short { 2 } else { 4 } + 2 * decimal.digits.len() as u64
}

#[cfg(test)]
mod tests {
    use millpond_types::jsonb::Json;

    use super::Layout;

    #[test]
    fn objects_are_where_postgresql_has_them() {
        let bytes = crate::types::json::to_jsonb(r#"[1.5, "abc", {"k": {}}, {}]"#).unwrap();
        let layout = Layout::of(&bytes);
        let Some(Json::Array(array)) = Json::from_bytes(&bytes) else { panic!("no array") };
        let places: Vec<u64> = array
            .iter()
            .map(|(_, part)| layout.place_of(part.as_ptr().addr() - bytes.as_ptr().addr()))
            .collect();
        // The head of 20 bytes, a number of 10, a text of 3 up to 33, and an object of 20.
        assert_eq!(places, [0, 0, 36, 56]);
        assert_eq!(layout.place_of(bytes.len()), 0);
    }
}
