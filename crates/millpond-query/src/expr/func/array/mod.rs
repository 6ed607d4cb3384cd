//! Functions and operators of arrays.

mod change;
mod construct;
mod properties;
mod rows;
mod subscript;

use millpond_types::array::{ArrayRef, Dimension};

use super::catalog::{BOOL, INT4, INT4_ARRAY, Param, Proc, TEXT, TEXT_ARRAY, proc};
use super::operators::{Operator, Work, op};
use super::value::wrong_arguments;
use super::{Body, check_length};
use crate::Datum;
use crate::Value;
use crate::error::Result;
use crate::expr::Env;
use crate::types::array::{Elements, array_of, build_checked};

pub(in crate::expr) use construct::{CONSTRUCT, NEST, constructed};
pub(super) use rows::ROWS;

pub(crate) use properties::ElementComparison;
pub(in crate::expr) use properties::{ALL, ANY, comparison_code, element_comparison};
pub(in crate::expr) use subscript::{ELEMENT, SLICE};

use Param::{AnyArray, AnyCompatible, AnyCompatibleArray, AnyElement};

/// An array that a function makes. While it grows, the statement may be told to stop.
fn built<'a>(
    oid: u32,
    dimensions: &[Dimension],
    elements: impl IntoIterator<Item: Into<Elements<'a>>>,
    env: &Env<'_>,
) -> Result<Value> {
    build_checked(oid, dimensions, elements, |bytes| {
        env.check_long_work()?;
        check_length(bytes)
    })
}

pub(super) static PROCS: &[Proc] = &[
    proc(
        378,
        "array_append",
        &[AnyCompatibleArray, AnyCompatible],
        AnyCompatibleArray,
        Body::Datums(change::append),
    )
    .called_on_null(),
    proc(
        379,
        "array_prepend",
        &[AnyCompatible, AnyCompatibleArray],
        AnyCompatibleArray,
        Body::Datums(change::prepend),
    )
    .called_on_null(),
    proc(
        383,
        "array_cat",
        &[AnyCompatibleArray, AnyCompatibleArray],
        AnyCompatibleArray,
        Body::Datums(change::concatenate),
    )
    .called_on_null(),
    proc(747, "array_dims", &[AnyArray], TEXT, Body::Datums(properties::dims)),
    proc(2091, "array_lower", &[AnyArray, INT4], INT4, Body::Datums(properties::lower)),
    proc(2092, "array_upper", &[AnyArray, INT4], INT4, Body::Datums(properties::upper)),
    proc(2176, "array_length", &[AnyArray, INT4], INT4, Body::Datums(properties::length)),
    proc(748, "array_ndims", &[AnyArray], INT4, Body::Datums(properties::ndims)),
    proc(3179, "cardinality", &[AnyArray], INT4, Body::Datums(properties::cardinality)),
    proc(
        3277,
        "array_position",
        &[AnyCompatibleArray, AnyCompatible],
        INT4,
        Body::Datums(properties::position),
    )
    .called_on_null(),
    proc(
        3278,
        "array_position",
        &[AnyCompatibleArray, AnyCompatible, INT4],
        INT4,
        Body::Datums(properties::position),
    )
    .called_on_null(),
    proc(
        3279,
        "array_positions",
        &[AnyCompatibleArray, AnyCompatible],
        INT4_ARRAY,
        Body::Datums(properties::positions),
    )
    .called_on_null(),
    proc(
        3167,
        "array_remove",
        &[AnyCompatibleArray, AnyCompatible],
        AnyCompatibleArray,
        Body::Datums(change::remove),
    )
    .called_on_null(),
    proc(
        3168,
        "array_replace",
        &[AnyCompatibleArray, AnyCompatible, AnyCompatible],
        AnyCompatibleArray,
        Body::Datums(change::replace),
    )
    .called_on_null(),
    proc(1193, "array_fill", &[AnyElement, INT4_ARRAY], AnyArray, Body::Datums(construct::fill))
        .called_on_null(),
    proc(
        1286,
        "array_fill",
        &[AnyElement, INT4_ARRAY, INT4_ARRAY],
        AnyArray,
        Body::Datums(construct::fill),
    )
    .called_on_null(),
    proc(
        3218,
        "width_bucket",
        &[AnyCompatible, AnyCompatibleArray],
        INT4,
        Body::Datums(properties::width_bucket),
    ),
    proc(6172, "trim_array", &[AnyArray, INT4], AnyArray, Body::Datums(change::trim)),
    proc(395, "array_to_string", &[AnyArray, TEXT], TEXT, Body::Datums(properties::to_string))
        .stable(),
    proc(
        384,
        "array_to_string",
        &[AnyArray, TEXT, TEXT],
        TEXT,
        Body::Datums(properties::to_string),
    )
    .stable()
    .called_on_null(),
    proc(394, "string_to_array", &[TEXT, TEXT], TEXT_ARRAY, Body::Datums(construct::split))
        .called_on_null(),
    proc(376, "string_to_array", &[TEXT, TEXT, TEXT], TEXT_ARRAY, Body::Datums(construct::split))
        .called_on_null(),
    proc(2748, "arraycontains", &[AnyArray, AnyArray], BOOL, Body::Datums(properties::contains)),
    proc(2749, "arraycontained", &[AnyArray, AnyArray], BOOL, Body::Datums(properties::contained)),
    proc(2747, "arrayoverlap", &[AnyArray, AnyArray], BOOL, Body::Datums(properties::overlap)),
];

pub(super) static OPERATORS: &[Operator] = &[
    op(
        "||",
        &[AnyCompatibleArray, AnyCompatibleArray],
        AnyCompatibleArray,
        Work::Call("array_cat"),
    ),
    op("||", &[AnyCompatibleArray, AnyCompatible], AnyCompatibleArray, Work::Call("array_append")),
    op("||", &[AnyCompatible, AnyCompatibleArray], AnyCompatibleArray, Work::Call("array_prepend")),
    op("@>", &[AnyArray, AnyArray], BOOL, Work::Call("arraycontains")),
    op("<@", &[AnyArray, AnyArray], BOOL, Work::Call("arraycontained")),
    op("&&", &[AnyArray, AnyArray], BOOL, Work::Call("arrayoverlap")),
];

/// The arrays among arguments that the binder has made arrays.
fn array<'a>(datum: &Datum<'a>) -> Result<ArrayRef<'a>> {
    array_of(datum).ok_or_else(|| wrong_arguments(1))
}

/// The number of an array type.
fn type_of(datum: &Datum<'_>) -> Result<u32> {
    match datum {
        Datum::Other(oid, _) => Ok(*oid),
        _ => Err(wrong_arguments(1)),
    }
}

/// Whether two elements are the same, where NULLs are.
fn is_same(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    match (a.is_null(), b.is_null()) {
        (false, false) => a.sql_cmp(b).is_some_and(|order| order.is_eq()),
        (a, b) => a && b,
    }
}
