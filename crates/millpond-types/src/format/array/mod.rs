//! Arrays: how they are put together, and their text and binary formats.

mod text;
mod vector;

use crate::array::{ArrayBuilder, ArrayRef, Dimension, MAX_DIMENSIONS};

use super::{FormatOptions, binary};
use crate::error::{DataException, Result};
use crate::other::is_vector;
use crate::sqlstate::SqlState;
use crate::{DataType, Datum, Value};

pub(super) use text::{parse, write};
pub(super) use vector::{parse as parse_vector, write as write_vector};

/// PostgreSQL's limit for the number of elements.
const MAX_ELEMENTS: usize = 134_217_727;

/// An array value, if it is one.
pub fn array_of<'a>(datum: &Datum<'a>) -> Option<ArrayRef<'a>> {
    match datum {
        Datum::Other(oid, bytes) => {
            let element = crate::other::find(*oid)?.element?;
            ArrayRef::from_bytes(element, bytes)
        }
        _ => None,
    }
}

/// An array of type `oid` of these elements. Without elements it has no dimensions.
pub fn build<'a>(
    oid: u32,
    dimensions: &[Dimension],
    elements: impl IntoIterator<Item = Datum<'a>>,
) -> Result<Value> {
    build_checked(oid, dimensions, elements, |_| Ok(()))
}

/// After how many elements, and how many bytes, a long array asks whether it may go on.
const CHECKED_ELEMENTS: usize = 1 << 15;
const CHECKED_BYTES: usize = 1 << 20;
const MAX_BYTES: usize = 1 << 30;

/// What comes next in an array that is made.
#[derive(Debug)]
pub enum Elements<'a> {
    /// An element.
    One(Datum<'a>),
    /// All those of an array of the same type.
    AllOf(ArrayRef<'a>),
}

impl<'a> From<Datum<'a>> for Elements<'a> {
    fn from(element: Datum<'a>) -> Self {
        Self::One(element)
    }
}

/// The same, for arrays that may be long. `check` is called now and then with the bytes so far.
pub fn build_checked<'a, E: From<DataException>>(
    oid: u32,
    dimensions: &[Dimension],
    elements: impl IntoIterator<Item: Into<Elements<'a>>>,
    check: impl Fn(usize) -> Result<(), E>,
) -> Result<Value, E> {
    if dimensions.len() > MAX_DIMENSIONS {
        return Err(too_many_dimensions(dimensions.len()).into());
    }
    count_of(dimensions)?;
    let empty = dimensions.iter().any(|dimension| dimension.length == 0);
    let mut builder = ArrayBuilder::new(if empty { &[] } else { dimensions });
    let (mut elements_left, mut next_bytes) = (CHECKED_ELEMENTS, CHECKED_BYTES);
    for element in elements {
        match element.into() {
            Elements::One(element) => builder.push(&element).ok_or_else(too_large)?,
            Elements::AllOf(array) => {
                // They may be many, so their memory is asked for before it is taken.
                let bytes = builder.len() + array.elements_len();
                if bytes >= next_bytes {
                    may_have(bytes, &check)?;
                }
                builder.push_all(&array);
            }
        }
        elements_left -= 1;
        if elements_left == 0 || builder.len() >= next_bytes {
            may_have(builder.len(), &check)?;
            (elements_left, next_bytes) = (CHECKED_ELEMENTS, builder.len() + CHECKED_BYTES);
        }
    }
    if builder.len() >= MAX_BYTES {
        return Err(too_large().into());
    }
    Ok(Value::Other(oid, builder.finish()))
}

fn may_have<E: From<DataException>>(
    bytes: usize,
    check: &impl Fn(usize) -> Result<(), E>,
) -> Result<(), E> {
    if bytes >= MAX_BYTES { Err(too_large().into()) } else { check(bytes) }
}

/// An array of one dimension, with subscripts from 1.
pub fn build_list<'a>(
    oid: u32,
    elements: impl ExactSizeIterator<Item = Datum<'a>>,
) -> Result<Value> {
    let length = u32::try_from(elements.len()).map_err(|_| too_large())?;
    build(oid, &[Dimension { length, lower: 1 }], elements)
}

/// The number of elements that dimensions have room for.
pub fn count_of(dimensions: &[Dimension]) -> Result<usize> {
    let mut count = 1usize;
    for dimension in dimensions {
        count = count
            .checked_mul(dimension.length as usize)
            .filter(|count| *count <= MAX_ELEMENTS)
            .ok_or_else(too_large)?;
        let length = i32::try_from(dimension.length).map_err(|_| too_large())?;
        if dimension.lower.checked_add(length).is_none() {
            return Err(DataException::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array lower bound is too large: {}", dimension.lower),
            ));
        }
    }
    Ok(if dimensions.is_empty() { 0 } else { count })
}

