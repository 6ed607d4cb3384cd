//! Column definition lists: `json_to_record(value) AS (a int, b text)`.

use std::borrow::Cow;
use std::collections::HashSet;

use millpond_syntax::tree::{ColumnDefinition, RangeFunction};

use super::set_function::Columns;
use super::tree::{SetFunction, SetFunctionKind};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Source, data_type};

/// A call of a function that returns rows, with the columns that stand behind it.
pub(super) fn applied(
    function: SetFunction,
    columns: Columns,
    definition: &[ColumnDefinition],
    at: u32,
    source: Source<'_>,
) -> Result<(SetFunction, Columns)> {
    let func = match function.kind {
        SetFunctionKind::Rows(func) if func.needs_definition() => func,
        SetFunctionKind::Records(..) => {
            let why = "redundant for a function returning a named composite type";
            return refused(definition, why, source).map(|()| (function, columns));
        }
        _ if columns.len() > 1 => {
            let why = "redundant for a function with OUT parameters";
            return refused(definition, why, source).map(|()| (function, columns));
        }
        _ => return only_for_records(definition, source).map(|()| (function, columns)),
    };
    if definition.is_empty() {
        let what = "a column definition list is required for functions returning \"record\"";
        return Err(source.place(SqlError::new(SqlState::SYNTAX_ERROR, what), at));
    }
    let mut names = HashSet::new();
    let mut defined = Vec::with_capacity(definition.len());
    for ColumnDefinition { colname, type_name, .. } in definition {
        if !names.insert(&**colname) {
            let what = format!("column name \"{}\" specified more than once", &**colname);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, what));
        }
        let ty = data_type(type_name).map_err(|e| source.place(e, type_name.location))?;
        defined.push(((**colname).to_owned(), ty));
    }
    let columns = defined.iter().map(|(name, ty)| (Some(Cow::Owned(name.clone())), *ty)).collect();
    let kind = SetFunctionKind::Records(func, defined.into());
    Ok((SetFunction { kind, columns: definition.len(), ..function }, columns))
}

/// An error if a function that returns one value defines columns.
pub(super) fn only_for_records(definition: &[ColumnDefinition], source: Source<'_>) -> Result<()> {
    refused(definition, "only allowed for functions returning \"record\"", source)
}

fn refused(definition: &[ColumnDefinition], why: &str, source: Source<'_>) -> Result<()> {
    let Some(first) = definition.first() else { return Ok(()) };
    let what = format!("a column definition list is {why}");
    Err(source.place(SqlError::new(SqlState::SYNTAX_ERROR, what), first.location))
}

/// The error for a list behind an item's name, if it is not clear what the list defines.
#[cold]
pub(super) fn misplaced(function: &RangeFunction, source: Source<'_>) -> SqlError {
    let (message, hint) = match function.functions.as_slice() {
        [_, _, ..] => (
            "ROWS FROM() with multiple functions cannot have a column definition list",
            "Put a separate column definition list for each function inside ROWS FROM().",
        ),
        _ if function.ordinality => (
            "WITH ORDINALITY cannot be used with a column definition list",
            "Put the column definition list inside ROWS FROM().",
        ),
        _ => (
            "UNNEST() with multiple arguments cannot have a column definition list",
            "Use separate UNNEST() calls inside ROWS FROM(), and attach a column definition list \
             to each one.",
        ),
    };
    let error = SqlError::new(SqlState::SYNTAX_ERROR, message).hint(hint);
    source.place(error, function.coldeflist.first().map(|column| column.location))
}
