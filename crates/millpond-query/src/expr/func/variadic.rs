//! Calls whose last argument is an array of what the function is to be called with: VARIADIC.

use std::sync::LazyLock;

use super::catalog::{self, ANY, Proc, proc};
use super::value::wrong_arguments;
use super::{Body, Env};
use crate::error::{Result, SqlError};
use crate::types::array::array_of;
use crate::{Datum, Value};

/// The number of a function, an array, then the arguments before those that are its elements.
pub(in crate::expr) static SPREAD: Proc =
    proc(0, "variadic", &[ANY, ANY], ANY, Body::Datums(spread))
        .stable()
        .called_on_null()
        .variadic();

/// The functions that can be called so, by their numbers here.
static FUNCTIONS: LazyLock<Vec<&'static Proc>> =
    LazyLock::new(|| catalog::all().filter(|proc| proc.variadic && proc.oid != 0).collect());

pub(in crate::expr) fn number_of(function: &'static Proc) -> Result<i32> {
    let number = FUNCTIONS.iter().position(|proc| std::ptr::eq(*proc, function));
    let number = number.and_then(|number| i32::try_from(number).ok());
    number.ok_or_else(|| SqlError::internal("not a function of any number of arguments"))
}

fn spread(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [Datum::Int4(number), array, fixed @ ..] = args else { return Err(wrong_arguments(2)) };
    let function = usize::try_from(*number).ok().and_then(|number| FUNCTIONS.get(number));
    let function = function.ok_or_else(|| wrong_arguments(0))?;
    let Body::Datums(body) = function.body else { return Err(wrong_arguments(0)) };
    let mut all = fixed.to_vec();
    match array {
        // `format` then has nothing to fill in.
        Datum::Null if function.name == "format" => {}
        Datum::Null => return Ok(Value::Null),
        array => all.extend(array_of(array).ok_or_else(|| wrong_arguments(1))?.iter()),
    }
    if function.is_null_for(&all) {
        return Ok(Value::Null);
    }
    body(&all, env)
}