/// An array would have too many elements: 54000.
#[cold]
pub fn too_large() -> DataException {
    DataException::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({MAX_ELEMENTS})"),
    )
}

/// An array would have `count` dimensions, which is too many: 54000.
#[cold]
pub fn too_many_dimensions(count: usize) -> DataException {
    DataException::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!(
            "number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
        ),
    )
}

/// Appends the binary form: dimensions, whether there are NULLs, the elements' type; per dimension
/// length and lowest subscript; then the elements with their lengths.
pub(super) fn encode_binary(ty: DataType, bytes: &[u8], out: &mut Vec<u8>) {
    let Some(element) = ty.element() else { return };
    let Some(array) = ArrayRef::from_bytes(element.oid(), bytes) else { return };
    let has_nulls = array.iter().any(|element| element.is_null());
    if is_vector(ty.oid()) && array.dimensions().is_empty() {
        // A vector has one dimension, even if it has no elements.
        for word in [1, 0, element.oid(), 0, 0] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        return;
    }
    out.extend_from_slice(&(array.dimensions().len() as u32).to_be_bytes());
    out.extend_from_slice(&u32::from(has_nulls).to_be_bytes());
    out.extend_from_slice(&element.oid().to_be_bytes());
    for dimension in array.dimensions() {
        out.extend_from_slice(&dimension.length.to_be_bytes());
        out.extend_from_slice(&dimension.lower.to_be_bytes());
    }
    for datum in array.iter() {
        if datum.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        binary::encode(element, &datum, out);
        let length = (out.len() - start - 4) as u32;
        if let Some(slot) = out.get_mut(start..start + 4) {
            slot.copy_from_slice(&length.to_be_bytes());
        }
    }
}

fn take_i32(rest: &mut &[u8]) -> Option<i32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(i32::from_be_bytes(*bytes))
}

/// Reads the binary form; `None` if the bytes are not of that form.
pub(super) fn decode_binary(ty: DataType, mut bytes: &[u8]) -> Result<Option<Value>> {
    let Some(element) = ty.element() else { return Ok(None) };
    let rest = &mut bytes;
    let head = take_i32(rest).zip(take_i32(rest)).zip(take_i32(rest));
    let Some(((count, _), of)) = head else { return Ok(None) };
    if of as u32 != element.oid() {
        return Err(DataException::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {} ({}) instead of expected {} ({element})",
                of as u32,
                DataType::from_oid(of as u32, -1)
                    .map_or_else(|| "???".to_owned(), |ty| ty.to_string()),
                element.oid(),
            ),
        ));
    }
    let Ok(count @ 0..=MAX_DIMENSIONS) = usize::try_from(count) else { return Ok(None) };
    let mut dimensions = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((length, lower)) = take_i32(rest).zip(take_i32(rest)) else { return Ok(None) };
        let Ok(length) = u32::try_from(length) else { return Ok(None) };
        dimensions.push(Dimension { length, lower });
    }
    let mut elements = Vec::new();
    for _ in 0..count_of(&dimensions)? {
        let Some(length) = take_i32(rest) else { return Ok(None) };
        let Ok(length) = usize::try_from(length) else {
            elements.push(Value::Null);
            continue;
        };
        let Some((value, after)) = rest.split_at_checked(length) else { return Ok(None) };
        *rest = after;
        elements.push(binary::decode(element, value)?);
    }
    if !rest.is_empty() {
        return Ok(None);
    }
    build(ty.oid(), &dimensions, elements.iter().map(Value::as_datum)).map(Some)
}

/// Converts each element.
pub fn map<E: From<DataException>>(
    array: &ArrayRef<'_>,
    to: DataType,
    mut convert: impl FnMut(Datum<'_>) -> Result<Value, E>,
) -> Result<Value, E> {
    let elements = array.iter().map(&mut convert).collect::<Result<Vec<_>, E>>()?;
    Ok(build(to.oid(), array.dimensions(), elements.iter().map(Value::as_datum))?)
}

/// An element's text, as it stands in the text of an array.
fn element_text(element: DataType, datum: &Datum<'_>, options: &FormatOptions) -> String {
    super::text::to_string(element, datum, options).unwrap_or_default()
}
