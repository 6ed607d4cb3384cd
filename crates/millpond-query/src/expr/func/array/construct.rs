//! Arrays that are made of something else.

use std::iter;

use millpond_types::array::Dimension;
use millpond_types::other::array_of as array_type_of;
use smallvec::SmallVec;

use super::super::Body;
use super::super::catalog::{ANY, Param, Proc, proc};
use super::super::value::wrong_arguments;
use super::{array, built};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr, Func, cast};
use crate::types::array::{Elements, build, count_of, too_large};
use crate::{Datum, Value};

/// `ARRAY[a, b]`: the array's type, then the elements.
pub(in crate::expr) static CONSTRUCT: Proc =
    proc(0, "array", &[ANY], Param::AnyArray, Body::Datums(construct)).called_on_null().variadic();

/// `ARRAY[[a], [b]]`: the array's type, then arrays.
pub(in crate::expr) static NEST: Proc =
    proc(0, "array", &[ANY], Param::AnyArray, Body::Datums(nest)).called_on_null().variadic();

/// The elements of `ARRAY[...]`; `None` for other calls.
pub(in crate::expr) fn constructed(func: Func, args: &[Expr]) -> Option<&[Expr]> {
    let is_array = func == Func::new(&CONSTRUCT) || func == Func::new(&NEST);
    is_array.then(|| args.get(1..).unwrap_or_default())
}

fn type_argument(datum: &Datum<'_>) -> Result<u32> {
    let oid = datum.as_i64().and_then(|oid| u32::try_from(oid).ok());
    oid.ok_or_else(|| wrong_arguments(1))
}

fn construct(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some((oid, elements)) = args.split_first() else { return Err(wrong_arguments(0)) };
    let length = u32::try_from(elements.len()).map_err(|_| too_large())?;
    let dimension = Dimension { length, lower: 1 };
    built(type_argument(oid)?, &[dimension], elements.iter().copied(), env)
}

fn nest(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some((oid, parts)) = args.split_first() else { return Err(wrong_arguments(0)) };
    let oid = type_argument(oid)?;
    let mut arrays = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|part| !part.is_null()) {
        let array = array(part)?;
        if !array.dimensions().is_empty() {
            arrays.push(array);
        }
    }
    let Some(first) = arrays.first() else { return Ok(build(oid, &[], [])?) };
    let matches = |dimensions: &[Dimension]| dimensions == first.dimensions();
    if arrays.len() != parts.len() || !arrays.iter().all(|array| matches(array.dimensions())) {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        ));
    }
    let length = u32::try_from(arrays.len()).map_err(|_| too_large())?;
    let mut dimensions = SmallVec::<[Dimension; 6]>::new();
    dimensions.push(Dimension { length, lower: 1 });
    dimensions.extend_from_slice(first.dimensions());
    built(oid, &dimensions, arrays.into_iter().map(Elements::AllOf), env)
}

/// `array_fill(value, lengths, lower bounds)`
pub(super) fn fill(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [value, lengths, lowers @ ..] = args else { return Err(wrong_arguments(args.len())) };
    let null = |what: &str| {
        SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, format!("{what} cannot be null"))
    };
    if lengths.is_null() || lowers.iter().any(Datum::is_null) {
        return Err(null("dimension array or low bound array"));
    }
    let numbers = |datum: &Datum<'_>| {
        let array = array(datum)?;
        if array.dimensions().len() > 1 {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "wrong number of array subscripts",
            )
            .detail("Dimension array must be one dimensional."));
        }
        let values = array.iter().map(|value| value.as_i64().map(|value| value as i32));
        values.collect::<Option<Vec<i32>>>().ok_or_else(|| null("dimension values"))
    };
    let lengths = numbers(lengths)?;
    let lowers = match lowers {
        [lowers] => numbers(lowers)?,
        _ => vec![1; lengths.len()],
    };
    if lowers.len() != lengths.len() {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "wrong number of array subscripts",
        )
        .detail("Low bound array has different size than dimensions array."));
    }
    let dimensions = lengths
        .iter()
        .zip(&lowers)
        .map(|(length, lower)| {
            let length = u32::try_from(*length).map_err(|_| too_large())?;
            Ok(Dimension { length, lower: *lower })
        })
        .collect::<Result<Vec<_>>>()?;
    let element = cast::type_of(value).and_then(|ty| array_type_of(ty.oid()));
    // Of NULL the type is not known here: the binder casts the result to what it is.
    let oid = element.map_or(1009, |ty| ty.oid);
    let count = count_of(&dimensions)?;
    built(oid, &dimensions, std::iter::repeat_n(*value, count), env)
}

/// `string_to_array(text, separator, text of NULL)`
pub(super) fn split(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    const TEXT_ARRAY: u32 = 1009;
    // A list of the parts could take many times as much memory as the text.
    let (Some(count), Some(parts)) = (count_of_parts(args), parts(args)) else {
        return Ok(Value::Null);
    };
    let length = u32::try_from(count).map_err(|_| too_large())?;
    built(TEXT_ARRAY, &[Dimension { length, lower: 1 }], parts, env)
}

/// How many parts a text has.
fn count_of_parts(args: &[Datum<'_>]) -> Option<usize> {
    match args {
        [Datum::Text(text), Datum::Text(separator), ..]
            if !text.is_empty() && separator.len() == 1 =>
        {
            let separators = text.bytes().filter(|byte| separator.as_bytes() == [*byte]);
            Some(separators.count() + 1)
        }
        _ => parts(args).map(Iterator::count),
    }
}

/// The parts of a text between separators. A part like the third argument is NULL. `None` if the
/// text is NULL.
pub(super) fn parts<'a>(args: &[Datum<'a>]) -> Option<Box<dyn Iterator<Item = Datum<'a>> + 'a>> {
    let [Datum::Text(text), separator, null @ ..] = args else { return None };
    let text = *text;
    let null = match null {
        [Datum::Text(null)] => Some(*null),
        _ => None,
    };
    let element = move |part| if Some(part) == null { Datum::Null } else { Datum::Text(part) };
    Some(match separator {
        _ if text.is_empty() => Box::new(iter::empty()),
        Datum::Text("") => Box::new(iter::once(element(text))),
        // One character is found faster than a text.
        Datum::Text(separator) => match separator.as_bytes() {
            [one @ 0..0x80] => Box::new(text.split(char::from(*one)).map(element)),
            _ => Box::new(text.split(*separator).map(element)),
        },
        // Without a separator, each character is an element.
        _ => {
            Box::new(text.char_indices().map(move |(at, c)| element(&text[at..at + c.len_utf8()])))
        }
    })
}
