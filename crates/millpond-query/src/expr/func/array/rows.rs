//! The elements and the subscripts of an array, as rows.

use super::super::catalog::{BOOL, INT4, Param, Proc, TEXT, proc};
use super::super::row_list::RowList;
use super::super::series::{Series, series};
use super::super::value::wrong_arguments;
use super::super::{Columns, rows};
use super::properties::{dimension, upper_of};
use super::{AnyArray, AnyElement, array, construct};
use crate::error::Result;
use crate::{Datum, Value};

const ELEMENTS: Columns = &[(None, AnyElement)];
const NUMBERED: Columns = &[(Some("x"), AnyElement), (Some("n"), INT4)];
const TEXTS: Columns = &[(None, TEXT)];
const SUBSCRIPTS: Columns = &[(None, INT4)];
const OF: &[Param] = &[AnyArray, INT4];
const OF_REVERSED: &[Param] = &[AnyArray, INT4, BOOL];

pub(in super::super) static ROWS: &[Proc] = &[
    proc(2331, "unnest", &[AnyArray], AnyElement, rows(ELEMENTS, elements)),
    // The standard's schema has it, and drivers use it.
    proc(0, "_pg_expandarray", &[AnyArray], Param::Any, rows(NUMBERED, numbered)),
    proc(6160, "string_to_table", &[TEXT, TEXT], TEXT, rows(TEXTS, texts)).called_on_null(),
    proc(6161, "string_to_table", &[TEXT, TEXT, TEXT], TEXT, rows(TEXTS, texts)).called_on_null(),
    proc(1192, "generate_subscripts", OF, INT4, series(SUBSCRIPTS, |args, _| subscripts(args))),
    proc(
        1191,
        "generate_subscripts",
        OF_REVERSED,
        INT4,
        series(SUBSCRIPTS, |args, _| subscripts(args)),
    ),
];

fn elements(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    array(of)?.iter().try_for_each(|element| list.push([element.to_value()]))
}

fn texts(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let mut parts = construct::parts(args).into_iter().flatten();
    parts.try_for_each(|part| list.push([part.to_value()]))
}

/// The elements, each with its number.
fn numbered(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    let mut numbered = (1..).zip(array(of)?.iter());
    numbered.try_for_each(|(number, element)| list.push([element.to_value(), Value::Int4(number)]))
}

fn subscripts(args: &[Datum<'_>]) -> Result<Series> {
    let is_reversed = matches!(args.get(2), Some(Datum::Bool(true)));
    let of = args.get(..2).ok_or_else(|| wrong_arguments(args.len()))?;
    let (first, last) = match dimension(of)? {
        Some(dimension) => (i128::from(dimension.lower), i128::from(upper_of(&dimension))),
        None => (1, 0),
    };
    let is_empty = last < first;
    Ok(match is_reversed && !is_empty {
        true => Series::Ints { next: last, stop: first, step: -1, is_int8: false },
        false => Series::Ints { next: first, stop: last, step: 1, is_int8: false },
    })
}
