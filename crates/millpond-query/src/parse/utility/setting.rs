//! SET, SHOW, RESET and ALTER SYSTEM.

use millpond_syntax::tree::{Value, VariableSetKind, VariableSetStmt, VariableValue};

use super::transaction::modes;
use super::unsupported;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Statement, Which};

/// SET and RESET.
pub(super) fn set(stmt: &VariableSetStmt) -> Result<Statement> {
    check_count(stmt)?;
    Ok(set_statement(stmt))
}

/// Few settings are lists.
fn check_count(stmt: &VariableSetStmt) -> Result<()> {
    const LISTS: [&str; 4] =
        ["datestyle", "listen_addresses", "search_path", "unix_socket_directories"];
    let name = &*stmt.name;
    let is_list = LISTS.iter().any(|list| list.eq_ignore_ascii_case(name));
    if stmt.args.len() > 1 && !is_list {
        let message = format!("SET {name} takes only one argument");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(())
}

fn set_statement(stmt: &VariableSetStmt) -> Statement {
    use VariableSetKind as K;
    let name = &*stmt.name;
    match (stmt.kind, name) {
        (K::ResetAll, _) => return Statement::Reset(Which::All),
        (K::Multi, "TRANSACTION") => {
            return Statement::SetTransaction { modes: modes(&stmt.options), session: false };
        }
        (K::Multi, "SESSION CHARACTERISTICS") => {
            return Statement::SetTransaction { modes: modes(&stmt.options), session: true };
        }
        (K::Multi, _) => return unsupported("SET TRANSACTION SNAPSHOT"),
        (K::Current, _) => return unsupported("SET ... FROM CURRENT"),
        (K::Value | K::Default, "role") => return unsupported("SET ROLE"),
        (K::Value | K::Default, "session_authorization") => {
            return unsupported("SET SESSION AUTHORIZATION");
        }
        (K::Reset, _) => return Statement::Reset(Which::Named(name.into())),
        (K::Value | K::Default, _) => {}
    }
    match value(stmt) {
        Some(value) => Statement::Set { name: name.into(), value, local: stmt.is_local },
        None => unsupported("SET TIME ZONE INTERVAL"),
    }
}

pub(super) fn alter_system(stmt: &VariableSetStmt) -> Statement {
    use VariableSetKind as K;
    let name = || Some((&*stmt.name).into());
    match (stmt.kind, value(stmt)) {
        (K::ResetAll, _) => Statement::AlterSystem { name: None, value: None },
        (K::Reset | K::Default, _) => Statement::AlterSystem { name: name(), value: None },
        (K::Value, Some(value)) => Statement::AlterSystem { name: name(), value },
        _ => unsupported("this form of ALTER SYSTEM"),
    }
}

pub(super) fn show(name: &str) -> Statement {
    Statement::Show(match name {
        "all" => Which::All,
        name => Which::Named(name.into()),
    })
}

/// The value; within, `None` for DEFAULT. `None` if it is an interval.
fn value(stmt: &VariableSetStmt) -> Option<Option<String>> {
    if stmt.args.is_empty() {
        return Some(None);
    }
    let text = |value: &VariableValue| match value {
        VariableValue::Const(Value::Integer(number)) => Some(number.to_string()),
        VariableValue::Const(Value::Float(text) | Value::String(text)) => Some((&**text).into()),
        VariableValue::Const(_) | VariableValue::Interval(..) => None,
    };
    let texts: Option<Vec<String>> = stmt.args.iter().map(text).collect();
    texts.map(|texts| Some(texts.join(", ")))
}
