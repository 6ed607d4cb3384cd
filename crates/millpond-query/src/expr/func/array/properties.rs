//! Properties of arrays: dimensions, lengths, positions, and what they contain.

use millpond_types::array::{ArrayRef, Dimension};

use super::super::Body;
use super::super::catalog::{ANY as ANY_TYPE, BOOL};
use super::super::catalog::{Proc, proc};
use super::super::value::wrong_arguments;
use super::{array, is_same};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Compare, Env, Expr, Func, cast};
use crate::types::array::build_list;
use crate::{DataType, Datum, Value};

/// `left op ANY (array)`: left, array, and the operator's code.
pub(in crate::expr) static ANY: Proc = proc(
    0,
    "any",
    &[ANY_TYPE, ANY_TYPE, ANY_TYPE],
    BOOL,
    Body::Datums(|args, _| compared(args, false)),
)
.called_on_null();

/// `left op ALL (array)`
pub(in crate::expr) static ALL: Proc = proc(
    0,
    "all",
    &[ANY_TYPE, ANY_TYPE, ANY_TYPE],
    BOOL,
    Body::Datums(|args, _| compared(args, true)),
)
.called_on_null();

const COMPARISONS: [Compare; 6] =
    [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

/// How `ANY` and `ALL` are told a comparison.
pub(in crate::expr) fn comparison_code(compare: Compare) -> i32 {
    COMPARISONS.iter().position(|own| *own == compare).unwrap_or(0) as i32
}

/// A comparison with the elements of an array.
pub(crate) struct ElementComparison<'e> {
    pub(crate) value: &'e Expr,
    pub(crate) compare: Compare,
    /// Whether it must hold for all elements, not for one.
    pub(crate) all: bool,
    pub(crate) array: &'e Expr,
}

/// What a call of ANY or ALL compares; `None` for other calls.
pub(in crate::expr) fn element_comparison(
    func: Func,
    args: &[Expr],
) -> Option<ElementComparison<'_>> {
    let [value, array, Expr::Const(Value::Int4(code))] = args else { return None };
    let all = func == Func::new(&ALL);
    let compare = usize::try_from(*code).ok().and_then(|code| COMPARISONS.get(code));
    let compare = *compare.filter(|_| all || func == Func::new(&ANY))?;
    Some(ElementComparison { value, compare, all, array })
}

fn compared(args: &[Datum<'_>], all: bool) -> Result<Value> {
    let [left, elements, Datum::Int4(code)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let compare = usize::try_from(*code).ok().and_then(|code| COMPARISONS.get(code));
    let Some(compare) = compare else { return Err(wrong_arguments(args.len())) };
    if elements.is_null() {
        return Ok(Value::Null);
    }
    let mut result = Value::Bool(all);
    for element in array(elements)?.iter() {
        match left.sql_cmp(&element).map(|order| compare.holds(order)) {
            Some(holds) if holds != all => return Ok(Value::Bool(holds)),
            Some(_) => {}
            None => result = Value::Null,
        }
    }
    Ok(result)
}

pub(super) fn dims(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    let array = array(of)?;
    let mut text = String::new();
    for dimension in array.dimensions() {
        text.push_str(&format!("[{}:{}]", dimension.lower, upper_of(dimension)));
    }
    Ok(if text.is_empty() { Value::Null } else { Value::Text(text) })
}

pub(super) fn upper_of(dimension: &Dimension) -> i64 {
    i64::from(dimension.lower) + i64::from(dimension.length) - 1
}

/// A dimension that is asked for by its number, from 1.
pub(super) fn dimension(args: &[Datum<'_>]) -> Result<Option<Dimension>> {
    let [of, Datum::Int4(number)] = args else { return Err(wrong_arguments(args.len())) };
    let place = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
    Ok(place.and_then(|place| array(of).ok()?.dimensions().get(place).copied()))
}

fn integer(value: Option<i64>) -> Value {
    value.and_then(|value| i32::try_from(value).ok()).map_or(Value::Null, Value::Int4)
}

pub(super) fn lower(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    Ok(integer(dimension(args)?.map(|dimension| dimension.lower.into())))
}

pub(super) fn upper(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    Ok(integer(dimension(args)?.map(|dimension| upper_of(&dimension))))
}

pub(super) fn length(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    Ok(integer(dimension(args)?.map(|dimension| dimension.length.into())))
}

pub(super) fn ndims(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    Ok(match array(of)?.dimensions().len() {
        0 => Value::Null,
        count => Value::Int4(count as i32),
    })
}

pub(super) fn cardinality(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    let dimensions = crate::types::array::count_of(array(of)?.dimensions())?;
    Ok(integer(i64::try_from(dimensions).ok()))
}

/// The array to search, if there is one, with the subscript of its first element.
fn searched<'a>(of: &Datum<'a>) -> Result<Option<(ArrayRef<'a>, i32)>> {
    if of.is_null() {
        return Ok(None);
    }
    let array = array(of)?;
    match array.dimensions() {
        [] => Ok(None),
        [one] => {
            let lower = one.lower;
            Ok(Some((array, lower)))
        }
        _ => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "searching for elements in multidimensional arrays is not supported",
        )),
    }
}

