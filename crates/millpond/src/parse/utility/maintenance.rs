//! VACUUM and ANALYZE, and the options in parentheses that they share with EXPLAIN.

use sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError, SqlState};
use crate::parse::cursor::Cursor;
use crate::parse::{Name, Statement, VacuumOptions};
use crate::settings;

/// The rest of `(NAME [VALUE], ...)`: calls `take` with each name and its value. It says whether it
/// knows the name.
pub(super) fn options(
    cursor: &mut Cursor<'_, '_>,
    command: &str,
    take: &mut dyn FnMut(&str, Option<&str>) -> Result<bool>,
) -> Result<()> {
    loop {
        let place = cursor.peek_token().span;
        let name = cursor.ident()?;
        let value = match cursor.peek() {
            Token::Comma | Token::RParen => None,
            _ => Some(cursor.value()?),
        };
        if !take(&name, value.as_deref())? {
            let error = SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("unrecognized {command} option \"{name}\""),
            );
            return Err(cursor.source.place(error, place));
        }
        if cursor.accept_token(&Token::RParen) {
            return Ok(());
        }
        cursor.expect_token(&Token::Comma)?;
    }
}

/// Whether an option's value switches it on, as none does.
pub(super) fn is_on(value: Option<&str>) -> bool {
    !matches!(value, Some("false" | "off" | "0" | "no"))
}

/// The value of `BUFFER_USAGE_LIMIT` in kB.
fn usage_limit(name: &str, value: Option<&str>) -> Result<u32> {
    match value {
        Some(value) => settings::usage_limit_kb(value),
        None => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{name} requires a parameter"))),
    }
}

fn tables_with_columns(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Name>> {
    let mut tables = Vec::new();
    while !cursor.at_end() {
        tables.push(cursor.name()?);
        if cursor.accept_token(&Token::LParen) {
            cursor.inside_parentheses()?;
        }
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    Ok(tables)
}

pub(super) fn vacuum(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let mut chosen = VacuumOptions::default();
    let mut take = |name: &str, value: Option<&str>| {
        let on = is_on(value);
        match name {
            "full" => chosen.full = on,
            "analyze" | "analyse" => chosen.analyze = on,
            "verbose" => chosen.verbose = on,
            "freeze"
            | "disable_page_skipping"
            | "skip_locked"
            | "index_cleanup"
            | "truncate"
            | "parallel"
            | "process_toast"
            | "process_main"
            | "skip_database_stats"
            | "only_database_stats" => {}
            "buffer_usage_limit" => chosen.usage_limit_kb = Some(usage_limit(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    };
    if cursor.accept_token(&Token::LParen) {
        options(cursor, "VACUUM", &mut take)?;
    } else {
        for word in ["full", "freeze", "verbose", "analyze", "analyse"] {
            if cursor.accept(word) {
                take(word, None)?;
            }
        }
    }
    if chosen.usage_limit_kb.is_some() && chosen.full && !chosen.analyze {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL",
        ));
    }
    let tables = tables_with_columns(cursor)?;
    Ok(Statement::Vacuum { options: chosen, tables })
}

pub(super) fn analyze(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let mut chosen = VacuumOptions { analyze: true, ..VacuumOptions::default() };
    if cursor.accept_token(&Token::LParen) {
        options(cursor, "ANALYZE", &mut |name, value| {
            match name {
                "verbose" => chosen.verbose = is_on(value),
                "skip_locked" => {}
                "buffer_usage_limit" => chosen.usage_limit_kb = Some(usage_limit(name, value)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
    } else {
        chosen.verbose = cursor.accept("verbose");
    }
    Ok(Statement::Analyze { options: chosen, tables: tables_with_columns(cursor)? })
}
