//! The values of options: of COPY, EXPLAIN, VACUUM and of tables and indexes.

use millpond_syntax::tree::{DefArg, DefElem};

use super::Source;
use crate::error::{Result, SqlError, SqlState};

/// An option's value as text.
pub fn text(option: &DefElem) -> Result<String> {
    match &option.arg {
        Some(arg) => Ok(shown(arg)),
        None => Err(syntax_error(format!("{} requires a parameter", option.defname))),
    }
}

fn shown(arg: &DefArg) -> String {
    match arg {
        DefArg::Integer(number) => number.to_string(),
        DefArg::Float(text) | DefArg::String(text) => (&**text).into(),
        DefArg::Boolean(value) => value.to_string(),
        DefArg::TypeName(name) => name.names.join("."),
        DefArg::Operator(names) => names.join("."),
        DefArg::Star => "*".to_owned(),
        DefArg::List(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        DefArg::None => "none".to_owned(),
    }
}

/// Whether an option is switched on, as it is without a value.
pub(crate) fn boolean(option: &DefElem) -> Result<bool> {
    let Some(arg) = &option.arg else { return Ok(true) };
    match (arg, shown(arg).to_ascii_lowercase().as_str()) {
        (DefArg::Integer(0), _) | (_, "false" | "off") => Ok(false),
        (DefArg::Integer(1), _) | (_, "true" | "on") => Ok(true),
        _ => Err(syntax_error(format!("{} requires a Boolean value", option.defname))),
    }
}

/// The error of an option that the command does not have.
pub(super) fn unrecognized(command: &str, option: &DefElem, source: &Source<'_>) -> SqlError {
    let message = format!("unrecognized {command} option \"{}\"", option.defname);
    syntax_error(message).at(source.position(option.location))
}

pub(super) fn syntax_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}