/// `width_bucket(value, thresholds)`: how many of the sorted thresholds the value has reached.
pub(super) fn width_bucket(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [value, of] = args else { return Err(wrong_arguments(args.len())) };
    let array = array(of)?;
    if array.dimensions().len() > 1 {
        let what = "thresholds must be one-dimensional array";
        return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, what));
    }
    let thresholds: Vec<_> = array.iter().collect();
    if thresholds.iter().any(Datum::is_null) {
        let what = "thresholds array must not contain NULLs";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, what));
    }
    let reached = thresholds.partition_point(|threshold| value.sort_cmp(threshold).is_ge());
    Ok(Value::Int4(i32::try_from(reached).unwrap_or(i32::MAX)))
}

/// `array_position(array, value, first subscript)`
pub(super) fn position(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of, wanted, start @ ..] = args else { return Err(wrong_arguments(args.len())) };
    let Some((array, lower)) = searched(of)? else { return Ok(Value::Null) };
    let start = match start {
        [Datum::Int4(start)] => *start,
        [] => i32::MIN,
        _ => {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "initial position must not be null",
            ));
        }
    };
    let mut found = array.iter().zip(lower..);
    let found = found.find(|(element, at)| *at >= start && is_same(element, wanted));
    Ok(found.map_or(Value::Null, |(_, at)| Value::Int4(at)))
}

pub(super) fn positions(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    const INT4_ARRAY: u32 = 1007;
    let [of, wanted] = args else { return Err(wrong_arguments(args.len())) };
    if of.is_null() {
        return Ok(Value::Null);
    }
    let mut found = Vec::new();
    if let Some((array, lower)) = searched(of)? {
        let places = array.iter().zip(lower..);
        found.extend(places.filter(|(element, _)| is_same(element, wanted)).map(|(_, at)| at));
    }
    Ok(build_list(INT4_ARRAY, found.into_iter().map(Datum::Int4))?)
}

/// `array_to_string(array, separator, text of NULL)`
pub(super) fn to_string(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [of, Datum::Text(separator), null @ ..] = args else { return Ok(Value::Null) };
    if of.is_null() {
        return Ok(Value::Null);
    }
    let null = match null {
        [Datum::Text(null)] => Some(*null),
        _ => None,
    };
    let options = env.facts.settings.format_options();
    let (mut text, mut first) = (String::new(), true);
    for element in array(of)?.iter() {
        let shown = match (element, null) {
            (Datum::Null, None) => continue,
            (Datum::Null, Some(null)) => null.to_owned(),
            // As in a result, not as a cast prints it.
            (Datum::Bool(value), _) => if value { "t" } else { "f" }.to_owned(),
            (element, _) => cast::text_of(&element, options),
        };
        if !std::mem::take(&mut first) {
            text.push_str(separator);
        }
        text.push_str(&shown);
        super::super::check_length(text.len())?;
    }
    Ok(Value::Text(text))
}

pub(super) fn contains(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [all, some] = args else { return Err(wrong_arguments(args.len())) };
    has_all(all, some)
}

pub(super) fn contained(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [some, all] = args else { return Err(wrong_arguments(args.len())) };
    has_all(all, some)
}

/// The elements that are not NULL, in order, so that they can be searched.
fn sorted<'a>(of: ArrayRef<'a>) -> Vec<Datum<'a>> {
    let mut elements: Vec<_> = of.iter().filter(|element| !element.is_null()).collect();
    elements.sort_by(Datum::sort_cmp);
    elements
}

/// Up to this many elements are looked up without sorting the array.
const FEW: usize = 4;

/// Whether values of a type are equal only if their bytes are.
fn is_equal_by_bytes(oid: u32) -> bool {
    matches!(
        DataType::from_oid(oid, -1),
        Some(
            DataType::Bool
                | DataType::Int2
                | DataType::Int4
                | DataType::Int8
                | DataType::Text
                | DataType::Varchar(_)
                | DataType::Date
                | DataType::Timestamp(_)
                | DataType::Timestamptz(_)
        )
    )
}

/// Whether each element of `some` is in `all`. NULL is in nothing.
fn has_all(all: &Datum<'_>, some: &Datum<'_>) -> Result<Value> {
    let (all, some) = (array(all)?, array(some)?);
    // To sort takes longer than to look at all of them a few times.
    if some.iter_bytes().take(FEW + 1).count() <= FEW {
        if is_equal_by_bytes(all.element()) && all.element() == some.element() {
            let is_in = |element| all.iter_bytes().any(|own| own == element);
            let found = some.iter_bytes().all(|element| element.is_some() && is_in(element));
            return Ok(Value::Bool(found));
        }
        let is_in = |element: &Datum<'_>| all.iter().any(|own| own.sort_cmp(element).is_eq());
        let found = some.iter().all(|element| !element.is_null() && is_in(&element));
        return Ok(Value::Bool(found));
    }
    let all = sorted(all);
    let found = some.iter().all(|element| {
        !element.is_null() && all.binary_search_by(|own| own.sort_cmp(&element)).is_ok()
    });
    Ok(Value::Bool(found))
}

pub(super) fn overlap(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    let a = sorted(array(a)?);
    let found = array(b)?.iter().any(|element| {
        !element.is_null() && a.binary_search_by(|own| own.sort_cmp(&element)).is_ok()
    });
    Ok(Value::Bool(found))
}
