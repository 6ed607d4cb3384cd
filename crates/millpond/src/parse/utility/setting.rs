//! SET, SHOW, RESET and DISCARD.

use sqlparser::tokenizer::Token;

use super::transaction::modes;
use super::unsupported;
use crate::error::Result;
use crate::parse::cursor::Cursor;
use crate::parse::{Statement, Which};

pub(super) fn set(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let mut local = false;
    if cursor.accept("session") {
        if cursor.accept("characteristics") {
            cursor.expect("as")?;
            cursor.expect("transaction")?;
            return Ok(Statement::SetTransaction { modes: modes(cursor)?, session: true });
        }
        if cursor.is_word("authorization") {
            return Ok(unsupported(cursor, "SET SESSION AUTHORIZATION"));
        }
    } else if cursor.accept("local") {
        local = true;
    }
    if cursor.accept("transaction") {
        if cursor.is_word("snapshot") {
            return Ok(unsupported(cursor, "SET TRANSACTION SNAPSHOT"));
        }
        return Ok(Statement::SetTransaction { modes: modes(cursor)?, session: false });
    }
    if cursor.is_word("constraints") || cursor.is_word("role") {
        let what = cursor.word().unwrap_or_default().to_uppercase();
        return Ok(unsupported(cursor, &format!("SET {what}")));
    }
    if cursor.accept("time") {
        cursor.expect("zone")?;
        let value = if cursor.accept("local") || cursor.accept("default") {
            None
        } else {
            Some(cursor.value()?)
        };
        return Ok(Statement::Set { name: "TimeZone".to_owned(), value, local });
    }
    if cursor.accept("names") {
        let value = if cursor.accept("default") { None } else { Some(cursor.value()?) };
        return Ok(Statement::Set { name: "client_encoding".to_owned(), value, local });
    }
    let (name, value) = assignment(cursor)?;
    Ok(Statement::Set { name, value, local })
}

/// A name and its value, `None` for DEFAULT.
fn assignment(cursor: &mut Cursor<'_, '_>) -> Result<(String, Option<String>)> {
    let name = setting_name(cursor)?;
    if !cursor.accept("to") && !cursor.accept_token(&Token::Eq) {
        return Err(cursor.unexpected());
    }
    if cursor.accept("default") {
        return Ok((name, None));
    }
    let mut value = cursor.value()?;
    while cursor.accept_token(&Token::Comma) {
        value.push_str(", ");
        value.push_str(&cursor.value()?);
    }
    Ok((name, Some(value)))
}

pub(super) fn alter_system(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.expect("alter")?;
    cursor.expect("system")?;
    if cursor.accept("reset") {
        let name = if cursor.accept("all") { None } else { Some(setting_name(cursor)?) };
        return Ok(Statement::AlterSystem { name, value: None });
    }
    cursor.expect("set")?;
    let (name, value) = assignment(cursor)?;
    Ok(Statement::AlterSystem { name: Some(name), value })
}

fn setting_name(cursor: &mut Cursor<'_, '_>) -> Result<String> {
    let mut name = cursor.ident()?;
    while cursor.accept_token(&Token::Period) {
        name.push('.');
        name.push_str(&cursor.ident()?);
    }
    Ok(name)
}

pub(super) fn which(cursor: &mut Cursor<'_, '_>) -> Result<Which> {
    if cursor.accept("all") {
        return Ok(Which::All);
    }
    if cursor.accept("time") {
        cursor.expect("zone")?;
        return Ok(Which::Named("TimeZone".to_owned()));
    }
    if cursor.accept("transaction") {
        cursor.expect("isolation")?;
        cursor.expect("level")?;
        return Ok(Which::Named("transaction_isolation".to_owned()));
    }
    if cursor.accept("session") {
        cursor.expect("authorization")?;
        return Ok(Which::Named("session_authorization".to_owned()));
    }
    Ok(Which::Named(setting_name(cursor)?))
}

pub(super) fn show(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    Ok(Statement::Show(which(cursor)?))
}

pub(super) fn discard(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    for word in ["plans", "sequences", "temp", "temporary"] {
        if cursor.accept(word) {
            return Ok(Statement::Discard { all: false });
        }
    }
    cursor.expect("all")?;
    Ok(Statement::Discard { all: true })
}
