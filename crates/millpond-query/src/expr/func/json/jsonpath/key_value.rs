//! The method `.keyvalue()`: an object's members as objects of `key`, `value` and `id`. The id is
//! the same for all members of one object: its place in the document that it is in.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use millpond_types::Numeric;
use millpond_types::jsonb::{Json, write};

use super::eval::{Evaluation, Result, Stop};
use super::item::Item;
use super::layout::Layout;
use super::method::wrong_item;
use crate::error::SqlState;
use crate::types::json::too_long;
use crate::types::jsonpath::Method;

/// How far the ids of objects of two documents are apart.
const DOCUMENT: u64 = 10_000_000_000;

/// The layouts of the document and of the variables, once they are asked for.
pub(super) type Layouts = [OnceCell<Layout>; 2];

/// An object that was made, or an array or object in it.
#[derive(Debug, Clone)]
pub(super) struct Made {
    whole: Rc<Whole>,
    range: Range<usize>,
}

#[derive(Debug)]
struct Whole {
    bytes: Vec<u8>,
    /// Its number among the documents: those that were given are 0 and 1.
    number: u64,
    layout: OnceCell<Layout>,
}

impl Made {
    fn new(bytes: Vec<u8>, number: u64) -> Self {
        let range = 0..bytes.len();
        Self { whole: Rc::new(Whole { bytes, number, layout: OnceCell::new() }), range }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.whole.bytes.get(self.range.clone()).unwrap_or(&[])
    }

    /// A part of it, by its bytes.
    pub(super) fn part(&self, bytes: &[u8]) -> Self {
        let start = offset(&self.whole.bytes, bytes).unwrap_or(0);
        Self { whole: Rc::clone(&self.whole), range: start..start + bytes.len() }
    }

    fn id(&self) -> u64 {
        let layout = self.whole.layout.get_or_init(|| Layout::of(&self.whole.bytes));
        self.whole.number * DOCUMENT + layout.place_of(self.range.start)
    }
}

/// Where in a document a part of it begins.
fn offset(document: &[u8], part: &[u8]) -> Option<usize> {
    let offset = part.as_ptr().addr().checked_sub(document.as_ptr().addr())?;
    (offset < document.len()).then_some(offset)
}

impl<'a> Evaluation<'_, 'a> {
    /// Follows the path from each object of key, value and id.
    pub(super) fn key_values(
        &self,
        item: &Item<'a>,
        mut follow: impl FnMut(Item<'a>) -> Result<()>,
    ) -> Result<()> {
        let Some(Json::Object(object)) = item.json() else {
            let state = SqlState::SQL_JSON_OBJECT_NOT_FOUND;
            return Err(wrong_item(state, Method::KeyValue, "an object"));
        };
        if object.is_empty() {
            return Ok(());
        }
        let too_long = |what| Stop::Hard(too_long(what).into());
        let id = i64::try_from(self.id(item)).unwrap_or(i64::MAX);
        let (mut id_bytes, mut key) = (Vec::new(), Vec::new());
        write::number(Numeric::from(id).as_ref(), &mut id_bytes).map_err(too_long)?;
        for (name, _, value) in object.iter() {
            key.clear();
            write::string(name, &mut key).map_err(too_long)?;
            let mut out = Vec::new();
            let members = [("id", id_bytes.as_slice()), ("key", key.as_slice()), ("value", value)];
            write::object(members, &mut out).map_err(too_long)?;
            // The document and the variables come before what is made.
            follow(Item::Made(Made::new(out, self.count_made() + 1)))?;
        }
        Ok(())
    }

    fn id(&self, item: &Item<'a>) -> u64 {
        let bytes = match item {
            Item::Made(made) => return made.id(),
            Item::Json(_, bytes) => bytes,
            _ => return 0,
        };
        let documents = self.documents();
        for ((document, layout), number) in documents.iter().zip(self.layouts()).zip(0..) {
            if let Some(document) = document
                && let Some(offset) = offset(document, bytes)
            {
                let layout = layout.get_or_init(|| Layout::of(document));
                return number * DOCUMENT + layout.place_of(offset);
            }
        }
        0
    }
}
