//! VACUUM and ANALYZE, and the options in parentheses that they share with EXPLAIN.

use sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError, SqlState};
use crate::parse::cursor::Cursor;
use crate::parse::{Name, Statement, VacuumOptions};

/// The rest of `(NAME [VALUE], ...)`: calls `take` with each name and its value, which is "on" unless one is written. It
/// says whether it knows the name.
pub(super) fn options(
    cursor: &mut Cursor<'_, '_>,
    command: &str,
    take: &mut dyn FnMut(&str, &str) -> bool,
) -> Result<()> {
    loop {
        let place = cursor.peek_token().span;
        let name = cursor.ident()?;
        let value = match cursor.peek() {
            Token::Comma | Token::RParen => "on".to_owned(),
            _ => cursor.value()?,
        };
        if !take(&name, &value) {
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

/// Whether an option's value switches it on.
pub(super) fn is_on(value: &str) -> bool {
    !matches!(value, "false" | "off" | "0" | "no")
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
    let mut take = |name: &str, value: &str| {
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
            | "buffer_usage_limit"
            | "skip_database_stats"
            | "only_database_stats" => {}
            _ => return false,
        }
        true
    };
    if cursor.accept_token(&Token::LParen) {
        options(cursor, "VACUUM", &mut take)?;
    } else {
        for word in ["full", "freeze", "verbose", "analyze", "analyse"] {
            if cursor.accept(word) {
                take(word, "on");
            }
        }
    }
    let tables = tables_with_columns(cursor)?;
    Ok(Statement::Vacuum { options: chosen, tables })
}

pub(super) fn analyze(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    if cursor.accept_token(&Token::LParen) {
        let known = ["verbose", "skip_locked", "buffer_usage_limit"];
        options(cursor, "ANALYZE", &mut |name, _| known.contains(&name))?;
    } else {
        cursor.accept("verbose");
    }
    Ok(Statement::Analyze { tables: tables_with_columns(cursor)? })
}
