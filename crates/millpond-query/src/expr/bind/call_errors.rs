//! The errors of calls that no function is found for.

use super::{Typed, beyond};
use crate::error::{SqlError, SqlState};
use crate::expr::func::{catalog, type_name};
use crate::expr::types::Ty;
use crate::system_relations::find_function_definition;

/// The types of arguments, for messages.
pub(super) fn signature(name: &str, names: &[Option<String>], args: &[Typed]) -> String {
    let types: Vec<String> = args
        .iter()
        .enumerate()
        .map(|(place, arg)| {
            let ty = match arg.ty {
                Ty::Known(ty) => type_name(ty),
                Ty::Unknown => "unknown".to_owned(),
            };
            match names.get(place) {
                Some(Some(own)) => format!("{own} => {ty}"),
                _ => ty,
            }
        })
        .collect();
    format!("{name}({})", types.join(", "))
}

pub(super) fn undefined_function(name: &str, args: &[Typed]) -> SqlError {
    undefined(name, &signature(name, &[], args))
}

/// The error of a call that no function has a place for.
pub(super) fn undefined(name: &str, signature: &str) -> SqlError {
    let is_of_view = find_function_definition(name).is_some();
    if is_of_view && signature.ends_with("()") {
        return beyond(&format!("the set-returning function {name} here"));
    }
    if catalog::named(name).is_empty() && catalog::is_known_name(name) && !is_of_view {
        return beyond(&format!("the function {signature}"));
    }
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function {signature} does not exist"))
        .hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        )
}

pub(super) fn ambiguous_function(name: &str, args: &[Typed]) -> SqlError {
    SqlError::new(
        SqlState::AMBIGUOUS_FUNCTION,
        format!("function {} is not unique", signature(name, &[], args)),
    )
    .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}

/// The error of a polymorphic call whose arguments have no type.
#[cold]
pub(super) fn undetermined() -> SqlError {
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        "could not determine polymorphic type because input has type unknown",
    )
}
